//! Rust functions as bodies of steps.

mod error;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use self::error::StepError;

use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::machine::Outputs;
pub use crate::domain::principal::Principal;
use crate::domain::trace::{EntityType, Trace, TraceOrigin};
use crate::home::Home;

/// Context of an attempt, for a step's function.
#[derive(Debug, Clone)]
pub struct StepContext {
    /// Output of the previous step.
    pub data: Arc<Value>,
    /// Input of the execution.
    pub input: Arc<Value>,
    /// Data of the resume, if the step was resumed.
    pub resume: Option<Arc<Value>>,
    /// Caller of the resume, if known; `None` for a deadline.
    pub resumed_by: Option<Arc<Principal>>,
    /// Of a compensation: why the execution ends, as `error` of expressions (`kind`, `status`,
    /// `message`, `stepId`, `attempt`).
    pub error: Option<Arc<Value>>,
    /// The operation context, with `user`, `userId` and `conversationId` where known.
    pub context: Arc<Value>,
    pub execution_id: ExecutionId,
    pub path: StepPath,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// Same for every attempt of this step. Pass it on to services that the step calls.
    pub idempotency_key: String,
    /// Trace of the attempt, below its span; pass it on to work that the function starts in this
    /// process.
    pub trace: Trace,
    /// Fires when the step is cancelled or timed out, or when the server stops. The future itself
    /// is dropped then; the token stops work that it has moved to other threads.
    pub cancellation: CancellationToken,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) progress: ProgressSender,
    pub(crate) home: Home,
}

/// Sends the progress of a step to subscribers, if there are any.
#[derive(Clone, Default)]
pub(crate) struct ProgressSender(pub(crate) Option<Arc<dyn Fn(Value) -> bool + Send + Sync>>);

impl std::fmt::Debug for ProgressSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() {
            "ProgressSender(connected)"
        } else {
            "ProgressSender(disconnected)"
        })
    }
}

impl StepContext {
    /// Creates a context like that of the first attempt of a step named `step`, for unit tests.
    /// Other fields are public and can be set. Progress is discarded.
    ///
    /// ```
    /// use greenroom_actors::function::{StepContext, StepError, StepOutcome};
    /// use serde_json::{Value, json};
    ///
    /// fn double(step: &StepContext) -> Result<StepOutcome, StepError> {
    ///     let n: i64 = step.data_as()?;
    ///     Ok(Value::from(n * 2).into())
    /// }
    ///
    /// let step = StepContext::for_test(json!(21));
    /// assert_eq!(double(&step), Ok(json!(42).into()));
    /// let error = double(&StepContext::for_test(json!("x"))).unwrap_err();
    /// assert!(error.message().starts_with("data: invalid type"), "{error}");
    /// ```
    pub fn for_test(data: Value) -> Self {
        let data = Arc::new(data);
        let workflow: Arc<str> = Arc::from("test");
        let execution_id = ExecutionId::trusted("test");
        Self {
            input: Arc::clone(&data),
            data,
            resume: None,
            resumed_by: None,
            error: None,
            context: Arc::new(Value::Object(serde_json::Map::new())),
            path: Arc::from("step"),
            attempt: 1,
            idempotency_key: format!("{execution_id}/step"),
            trace: Trace::of("test", EntityType::Workflow, &workflow, TraceOrigin::New),
            execution_id,
            cancellation: CancellationToken::new(),
            outputs: Arc::default(),
            progress: ProgressSender::default(),
            home: Home::default(),
        }
    }

    /// Deserializes the output of the previous step. A misfit is terminal: other attempts would get
    /// the same data.
    pub fn data_as<T: DeserializeOwned>(&self) -> Result<T, StepError> {
        read_as("data", &self.data)
    }

    /// Deserializes the input of the execution; a misfit is terminal.
    pub fn input_as<T: DeserializeOwned>(&self) -> Result<T, StepError> {
        read_as("input", &self.input)
    }

    /// Deserializes the output of an earlier step, by its id: those that are `steps` in expressions.
    /// An output that is not there is a terminal failure, as is a misfit.
    ///
    /// ```
    /// use greenroom_actors::function::{StepContext, StepError};
    /// use serde_json::json;
    ///
    /// fn total(step: &StepContext) -> Result<u64, StepError> {
    ///     Ok(step.output::<u64>("price")? * step.output_if_any::<u64>("count")?.unwrap_or(1))
    /// }
    ///
    /// let step = StepContext::for_test(json!(null)).with_output("price", json!(40));
    /// assert_eq!(total(&step), Ok(40));
    /// let error = total(&StepContext::for_test(json!(null))).unwrap_err();
    /// assert_eq!(error.message(), "there is no output of step price here");
    /// ```
    pub fn output<T: DeserializeOwned>(&self, step: &str) -> Result<T, StepError> {
        let found = self.output_if_any(step)?;
        found.ok_or_else(|| StepError::terminal(format!("there is no output of step {step} here")))
    }

    /// Deserializes the output of an earlier step; `None` if the step was not run or failed.
    pub fn output_if_any<T: DeserializeOwned>(&self, step: &str) -> Result<Option<T>, StepError> {
        let output = self.outputs.get(step);
        output.map(|value| read_as(&format!("steps.{step}"), value)).transpose()
    }

