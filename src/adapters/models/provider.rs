//! Providers by name.

use super::format::Format;

/// Mode in which objects are requested from a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objects {
    /// The provider gets the schema.
    Native,
    /// The provider is asked for any JSON, and the schema is in the prompt.
    Json,
    /// The schema is in the prompt only.
    Instruction,
}

impl Objects {
    /// All modes by name.
    pub const NAMES: [(&str, Self); 3] =
        [("native", Self::Native), ("json", Self::Json), ("instruction", Self::Instruction)];
}

/// Name of DeepSeek.
pub(super) const DEEPSEEK: &str = "deepseek";

/// A service with models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// Name in the configuration.
    pub name: &'static str,
    /// Default URL; ends with a slash.
    pub base_url: &'static str,
    /// Usual environment variable of its key; `None` if it needs no key.
    pub key_variable: Option<&'static str>,
    /// Default mode of objects.
    pub objects: Objects,
    pub(super) format: Format,
}

/// Known providers. Other servers of one of the three wire formats are configured by the name of
/// the format's owner and their URL.
pub const PROVIDERS: [Provider; 11] = [
    Provider {
        name: "openai",
        base_url: "https://api.openai.com/v1/",
        key_variable: Some("OPENAI_API_KEY"),
        objects: Objects::Native,
        format: Format::OpenAi,
    },
    Provider {
        name: "anthropic",
        base_url: "https://api.anthropic.com/v1/",
        key_variable: Some("ANTHROPIC_API_KEY"),
        objects: Objects::Native,
        format: Format::Anthropic,
    },
    Provider {
        name: "gemini",
        base_url: "https://generativelanguage.googleapis.com/v1beta/",
        key_variable: Some("GEMINI_API_KEY"),
        objects: Objects::Native,
        format: Format::Gemini,
    },
    Provider {
        name: "ollama",
        base_url: "http://127.0.0.1:11434/v1/",
        key_variable: None,
        objects: Objects::Native,
        format: Format::OpenAi,
    },
    like_openai("groq", "https://api.groq.com/openai/v1/", "GROQ_API_KEY", Objects::Json),
    like_openai(DEEPSEEK, "https://api.deepseek.com/v1/", "DEEPSEEK_API_KEY", Objects::Json),
    like_openai("xai", "https://api.x.ai/v1/", "XAI_API_KEY", Objects::Native),
    like_openai(
        "cohere",
        "https://api.cohere.ai/compatibility/v1/",
        "COHERE_API_KEY",
        Objects::Json,
    ),
    like_openai(
        "openrouter",
        "https://openrouter.ai/api/v1/",
        "OPENROUTER_API_KEY",
        Objects::Native,
    ),
    like_openai("together", "https://api.together.xyz/v1/", "TOGETHER_API_KEY", Objects::Native),
    like_openai(
        "fireworks",
        "https://api.fireworks.ai/inference/v1/",
        "FIREWORKS_API_KEY",
        Objects::Native,
    ),
];

const fn like_openai(
    name: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
    objects: Objects,
) -> Provider {
    let (key_variable, format) = (Some(key_variable), Format::OpenAi);
    Provider { name, base_url, key_variable, objects, format }
}

impl Provider {
    /// Finds a provider by name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }

    /// Returns true if it refuses requests for any JSON that have tools.
    pub(super) fn is_json_without_tools(&self) -> bool {
        self.format == Format::Gemini || matches!(self.name, "groq" | "cohere")
    }
}
