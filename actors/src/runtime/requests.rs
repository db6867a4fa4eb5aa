//! Requests of callers, checked and sent to the actor of the execution.

use std::sync::Arc;

use serde_json::Value;
use tokio::sync::oneshot;

use crate::commands::{
    Answer, ControlCommand, ExecutionCommand, ResumeCommand, ResumeRefusal, StartAnswer,
    StartCommand, StartRefusal, Subject,
};
use crate::domain::fact::{Start, Trace};
use crate::domain::footprint;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::Resume;
use crate::domain::nesting::{TooDeep, check_depth, check_members_depth};
use crate::domain::plan::Plan;
use crate::domain::principal::Principal;
use crate::domain::trace::EntityType;
use crate::ports::store::IdempotencyRecord;
use crate::ports::workers::Lane;
use crate::requests::{
    Cancelled, ControlError, DescribeError, ExecutionOutcome, ExecutionState, IdempotencyKey,
    ResumeError, ResumeExecution, StartError, StartExecution, Subscriber, Subscription, Suspended,
    Target, Unavailable, operation_context,
};
use crate::runtime::Runtime;
use crate::shard::memory_budget::Claim;
use crate::shared::Shared;

impl Runtime {
    /// Starts an execution and waits until it leaves `running`. With a known idempotency key,
    /// returns the outcome of the first call with it.
    pub async fn execute(
        &self,
        mut request: StartExecution,
    ) -> Result<ExecutionOutcome, StartError> {
        let claim = claim_for(&self.shared, &mut request);
        if let Some(key) = &request.idempotency
            && let Some(outcome) = self.earlier_start(key).await?
        {
            return Ok(outcome);
        }
        let key = request.idempotency.clone();
        let (answer, reply) = oneshot::channel();
        let id = self.start(request, claim?, None, StartAnswer::OnSettled(answer)).await?;
        self.outcome_of_start(&id, reply, key.as_ref()).await
    }

    /// Returns the outcome of a start, or that of another call that used the key first.
    pub(super) async fn outcome_of_start(
        &self,
        id: &ExecutionId,
        reply: oneshot::Receiver<Result<ExecutionOutcome, StartRefusal>>,
        key: Option<&IdempotencyKey>,
    ) -> Result<ExecutionOutcome, StartError> {
        match self.answer_of(id, reply).await {
            Ok(outcome) => Ok(outcome),
            Err(refusal) => {
                started_by_another(refusal, key.map(|key| self.earlier_start(key))).await
            }
        }
    }

    /// Starts an execution; resolves when the start is durable. With a known idempotency key,
    /// returns the execution of the first call with it.
    pub async fn begin(&self, mut request: StartExecution) -> Result<ExecutionId, StartError> {
        let claim = claim_for(&self.shared, &mut request);
        let key = request.idempotency.clone();
        if let Some(key) = &key
            && let Some(id) = self.started_earlier(key).await?
        {
            return Ok(id);
        }
        let (answer, reply) = oneshot::channel();
        let id = self.start(request, claim?, None, StartAnswer::AtStart(answer)).await?;
        self.answer_of_start(&id, reply, key.as_ref()).await
    }

    /// Returns the execution when its start is durable, or that of another call that used the key
    /// first.
    pub(super) async fn answer_of_start(
        &self,
        id: &ExecutionId,
        reply: oneshot::Receiver<Result<ExecutionId, StartRefusal>>,
        key: Option<&IdempotencyKey>,
    ) -> Result<ExecutionId, StartError> {
        match self.answer_of(id, reply).await {
            Ok(id) => Ok(id),
            Err(refusal) => {
                let earlier = key.map(|key| self.started_earlier(key));
                started_by_another(refusal, earlier).await
            }
        }
    }

    /// Starts an execution and sends its events, from the first on, to the subscriber. Resolves
    /// when the start is durable.
    pub async fn stream(
        &self,
        mut request: StartExecution,
        subscriber: Subscriber,
    ) -> Result<ExecutionId, StartError> {
        let claim = claim_for(&self.shared, &mut request)?;
        Ok(self.begin_for(request, claim, Some(subscriber)).await?)
    }

    async fn begin_for(
        &self,
        request: StartExecution,
        claim: Claim,
        subscriber: Option<Subscriber>,
    ) -> Result<ExecutionId, StartRefusal> {
        let (answer, reply) = oneshot::channel();
        let id = self.start(request, claim, subscriber, StartAnswer::AtStart(answer)).await?;
        self.answer_of(&id, reply).await
    }

    /// Waits until an execution leaves `running` for the first time, and returns that outcome, also
    /// if the execution has been resumed since. [`DescribeError::Unavailable`] says nothing about
    /// the execution: it may still run. Dropping the future does not stop it.
    pub async fn first_outcome(&self, target: &Target) -> Result<ExecutionOutcome, DescribeError> {
        let subject = Some(target.into());
        let command = |answer| ExecutionCommand::AwaitOutcome { subject, after_seq: 0, answer };
        self.ask(&target.execution_id, command).await
    }

