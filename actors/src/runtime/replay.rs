//! New executions that begin in the middle of an earlier one.

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::commands::{ExecutionCommand, StartAnswer, StartCommand};
use crate::domain::assignment::Answerer;
use crate::domain::fact::{Replayed, Start};
use crate::domain::footprint;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::ReplayFrom;
use crate::domain::nesting::check_depth;
use crate::domain::plan::Plan;
use crate::domain::principal::Principal;
use crate::ports::answer_guard::GivenAnswer;
use crate::ports::store::ReplayedFrom;
use crate::ports::workers::Lane;
use crate::replay::{Original, ReplayError};
use crate::requests::{
    ExecutionOutcome, IdempotencyKey, StartError, StartExecution, Target, TraceOrigin, Unavailable,
};
use crate::runtime::Runtime;
use crate::runtime::bulk::workflow::BULK_WORKFLOW;
use crate::runtime::requests::{check_input, start_of};
use crate::shared::Shared;

/// Request for a new execution that takes the recorded outputs before a step of another one, and
/// runs from that step on. User, conversation and context are those of the original.
#[derive(Debug)]
pub struct ReplayExecution {
    /// A top-level step that the original has reached; `None`: the failed step, or the first one
    /// whose effects were undone.
    pub step_id: Option<String>,
    /// Answer to that step's suspension.
    pub resume_data: Option<Value>,
    /// Replaces the original's input.
    pub input: Option<Value>,
    pub definition: ReplayDefinition,
    /// Id chosen by the caller; `None`: the runtime makes one.
    pub execution_id: Option<ExecutionId>,
    pub by: Option<Principal>,
    /// Caller that has to be among those who are asked, if there is an answer: otherwise the step
    /// waits for them. `None`: the program itself.
    pub answerer: Option<Answerer>,
    pub idempotency: Option<IdempotencyKey>,
    pub trace: TraceOrigin,
}

/// Definition that a replay runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplayDefinition {
    /// The definition of the original execution.
    #[default]
    Original,
    /// The definition that is registered now.
    Current,
}

/// Result of a replay: what it has started, and where that begins.
#[derive(Debug)]
pub struct Replay<T> {
    /// The id of the new execution, or its outcome.
    pub new: T,
    /// `None` if another call with the idempotency key started it and its row cannot be read now.
    pub from: Option<ReplayedFrom>,
}

impl Runtime {
    /// Starts an execution in the middle of another one and waits until it leaves `running`. With a
    /// known idempotency key, returns the outcome of the first call with it.
    pub async fn replay(
        &self,
        target: &Target,
        mut request: ReplayExecution,
    ) -> Result<Replay<ExecutionOutcome>, ReplayError> {
        let key = request.idempotency.take();
        if let Some(key) = &key
            && let Some(outcome) = self.earlier_start(key).await?
        {
            let from = self.recorded_origin(&outcome.execution_id).await;
            return Ok(Replay { new: outcome, from });
        }
        let (answer, reply) = oneshot::channel();
        let answer = StartAnswer::OnSettled(answer);
        let (id, from) = self.start_replay(target, request, key.as_ref(), answer).await?;
        let outcome = self.outcome_of_start(&id, reply, key.as_ref()).await?;
        let from = self.origin(&outcome.execution_id, (&id, from)).await;
        Ok(Replay { new: outcome, from })
    }

    /// Starts an execution in the middle of another one; resolves when the start is durable. With a
    /// known idempotency key, returns the execution of the first call with it.
    pub async fn begin_replay(
        &self,
        target: &Target,
        mut request: ReplayExecution,
    ) -> Result<Replay<ExecutionId>, ReplayError> {
        let key = request.idempotency.take();
        if let Some(key) = &key
            && let Some(id) = self.started_earlier(key).await?
        {
            let from = self.recorded_origin(&id).await;
            return Ok(Replay { new: id, from });
        }
        let (answer, reply) = oneshot::channel();
        let answer = StartAnswer::AtStart(answer);
        let (id, from) = self.start_replay(target, request, key.as_ref(), answer).await?;
        let new = self.answer_of_start(&id, reply, key.as_ref()).await?;
        let from = self.origin(&new, (&id, from)).await;
        Ok(Replay { new, from })
    }

