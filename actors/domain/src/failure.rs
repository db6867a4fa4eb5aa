//! Failures of attempts: message, kind, and whether a retry can help.

pub(crate) mod message;
pub(crate) mod name;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::message::{ATTEMPT_ERROR_BYTES_MAX, shortened};
pub use self::name::{ERROR_NAME_BYTES_MAX, ErrorName};

use crate::expression::{ExpressionError, Stated};
use crate::schema::SchemaViolation;
use crate::time::Timestamp;

/// Kind of a failure. The names are stored, and are `error.kind` in expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// A called server answered with a status other than 2xx.
    Http,
    /// A called server could not be reached, or the connection broke.
    Connection,
    /// A call was not made because a secret, a host or a value is invalid.
    Request,
    /// An answer or an output cannot be parsed.
    Response,
    /// The attempt exceeded its timeout.
    Timeout,
    /// A program did not start, or exited with a status other than 0.
    Command,
    /// A tool failed.
    Tool,
    /// A function failed or panicked.
    Function,
    /// The provider of a model failed.
    Model,
    /// An agent gave no answer.
    Agent,
    /// The execution that an andWorkflow step started failed or was cancelled.
    Workflow,
    /// An input, an output or a payload does not match its schema.
    Schema,
    /// An expression or a template could not be evaluated.
    Expression,
    /// The step was not resumed before its deadline.
    Deadline,
    /// The process ended during the attempt.
    Interrupted,
    /// An evaluation or a check exceeded its budget. It is never retried.
    Cost,
    /// A value, or the execution as a whole, exceeds a limit.
    Limit,
    /// An error of the server.
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

    /// Returns the name on the wire and in expressions.
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

/// Classification of a failure, without its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorClass {
    pub kind: ErrorKind,
    /// Status of the HTTP answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Name that the failing function gave: `error.kind` of expressions in place of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<ErrorName>,
    /// True if further attempts are ruled out: by the failing function, by that of a child, or
    /// because a child cannot be reversed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_terminal: bool,
}

impl ErrorClass {
    pub const fn of(kind: ErrorKind) -> Self {
        Self { kind, status: None, name: None, is_terminal: false }
    }

    pub const fn http(status: u16) -> Self {
        Self { status: Some(status), ..Self::of(ErrorKind::Http) }
    }

    /// Returns true if no policy retries the failure: a function ruled it out, or a budget was
    /// exceeded. If that was in a child, `retry.on` of the parent can ask for another one.
    pub fn is_never_retried(self) -> bool {
        self.kind == ErrorKind::Cost || self.is_terminal && self.kind != ErrorKind::Workflow
    }

    /// Returns the kind of expressions: the given name, or that of the kind.
    fn label(&self) -> &str {
        self.name.as_ref().map_or(self.kind.as_str(), ErrorName::as_str)
    }

    /// Returns true if a policy without `on` does not retry the failure, because another attempt would
    /// fail in the same way: further attempts are ruled out, or the status is 4xx, except those that
    /// may change with time (408 timeout, 409 conflict, 425 too early, 429 too many requests).
    pub fn is_final(self) -> bool {
        match self.status {
            _ if self.is_terminal => true,
            Some(408 | 409 | 425 | 429) | None => false,
            Some(status) => (400..500).contains(&status),
        }
    }
}

/// Failure of an attempt, as reported by its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFailure {
    /// Fit for callers: contains no secrets and no local paths.
    pub message: String,
    /// `None` for failures recorded by an earlier version.
    pub class: Option<ErrorClass>,
    /// Delay that the server (`Retry-After`) or the function asked for.
    pub retry_after_ms: Option<u64>,
    /// For a container: the step inside that failed.
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

    /// Creates a failure from a status other than 2xx.
    pub fn http(status: u16, message: impl Into<String>) -> Self {
        let class = Some(ErrorClass::http(status));
        Self { class, ..Self::new(ErrorKind::Http, message) }
    }

    pub(crate) fn expression(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Expression, message)
    }

    /// Creates a failure to evaluate a part of the step; `of` is the prefix that names the part.
    pub(crate) fn not_evaluated(of: &str, error: &ExpressionError) -> Self {
        let kind = if error.is_too_costly { ErrorKind::Cost } else { ErrorKind::Expression };
        let Stated { name, is_terminal, retry_after_ms } =
            error.stated.as_deref().copied().unwrap_or_default();
        let is_terminal = is_terminal || error.is_raised;
        let class = Some(ErrorClass { name, is_terminal, ..ErrorClass::of(kind) });
        // what the definition says is the whole message
        let of = if error.is_raised { "" } else { of };
        Self { class, retry_after_ms, ..Self::new(kind, format!("{of}{error}")) }
    }

    /// Creates a failure of a value named `of` that does not match its schema.
    pub fn not_valid(of: &str, violation: &SchemaViolation) -> Self {
        let kind = if violation.is_too_costly { ErrorKind::Cost } else { ErrorKind::Schema };
        Self::new(kind, format!("{of} validation failed: {violation}"))
    }

    /// Adds the failure of an expression that was to handle this one; `of` names its key. What
    /// `fail` raised replaces the message.
    pub(crate) fn and_then(&self, of: &str, error: &ExpressionError) -> Self {
        let message = match error.is_raised {
            true => error.to_string(),
            false => format!("{self}; {of}: {error}"),
        };
        Self { message, ..self.clone() }
    }

    /// Returns `error` of expressions, for an attempt of the step `step_id`.
    pub(crate) fn in_scope(&self, step_id: &str, attempt: u32) -> Value {
        json!({
            "kind": self.class.as_ref().map(ErrorClass::label),
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

/// Maximum number of failed attempts that a step keeps; the oldest are dropped.
pub const ATTEMPT_ERRORS_MAX: usize = 10;

/// A failed attempt, as kept by its step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptError {
    pub attempt: u32,
    pub at: Timestamp,
    pub message: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_stored_under_their_expression_names() {
        for kind in ErrorKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        let stored = serde_json::to_value(ErrorClass::http(404)).unwrap();
        assert_eq!(stored, json!({ "kind": "http", "status": 404 }));
        let stored = serde_json::to_value(ErrorClass::of(ErrorKind::Tool)).unwrap();
        assert_eq!(stored, json!({ "kind": "tool" }));
        let named = ErrorClass {
            name: ErrorName::new("declined"),
            is_terminal: true,
            ..ErrorClass::of(ErrorKind::Function)
        };
        let stored = serde_json::to_value(named).unwrap();
        assert_eq!(stored, json!({ "kind": "function", "name": "declined", "is_terminal": true }));
        assert_eq!(serde_json::from_value::<ErrorClass>(stored).unwrap(), named);
    }

    #[test]
    fn a_4xx_is_final_unless_time_may_help() {
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
            let class = ErrorClass { status, ..ErrorClass::of(ErrorKind::Http) };
            assert_eq!(class.is_final(), expected, "{status:?}");
        }
    }
}
