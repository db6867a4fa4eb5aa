//! One run of an agent from the prompt to its recorded end, as one future.
//!
//! What leaves the process waits for the record: a call until the history says `working`, tools
//! until it has the turn that asks for them, an answer and the last event until it has the end.
//! A model in this process that nobody reads live needs the last record only.

mod announce;
mod answer;
mod hooks;
mod record;
mod remember;
mod start;
mod tools;

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::Addr;
use futures_util::FutureExt as _;
use serde_json::{Map, Value};
use tokio::sync::{oneshot, watch};

use crate::agent::AgentDefinition;
use crate::agent::generation::object::{Unfit, read_object};
use crate::domain::effort::{Budget, within};
use crate::domain::schema::Schema;
use crate::observe::trace::generation::Told;
use crate::ports::model::LanguageModel;
use crate::ports::store::{ConversationKey, GenerationRecord, Period, Row};
use crate::ports::workers::Lane;
use crate::requests::Unavailable;
use crate::shard::evaluation::Cancel;

use super::active::ActiveGuard;
use super::actor::GenerationActor;
use super::control::{Control, released, stopped};
use super::generation_registry::{Entry, LiveGuard};
use super::memory::Remembered;
use super::options::effective_options;
use super::readers::Readers;
use super::sequencer::{EventSequencer, FinalEvent};
use super::tools::Toolset;
use super::turn::{
    Bounds, Ended, Heard, Next, Question, STEPS_DEFAULT, Transcript, Turns, choices,
    compile_schema, prompt,
};
use super::{Begins, GenerateError, Generation, GenerationDeps};

pub(super) use start::Start;

use start::Asked;

/// How long the hook at the end may take of a run that was stopped.
const LAST_HOOK_MAX: Duration = Duration::from_secs(1);

type Outcome = Result<Generation, GenerateError>;

/// A run at work.
pub(super) struct Run {
    deps: GenerationDeps,
    agent: Arc<AgentDefinition>,
    model: Arc<dyn LanguageModel>,
    id: Arc<str>,
    message_id: String,
    context: Arc<Map<String, Value>>,
    depth: u32,
    /// The history's entry, as it was recorded last or will be.
    record: GenerationRecord,
    row: Row,
    is_recorded: bool,
    transcript: Transcript,
    heard: Heard,
    /// Bytes that the results of tools may still take.
    results_left: usize,
    memory: Option<Remembered>,
    /// When that was read, until a turn tells of it.
    memory_read: Option<Period>,
    /// What those who watch spans were told.
    told: Told,
    /// The record, as spans have it.
    shared: Option<Arc<GenerationRecord>>,
    /// None when nobody reads it live.
    sequencer: Option<EventSequencer>,
    readers: Rc<RefCell<Readers>>,
    /// Whether the agent's hooks have heard of it.
    is_followed: bool,
    /// Until who waits to read it is told that it has begun.
    begin: Option<oneshot::Sender<()>>,
    begins: Begins,
    /// Whether the history has no other run of this id. Until then nothing is recorded.
    is_id_ours: bool,
    /// The conversation by which readers are to find it, until they can.
    chat: Option<ConversationKey>,
    control: watch::Receiver<Control>,
    /// Without the second, another run of this id is at work.
    guards: (ActiveGuard, Option<LiveGuard>),
}

