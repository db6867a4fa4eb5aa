//! One execution, as other code of the process reaches it.

use std::marker::PhantomData;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use greenroom_actors::Runtime;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::status::Status;
use greenroom_actors::requests::{
    Cancelled, ControlError, DescribeError, ExecutionState, Failure, Suspended, Target,
};
use greenroom_actors::visibility::Visibility;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Resume;
use crate::api::wire::event::numbered;

/// An execution, whose result has the type `T`. Dropping it changes nothing about the execution.
/// Cheap to clone.
#[derive(Debug)]
pub struct Run<T = Value> {
    runtime: Runtime,
    target: Target,
    result: PhantomData<fn() -> T>,
}

impl<T> Clone for Run<T> {
    fn clone(&self) -> Self {
        let (runtime, target) = (self.runtime.clone(), self.target.clone());
        Self { runtime, target, result: PhantomData }
    }
}

/// Reason why there is no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The execution failed.
    #[error("{}", .0.message)]
    Failed(Failure),
    /// The execution was cancelled, for this reason.
    #[error("the execution was cancelled{}", .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Cancelled(Option<String>),
    /// The result does not have the expected type.
    #[error("the result has another type: {0}")]
    Type(String),
    /// The execution cannot be followed to its end by this process, such as when the server stops.
    #[error(transparent)]
    Unknown(#[from] DescribeError),
}

/// An event of an execution, as `GET /workflows/:id/executions/:id/events` shows it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunEvent {
    /// Its number, from 1 on without gaps.
    pub sequence: u64,
    /// Its members, of which `type` is the kind.
    pub value: Value,
}

impl RunEvent {
    /// Returns the kind, such as `step-complete`.
    pub fn kind(&self) -> &str {
        self.value["type"].as_str().unwrap_or_default()
    }
}

impl Run {
    pub(super) fn new(runtime: Runtime, workflow: &str, execution_id: ExecutionId) -> Self {
        let (workflow_id, visibility) = (workflow.to_owned(), Visibility::Everything);
        let target = Target { workflow_id, execution_id, visibility };
        Self { runtime, target, result: PhantomData }
    }
}

impl<T> Run<T> {
    /// Sets the type of the result.
    #[must_use]
    pub fn returning<U>(self) -> Run<U> {
        Run { runtime: self.runtime, target: self.target, result: PhantomData }
    }

    /// Returns the id of the execution.
    pub fn id(&self) -> &ExecutionId {
        &self.target.execution_id
    }

    /// Returns the id of the workflow.
    pub fn workflow(&self) -> &str {
        &self.target.workflow_id
    }

    /// Returns the state now.
    pub async fn state(&self) -> Result<ExecutionState, DescribeError> {
        self.runtime.describe(&self.target).await
    }

    /// Waits until the execution no longer runs, because it has ended or waits for a resume, and
    /// returns its state.
    pub async fn settled(&self) -> Result<ExecutionState, DescribeError> {
        let is_settled = |state: &ExecutionState| state.status != Status::Running;
        self.runtime.state_when(&self.target, is_settled).await
    }

    /// Returns the events above a number: those of the past, then each as it becomes durable,
    /// without gap or repetition, to the end of the execution. Progress of steps is not recorded and
    /// not among them.
    ///
    /// ```no_run
    /// use futures_util::StreamExt as _;
    /// use greenroom::prelude::*;
    ///
    /// async fn print(run: &Run) -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut events = run.events(0);
    ///     while let Some(event) = events.next().await {
    ///         let event = event?;
    ///         println!("{} {}", event.sequence, event.kind());
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn events(&self, after: u64) -> BoxStream<'static, Result<RunEvent, DescribeError>> {
        let id = self.target.execution_id.clone();
        let facts = self.runtime.follow(self.target.clone(), after);
        let events = facts.flat_map(move |fact| {
            let events = match fact {
                Ok(fact) => {
                    let events = numbered(&id, &fact, after);
                    events.map(|(sequence, value)| Ok(RunEvent { sequence, value })).collect()
                }
                Err(error) => vec![Err(error)],
            };
            stream::iter(events)
        });
        events.boxed()
    }

    /// Resumes the execution with data when awaited, and resolves when that is durable and it has
    /// settled again, with what it has come to. It must wait at one step; [`Self::resume_step`]
    /// names one of several.
    ///
    /// It counts also where others are asked, unless [`Resume::caller`] says who answers.
    pub fn resume(&self, data: &(impl Serialize + ?Sized)) -> Resume {
        self.resume_at(None, data)
    }

    /// Resumes one of several steps that wait, by its id or its path, as [`Self::resume`] does.
    pub fn resume_step(&self, step: &str, data: &(impl Serialize + ?Sized)) -> Resume {
        self.resume_at(Some(step), data)
    }

    fn resume_at(&self, step: Option<&str>, data: &(impl Serialize + ?Sized)) -> Resume {
        let (runtime, target) = (self.runtime.clone(), self.target.clone());
        Resume::new(runtime, target, step, serde_json::to_value(data))
    }

    /// Suspends the execution; resolves when that is durable.
    pub async fn suspend(&self, reason: Option<&str>) -> Result<Suspended, ControlError> {
        self.runtime.suspend(&self.target, reason.map(str::to_owned), None).await
    }

    /// Cancels the execution; resolves when that is durable.
    pub async fn cancel(&self, reason: Option<&str>) -> Result<Cancelled, ControlError> {
        self.runtime.cancel(&self.target, reason.map(str::to_owned), None).await
    }
}

impl<T: DeserializeOwned> Run<T> {
    /// Waits for the end, however long that takes and however often the execution waits for a
    /// resume, and returns the result.
    pub async fn result(&self) -> Result<T, RunError> {
        let state = self.runtime.state_when(&self.target, |_| false).await?;
        match (state.status, state.error) {
            (Status::Cancelled, _) => {
                Err(RunError::Cancelled(state.cancel_reason.map(|reason| (*reason).to_owned())))
            }
            (_, Some(failure)) => Err(RunError::Failed(failure)),
            (_, None) => {
                let result = state.result.unwrap_or_default();
                T::deserialize(&*result).map_err(|error| RunError::Type(error.to_string()))
            }
        }
    }
}
