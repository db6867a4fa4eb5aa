//! The actor of one generation: runs the model, records, answers.
//!
//! A call that leaves the process waits until the history says `working`; an answer waits until
//! the history has it. A model in this process needs the second record only.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use actix::fut::{ActorFutureExt as _, WrapFuture as _};
use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, Message, SpawnHandle};
use futures_util::future::FutureExt as _;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::agent::AgentDefinition;
use crate::ports::model::{LanguageModel, ModelAnswer, ModelError, ModelErrorKind, Usage};
use crate::ports::store::{AppendError, GenerationRecord, GenerationStatus, GenerationWrite};
use crate::requests::Unavailable;

use super::turn::{Next, Question, Turns};
use super::working::WorkingGuard;
use super::{GenerateError, Generation, GenerationDeps, GenerationRequest};

/// Only cancels come from outside; more of them than this add nothing.
const MAILBOX_CAPACITY: usize = 16;

/// Asks a generation to stop. Without effect once its end is decided.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct CancelGeneration;

type Outcome = Result<Generation, GenerateError>;

/// Everything a generation starts with.
pub(super) struct Start {
    deps: GenerationDeps,
    agent: Arc<AgentDefinition>,
    model: Arc<dyn LanguageModel>,
    question: Question,
    record: GenerationRecord,
    answer: oneshot::Sender<Outcome>,
    working: WorkingGuard,
}

impl Start {
    /// Finds the agent and its model.
    pub(super) fn resolve(
        deps: GenerationDeps,
        request: GenerationRequest,
        id: String,
        answer: oneshot::Sender<Outcome>,
    ) -> Result<Self, GenerateError> {
        let GenerationRequest {
            agent_id,
            messages,
            input,
            options,
            schema,
            user_id,
            conversation_id,
            context,
            origin,
            ..
        } = request;
        let Some(agent) = deps.registry.agents.get(&agent_id).cloned() else {
            return Err(GenerateError::UnknownAgent(agent_id));
        };
        let Some(model) =
            agent.model.fixed().and_then(|name| deps.registry.models.get(name)).cloned()
        else {
            return Err(GenerateError::Failed(format!(
                "model {:?} is not registered",
                agent.model
            )));
        };
        let working = deps.working.enter(&agent_id);
        let record = GenerationRecord {
            id,
            agent_id,
            status: GenerationStatus::Working,
            start_time: deps.clock.now(),
            end_time: None,
            input,
            output: None,
            usage: None,
            error: None,
            user_id,
            conversation_id,
            origin,
        };
        let question = Question { messages, options, schema, context };
        Ok(Self { deps, agent, model, question, record, answer, working })
    }
}

/// One generation.
pub(super) struct GenerationActor {
    deps: GenerationDeps,
    agent: Arc<AgentDefinition>,
    model: Arc<dyn LanguageModel>,
    /// The history's entry, as it was recorded last or will be.
    record: GenerationRecord,
    answer: Option<oneshot::Sender<Outcome>>,
    phase: Phase,
    /// Until the answer is given.
    working: Option<WorkingGuard>,
}

/// Where a generation stands.
enum Phase {
    /// Nothing was asked or recorded yet.
    New(Question),
    /// The model may be asked once `working` is durable.
    Starting { turns: Turns, recording: SpawnHandle },
    /// The model is at work.
    Asking { turns: Turns, asking: SpawnHandle },
    /// The end is decided and on its way into the history.
    Ending,
}

impl GenerationActor {
    pub(super) fn new(start: Start) -> Self {
        let Start { deps, agent, model, question, record, answer, working } = start;
        Self {
            deps,
            agent,
            model,
            record,
            answer: Some(answer),
            phase: Phase::New(question),
            working: Some(working),
        }
    }

    fn begin(&mut self, question: Question, ctx: &mut Context<Self>) {
        let id = self.record.id.clone();
        match Turns::prepare(id, &self.agent, question, self.deps.object_repairs) {
            Ok(turns) if self.model.is_remote() => self.record_start(turns, ctx),
            Ok(turns) => self.ask(turns, ctx),
            // the caller's mistake, told before anything has happened: not part of the history
            Err(refusal @ GenerateError::InvalidSchema(_)) => self.release(Err(refusal), ctx),
            Err(failure) => self.end(Usage::default(), Err(failure), ctx),
        }
    }