    async fn start(
        &self,
        mut request: StartExecution,
        claim: Claim,
        subscriber: Option<Subscriber>,
        answer: StartAnswer,
    ) -> Result<ExecutionId, StartError> {
        let shared = &self.shared;
        let plan = plan_of(shared, &mut request).await?;
        shared.accepts_writes()?;
        let chosen_id = request.execution_id.is_some();
        let id = shared.execution_id(request.execution_id.clone());
        let idempotency =
            request.idempotency.as_ref().map(|key| self.idempotency_record(key, id.clone()));
        let start = Box::new(start_of(&plan, request, &id));
        let command =
            StartCommand { plan, start, chosen_id, idempotency, subscriber, claim, answer };
        shared.deliver(id.clone(), ExecutionCommand::Start(Box::new(command)));
        Ok(id)
    }

    pub(super) fn idempotency_record(
        &self,
        key: &IdempotencyKey,
        execution: ExecutionId,
    ) -> IdempotencyRecord {
        let ttl = u64::try_from(self.shared.limits.idempotency_ttl.as_millis()).unwrap_or(u64::MAX);
        IdempotencyRecord {
            scope: Arc::clone(&key.scope),
            body_hash: Arc::clone(&key.body_hash),
            execution,
            after_seq: 0,
            expires_at: self.shared.clock.now().plus_ms(ttl),
        }
    }

    /// Suspends an execution; resolves once the suspension is durable.
    pub async fn suspend(
        &self,
        target: &Target,
        reason: Option<String>,
        by: Option<Principal>,
    ) -> Result<Suspended, ControlError> {
        self.control(target, (reason, by), ExecutionCommand::Suspend).await
    }

    /// Resumes an execution and waits until it leaves `running` again. With a known idempotency
    /// key, returns the outcome of the first call with it.
    pub async fn resume(
        &self,
        target: &Target,
        request: ResumeExecution,
    ) -> Result<ExecutionOutcome, ResumeError> {
        if let Some(key) = &request.idempotency
            && let Some(outcome) = self.earlier_resume(key, target).await?
        {
            return Ok(outcome);
        }
        let ResumeExecution { step_id, suspension_id, data, by, answerer, idempotency: key } =
            request;
        check_depth(&data, self.shared.limits.machine.value_depth_max)
            .map_err(|too_deep| ResumeError::InvalidData(too_deep.to_string()))?;
        let idempotency =
            key.as_ref().map(|key| self.idempotency_record(key, target.execution_id.clone()));
        let (data, by, answerer) = (Arc::new(data), by.map(Arc::new), answerer.map(Arc::new));
        let resume = Resume { step_id, suspension_id, data, by, answerer, ..Resume::default() };
        let subject = target.into();
        let command = |answer| {
            ExecutionCommand::Resume(Box::new(ResumeCommand {
                subject,
                resume,
                idempotency,
                answer,
            }))
        };
        match (self.change(target, command).await, key) {
            (Ok(outcome), _) => Ok(outcome),
            (Err(ResumeRefusal::KeyTaken), Some(key)) => {
                self.earlier_resume(&key, target).await?.ok_or(ResumeError::KeyReused)
            }
            (Err(ResumeRefusal::Error(unknown @ ResumeError::Unavailable(_))), _) => Err(unknown),
            // Two concurrent calls with one key: the other's resume may have won, and this one was
            // decided after it.
            (Err(ResumeRefusal::Error(error)), Some(key)) => {
                self.earlier_resume(&key, target).await?.ok_or(error)
            }
            (Err(refusal), _) => Err(refusal.into()),
        }
    }

    /// Cancels an execution; resolves when that is durable.
    pub async fn cancel(
        &self,
        target: &Target,
        reason: Option<String>,
        by: Option<Principal>,
    ) -> Result<Cancelled, ControlError> {
        self.control(target, (reason, by), ExecutionCommand::Cancel).await
    }

    async fn control<T>(
        &self,
        target: &Target,
        (reason, by): (Option<String>, Option<Principal>),
        command: impl FnOnce(ControlCommand<T>) -> ExecutionCommand,
    ) -> Result<T, ControlError> {
        let (subject, by) = (target.into(), by.map(Arc::new));
        let command = |answer| command(ControlCommand { subject, reason, by, answer });
        self.change(target, command).await
    }

    /// Returns everything that callers may know about an execution.
    pub async fn describe(&self, target: &Target) -> Result<ExecutionState, DescribeError> {
        let command = |answer| ExecutionCommand::Describe { subject: target.into(), answer };
        self.read(target, command).await.map(|state| *state)
    }

