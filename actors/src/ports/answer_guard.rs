//! Port to a program's own check of answers, before they are accepted.

use std::fmt;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::domain::ids::ExecutionId;
use crate::domain::principal::Principal;
use crate::ports::store::{Ask, AskSubject};

/// An answer that was given and is not accepted yet.
#[derive(Clone)]
#[non_exhaustive]
pub struct GivenAnswer {
    /// The user or service that gives it; `None`: the program itself, or a request without a name.
    pub by: Option<Principal>,
    pub data: Arc<Value>,
    /// The ask that it answers. `None`: it ends a pause, or is given to a replay before its step
    /// asks.
    pub ask: Option<Ask>,
    /// The workflow that waits; `None`: an agent that no step has asked.
    pub workflow_id: Option<Arc<str>>,
    /// The execution that waits; of a replay, the new one.
    pub execution_id: Option<ExecutionId>,
    /// Path of the step that waits. `None`: a pause of the whole execution, or an agent that no step
    /// has asked.
    pub step: Option<Arc<str>>,
}

impl GivenAnswer {
    /// Returns the tool that an agent wants to call, of an answer that decides about the call;
    /// `None` of an answer to a step.
    pub fn tool(&self) -> Option<&str> {
        match &self.ask.as_ref()?.subject {
            AskSubject::Step(_) => None,
            AskSubject::Call(call) => Some(&call.tool_name),
        }
    }

    /// Returns the answer to an ask.
    pub(crate) fn to_ask(ask: Ask, by: Option<&Principal>, data: Arc<Value>) -> Self {
        let step = match &ask.subject {
            AskSubject::Step(step) => Some(step),
            AskSubject::Call(call) => call.step.as_ref(),
        };
        Self {
            by: by.cloned(),
            data,
            workflow_id: step.map(|step| Arc::clone(&step.workflow_id)),
            execution_id: step.map(|step| step.execution_id.clone()),
            step: step.map(|step| Arc::clone(&step.path)),
            ask: Some(ask),
        }
    }

    /// Returns an answer that no ask is known for: the end of a pause, or, with a step, the answer
    /// that a replay brings along.
    pub(crate) fn unasked(
        (workflow_id, execution_id): (Arc<str>, ExecutionId),
        step: Option<Arc<str>>,
        by: Option<&Principal>,
        data: Arc<Value>,
    ) -> Self {
        let (workflow_id, execution_id) = (Some(workflow_id), Some(execution_id));
        Self { by: by.cloned(), data, ask: None, workflow_id, execution_id, step }
    }
}

/// Shows everything but the data, which is private.
impl fmt::Debug for GivenAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, data: _, ask, workflow_id, execution_id, step } = self;
        f.debug_struct("GivenAnswer")
            .field("by", by)
            .field("ask", &ask.as_ref().map(|ask| &ask.id))
            .field("workflow_id", workflow_id)
            .field("execution_id", execution_id)
            .field("step", step)
            .finish_non_exhaustive()
    }
}

/// A program's own check of answers.
pub trait AnswerGuard: Send + Sync {
    /// Lets an answer pass, or returns the reason of its refusal, for the one who gave it.
    fn check(&self, answer: GivenAnswer) -> BoxFuture<'static, Result<(), String>>;
}

impl<F, R> AnswerGuard for F
where
    F: Fn(GivenAnswer) -> R + Send + Sync,
    R: Future<Output = Result<(), String>> + Send + 'static,
{
    fn check(&self, answer: GivenAnswer) -> BoxFuture<'static, Result<(), String>> {
        self(answer).boxed()
    }
}