    /// Returns where a replay begins: as this call has sent it, or as another call recorded it that
    /// used the key first.
    async fn origin(
        &self,
        new: &ExecutionId,
        (sent, from): (&ExecutionId, ReplayedFrom),
    ) -> Option<ReplayedFrom> {
        if new == sent { Some(from) } else { self.recorded_origin(new).await }
    }

    async fn recorded_origin(&self, replay: &ExecutionId) -> Option<ReplayedFrom> {
        self.shared.store.describe(replay).await.ok()??.replayed_from
    }

    /// Sends the start of a replay, unless it is refused. Returns its id, and where it begins.
    async fn start_replay(
        &self,
        target: &Target,
        mut request: ReplayExecution,
        key: Option<&IdempotencyKey>,
        answer: StartAnswer,
    ) -> Result<(ExecutionId, ReplayedFrom), ReplayError> {
        if target.workflow_id == BULK_WORKFLOW {
            // another caller, or another input, could do more than the original was allowed to
            return Err(StartError::UnknownWorkflow(target.workflow_id.clone()).into());
        }
        let shared = &self.shared;
        let given = [&request.input, &request.resume_data].map(Option::as_ref);
        let [input, data] = given.map(|it| {
            it.map_or(Ok(()), |it| check_depth(it, shared.limits.machine.value_depth_max))
        });
        input.map_err(|too_deep| StartError::InvalidInput(too_deep.to_string()))?;
        data.map_err(|too_deep| ReplayError::InvalidData(too_deep.to_string()))?;
        if shared.memory.is_used_up() {
            return Err(shared.no_memory().into());
        }
        let original = self.original(target, &mut request).await?;
        let chosen_id = request.execution_id.is_some();
        let id =
            request.execution_id.clone().unwrap_or_else(|| shared.id_near(&target.execution_id));
        let Original { plan, start, mut replayed } = *original;
        check_answer(shared, &plan, start.user_id.as_deref(), &mut replayed).await?;
        if let Some(given) = answer_of(&plan, &id, &replayed) {
            let checking = async move |runtime: Self| runtime.shared.check_answer(given).await;
            self.to_the_end(id.as_str(), checking).await??;
        }
        if request.input.as_ref().is_some_and(|input| !plan.definition.admits_input(input)) {
            return Err(StartError::InvalidInput("must be an object".to_owned()).into());
        }
        let mut request = as_start(&plan, *start, request);
        check_input(shared, &plan, &mut request).await?;
        if shared.is_draining() {
            return Err(Unavailable::Draining { execution: None }.into());
        }
        shared.accepts_writes()?;
        let mut start = Box::new(start_of(&plan, request, &id));
        let from = ReplayedFrom {
            execution: replayed.execution.clone(),
            step_id: Arc::clone(&replayed.step_id),
        };
        start.replayed = Some(Box::new(replayed));
        let claim = shared.memory.claim(footprint::of_start(&start));
        let claim = claim.ok_or_else(|| shared.no_memory())?;
        let idempotency = key.map(|key| self.idempotency_record(key, id.clone()));
        let subscriber = None;
        let command =
            StartCommand { plan, start, chosen_id, idempotency, subscriber, claim, answer };
        shared.deliver(id.clone(), ExecutionCommand::Start(Box::new(command)));
        Ok((id, from))
    }

