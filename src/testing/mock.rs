//! Stand-ins for steps and tools: what they answer, and what they were called with.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use greenroom_actors::agent::tool::{ToolContext, ToolError, ToolFunction};
use greenroom_actors::domain::failure::{AttemptFailure, ErrorClass, ErrorKind};
use greenroom_actors::function::{StepContext, StepError, StepFunction, StepOutcome};
use serde::Serialize;
use serde_json::Value;

/// A stand-in for a step or a tool. Clones are the same one, so that a test keeps one to look at its
/// [`calls`](Self::calls).
#[derive(Clone)]
pub struct Mock {
    answer: Arc<Answer>,
    /// Number of first attempts that fail, and their failure.
    failing: Option<(u32, StepError)>,
    taking: Duration,
    is_repeatable: bool,
    calls: Arc<Mutex<Vec<MockCall>>>,
}

type Answer = dyn Fn(&MockCall) -> Result<Value, StepError> + Send + Sync;

/// A call of a [`Mock`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MockCall {
    /// Path of the step, such as `lines[2]/reserve`, or name of the tool.
    pub name: Arc<str>,
    /// Idempotency key: the same for all attempts of a step.
    pub key: String,
    /// Number of the attempt, from 1 on.
    pub attempt: u32,
    /// The step's data, or the arguments of the tool.
    pub input: Arc<Value>,
}

impl Mock {
    /// Returns this output. A value that cannot be written as JSON makes every call fail.
    pub fn output(output: impl Serialize) -> Self {
        let output = serde_json::to_value(output).map_err(StepError::terminal);
        Self::with(move |_| output.clone())
    }

    /// Fails each attempt. A terminal error, its kind and its delay are those of the step, or of the
    /// tool, that the mock stands for.
    pub fn failure(error: impl Into<StepError>) -> Self {
        let error = error.into();
        Self::with(move |_| Err(error.clone()))
    }

    /// Answers by a function. In tests with crashes it should answer the same to the same key.
    pub fn with(
        answer: impl Fn(&MockCall) -> Result<Value, StepError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            answer: Arc::new(answer),
            failing: None,
            taking: Duration::ZERO,
            is_repeatable: true,
            calls: Arc::default(),
        }
    }

    /// Fails so many first attempts.
    #[must_use]
    pub fn failing(self, times: u32, error: impl Into<StepError>) -> Self {
        Self { failing: Some((times, error.into())), ..self }
    }

    /// Answers after so much virtual time.
    #[must_use]
    pub fn taking(self, time: Duration) -> Self {
        Self { taking: time, ..self }
    }

    /// Stands for something that does not recognize its idempotency key: a test with crashes fails
    /// if the same call is made twice.
    #[must_use]
    pub fn unrepeatable(self) -> Self {
        Self { is_repeatable: false, ..self }
    }

    /// Returns the calls so far, in their order; after a [`Case`](super::Case), those of its run
    /// without a kill.
    pub fn calls(&self) -> Vec<MockCall> {
        self.log().clone()
    }

    pub(super) fn is_repeatable(&self) -> bool {
        self.is_repeatable
    }

    /// Replaces the calls so far.
    pub(super) fn set_calls(&self, calls: Vec<MockCall>) {
        *self.log() = calls;
    }

    fn log(&self) -> MutexGuard<'_, Vec<MockCall>> {
        // nothing panics while it holds the lock
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn call(self, call: MockCall) -> Result<Value, StepError> {
        self.log().push(call.clone());
        if !self.taking.is_zero() {
            tokio::time::sleep(self.taking).await;
        }
        match self.failing {
            Some((times, error)) if call.attempt <= times => Err(error),
            _ => (self.answer)(&call),
        }
    }

    /// Returns the mock as the function of a step.
    pub(super) fn step_function(&self) -> StepFunction {
        let mock = self.clone();
        Arc::new(move |step: StepContext| {
            let call = MockCall {
                name: step.path,
                key: step.idempotency_key,
                attempt: step.attempt,
                input: step.data,
            };
            let answer = mock.clone().call(call);
            async move { answer.await.map(StepOutcome::from) }.boxed()
        })
    }

    /// Returns the mock as the function of a tool.
    pub(super) fn tool_function(&self, name: &str) -> ToolFunction {
        let (mock, name) = (self.clone(), Arc::<str>::from(name));
        Arc::new(move |arguments, context: ToolContext| {
            let key = context.idempotency_key;
            let before = mock.log().iter().filter(|call| call.key == key).count();
            let attempt = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
            let call =
                MockCall { name: Arc::clone(&name), key, attempt, input: Arc::new(arguments) };
            let answer = mock.clone().call(call);
            async move { answer.await.map_err(failure_of_tool) }.boxed()
        })
    }
}

/// Returns the failure of a tool: the error's name of its kind and its delay, and that it is terminal,
/// are kept.
fn failure_of_tool(error: StepError) -> ToolError {
    let failure = AttemptFailure::from(error);
    let class = failure.class.map(|class| ErrorClass { kind: ErrorKind::Tool, ..class });
    ToolError::Failed(AttemptFailure { class, ..failure })
}

impl std::fmt::Debug for Mock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mock").field("calls", &*self.log()).finish_non_exhaustive()
    }
}