impl Run {
    /// Lets the generation be found, and gives what it is asked and where the answer goes.
    pub(super) fn new(
        start: Start,
        control: watch::Receiver<Control>,
        readers: Rc<RefCell<Readers>>,
        actor: Addr<GenerationActor>,
    ) -> (Self, Asked, oneshot::Sender<Outcome>) {
        let chat = start.resumable_chat();
        let (is_id_ours, begins) = (!start.is_id_chosen, start.begins);
        let Start { deps, agent, model, id, asked, record, row, active, begin, answer, .. } = start;
        let user_id = record.user_id.as_deref().map(Arc::from);
        let entry = Entry { agent: Arc::clone(&agent), user_id, actor };
        let found = deps.live.enter(Arc::clone(&id), entry, is_id_ours);
        let message_id = super::memory::message_id(&asked.messages, &id).to_owned();
        let is_read = readers.borrow().are_expected();
        let sequencer =
            is_read.then(|| EventSequencer::new(Arc::clone(&id), Arc::from(message_id.as_str())));
        let mut run = Self {
            heard: Heard::new(deps.bytes_max, deps.tool_limits.value_depth_max),
            results_left: deps.bytes_max,
            context: Arc::clone(&asked.context),
            depth: asked.depth,
            deps,
            agent,
            model,
            id,
            message_id,
            record,
            row,
            is_recorded: false,
            transcript: Transcript::default(),
            memory: None,
            memory_read: None,
            told: Told::default(),
            shared: None,
            sequencer,
            readers,
            is_followed: false,
            begin,
            begins,
            is_id_ours,
            chat,
            control,
            guards: (active, found),
        };
        if is_id_ours {
            run.show_chat();
        }
        (run, asked, answer)
    }

    /// Works until there is an answer, or until it is told to stop; records the end; only then
    /// says the last word.
    pub(super) async fn perform(mut self, asked: Asked) -> Outcome {
        let mut stop = pin!(stopped(self.control.clone(), self.agent.budget.time));
        let (outcome, is_stopped) = tokio::select! {
            biased;
            error = &mut stop => (Err(error), true),
            // drops whatever was under way when it is stopped: upstream requests, tools
            ended = AssertUnwindSafe(self.work(asked)).catch_unwind() => {
                (ended.unwrap_or_else(|_| Err(defect())), false)
            }
        };
        let outcome = outcome.map(|ended| self.generation(ended));
        let hook = self.end_hook(&outcome);
        match is_stopped {
            true => drop(tokio::time::timeout(LAST_HOOK_MAX, hook).await),
            false => tokio::select! { biased; _ = stop => {} () = hook => {} },
        }
        self.end(outcome).await
    }

    async fn work(&mut self, asked: Asked) -> Result<Ended, GenerateError> {
        self.claim_id().await?;
        let (mut turns, toolset) = self.prepare(asked).await?;
        // a reader hears the first words as soon as there are any
        if self.sequencer.is_some() {
            self.record_progress().await?;
        }
        if let (Begins::OnceRecorded, Some(sequencer)) = (self.begins, &mut self.sequencer) {
            sequencer.start();
            self.tell_readers().await?;
        }
        self.start_hook().await?;
        loop {
            match self.turn(&mut turns, &toolset).await? {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(ended) => return Ok(ended),
            }
        }
    }

    /// Makes sure that an id that the caller chose is no other run's, at work or in the history.
    async fn claim_id(&mut self) -> Result<(), GenerateError> {
        if self.is_id_ours {
            return Ok(());
        }
        // whoever is at work under this id is found first: nobody can come in between
        let is_free = self.guards.1.is_some() && {
            let known = self.deps.generations.generation(&self.id).await;
            known.map_err(Unavailable::from)?.is_none()
        };
        if !is_free {
            return Err(GenerateError::Exists(self.record.id.clone()));
        }
        self.is_id_ours = true;
        self.show_chat();
        Ok(())
    }

    fn show_chat(&mut self) {
        if let ((_, Some(found)), Some(key)) = (&mut self.guards, self.chat.take()) {
            found.show_chat(key);
        }
    }

