//! andAgent: a generation as the body of a step.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix::{Arbiter, Context};
use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::agent::PendingAsk;
use crate::agent::generation::{
    GenerateError, Generation, GenerationHandle, GenerationRequest, spawn_generation,
};
use crate::domain::fact::{Fact, Recorded, Start};
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::ids::{ExecutionId, StepPath, step_generation_id};
use crate::domain::machine::{AgentCall, Machine, Moment, Spent, StepResult};
use crate::domain::trace::{Trace, TraceOrigin};
use crate::execution::bodies::{Body, BodyEnd, is_set, timed_out};
use crate::execution::calls::milliseconds;
use crate::execution::progress::ProgressRelay;
use crate::execution::{ExecutionActor, LiveExecution};
use crate::observe::trace::execution::attempt_span;
use crate::ports::model::{Message, ModelOptions, Role, Usage};
use crate::ports::store::{Generations, StepOrigin};
use crate::requests::Unavailable;

/// Time that the records of interrupted generations may take.
const LAST_RECORDS: Duration = Duration::from_secs(2);

impl ExecutionActor {
    pub(super) fn start_agent(&mut self, path: &StepPath, attempt: u32, ctx: &mut Context<Self>) {
        let begin = |actor: &mut Self, path: &StepPath, attempt, call, ctx: &mut Context<Self>| {
            if let Some(body) = actor.generation(path, attempt, call) {
                actor.start_body(path, attempt, body, ctx);
            }
        };
        let evaluate =
            |machine: &Machine, path: &str, moment: &Moment<'_>| machine.agent_call(path, moment);
        self.prepare(path, attempt, evaluate, begin, ctx);
    }

    /// Starts the generation at once; dropping the body cancels it, or interrupts it. Without
    /// subscribers its events have no recipient, and the model is asked for whole answers.
    fn generation(&mut self, path: &StepPath, attempt: u32, call: AgentCall) -> Option<Body> {
        if let Some(missing) = self.shared.missing_for_agent(&call.agent) {
            // Removed since the step began; the step continues once it is configured again.
            log::warn!("execution {}: {missing}", self.id);
            return None;
        }
        let deps = self.shared.generation_deps()?;
        let life = self.life.as_mut()?;
        let relay = life.subscribers.want_progress().then(|| {
            let (subscribers, clock) = (life.subscribers.clone(), Arc::clone(&self.shared.clock));
            ProgressRelay::start(self.id.clone(), Arc::clone(path), subscribers, clock)
        });
        let id = step_generation_id(&self.id, path, call.retry);
        let limit_ms = call.timeout_ms;
        let start = &life.machine.state().start;
        let trace = start.trace.below(attempt_span(&start.trace, &self.id, path, attempt));
        let mut request = request(&self.id, path, start, trace, call);
        request.continues = attempt > 1;
        let subscriber = relay.as_ref().map(|relay| relay.subscriber());
        let history = Arc::clone(&deps.generations);
        let arbiter = Arbiter::current();
        let interrupted = Arc::default();
        let mut generation = spawn_generation(&arbiter, deps, request, id.clone(), subscriber);
        generation.leave_if(is_set(&interrupted));
        let flushed = relay.as_ref().map(|relay| relay.flushed());
        let (holds, limit) = (life.holds(), limit_ms.map(Duration::from_millis));
        let work = async move {
            let outcome = run(generation, holds, limit).await;
            if let Some(flushed) = flushed {
                flushed.await;
            }
            match outcome {
                Some(Ok(generation)) => completed(generation),
                // The process ends: the step is released and runs again after the restart.
                Some(Err(GenerateError::Unavailable(Unavailable::Draining { .. }))) => {
                    std::future::pending().await
                }
                Some(Err(error)) => {
                    let usage = usage_of_failed(&*history, &id).await;
                    BodyEnd { result: failed(&error), spent: Spent { usage, mcp: None } }
                }
                None => BodyEnd::of(StepResult::Failed(timed_out(limit_ms.unwrap_or_default()))),
            }
        };
        let (tool, cancellation) = (None, CancellationToken::new());
        Some(Body { work: work.boxed(), tool, cancellation, interrupted, relay })
    }
}

