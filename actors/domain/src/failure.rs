//! Why an attempt of a step failed: in words, and as what kind of failure.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::expression::ExpressionError;
use crate::schema::SchemaViolation;
use crate::time::Timestamp;

/// What kind of failure it was. The names are stored, and are `error.kind` of expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A called server answered with a status other than 2xx.
    Http,
    /// A called server could not be reached, or the connection broke.
    Connection,
    /// A call was not made: a secret, a host or a value in it does not do.
    Request,
    /// An answer or an output cannot be read.
    Response,
    /// The attempt took longer than it may.
    Timeout,
    /// A program was not started, or did not exit with 0.
    Command,
    /// A tool failed.
    Tool,
    /// A function failed or panicked.
    Function,
    /// The provider of a model failed.
    Model,
    /// An agent could not answer.
    Agent,
    /// The execution that an andWorkflow step started failed or was cancelled.
    Workflow,
    /// An input, an output or a payload does not meet its schema.
    Schema,
    /// An expression or a template could not be evaluated.
    Expression,
    /// Nobody answered before the deadline.
    Deadline,
    /// The process ended while the attempt was at work.
    Interrupted,
    /// An evaluation or a check costs more than it may. It is never tried again.
    Cost,
    /// A value, or the execution as a whole, is larger than it may be.
    Limit,
    /// A fault of the server.
    Internal,
}

impl ErrorKind {
    /// Every kind.
    pub const ALL: [Self; 18] = [
        Self::Http,
        Self::Connection,
        Self::Request,
        Self::Response,
        Self::Timeout,
        Self::Command,
        Self::Tool,
        Self::Function,
        Self::Model,
        Self::Agent,
        Self::Workflow,
        Self::Schema,
        Self::Expression,
        Self::Deadline,
        Self::Interrupted,
        Self::Cost,
        Self::Limit,
        Self::Internal,
    ];

    /// The name on the wire and in expressions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Connection => "connection",
            Self::Request => "request",
            Self::Response => "response",
            Self::Timeout => "timeout",
            Self::Command => "command",
            Self::Tool => "tool",
            Self::Function => "function",
            Self::Model => "model",
            Self::Agent => "agent",
            Self::Workflow => "workflow",
            Self::Schema => "schema",
            Self::Expression => "expression",
            Self::Deadline => "deadline",
            Self::Interrupted => "interrupted",
            Self::Cost => "cost",
            Self::Limit => "limit",
            Self::Internal => "internal",
        }
    }
}

/// What can be told of a failure without its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorClass {
    pub kind: ErrorKind,
    /// Of an answer over HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

impl ErrorClass {
    pub const fn of(kind: ErrorKind) -> Self {
        Self { kind, status: None }
    }

    pub const fn http(status: u16) -> Self {
        Self { kind: ErrorKind::Http, status: Some(status) }
    }

    /// Whether the same request would be refused again: a status 4xx, but for those that speak of
    /// time (408 too slow, 409 conflict, 425 too early, 429 too many).
    pub fn is_final(self) -> bool {
        match self.status {
            Some(408 | 409 | 425 | 429) | None => false,
            Some(status) => (400..500).contains(&status),
        }
    }
}

/// The failure of an attempt, as it comes from where it happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFailure {
    /// Fit for callers: no secret, no path of this machine.
    pub message: String,
    /// None of what an earlier version recorded.
    pub class: Option<ErrorClass>,
    /// How long the other side wants to be left alone.
    pub retry_after_ms: Option<u64>,
    /// Of a container: the step inside that failed.
    pub step_id: Option<Arc<str>>,
}

impl AttemptFailure {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            class: Some(ErrorClass::of(kind)),
            retry_after_ms: None,
            step_id: None,
        }
    }

    /// A status other than 2xx.
    pub fn http(status: u16, message: impl Into<String>) -> Self {
        let class = Some(ErrorClass::http(status));
        Self { class, ..Self::new(ErrorKind::Http, message) }
    }

    pub(crate) fn expression(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Expression, message)
    }

    /// What the step is made of could not be evaluated; `of` says which part.
    pub(crate) fn not_evaluated(of: &str, error: &ExpressionError) -> Self {
        let kind = if error.is_too_costly { ErrorKind::Cost } else { ErrorKind::Expression };
        Self::new(kind, format!("{of}{error}"))
    }

    /// A value does not meet its schema; `of` says which one.
    pub fn not_valid(of: &str, violation: &SchemaViolation) -> Self {
        let kind = if violation.is_too_costly { ErrorKind::Cost } else { ErrorKind::Schema };
        Self::new(kind, format!("{of} validation failed: {violation}"))
    }

    /// The same failure, seen from what the part at `place` belongs to.
    pub(crate) fn inside(self, place: &str) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }

    /// `error` of expressions, in attempt `attempt` of the step `step_id`.
    pub(crate) fn in_scope(&self, step_id: &str, attempt: u32) -> Value {
        json!({
            "kind": self.class.map(|class| class.kind.as_str()),
            "status": self.class.and_then(|class| class.status),
            "message": self.message,
            "stepId": self.step_id.as_deref().unwrap_or(step_id),
            "attempt": attempt,
        })
    }
}

impl std::fmt::Display for AttemptFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// Failed attempts that a step keeps: the newest ones.
pub const ATTEMPT_ERRORS_MAX: usize = 10;
/// Bytes that are kept of what an earlier attempt failed with.
pub const ATTEMPT_ERROR_BYTES_MAX: usize = 1024;

/// An attempt that failed, as its step remembers it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptError {
    pub attempt: u32,
    pub at: Timestamp,
    pub message: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
}

/// The beginning of a text, of so many bytes at most.
pub fn shortened(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_stored_under_the_names_that_expressions_see() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        let stored = serde_json::to_value(ErrorClass::http(404)).unwrap();
        assert_eq!(stored, json!({ "kind": "http", "status": 404 }));
        let stored = serde_json::to_value(ErrorClass::of(ErrorKind::Tool)).unwrap();
        assert_eq!(stored, json!({ "kind": "tool" }));
    }

    #[test]
    fn a_refusal_is_final_unless_it_speaks_of_time() {
        let rows = [
            (Some(399), false),
            (Some(400), true),
            (Some(404), true),
            (Some(408), false),
            (Some(409), false),
            (Some(422), true),
            (Some(425), false),
            (Some(429), false),
            (Some(499), true),
            (Some(500), false),
            (Some(503), false),
            (None, false),
        ];
        for (status, expected) in rows {
            let class = ErrorClass { kind: ErrorKind::Http, status };
            assert_eq!(class.is_final(), expected, "{status:?}");
        }
    }
}
