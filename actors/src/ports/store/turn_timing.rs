//! Timing and origin of a turn, for traces and metrics.

use serde::{Deserialize, Serialize};

use crate::domain::fact::McpCall;
use crate::domain::time::Timestamp;
use crate::ports::model::{ModelErrorKind, ModelOptions, Served};

/// Timing of a turn, its options, and the model that answered. Empty for turns stored by versions
/// that did not record it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnTiming {
    /// From the question to the end of the answer or its failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<Period>,
    /// Time of the first piece of a streamed answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_piece: Option<Timestamp>,
    #[serde(skip_serializing_if = "AskedWith::is_default")]
    pub asked_with: AskedWith,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<Box<Served>>,
    /// Tool calls, by index; empty until they are made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Period>,
    /// Calls with results that went to MCP servers, by index.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<(usize, McpCall)>,
    /// Reading of the conversation, before the first turn of an agent with memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_read: Option<Period>,
    /// Failure that left no answer or a partial one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<TurnError>>,
    /// True if the answer missed its schema and the model was asked again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_rejected: bool,
}

impl TurnTiming {
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// Start and end of an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    pub start: Timestamp,
    /// `None` while it lasts, or if it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
}

/// Failure of a model's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnError {
    pub kind: TurnErrorKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnErrorKind {
    /// The run was stopped while the model answered.
    Stopped,
    RateLimited,
    Auth,
    Timeout,
    Unavailable,
    Other,
}

impl TurnErrorKind {
    /// Returns the name in stored data, attributes and labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::RateLimited => "rate_limited",
            Self::Auth => "auth",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Other => "other",
        }
    }
}

impl From<ModelErrorKind> for TurnErrorKind {
    fn from(kind: ModelErrorKind) -> Self {
        match kind {
            ModelErrorKind::RateLimited => Self::RateLimited,
            ModelErrorKind::Auth => Self::Auth,
            ModelErrorKind::Timeout => Self::Timeout,
            ModelErrorKind::Unavailable => Self::Unavailable,
            ModelErrorKind::Other => Self::Other,
        }
    }
}

/// Options of a question that metrics and traces show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AskedWith {
    /// True if the answer was streamed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
}

impl AskedWith {
    pub(crate) fn new(options: &ModelOptions, is_stream: bool) -> Self {
        let ModelOptions { temperature, max_output_tokens, top_p, .. } = options;
        Self {
            is_stream,
            temperature: *temperature,
            max_output_tokens: *max_output_tokens,
            top_p: *top_p,
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ports::store::GenerationStep;

    #[test]
    fn unknown_timing_is_not_stored_and_known_timing_reads_back() {
        let old = json!({
            "text": "hi", "toolCalls": [], "toolResults": [], "finishReason": "stop",
            "usage": { "promptTokens": 0, "completionTokens": 0, "totalTokens": 0,
                       "cachedInputTokens": 0, "reasoningTokens": 0 },
        });
        let mut step: GenerationStep = serde_json::from_value(old.clone()).unwrap();
        assert_eq!(step.timing, TurnTiming::default());
        assert_eq!(serde_json::to_value(&step).unwrap(), old);
        step.timing.chat = Some(Period { start: Timestamp(1), end: Some(Timestamp(2)) });
        step.timing.calls = vec![Period { start: Timestamp(3), end: None }];
        step.timing.served = Some(Box::new(Served::of("small")));
        let refused = McpCall { error_code: Some(-32602), ..McpCall::default() };
        step.timing.mcp = vec![(0, refused)];
        for kind in [TurnErrorKind::Stopped, TurnErrorKind::RateLimited] {
            step.timing.error = Some(Box::new(TurnError { kind, message: "no".to_owned() }));
            let stored = serde_json::to_value(&step).unwrap();
            let expected = json!({
                "chat": { "start": 1, "end": 2 }, "served": { "model": "small" },
                "calls": [{ "start": 3 }], "mcp": [[0, { "errorCode": -32602 }]],
                "error": { "kind": kind.as_str(), "message": "no" },
            });
            assert_eq!(stored["course"], expected);
            assert_eq!(serde_json::from_value::<GenerationStep>(stored).unwrap(), step);
        }
    }
}
