//! Compensation of a step, in source form.

use serde::{Deserialize, Serialize};

use super::{Body, RetryPolicy, StepKind};

/// Undoes a step that has completed, when its execution fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compensation {
    /// An andThen or an andWorkflow; its `data` is the output of the step.
    pub kind: StepKind,
    pub retry: RetryPolicy,
    /// Timeout of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Compensation {
    /// Returns a compensation with the default retries and no timeout.
    pub fn new(kind: StepKind) -> Self {
        Self { kind, retry: RetryPolicy::default(), timeout_ms: None }
    }

    /// Returns the key of its work in configuration.
    pub fn work(&self) -> &'static str {
        match self.kind.body() {
            Some(Body::Map(_)) => "map",
            Some(Body::Run { .. }) => "run",
            Some(Body::Http(_)) => "http",
            Some(Body::Command(_)) => "command",
            Some(Body::Tool { .. }) => "tool",
            None => "workflow",
        }
    }
}
