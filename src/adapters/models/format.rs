//! The three wire formats, and the parts that each of them implements.

use greenroom_actors::ports::model::{ModelError, ProviderState};
use reqwest::{RequestBuilder, Url};
use serde_json::Value;

use super::ApiKey;
use super::answer::Answer;
use super::prompt::Prompt;
use super::{anthropic, gemini, openai};

/// Wire format of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
    /// `generateContent`.
    Gemini,
}

/// Reads the frames of one answer, in a stream or whole.
pub(super) trait Reader: Send {
    /// Reads the next frame.
    fn read(&mut self, frame: &Value, answer: &mut Answer) -> Result<(), ModelError>;

    /// True if the provider has marked the answer as complete. In most formats only the end of the
    /// connection does.
    fn is_done(&self) -> bool {
        false
    }

    /// Takes the state that the provider needs back with later turns.
    fn state(&mut self, answer: &Answer) -> Option<ProviderState>;

    /// Ends the answer, after the end of the connection or the provider's mark. Returns false if it
    /// is not complete.
    fn end(&mut self, answer: &mut Answer) -> Result<bool, ModelError> {
        if answer.finish_reason.is_none() {
            return Ok(false);
        }
        let state = self.state(answer);
        answer.finish(state)?;
        Ok(true)
    }
}

impl Format {
    /// Returns the URL of a model.
    pub(super) fn url(self, base: &Url, model: &str, streams: bool) -> Url {
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
    pub(super) fn authorized(
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

    pub(super) fn body(self, prompt: &Prompt<'_>) -> Result<Value, ModelError> {
        match self {
            Self::OpenAi => openai::body(prompt),
            Self::Anthropic => anthropic::body(prompt),
            Self::Gemini => gemini::body(prompt),
        }
    }

    pub(super) fn reader(self, prompt: &Prompt<'_>) -> Box<dyn Reader> {
        match self {
            Self::OpenAi => Box::new(openai::OpenAiReader::new(prompt.provider)),
            Self::Anthropic => Box::new(anthropic::AnthropicReader::new(prompt)),
            Self::Gemini => Box::new(gemini::GeminiReader::default()),
        }
    }
}