impl ExecutionActor {
    /// Has the execution stop only when the generations of its steps have recorded how far they are:
    /// its next owner continues them from there.
    pub(super) fn await_records(&mut self, ctx: &mut Context<Self>) {
        let (Some(life), Some(deps)) = (&mut self.life, self.shared.generations.get()) else {
            return;
        };
        let live = Arc::clone(&deps.live);
        let run_of = |path: &StepPath| {
            let (step, node) = life.machine.node(path)?;
            let id =
                step.work.agent().map(|_| step_generation_id(&self.id, path, node.failures))?;
            let actor = live.actor(&id)?;
            Some((id, actor))
        };
        let runs: Vec<_> = life.in_flight.keys().filter_map(|(path, _)| run_of(path)).collect();
        if runs.is_empty() {
            return;
        }
        life.awaits_records = true;
        let recorded = async move {
            let left = runs.iter().map(|(id, actor)| live.left(id, actor));
            if timeout(LAST_RECORDS, join_all(left)).await.is_err() {
                log::warn!("generations of an execution that stops may count as interrupted");
            }
        };
        self.background_query(recorded, ctx, |actor, (), _| {
            if let Some(life) = &mut actor.life {
                life.awaits_records = false;
            }
        });
    }

    /// Has the generations looked at for which steps begin to wait: their asks could be answered
    /// before that was recorded, when no step was there to resume.
    pub(super) fn await_generations(&self, durable: &[Recorded]) {
        let Some(life) = &self.life else { return };
        let ids = durable.iter().filter_map(|it| life.awaited_by(&it.fact));
        ids.for_each(|id| self.shared.left_behind.add(id));
    }
}

impl LiveExecution {
    /// Returns the generation that a step begins to wait for.
    fn awaited_by(&self, fact: &Fact) -> Option<String> {
        let Fact::StepSuspended { path, .. } = fact else { return None };
        let (step, node) = self.machine.node(path)?;
        let is_of_generation = step.waits_for_generation(node.attempt);
        is_of_generation.then(|| step_generation_id(&self.header.id, path, node.failures))
    }

    /// Returns a receiver of the execution's pauses, present and future.
    fn holds(&mut self) -> watch::Receiver<bool> {
        let is_held = self.machine.state().hold.is_some();
        self.holds.get_or_insert_with(|| watch::Sender::new(is_held)).subscribe()
    }

    /// Pauses generations as soon as a pause is decided.
    pub(super) fn hold_generations(&self) {
        if self.machine.state().hold.is_some() {
            self.set_generations_held(true);
        }
    }

    /// Continues generations when the end of a pause is durable.
    pub(super) fn release_generations(&self, durable: &[Recorded]) {
        let lifts = |recorded: &Recorded| matches!(recorded.fact, Fact::HoldLifted { .. });
        if self.machine.state().hold.is_none() && durable.iter().any(lifts) {
            self.set_generations_held(false);
        }
    }

    fn set_generations_held(&self, is_held: bool) {
        if let Some(holds) = &self.holds {
            holds.send_if_modified(|held| std::mem::replace(held, is_held) != is_held);
        }
    }
}

