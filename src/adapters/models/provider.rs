//! Providers by name.

use super::format::Format;

/// How a provider is asked for objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objects {
    /// With the schema, in the provider's own way.
    Native,
    /// For any JSON, with the schema in words.
    Json,
    /// In words alone.
    Instruction,
}

impl Objects {
    /// All ways by name.
    pub const NAMES: [(&str, Self); 3] =
        [("native", Self::Native), ("json", Self::Json), ("instruction", Self::Instruction)];
}

/// Somebody who serves models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Provider {
    /// As the configuration names it.
    pub name: &'static str,
    /// Where it is, unless the configuration says otherwise; ends with a slash.
    pub base_url: &'static str,
    /// The variable in which its keys usually are; `None` where none is needed.
    pub key_variable: Option<&'static str>,
    /// How it is asked for objects unless the configuration says otherwise.
    pub objects: Objects,
    pub(super) format: Format,
}

/// Everybody known. Others that speak one of the three wire formats are reached by its owner's
/// name and their own address.
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
    like_openai("deepseek", "https://api.deepseek.com/v1/", "DEEPSEEK_API_KEY", Objects::Json),
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
    /// The provider of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PROVIDERS.iter().find(|provider| provider.name == name)
    }
}
