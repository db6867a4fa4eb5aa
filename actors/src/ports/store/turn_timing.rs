//! How a turn of a generation went: what traces and measures are made of.

use serde::{Deserialize, Serialize};

use crate::domain::time::Timestamp;
use crate::ports::model::{ModelErrorKind, ModelOptions, Served};

/// When a turn happened, how it was asked for and who answered. Of turns that were stored before
/// this was kept, nothing is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnTiming {
    /// When the model was asked, and had answered or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<Period>,
    /// When the first piece of an answer in pieces came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_piece: Option<Timestamp>,
    #[serde(skip_serializing_if = "AskedWith::is_default")]
    pub asked_with: AskedWith,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<Box<Served>>,
    /// Of the tools, by the number of the call; empty until they are called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Period>,
    /// When the conversation was read, before the first turn of an agent that keeps one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_read: Option<Period>,
    /// Why there is no answer, or not all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Box<TurnError>>,
    /// Whether the answer missed its schema, and the model was asked again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_rejected: bool,
}

impl TurnTiming {
    pub(super) fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// When something began and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    pub start: Timestamp,
    /// None while it goes on, or when it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
}

/// Why a model gave no answer.
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
    /// The word for it in what is stored, and in attributes and labels.
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

/// What the model was asked with, as far as measures and traces want to know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AskedWith {
    /// Whether the answer was asked for piece by piece.
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
    fn a_course_takes_no_room_where_nothing_is_known_and_reads_back() {
        let old = json!({
            "text": "hi", "toolCalls": [], "toolResults": [], "finishReason": "stop",
            "usage": { "promptTokens": 0, "completionTokens": 0, "totalTokens": 0,
                       "cachedInputTokens": 0, "reasoningTokens": 0 },
        });
        let mut step: GenerationStep = serde_json::from_value(old.clone()).unwrap();
        assert_eq!(step.course, TurnTiming::default());
        assert_eq!(serde_json::to_value(&step).unwrap(), old);
        step.course.chat = Some(Period { start: Timestamp(1), end: Some(Timestamp(2)) });
        step.course.calls = vec![Period { start: Timestamp(3), end: None }];
        step.course.served = Some(Box::new(Served::of("small")));
        for kind in [TurnErrorKind::Stopped, TurnErrorKind::RateLimited] {
            step.course.error = Some(Box::new(TurnError { kind, message: "no".to_owned() }));
            let stored = serde_json::to_value(&step).unwrap();
            let expected = json!({
                "chat": { "start": 1, "end": 2 }, "served": { "model": "small" },
                "calls": [{ "start": 3 }],
                "error": { "kind": kind.as_str(), "message": "no" },
            });
            assert_eq!(stored["course"], expected);
            assert_eq!(serde_json::from_value::<GenerationStep>(stored).unwrap(), step);
        }
    }
}