    fn record_start(&mut self, turns: Turns, ctx: &mut Context<Self>) {
        let durable = self.deps.generations.record_generation(write_of(self.record.clone()));
        let recording = ctx.spawn(durable.into_actor(self).map(|recorded, actor, ctx| {
            // a cancel may have been faster
            if let Phase::Starting { turns, .. } = actor.take_phase() {
                match recorded {
                    Ok(()) => actor.ask(turns, ctx),
                    Err(refusal) => actor.release(Err(unavailable(refusal)), ctx),
                }
            }
        }));
        self.phase = Phase::Starting { turns, recording };
    }

    fn ask(&mut self, turns: Turns, ctx: &mut Context<Self>) {
        let model = Arc::clone(&self.model);
        let request = turns.request();
        let answering = AssertUnwindSafe(async move { model.generate(request).await });
        let asking =
            ctx.spawn(answering.catch_unwind().into_actor(self).map(|answered, actor, ctx| {
                actor.model_answered(answered.unwrap_or_else(panicked), ctx)
            }));
        self.phase = Phase::Asking { turns, asking };
    }

    fn model_answered(
        &mut self,
        answered: Result<ModelAnswer, ModelError>,
        ctx: &mut Context<Self>,
    ) {
        // actix may poll a cancelled future once more: an answer after the end is dropped
        let Phase::Asking { mut turns, .. } = self.take_phase() else {
            return;
        };
        let next = match answered {
            Ok(answer) => turns.answered(answer),
            Err(error) => Next::Break(Err(error.into())),
        };
        match next {
            Next::Continue(()) => self.ask(turns, ctx),
            Next::Break(outcome) => self.end(turns.usage(), outcome, ctx),
        }
    }

    /// Records how it ended; only then the caller hears of it.
    fn end(&mut self, usage: Usage, outcome: Outcome, ctx: &mut Context<Self>) {
        let record = &mut self.record;
        record.end_time = Some(self.deps.clock.now());
        record.usage = Some(usage);
        match &outcome {
            Ok(generation) => {
                record.status = GenerationStatus::Completed;
                record.output = Some(output_of(generation));
            }
            Err(GenerateError::Cancelled) => record.status = GenerationStatus::Cancelled,
            Err(error) => {
                record.status = GenerationStatus::Error;
                record.error = Some(error.to_string());
            }
        }
        self.phase = Phase::Ending;
        let durable = self.deps.generations.record_generation(write_of(record.clone()));
        ctx.spawn(durable.into_actor(self).map(move |recorded, actor, ctx| {
            let outcome = match recorded {
                Ok(()) => outcome,
                Err(refusal) => Err(unavailable(refusal)),
            };
            actor.release(outcome, ctx);
        }));
    }

    /// Answers the caller, if it is still there, and ends the actor.
    fn release(&mut self, outcome: Outcome, ctx: &mut Context<Self>) {
        // before the answer: who has it must not find the agent still working
        self.working = None;
        if let Some(answer) = self.answer.take() {
            let _ = answer.send(outcome);
        }
        ctx.stop();
    }

    fn take_phase(&mut self) -> Phase {
        std::mem::replace(&mut self.phase, Phase::Ending)
    }
}

impl Actor for GenerationActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX_CAPACITY);
        if let Phase::New(question) = self.take_phase() {
            self.begin(question, ctx);
        }
    }
}

impl Handler<CancelGeneration> for GenerationActor {
    type Result = ();

    fn handle(&mut self, _: CancelGeneration, ctx: &mut Self::Context) {
        let (turns, work) = match self.take_phase() {
            Phase::Starting { turns, recording } => (turns, recording),
            Phase::Asking { turns, asking } => (turns, asking),
            Phase::New(_) | Phase::Ending => return,
        };
        // drops the model's future, and with it the upstream request
        ctx.cancel_future(work);
        self.end(turns.usage(), Err(GenerateError::Cancelled), ctx);
    }
}

fn write_of(record: GenerationRecord) -> GenerationWrite {
    GenerationWrite { record, steps: Vec::new(), messages: None }
}

fn output_of(generation: &Generation) -> Value {
    generation.object.clone().unwrap_or_else(|| Value::String(generation.text.clone()))
}

/// A defect of a model's adapter fails its generation, not the actor. What it said is in the
/// panic's own report, not for callers.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Result<ModelAnswer, ModelError> {
    let message = "the model stopped unexpectedly";
    Err(ModelError::new(ModelErrorKind::Other, message))
}

fn unavailable(refusal: AppendError) -> GenerateError {
    let reason = match refusal {
        AppendError::Unavailable(reason) => reason,
        refused @ (AppendError::Exists | AppendError::Stale | AppendError::KeyTaken) => {
            Arc::from(refused.to_string())
        }
    };
    GenerateError::Unavailable(Unavailable::Store(reason))
}