    /// Compiles, chooses and remembers all that the first question needs.
    async fn prepare(&mut self, asked: Asked) -> Result<(Turns, Toolset), GenerateError> {
        // the caller's mistake is told before anything has happened: no part of the history
        let schema = asked.schema.map(compile_schema).transpose()?;
        let (instructions, toolset) = self.chosen().await?;
        let read_from = self.deps.clock.now();
        self.memory = self.remember(&asked.messages, asked.sent, asked.context_limit).await?;
        self.memory_read = self.memory.as_ref().map(|_| {
            let end = Some(self.deps.clock.now());
            Period { start: read_from, end }
        });
        let (working_memory, older) = match &mut self.memory {
            Some(memory) => (memory.working_memory.as_deref(), std::mem::take(&mut memory.older)),
            None => (None, Vec::new()),
        };
        let question = Question {
            messages: prompt::compose(instructions, working_memory, older, asked.messages),
            tools: toolset.specs(),
            schema,
            options: effective_options(asked.options, &self.agent.options),
        };
        let steps = asked.max_steps.or(self.agent.max_steps).unwrap_or(STEPS_DEFAULT);
        let bounds = Bounds {
            steps: steps.min(self.deps.steps_max).max(1),
            tokens: self.agent.budget.tokens,
            tool_calls: self.agent.budget.tool_calls,
            object_repairs: asked.object_repairs.unwrap_or(self.deps.object_repairs),
        };
        Ok((Turns::new(question, bounds), toolset))
    }

    /// Asks the model once, and its tools as far as it wants them.
    async fn turn(
        &mut self,
        turns: &mut Turns,
        toolset: &Toolset,
    ) -> Result<ControlFlow<Ended>, GenerateError> {
        released(&mut self.control).await;
        if self.model.is_remote() {
            self.record_progress().await?;
        }
        let answer = self.ask(turns.request()).await?;
        let read = match turns.reads(&answer) {
            Some(schema) => Some(self.read_object(&answer.text, schema).await?),
            None => None,
        };
        let mut next = turns.answered(answer, read, &mut self.transcript)?;
        if let Next::Call(planned) = next {
            let results = self.call_tools(toolset, planned).await?;
            next = turns.tools_returned(results, &self.transcript)?;
        }
        match next {
            Next::Done(ended) => return Ok(ControlFlow::Break(ended)),
            Next::Call(_) | Next::Ask => self.turn_over(),
            Next::Repair { detail } => {
                self.turn_over();
                if let Some(sequencer) = &mut self.sequencer {
                    sequencer.rejected(detail);
                }
            }
        }
        self.tell_readers().await?;
        Ok(ControlFlow::Continue(()))
    }

    /// Reads an object here, or elsewhere where that costs more than a turn.
    async fn read_object(
        &self,
        text: &str,
        schema: &Schema,
    ) -> Result<Result<Value, Unfit>, GenerateError> {
        let depth_max = self.deps.tool_limits.value_depth_max;
        let (read, effort) = within(&Budget::turn(), || read_object(text, schema, depth_max));
        if !effort.is_exceeded {
            return Ok(read);
        }
        let (text, schema) = (text.to_owned(), schema.clone());
        let read = self.deps.evaluations.evaluate(self.lane(), Cancel::default(), move |budget| {
            within(budget, || read_object(&text, &schema, depth_max)).0
        });
        read.await.ok_or_else(ending)
    }

    /// Whose evaluations these are.
    fn lane(&self) -> Lane {
        Lane::of(&self.record.agent_id, self.record.user_id.as_deref())
    }

    /// The agent's own words, and its tools.
    async fn chosen(&self) -> Result<(Option<String>, Toolset), GenerateError> {
        fn choose(
            deps: &GenerationDeps,
            agent: &AgentDefinition,
            context: &Map<String, Value>,
        ) -> Result<(Option<String>, Toolset), GenerateError> {
            let instructions = choices::instructions(&deps.compiled, agent, context)?;
            Ok((instructions, choices::tools(&deps.compiled, &deps.registry, agent, context)?))
        }
        let Self { deps, agent, context, .. } = self;
        let (chosen, effort) = within(&Budget::turn(), || choose(deps, agent, context));
        if !effort.is_exceeded {
            return chosen;
        }
        let (own, agent, context) = (deps.clone(), Arc::clone(agent), Arc::clone(context));
        let chosen = deps.evaluations.evaluate(self.lane(), Cancel::default(), move |budget| {
            within(budget, || choose(&own, &agent, &context)).0
        });
        chosen.await.ok_or_else(ending)?
    }