fn request(
    id: &ExecutionId,
    path: &StepPath,
    start: &Start,
    trace: Trace,
    call: AgentCall,
) -> GenerationRequest {
    let AgentCall { agent, prompt, schema, options, .. } = call;
    let context = match &*start.context {
        Value::Object(context) => context.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    let options = options.unwrap_or(Value::Null);
    let whole = |key: &str| u32::try_from(options.get(key)?.as_u64()?).ok();
    GenerationRequest {
        agent_id: agent.to_string(),
        messages: vec![Message::text(Role::User, prompt.as_str())],
        input: Value::from(prompt),
        schema: schema.as_deref().cloned(),
        max_steps: whole("maxSteps"),
        context_limit: whole("contextLimit"),
        options: serde_json::from_value::<ModelOptions>(options).unwrap_or_default(),
        user_id: start.user_id.as_deref().map(str::to_owned),
        conversation_id: start.conversation_id.as_deref().map(str::to_owned),
        context,
        origin: Some(StepOrigin { execution_id: id.clone(), path: Arc::clone(path) }),
        depth: start.depth + 1,
        trace: TraceOrigin::Within(trace),
        ..GenerationRequest::default()
    }
}

/// Waits for the end of a generation and passes pauses on to it. Returns `None` after a timeout,
/// for which paused time does not count. Dropping the future cancels the generation, or interrupts it.
async fn run(
    generation: GenerationHandle,
    mut holds: watch::Receiver<bool>,
    limit: Option<Duration>,
) -> Option<Result<Generation, GenerateError>> {
    let pause = generation.pause_handle();
    let mut outcome = pin!(generation.outcome());
    let (mut left, mut was_held) = (limit, false);
    loop {
        let is_held = *holds.borrow_and_update();
        match (was_held, is_held) {
            (false, true) => pause.pause(),
            (true, false) => pause.unpause(),
            (true, true) | (false, false) => {}
        }
        was_held = is_held;
        let since = Instant::now();
        tokio::select! {
            biased;
            outcome = &mut outcome => return Some(outcome),
            // The channel closes when the execution has ended; the pattern then disables this arm.
            Ok(()) = holds.changed() => {}
            () = tokio::time::sleep(left.unwrap_or_default()), if left.is_some() && !is_held => {
                return None;
            }
        }
        if !is_held {
            left = left.map(|left| left.saturating_sub(since.elapsed()));
        }
    }
}

fn completed(generation: Generation) -> BodyEnd {
    if generation.is_suspended() {
        return waiting(&generation);
    }
    let Generation { object, text, usage, .. } = generation;
    let output = object.unwrap_or_else(|| json!({ "text": text, "usage": usage }));
    let spent = Spent { usage: Some(usage), mcp: None };
    BodyEnd { result: StepResult::Completed(Arc::new(output)), spent }
}

/// Suspends the step while its generation waits for people. The asks are the generation's.
fn waiting(generation: &Generation) -> BodyEnd {
    let reason = match generation.asks.as_slice() {
        [ask] => ask.reason.clone(),
        asks => format!("{} calls of tools wait for people", asks.len()),
    };
    let asks: Vec<_> = generation.asks.iter().map(shown).collect();
    let payload = json!({ "generationId": generation.id, "asks": asks });
    let (reason, payload) = (Some(reason), Some(Arc::new(payload)));
    BodyEnd::of(StepResult::Suspended { reason, payload })
}

/// Returns an ask as people see it.
fn shown(ask: &PendingAsk) -> Value {
    let mut shown = json!(ask);
    if let Some(deadline) = ask.deadline {
        shown["deadline"] = deadline.to_iso().into();
    }
    shown
}

fn failed(error: &GenerateError) -> StepResult {
    match error {
        // Causes in the store or the runtime go to the log, not into the execution's state.
        GenerateError::Unavailable(why) => {
            log::warn!("an agent step failed because a generation could not run: {why}");
            let message = "the agent is not available";
            StepResult::Failed(AttemptFailure::new(ErrorKind::Internal, message))
        }
        GenerateError::Model(model) => StepResult::Failed(AttemptFailure {
            retry_after_ms: model.retry_after.map(milliseconds),
            ..AttemptFailure::new(ErrorKind::Model, error.to_string())
        }),
        GenerateError::InvalidSchema(_) | GenerateError::InvalidRequest(_) => {
            StepResult::Failed(AttemptFailure::new(ErrorKind::Schema, error.to_string()))
        }
        GenerateError::UnknownAgent(_)
        | GenerateError::Failed(_)
        | GenerateError::Cancelled
        | GenerateError::Exists(_) => {
            StepResult::Failed(AttemptFailure::new(ErrorKind::Agent, error.to_string()))
        }
    }
}

/// Returns the usage of a failed generation from its history entry: rejected answers were paid for
/// as well.
async fn usage_of_failed(history: &dyn Generations, id: &str) -> Option<Usage> {
    let entry = history.generation(id).await.ok().flatten()?;
    entry.record.usage.filter(|usage| *usage != Usage::default())
}
