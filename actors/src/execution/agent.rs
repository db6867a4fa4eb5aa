//! andAgent: a generation of its own, as a step's body.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix::{Arbiter, Context};
use futures_util::FutureExt;
use serde_json::{Map, Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::generation::{
    GenerateError, Generation, GenerationHandle, GenerationRequest, STEP_GENERATION_PREFIX,
    spawn_generation,
};
use crate::domain::effort::Effort;
use crate::domain::fact::{Fact, Recorded, Start};
use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::hash::long_hash;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::machine::{AgentCall, Machine, StepResult};
use crate::domain::trace::{Trace, TraceOrigin};
use crate::execution::bodies::{Body, BodyEnd, timed_out};
use crate::execution::calls::milliseconds;
use crate::execution::progress::ProgressRelay;
use crate::execution::{ExecutionActor, LiveExecution};
use crate::observe::trace::execution::attempt_span;
use crate::ports::model::{Message, ModelOptions, Role, Usage};
use crate::ports::store::{Generations, StepOrigin};
use crate::requests::Unavailable;

impl ExecutionActor {
    pub(super) fn start_agent(&mut self, path: &StepPath, attempt: u32, ctx: &mut Context<Self>) {
        let begins = Arc::clone(path);
        let then = move |actor: &mut Self, call, effort: Effort, ctx: &mut Context<Self>| match call
        {
            None => {}
            Some(Err(error)) => {
                actor.fail_before(&begins, attempt, error, effort.is_exceeded, ctx);
            }
            Some(Ok(call)) => {
                if let Some(body) = actor.generation(&begins, attempt, call) {
                    actor.start_body(&begins, attempt, body, ctx);
                }
            }
        };
        self.prepare(path, attempt, Machine::agent_call, then, ctx);
    }

    /// The generation starts at once; dropping the body cancels it. Without readers nobody
    /// listens while it speaks, and the model is asked for whole answers.
    fn generation(&mut self, path: &StepPath, attempt: u32, call: AgentCall) -> Option<Body> {
        if let Some(missing) = self.shared.missing_for_agent(&call.agent) {
            // It went since the step began; it is asked once it is configured again.
            log::warn!("execution {}: {missing}", self.id);
            return None;
        }
        let deps = self.shared.generation_deps()?;
        let life = self.life.as_mut()?;
        let relay = life.readers.want_progress().then(|| {
            let (readers, clock) = (life.readers.clone(), Arc::clone(&self.shared.clock));
            ProgressRelay::start(self.id.clone(), Arc::clone(path), readers, clock)
        });
        let id = generation_id(&self.id, path, call.retry);
        let limit_ms = call.timeout_ms;
        let start = &life.machine.state().start;
        let trace = start.trace.below(attempt_span(&start.trace, &self.id, path, attempt));
        let request = request(&self.id, path, start, trace, call);
        let subscriber = relay.as_ref().map(|relay| relay.subscriber());
        let history = Arc::clone(&deps.generations);
        let arbiter = Arbiter::current();
        let generation = spawn_generation(&arbiter, deps, request, id.clone(), subscriber);
        let told = relay.as_ref().map(|relay| relay.told());
        let (holds, limit) = (life.holds(), limit_ms.map(Duration::from_millis));
        let work = async move {
            let outcome = run(generation, holds, limit).await;
            if let Some(told) = told {
                told.await;
            }
            match outcome {
                Some(Ok(generation)) => completed(generation),
                // The process ends: the stop lets the step go, and it begins anew afterwards.
                Some(Err(GenerateError::Unavailable(Unavailable::Draining { .. }))) => {
                    std::future::pending().await
                }
                Some(Err(error)) => BodyEnd {
                    result: failed(&error),
                    usage: used_for_nothing(&*history, &id).await,
                },
                None => BodyEnd::of(StepResult::Failed(timed_out(limit_ms.unwrap_or_default()))),
            }
        };
        Some(Body { work: work.boxed(), cancellation: CancellationToken::new(), relay })
    }
}

impl LiveExecution {
    /// Whether the execution is held, now and from now on.
    fn holds(&mut self) -> watch::Receiver<bool> {
        let is_held = self.machine.state().hold.is_some();
        self.holds.get_or_insert_with(|| watch::Sender::new(is_held)).subscribe()
    }

    /// Lets generations stand still as soon as a hold is decided.
    pub(super) fn hold_generations(&self) {
        if self.machine.state().hold.is_some() {
            self.tell_generations(true);
        }
    }

    /// Lets generations go on when the end of a hold is durable.
    pub(super) fn release_generations(&self, durable: &[Recorded]) {
        let lifts = |recorded: &Recorded| matches!(recorded.fact, Fact::HoldLifted { .. });
        if self.machine.state().hold.is_none() && durable.iter().any(lifts) {
            self.tell_generations(false);
        }
    }

    fn tell_generations(&self, is_held: bool) {
        if let Some(holds) = &self.holds {
            holds.send_if_modified(|held| std::mem::replace(held, is_held) != is_held);
        }
    }
}

/// The name of a step's generation in the history of its agent. The same for an attempt that a
/// crash cut off and for the one that takes its place; another for each retry.
pub(super) fn generation_id(execution: &ExecutionId, path: &str, retry: u32) -> String {
    let hash = long_hash(&[execution.as_str(), path, &retry.to_string()]);
    format!("{STEP_GENERATION_PREFIX}{hash}")
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

/// Waits for the end of a generation and tells it of holds. None: its time is over, in which
/// that of a hold does not count. Dropping the future cancels the generation.
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
            (false, true) => pause.hold(),
            (true, false) => pause.release(),
            (true, true) | (false, false) => {}
        }
        was_held = is_held;
        let since = Instant::now();
        tokio::select! {
            biased;
            outcome = &mut outcome => return Some(outcome),
            // The pattern: an execution that has ended tells of no holds.
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
    let Generation { object, text, usage, .. } = generation;
    let output = object.unwrap_or_else(|| json!({ "text": text, "usage": usage }));
    BodyEnd { result: StepResult::Completed(Arc::new(output)), usage: Some(usage) }
}

fn failed(error: &GenerateError) -> StepResult {
    match error {
        // What the store or the runtime says is for the log, not for the execution's state.
        GenerateError::Unavailable(why) => {
            log::warn!("a generation of an agent step: {why}");
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

/// What a failed generation took, as its entry in the history says: answers that were not fit
/// have been paid for.
async fn used_for_nothing(history: &dyn Generations, id: &str) -> Option<Usage> {
    let entry = history.generation(id).await.ok().flatten()?;
    entry.record.usage.filter(|usage| *usage != Usage::default())
}
