//! The actor of one generation: runs the model, records, answers.
//!
//! A call that leaves the process waits until the history says `working`; an answer waits until
//! the history has it. A model in this process needs the second record only.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use actix::fut::{ActorFutureExt as _, WrapFuture as _};
use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, Message, SpawnHandle};
use futures_util::future::FutureExt as _;
use futures_util::stream::{BoxStream, StreamExt as _};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::agent::AgentDefinition;
use crate::ports::model::{
    LanguageModel, ModelAnswer, ModelError, ModelErrorKind, ModelEvent, Usage,
};
use crate::ports::store::{AppendError, GenerationRecord, GenerationStatus, GenerationWrite};
use crate::requests::Unavailable;

use super::turn::{Next, Question, Turns};
use super::working::WorkingGuard;
use super::{
    GenerateError, Generation, GenerationDeps, GenerationEvent, GenerationProgress,
    GenerationRequest, GenerationSubscriber,
};

/// Only cancels come from outside; more of them than this add nothing.
const MAILBOX_CAPACITY: usize = 16;

/// Asks a generation to stop. Without effect once its end is decided.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct CancelGeneration;

/// Asks a generation to start no further turn, or to go on.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct HoldGeneration {
    pub(super) is_held: bool,
}

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
    subscriber: Option<GenerationSubscriber>,
}

impl Start {
    /// Finds the agent and its model.
    pub(super) fn resolve(
        deps: GenerationDeps,
        request: GenerationRequest,
        id: String,
        answer: oneshot::Sender<Outcome>,
        subscriber: Option<GenerationSubscriber>,
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
        Ok(Self { deps, agent, model, question, record, answer, working, subscriber })
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
    subscriber: Option<GenerationSubscriber>,
    /// No further turn starts.
    is_held: bool,
}

/// Where a generation stands.
enum Phase {
    /// Nothing was asked or recorded yet.
    New(Question),
    /// The model may be asked once `working` is durable.
    Starting { turns: Turns, recording: SpawnHandle },
    /// The model is at work.
    Asking { turns: Turns, asking: SpawnHandle },
    /// The next turn waits for the end of a hold.
    Held(Turns),
    /// The end is decided and on its way into the history.
    Ending,
}

impl GenerationActor {
    pub(super) fn new(start: Start) -> Self {
        let Start { deps, agent, model, question, record, answer, working, subscriber } = start;
        Self {
            deps,
            agent,
            model,
            record,
            answer: Some(answer),
            phase: Phase::New(question),
            working: Some(working),
            subscriber,
            is_held: false,
        }
    }

    fn say(&self, event: GenerationEvent) {
        if let Some(subscriber) = &self.subscriber {
            tell(subscriber, event);
        }
    }

    fn begin(&mut self, question: Question, ctx: &mut Context<Self>) {
        let id = self.record.id.clone();
        let start: Arc<str> = Arc::from(id.as_str());
        self.say(GenerationEvent::Start { generation_id: Arc::clone(&start), message_id: start });
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
        let subscriber = self.subscriber.clone();
        self.say(GenerationEvent::StepStart);
        let answering = AssertUnwindSafe(async move {
            match subscriber {
                Some(subscriber) => listen(model.stream(request), &subscriber).await,
                None => model.generate(request).await,
            }
        });
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
            Ok(answer) => {
                let (finish_reason, usage) = (answer.finish_reason, answer.usage);
                self.say(GenerationEvent::StepFinish { finish_reason, usage });
                turns.answered(answer)
            }
            Err(error) => Next::Break(Err(error.into())),
        };
        match next {
            Next::Continue(()) if self.is_held => self.phase = Phase::Held(turns),
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
        self.say(match &outcome {
            Ok(generation) => GenerationEvent::Finish {
                finish_reason: generation.finish_reason,
                usage: generation.usage,
            },
            Err(GenerateError::Cancelled) => GenerationEvent::Abort,
            Err(error) => GenerationEvent::Error { message: error.to_string() },
        });
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
        let turns = match self.take_phase() {
            // drops the model's future, and with it the upstream request
            Phase::Starting { turns, recording: work } | Phase::Asking { turns, asking: work } => {
                ctx.cancel_future(work);
                turns
            }
            Phase::Held(turns) => turns,
            Phase::New(_) | Phase::Ending => return,
        };
        self.end(turns.usage(), Err(GenerateError::Cancelled), ctx);
    }
}

impl Handler<HoldGeneration> for GenerationActor {
    type Result = ();

    fn handle(&mut self, HoldGeneration { is_held }: HoldGeneration, ctx: &mut Self::Context) {
        self.is_held = is_held;
        match self.take_phase() {
            Phase::Held(turns) if !is_held => self.ask(turns, ctx),
            other => self.phase = other,
        }
    }
}

fn tell(subscriber: &GenerationSubscriber, event: GenerationEvent) {
    if subscriber.events.try_send(GenerationProgress(Arc::from([event]))).is_err() {
        (subscriber.cut)();
    }
}

/// Hears a model to its end, passing on what it says.
async fn listen(
    mut stream: BoxStream<'static, Result<ModelEvent, ModelError>>,
    subscriber: &GenerationSubscriber,
) -> Result<ModelAnswer, ModelError> {
    let id: Arc<str> = Arc::from("text-0");
    let mut answer = ModelAnswer::default();
    while let Some(event) = stream.next().await {
        match event? {
            ModelEvent::TextDelta(delta) => {
                if answer.text.is_empty() {
                    tell(subscriber, GenerationEvent::TextStart { id: Arc::clone(&id) });
                }
                answer.text.push_str(&delta);
                tell(subscriber, GenerationEvent::TextDelta { id: Arc::clone(&id), delta });
            }
            ModelEvent::ToolCall(call) => answer.tool_calls.push(call),
            ModelEvent::Finished { usage, finish_reason } => {
                (answer.usage, answer.finish_reason) = (usage, finish_reason);
            }
            ModelEvent::ReasoningDelta(delta) => answer.reasoning.push_str(&delta),
            ModelEvent::ToolInputStart { .. }
            | ModelEvent::ToolInputDelta { .. }
            | ModelEvent::ProviderState(_) => {}
        }
    }
    if !answer.text.is_empty() {
        tell(subscriber, GenerationEvent::TextEnd { id });
    }
    Ok(answer)
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