    /// Adds the output of an earlier step, for unit tests.
    #[must_use]
    pub fn with_output(mut self, step: &str, output: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.outputs).insert(Arc::from(step), Arc::new(output.into()));
        self
    }

    /// Deserializes the data of the resume; `None` if the step was not resumed.
    ///
    /// ```
    /// use greenroom_actors::function::{StepContext, StepError, StepOutcome};
    /// use serde_json::{Value, json};
    ///
    /// /// Asks once, and returns the answer.
    /// fn confirm(step: &StepContext) -> Result<StepOutcome, StepError> {
    ///     match step.resume_as::<bool>()? {
    ///         Some(yes) => Ok(Value::from(yes).into()),
    ///         None => Ok(StepOutcome::suspended("Really?").showing(json!({ "n": 1 }))),
    ///     }
    /// }
    ///
    /// let mut step = StepContext::for_test(json!(null));
    /// assert!(matches!(confirm(&step), Ok(StepOutcome::Suspended { .. })));
    /// step.resume = Some(json!(true).into());
    /// assert_eq!(confirm(&step), Ok(json!(true).into()));
    /// ```
    pub fn resume_as<T: DeserializeOwned>(&self) -> Result<Option<T>, StepError> {
        self.resume.as_ref().map(|resume| read_as("resume", resume)).transpose()
    }

    /// Returns why the execution ends, for a function that compensates a step: the message of the
    /// failure, or the reason of the cancellation. `None` in any other step.
    ///
    /// ```
    /// use greenroom_actors::function::{StepContext, StepError, StepOutcome};
    /// use serde_json::{Value, json};
    ///
    /// /// Cancels a booking, and says why.
    /// fn cancel(step: &StepContext) -> Result<StepOutcome, StepError> {
    ///     let why = step.error_message().unwrap_or("no longer needed");
    ///     Ok(json!({ "booking": step.data["id"], "why": why }).into())
    /// }
    ///
    /// let mut step = StepContext::for_test(json!({ "id": 7 }));
    /// step.error = Some(json!({ "kind": "http", "message": "sold out" }).into());
    /// assert_eq!(cancel(&step), Ok(json!({ "booking": 7, "why": "sold out" }).into()));
    /// ```
    pub fn error_message(&self) -> Option<&str> {
        self.error.as_ref()?.get("message")?.as_str()
    }

    /// Sends a `step-progress` with this `event` to the current subscribers of the execution.
    /// Nothing is recorded. Returns false if it was not sent: without subscribers when the attempt
    /// began, above 64 kB, and above a hundred per second.
    ///
    /// ```
    /// use greenroom_actors::function::{StepContext, StepError, StepOutcome};
    /// use serde_json::{Value, json};
    ///
    /// fn load(step: &StepContext) -> Result<StepOutcome, StepError> {
    ///     let files: Vec<String> = step.data_as()?;
    ///     for (done, file) in files.iter().enumerate() {
    ///         step.progress(json!({ "file": file, "done": done, "of": files.len() }));
    ///     }
    ///     Ok(Value::from(files.len()).into())
    /// }
    ///
    /// assert_eq!(load(&StepContext::for_test(json!(["a", "b"]))), Ok(json!(2).into()));
    /// ```
    pub fn progress(&self, event: impl Into<Value>) -> bool {
        self.progress.0.as_ref().is_some_and(|send| send(event.into()))
    }

    /// Returns the value of a `traceparent` header (W3C Trace Context), for calls of other
    /// services: their spans become part of this trace, below the attempt's.
    pub fn traceparent(&self) -> Option<String> {
        self.trace.traceparent()
    }
}

/// Successful outcome of a function.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StepOutcome {
    Completed(Value),
    /// Suspends the step until a resume, which calls the function again from its start.
    Suspended {
        reason: Option<String>,
        payload: Option<Value>,
    },
}

impl StepOutcome {
    /// Creates a suspension with a reason.
    pub fn suspended(reason: impl Into<String>) -> Self {
        Self::Suspended { reason: Some(reason.into()), payload: None }
    }

    /// Adds a payload to a suspension; no effect on a completed outcome.
    #[must_use]
    pub fn showing(self, shown: impl Into<Value>) -> Self {
        match self {
            Self::Suspended { reason, payload: _ } => {
                Self::Suspended { reason, payload: Some(shown.into()) }
            }
            completed @ Self::Completed(_) => completed,
        }
    }
}

/// Reads a value of this name; an error names the field.
pub fn read_as<T: DeserializeOwned>(what: &str, value: &Value) -> Result<T, StepError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (place, inner) = (error.path().to_string(), error.inner());
        let dot = if place == "." { String::new() } else { format!(".{place}") };
        StepError::terminal(format!("{what}{dot}: {inner}"))
    })
}

impl From<Value> for StepOutcome {
    fn from(output: Value) -> Self {
        Self::Completed(output)
    }
}

/// A registered function. It runs on an arbiter's thread beside other executions; move blocking
/// work to `tokio::task::spawn_blocking`.
pub type StepFunction =
    Arc<dyn Fn(StepContext) -> BoxFuture<'static, Result<StepOutcome, StepError>> + Send + Sync>;
