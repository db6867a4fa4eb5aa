//! The parts of a format, from the modules that implement them.

use greenroom_actors::ports::model::ModelError;
use reqwest::{RequestBuilder, Url};
use serde_json::Value;

use super::{Format, Reader};
use crate::adapters::models::prompt::Prompt;
use crate::adapters::models::{ApiKey, anthropic, gemini, openai};

impl Format {
    /// Returns the URL of a model.
    pub(in crate::adapters::models) fn url(self, base: &Url, model: &str, streams: bool) -> Url {
        let mut url = base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
            match self {
                Self::OpenAi => path.extend(["chat", "completions"]),
                Self::Anthropic => path.push("messages"),
                Self::Gemini => path.extend(gemini::path(model, streams)),
            };
        }
        if self == Self::Gemini && streams {
            url.set_query(Some("alt=sse"));
        }
        url
    }

    /// Adds the key; always in a header, since URLs end up in logs.
    pub(in crate::adapters::models) fn authorized(
        self,
        request: RequestBuilder,
        key: Option<&ApiKey>,
    ) -> RequestBuilder {
        let request = match self {
            Self::Anthropic => request.header("anthropic-version", anthropic::VERSION),
            Self::OpenAi | Self::Gemini => request,
        };
        let Some(key) = key else { return request };
        match self {
            Self::OpenAi => request.bearer_auth(key.reveal()),
            Self::Anthropic => request.header("x-api-key", key.header()),
            Self::Gemini => request.header("x-goog-api-key", key.header()),
        }
    }

    pub(in crate::adapters::models) fn body(
        self,
        prompt: &Prompt<'_>,
    ) -> Result<Value, ModelError> {
        match self {
            Self::OpenAi => openai::body(prompt),
            Self::Anthropic => anthropic::body(prompt),
            Self::Gemini => gemini::body(prompt),
        }
    }

    pub(in crate::adapters::models) fn reader(self, prompt: &Prompt<'_>) -> Box<dyn Reader> {
        match self {
            Self::OpenAi => Box::new(openai::OpenAiReader::new(prompt.provider)),
            Self::Anthropic => Box::new(anthropic::AnthropicReader::new(prompt)),
            Self::Gemini => Box::new(gemini::GeminiReader::default()),
        }
    }
}
