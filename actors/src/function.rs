//! Rust functions as bodies of steps.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::trace::Trace;

/// What a step's function may know.
#[derive(Debug, Clone)]
pub struct StepContext {
    /// Output of the step before.
    pub data: Arc<Value>,
    /// What the execution was started with.
    pub input: Arc<Value>,
    /// What the resume brought, when the step was resumed.
    pub resume: Option<Arc<Value>>,
    /// The operation context, with `user`, `userId` and `conversationId` where known.
    pub context: Arc<Value>,
    pub execution_id: ExecutionId,
    pub path: StepPath,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// The same for every attempt of this step: hand it to whatever the step calls.
    pub idempotency_key: String,
    /// The trace that the attempt belongs to, below its span: what the function starts in this
    /// process goes on with it.
    pub trace: Trace,
    /// Fires when the step is cancelled, timed out or the server stops. The future itself is
    /// dropped then; the token is for work that it has put on other threads.
    pub cancellation: CancellationToken,
}

impl StepContext {
    /// The value of a `traceparent` header (W3C Trace Context), for calls of other services: their
    /// spans become part of this trace, under the attempt's.
    pub fn traceparent(&self) -> Option<String> {
        self.trace.traceparent()
    }
}

/// How a function ends well.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    Completed(Value),
    /// Waits for a resume; the function is then called again from its start.
    Suspended {
        reason: Option<String>,
        payload: Option<Value>,
    },
}

impl From<Value> for StepOutcome {
    fn from(output: Value) -> Self {
        Self::Completed(output)
    }
}

/// Why a function failed. The message is shown in the execution's state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StepError(pub String);

impl From<String> for StepError {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<&str> for StepError {
    fn from(message: &str) -> Self {
        Self(message.to_owned())
    }
}

/// A registered function. It runs on an arbiter's thread beside other executions: work that
/// blocks belongs into `tokio::task::spawn_blocking`.
pub type StepFunction =
    Arc<dyn Fn(StepContext) -> BoxFuture<'static, Result<StepOutcome, StepError>> + Send + Sync>;
