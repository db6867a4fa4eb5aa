//! New executions that begin in the middle of an earlier one.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::domain::fact::{Replayed, Start};
use crate::domain::ids::ExecutionId;
use crate::domain::machine::{Machine, ReplayRefusal};
use crate::domain::plan::Plan;
use crate::orders::{Order, StartAnswer, StartOrder};
use crate::requests::{
    IdempotencyKey, Rest, StartError, StartExecution, Target, TraceOrigin, Unavailable,
};
use crate::runtime::Runtime;
use crate::runtime::requests::{check_input, start_of};

/// Asks for a new execution that takes the recorded outputs before a step of another one, and
/// runs from that step on.
#[derive(Debug)]
pub struct ReplayExecution {
    /// A top-level step that the other one has reached.
    pub step_id: String,
    /// Answers what that step asks.
    pub resume_data: Option<Value>,
    /// In place of the other's.
    pub input: Option<Value>,
    /// The caller's choice; made here when there is none.
    pub execution_id: Option<ExecutionId>,
    pub replayer: Replayer,
    pub idempotency: Option<IdempotencyKey>,
    pub trace: TraceOrigin,
}

/// Whose the new execution is.
#[derive(Debug, Clone, PartialEq)]
pub enum Replayer {
    /// Its user, conversation and context are those of the other one.
    SameAsBefore,
    /// Somebody who is known: in place of the other's user.
    Caller {
        user_id: Option<String>,
        /// `user` of the context.
        profile: Option<Map<String, Value>>,
        /// Whether the caller could see the conversation again.
        keeps_conversation: bool,
    },
}

/// Why an execution was not replayed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    #[error("execution not found")]
    NotFound,
    #[error("step {0} not found")]
    UnknownStep(String),
    #[error("step {0} cannot be replayed from")]
    NotReplayable(String),
    #[error("step {0} does not suspend")]
    DoesNotSuspend(String),
    #[error("resume data validation failed: {0}")]
    InvalidData(String),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl From<Unavailable> for ReplayError {
    fn from(why: Unavailable) -> Self {
        Self::Start(why.into())
    }
}

impl From<ReplayRefusal> for ReplayError {
    fn from(refusal: ReplayRefusal) -> Self {
        match refusal {
            ReplayRefusal::UnknownStep(step) => Self::UnknownStep(step),
            ReplayRefusal::NotReplayable(step) => Self::NotReplayable(step),
            ReplayRefusal::DoesNotSuspend(step) => Self::DoesNotSuspend(step),
            ReplayRefusal::InvalidData(detail) => Self::InvalidData(detail),
        }
    }
}

/// What a replay takes from the execution that it begins in the middle of.
pub(crate) struct Original {
    plan: Arc<Plan>,
    start: Box<Start>,
    replayed: Replayed,
}

impl Original {
    pub(crate) fn of(
        machine: &Machine,
        step_id: &str,
        answer: Option<Arc<Value>>,
    ) -> Result<Box<Self>, ReplayError> {
        let replayed = machine.replayed_from(step_id, answer)?;
        let start = machine.state().start.clone();
        Ok(Box::new(Self { plan: Arc::clone(machine.plan()), start, replayed }))
    }
}

impl Runtime {
    /// Starts an execution in the middle of another one and waits until it leaves `running`. With
    /// an idempotency key that is known, gives what the first call with it got or will get.
    pub async fn replay(
        &self,
        target: &Target,
        mut request: ReplayExecution,
    ) -> Result<Rest, ReplayError> {
        let key = request.idempotency.take();
        if let Some(key) = &key
            && let Some(rest) = self.earlier_start(key).await?
        {
            return Ok(rest);
        }
        let original = self.original(target, &mut request).await?;
        let core = &self.core;
        let chosen_id = request.execution_id.is_some();
        let id = request.execution_id.clone().unwrap_or_else(|| core.clock.new_execution_id());
        let Original { plan, start, replayed } = *original;
        let mut request = as_start(&plan, *start, request);
        check_input(core, &plan, &mut request).await?;
        if core.is_draining() {
            return Err(Unavailable::Draining { execution: None }.into());
        }
        let mut start = Box::new(start_of(&plan, request, &id));
        start.replayed = Some(Box::new(replayed));
        let idempotency = key.as_ref().map(|key| self.idempotency_record(key, id.clone()));
        let (answer, heard) = oneshot::channel();
        let answer = StartAnswer::AtRest(answer);
        let order = StartOrder { plan, start, chosen_id, idempotency, subscriber: None, answer };
        core.deliver(id.clone(), Order::Start(Box::new(order)));
        Ok(self.rest_of_start(&id, heard, key.as_ref()).await?)
    }

    async fn original(
        &self,
        target: &Target,
        request: &mut ReplayExecution,
    ) -> Result<Box<Original>, ReplayError> {
        let (answer, heard) = oneshot::channel();
        let order = Order::Copy {
            subject: target.into(),
            step_id: request.step_id.clone(),
            data: request.resume_data.take().map(Arc::new),
            answer,
        };
        self.core.deliver(target.execution_id.clone(), order);
        self.hear(&target.execution_id, heard).await
    }
}

/// The start that a replay is, before what it takes with it.
fn as_start(plan: &Plan, original: Start, request: ReplayExecution) -> StartExecution {
    let mut context = match &*original.context {
        Value::Object(context) => context.clone(),
        _ => Map::new(),
    };
    let (mut user_id, mut conversation_id) = (original.user_id, original.conversation_id);
    if let Replayer::Caller { user_id: own_id, profile, keeps_conversation } = request.replayer {
        for name in ["user", "userId", "conversationId"] {
            context.shift_remove(name);
        }
        context.extend(profile.map(|profile| ("user".to_owned(), Value::Object(profile))));
        user_id = own_id.map(Arc::from);
        conversation_id = conversation_id.filter(|_| keeps_conversation);
    }
    StartExecution {
        workflow_id: plan.definition.id.clone(),
        execution_id: None,
        input: request.input.unwrap_or_else(|| Value::clone(&original.input)),
        user_id: user_id.map(|id| id.to_string()),
        conversation_id: conversation_id.map(|id| id.to_string()),
        context,
        idempotency: None,
        trace: request.trace,
    }
}