    fn turn_over(&mut self) {
        if let (Some(sequencer), Some(step)) = (&mut self.sequencer, self.transcript.last()) {
            sequencer.turn_over(step.finish_reason, step.usage);
        }
    }

    /// Hands what was said to the readers, and waits for the first one where it is behind. Cancels
    /// a run that has lost all of them and lives for them only.
    async fn tell_readers(&mut self) -> Result<(), GenerateError> {
        let said = self.sequencer.as_mut().map(EventSequencer::take).unwrap_or_default();
        if said.is_empty() {
            return Ok(());
        }
        if !self.readers.borrow_mut().tell(said) {
            return Err(GenerateError::Cancelled);
        }
        // only now: the first words are there before the caller hears that there are any
        if let Some(begin) = self.begin.take() {
            // who spawned it may not wait for that
            let _ = begin.send(());
        }
        let Some(room) = self.readers.borrow_mut().ask_for_room() else { return Ok(()) };
        if room.await.is_err() && !self.readers.borrow_mut().lose_first() {
            return Err(GenerateError::Cancelled);
        }
        Ok(())
    }

    fn generation(&self, ended: Ended) -> Generation {
        let Ended { finish_reason, object } = ended;
        let transcript = &self.transcript;
        Generation {
            id: self.record.id.clone(),
            message_id: self.message_id.clone(),
            text: transcript.last().map(|step| step.text.clone()).unwrap_or_default(),
            object,
            usage: transcript.usage(),
            finish_reason,
            tool_calls: transcript.tool_calls().cloned().collect(),
            tool_results: transcript.tool_results().cloned().collect(),
            stand_in: transcript.last().and_then(|step| step.stand_in()).cloned().map(Box::new),
        }
    }

    /// Records how it ended; only then its caller and its readers hear of it.
    async fn end(mut self, outcome: Outcome) -> Outcome {
        if let Err(error) = &outcome {
            self.keep_unfinished_turn(error);
        }
        let recorded = self.record_end(&outcome).await;
        self.log_end(&outcome);
        let Self { sequencer, readers, guards, transcript, begin, begins, .. } = self;
        // who has the answer, or the last event, must not find the agent still working
        drop(guards);
        let outcome = recorded.and(outcome);
        let is_waited_for = begin.as_ref().is_some_and(|begin| !begin.is_closed());
        let is_cut_off = matches!(outcome, Err(GenerateError::Cancelled));
        let is_for_readers = begins == Begins::OnceRecorded && is_cut_off;
        // who waits for the first word is told by the handle that there is none
        if outcome.is_err() && is_waited_for && !is_for_readers {
            readers.borrow_mut().forget_first();
        }
        if let Some(mut sequencer) = sequencer {
            if let (Ok(_), Some(step)) = (&outcome, transcript.last()) {
                sequencer.turn_over(step.finish_reason, step.usage);
            }
            sequencer.over(final_event(&outcome));
            readers.borrow_mut().tell(sequencer.take());
        }
        if let Some(begin) = begin.filter(|_| is_for_readers) {
            // who spawned it may not wait for that
            let _ = begin.send(());
        }
        outcome
    }
}

fn final_event(outcome: &Outcome) -> FinalEvent {
    match outcome {
        Ok(Generation { object, finish_reason, usage, stand_in, .. }) => FinalEvent::Finish {
            object: object.clone(),
            finish_reason: *finish_reason,
            usage: *usage,
            stand_in: stand_in.clone(),
        },
        Err(GenerateError::Cancelled) => FinalEvent::Abort,
        Err(error) => FinalEvent::Error { message: error.for_callers(), kind: error.kind() },
    }
}

/// A defect of ours ends its run, and is recorded. What it said is in the panic's own report.
fn defect() -> GenerateError {
    GenerateError::Failed("the generation stopped unexpectedly".to_owned())
}

fn ending() -> GenerateError {
    GenerateError::Unavailable(Unavailable::Draining { execution: None })
}