    async fn original(
        &self,
        target: &Target,
        request: &mut ReplayExecution,
    ) -> Result<Box<Original>, ReplayError> {
        let plan = self.plan_to_replay(target, request.definition)?;
        let answerer = request.answerer.take();
        let from = ReplayFrom {
            step_id: request.step_id.take(),
            answer: request.resume_data.take().map(Arc::new),
            plan,
            by: request.by.take().map(Arc::new),
            is_claim: answerer.as_ref().is_some_and(|answerer| answerer.user.is_none()),
            roles: answerer.map(|answerer| answerer.roles),
        };
        self.copy(target, from).await
    }

    /// Returns false if a replay that names no step is refused, whenever it is tried. True if that
    /// cannot be read now.
    pub(super) async fn may_replay(&self, target: &Target, definition: ReplayDefinition) -> bool {
        let original = self.original_of(target, definition).await;
        original.map_or_else(
            |refusal| matches!(refusal, ReplayError::Start(StartError::Unavailable(_))),
            |_| true,
        )
    }

    /// Returns what a replay that names no step takes over.
    pub(super) async fn original_of(
        &self,
        target: &Target,
        definition: ReplayDefinition,
    ) -> Result<Box<Original>, ReplayError> {
        let plan = self.plan_to_replay(target, definition)?;
        self.copy(target, ReplayFrom { plan, ..ReplayFrom::default() }).await
    }

    /// Returns the definition to use instead of that of the original.
    fn plan_to_replay(
        &self,
        target: &Target,
        definition: ReplayDefinition,
    ) -> Result<Option<Arc<Plan>>, ReplayError> {
        match definition {
            ReplayDefinition::Original => Ok(None),
            ReplayDefinition::Current => {
                let id = &target.workflow_id;
                let plan = self.shared.registry().workflows.get(id).cloned();
                Ok(Some(plan.ok_or_else(|| StartError::UnknownWorkflow(id.clone()))?))
            }
        }
    }

    async fn copy(&self, target: &Target, from: ReplayFrom) -> Result<Box<Original>, ReplayError> {
        let command = |answer| {
            let (subject, from) = (target.into(), from.clone());
            ExecutionCommand::Copy { subject, from, answer }
        };
        self.read(target, command).await
    }
}

/// Returns the answer that a replay brings along, for the program's own check.
fn answer_of(plan: &Plan, id: &ExecutionId, replayed: &Replayed) -> Option<GivenAnswer> {
    let data = Arc::clone(replayed.answer.as_ref()?);
    let execution = (Arc::from(plan.definition.id.as_str()), id.clone());
    let step = Some(Arc::clone(&replayed.step_id));
    Some(GivenAnswer::unasked(execution, step, replayed.by.as_deref(), data))
}

/// Checks the answer to the step's suspension like the data of a resume.
async fn check_answer(
    shared: &Shared,
    plan: &Plan,
    user: Option<&str>,
    replayed: &mut Replayed,
) -> Result<(), ReplayError> {
    let schema = plan.step(&replayed.step_id).and_then(|step| step.resume_schema.as_ref());
    let Some(schema) = schema else { return Ok(()) };
    let Some(answer) = replayed.answer.take() else { return Ok(()) };
    let lane = Lane::of(&plan.definition.id, user);
    let checked = shared.evaluations.check(lane, schema, Arc::unwrap_or_clone(answer)).await;
    let answer = checked.map_err(|violation| ReplayError::InvalidData(violation.to_string()))?;
    replayed.answer = Some(Arc::new(answer));
    Ok(())
}

/// Returns the start request of a replay, without the part taken from the original.
fn as_start(plan: &Plan, original: Start, request: ReplayExecution) -> StartExecution {
    let context = match &*original.context {
        Value::Object(context) => context.clone(),
        _ => Map::new(),
    };
    StartExecution {
        workflow_id: plan.definition.id.clone(),
        execution_id: None,
        input: request.input.unwrap_or_else(|| Value::clone(&original.input)),
        user_id: original.user_id.map(|id| id.to_string()),
        conversation_id: original.conversation_id.map(|id| id.to_string()),
        context,
        idempotency: None,
        trace: request.trace,
    }
}