    /// Adds a subscriber to an execution.
    pub async fn subscribe(
        &self,
        target: &Target,
        subscriber: Subscriber,
    ) -> Result<Subscription, DescribeError> {
        if let Some(durable_seq) = self.ended(target).await {
            return Ok(Subscription { durable_seq, ended: true });
        }
        let command =
            |answer| ExecutionCommand::Subscribe { subject: target.into(), subscriber, answer };
        self.ask(&target.execution_id, command).await
    }

    /// Returns the last event number of an execution that has ended. Read from its row, because
    /// reading events needs neither the actor nor the facts.
    pub(super) async fn ended(&self, target: &Target) -> Option<u64> {
        // If the row cannot be read, the actor may still answer.
        let row = self.shared.store.describe(&target.execution_id).await.ok()??;
        let has_ended = row.status.is_terminal() && Subject::from(target).is(&row.header);
        has_ended.then_some(row.last_seq)
    }

    /// Sends a command that changes an execution; refused while the process drains or the store
    /// accepts no writes.
    pub(super) async fn change<T, E: From<Unavailable>>(
        &self,
        target: &Target,
        command: impl FnOnce(Answer<T, E>) -> ExecutionCommand,
    ) -> Result<T, E> {
        if self.shared.is_draining() {
            return Err(
                Unavailable::Draining { execution: Some(target.execution_id.clone()) }.into()
            );
        }
        self.shared.accepts_writes()?;
        self.ask(&target.execution_id, command).await
    }
}

/// Returns what another call with the same key has started, if this call was refused for that:
/// `earlier` is then polled, and finds it.
async fn started_by_another<T>(
    refusal: StartRefusal,
    earlier: Option<impl Future<Output = Result<Option<T>, StartError>>>,
) -> Result<T, StartError> {
    let Some(earlier) = earlier else { return Err(refusal.into()) };
    match refusal {
        StartRefusal::KeyTaken => earlier.await?.ok_or(StartError::KeyReused),
        // Two concurrent calls with one key and one id: the other's start may have won.
        StartRefusal::Error(exists @ StartError::Exists(_)) => earlier.await?.ok_or(exists),
        StartRefusal::Error(error) => Err(error),
    }
}

/// Reserves the memory that an execution begins with. Called before anything is awaited, so that of
/// many concurrent requests each is counted; without room the request's values are freed at once.
pub(super) fn claim_for(
    shared: &Shared,
    request: &mut StartExecution,
) -> Result<Claim, Unavailable> {
    let bytes = footprint::of_request(&request.input, &request.context);
    shared.memory.claim(bytes).ok_or_else(|| {
        drop((request.input.take(), std::mem::take(&mut request.context)));
        shared.no_memory()
    })
}

/// Returns the plan of a start request that passes all checks.
pub(super) async fn plan_of(
    shared: &Shared,
    request: &mut StartExecution,
) -> Result<Arc<Plan>, StartError> {
    let id = &request.workflow_id;
    let plan = shared.plan_to_start(id);
    let plan = plan.ok_or_else(|| StartError::UnknownWorkflow(id.clone()))?;
    let depth_max = shared.limits.machine.value_depth_max;
    let too_deep = |what: &str, why: TooDeep| StartError::InvalidInput(format!("{what}{why}"));
    check_depth(&request.input, depth_max).map_err(|why| too_deep("", why))?;
    let context = check_members_depth(&request.context, depth_max);
    context.map_err(|why| too_deep("options.context: ", why))?;
    check_input(shared, &plan, request).await?;
    match shared.is_draining() {
        true => Err(Unavailable::Draining { execution: None }.into()),
        false => Ok(plan),
    }
}

pub(super) async fn check_input(
    shared: &Shared,
    plan: &Plan,
    request: &mut StartExecution,
) -> Result<(), StartError> {
    let Some(schema) = &plan.input_schema else { return Ok(()) };
    let lane = Lane::of(&plan.definition.id, request.user_id.as_deref());
    let input = std::mem::take(&mut request.input);
    let checked = shared.evaluations.check_for_request(lane, schema, input).await?;
    request.input = checked.map_err(|violation| StartError::InvalidInput(violation.to_string()))?;
    Ok(())
}

pub(super) fn start_of(plan: &Plan, request: StartExecution, id: &ExecutionId) -> Start {
    let StartExecution { input, user_id, conversation_id, context, trace, .. } = request;
    let workflow_id: Arc<str> = Arc::from(plan.definition.id.as_str());
    let trace = Trace::of(id.as_str(), EntityType::Workflow, &workflow_id, trace);
    let context = operation_context(context, user_id.as_deref(), conversation_id.as_deref());
    Start {
        workflow_id,
        definition_hash: Arc::clone(&plan.hash),
        input: Arc::new(input),
        user_id: user_id.map(Arc::from),
        conversation_id: conversation_id.map(Arc::from),
        context: Arc::new(Value::Object(context)),
        parent: None,
        depth: 0,
        trace,
        replayed: None,
        reversal: None,
    }
}
