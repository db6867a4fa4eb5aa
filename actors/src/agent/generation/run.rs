//! One run of an agent, from the prompt to its recorded end, as one future.
//!
//! What few runs do is boxed where it is called, so that the others do not carry the room for it.
//!
//! Whatever leaves the process waits for a record: a call for status `working` in the history,
//! tools for the turn that calls them, an answer and the last event for the end. A local model
//! without live subscribers needs only the record of the end.

mod answer;
mod end;
mod hooks;
mod prepare;
mod publish;
mod record;
mod remember;
mod start;
mod take_up;
mod tools;
mod waiting;

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
use crate::agent::generation::continuation::Continuation;
use crate::domain::message::ToolApproval;
use crate::observe::trace::generation::PublishedSpans;
use crate::ports::model::LanguageModel;
use crate::ports::store::{
    ApprovedTools, AskChange, ConversationKey, GenerationRecord, Period, Row,
};
use crate::ports::workers::Lane;
use crate::requests::Unavailable;

use super::active::ActiveGuard;
use super::actor::GenerationActor;
use super::control::{Control, WorkedTime, stopped, unpaused};
use super::generation_registry::{Entry, RegistryGuard};
use super::memory::RunMemory;
use super::recording::Recording;
use super::sequencer::EventSequencer;
use super::subscribers::Subscribers;
use super::tools::Toolset;
use super::turn::{AnswerBuffer, Ended, Next, Transcript, Turns};
use super::{Begins, GenerateError, Generation, GenerationDeps};

pub(super) use start::Start;

use start::RunInput;
use tools::Called;

/// Time limit of the end hook of a stopped run.
const LAST_HOOK_MAX: Duration = Duration::from_secs(1);

type Outcome = Result<Generation, GenerateError>;

/// The point at which a run stops asking the model.
enum Halt {
    Ended(Ended),
    /// It had ended before this run was taken up.
    HasEnded(Ended),
    /// Calls wait for people. The asks are new.
    PutDown(Vec<AskChange>),
    /// Calls have been waiting for people since before this run was taken up.
    StillWaiting,
}

/// A running generation.
pub(super) struct Run {
    deps: GenerationDeps,
    agent: Arc<AgentDefinition>,
    model: Arc<dyn LanguageModel>,
    id: Arc<str>,
    message_id: String,
    context: Arc<Map<String, Value>>,
    depth: u32,
    /// The history's entry, as recorded last or next.
    record: GenerationRecord,
    row: Row,
    is_recorded: bool,
    recording: Recording,
    transcript: Transcript,
    answer: AnswerBuffer,
    /// Bytes left for results of tools.
    results_left: usize,
    memory: Option<RunMemory>,
    /// State in front of the calls of the last turn, until all of them have results.
    continuation: Option<Continuation>,
    /// True if the store has a continuation.
    has_continuation: bool,
    /// True if the calls of the last turn were interrupted.
    is_interrupted: bool,
    /// Approvals of calls of all turns.
    approvals: Vec<ToolApproval>,
    /// Tools that need no further approval in the conversation.
    approved_tools: ApprovedTools,
    worked: WorkedTime,
    /// Asks that open when the run is put down.
    opened: Vec<AskChange>,
    /// True if the record of the run is not to be changed.
    is_unchanged: bool,
    /// The generation whose tool asks.
    parent: Option<Arc<str>>,
    is_chat: bool,
    /// Time of reading `memory`; taken by the first turn.
    memory_read: Option<Period>,
    /// Spans published so far.
    published: PublishedSpans,
    /// The record, shared with spans.
    shared: Option<Arc<GenerationRecord>>,
    /// `None` without live subscribers.
    sequencer: Option<EventSequencer>,
    subscribers: Rc<RefCell<Subscribers>>,
    /// True once `on_start` was called.
    is_start_hook_called: bool,
    /// Taken when the caller is notified that the run has begun.
    begin: Option<oneshot::Sender<()>>,
    begins: Begins,
    /// True once the id is known to be unique. Nothing is recorded before.
    is_id_ours: bool,
    /// True if a caller chose the id, which another run may have.
    is_id_chosen: bool,
    /// Conversation to register the run for; taken when that is done.
    chat: Option<ConversationKey>,
    control: watch::Receiver<Control>,
    /// Without a `RegistryGuard`, another run of this id is live.
    guards: (ActiveGuard, Option<RegistryGuard>),
}

impl Run {
    /// Registers the generation; returns it with its input and the channel of its outcome. It is
    /// boxed, because its future holds it more than once.
    pub(super) fn new(
        start: Start,
        control: watch::Receiver<Control>,
        subscribers: Rc<RefCell<Subscribers>>,
        actor: Addr<GenerationActor>,
    ) -> (Box<Self>, RunInput, oneshot::Sender<Outcome>) {
        let chat = start.resumable_chat();
        let (is_id_chosen, begins) = (start.is_id_chosen, start.begins);
        let Start { deps, agent, model, id, input, record, row, recording, .. } = start;
        let Start { active, begin, answer, .. } = start;
        let user_id = record.user_id.as_deref().map(Arc::from);
        let entry = Entry { agent: Arc::clone(&agent), user_id, actor };
        // of two that continue it at once, one answers and one by a restart, the second is refused
        let is_alone = input.continues && record.origin.is_none() && input.parent.is_none();
        let found = deps.live.enter(Arc::clone(&id), entry, !is_id_chosen && !is_alone);
        let is_id_ours = !is_id_chosen && (found.is_some() || !is_alone);
        let message_id = super::memory::message_id(&input.messages, &id).to_owned();
        let has_subscribers = subscribers.borrow().are_expected();
        let sequencer = has_subscribers
            .then(|| EventSequencer::new(Arc::clone(&id), Arc::from(message_id.as_str())));
        let mut run = Box::new(Self {
            answer: AnswerBuffer::new(deps.bytes_max, deps.tool_limits.value_depth_max),
            results_left: deps.bytes_max,
            context: Arc::clone(&input.context),
            depth: input.depth,
            deps,
            agent,
            model,
            id,
            message_id,
            record,
            row,
            is_recorded: false,
            recording,
            transcript: Transcript::default(),
            memory: None,
            continuation: None,
            has_continuation: false,
            is_interrupted: false,
            approvals: Vec::new(),
            approved_tools: ApprovedTools::new(),
            worked: WorkedTime::default(),
            opened: Vec::new(),
            is_unchanged: false,
            parent: input.parent.clone(),
            is_chat: input.is_chat,
            memory_read: None,
            published: PublishedSpans::default(),
            shared: None,
            sequencer,
            subscribers,
            is_start_hook_called: false,
            begin,
            begins,
            is_id_ours,
            is_id_chosen,
            chat,
            control,
            guards: (active, found),
        });
        if is_id_ours {
            run.show_chat();
        }
        (run, input, answer)
    }

    /// Runs until there is an answer or a stop; records the end; then sends the last event.
    pub(super) async fn perform(mut self: Box<Self>, input: RunInput) -> Outcome {
        let (time, worked) = (self.agent.budget.time, self.worked.clone());
        let mut stop = pin!(stopped(self.control.clone(), time, worked));
        let (outcome, is_stopped) = tokio::select! {
            biased;
            error = &mut stop => (Err(error), true),
            // a stop drops this future, and with it upstream requests and tools
            ended = AssertUnwindSafe(self.work(input)).catch_unwind() => {
                (ended.unwrap_or_else(|_| Err(defect())), false)
            }
        };
        let outcome = outcome.map(|halt| self.generation(halt));
        let hook = self.end_hook(&outcome);
        match is_stopped {
            true => drop(tokio::time::timeout(LAST_HOOK_MAX, hook).await),
            false => tokio::select! { biased; _ = stop => {} () = hook => {} },
        }
        self.end(outcome).await
    }

    async fn work(&mut self, input: RunInput) -> Result<Halt, GenerateError> {
        self.claim_id().await?;
        if input.continues
            && let Some(recorded) = self.recorded().await?
        {
            return Box::pin(self.take_up(recorded, input.schema.is_some())).await;
        }
        let (mut turns, toolset) = self.prepare(input).await?;
        // subscribers get output as soon as there is any
        if self.sequencer.is_some() || self.begins == Begins::OnceRecorded {
            self.record_progress().await?;
        }
        if self.begins == Begins::OnceRecorded {
            match &mut self.sequencer {
                Some(sequencer) => {
                    sequencer.start();
                    self.publish().await?;
                }
                None => self.announce_begin(),
            }
        }
        self.start_hook().await?;
        self.run_turns(&mut turns, &toolset, None).await
    }

    /// Runs turns until the run ends or has to wait, beginning with what is next in the current one.
    async fn run_turns(
        &mut self,
        turns: &mut Turns,
        toolset: &Toolset,
        mut next: Option<Next>,
    ) -> Result<Halt, GenerateError> {
        loop {
            let next = match next.take() {
                Some(next) => next,
                None => self.question(turns).await?,
            };
            if let ControlFlow::Break(halt) = self.proceed(turns, toolset, next).await? {
                return Ok(halt);
            }
        }
    }

    /// Rejects an id chosen by the caller that a live or recorded run has.
    async fn claim_id(&mut self) -> Result<(), GenerateError> {
        if self.is_id_ours {
            return Ok(());
        }
        // live runs are checked first, so that none can slip in between
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

    /// Asks the model.
    async fn question(&mut self, turns: &mut Turns) -> Result<Next, GenerateError> {
        unpaused(&mut self.control).await;
        if self.model.is_remote() {
            self.record_progress().await?;
        }
        let answer = self.ask(turns.request()).await?;
        let read = match turns.reads(&answer) {
            Some(schema) => Some(self.read_object(&answer.text, schema).await?),
            None => None,
        };
        turns.answered(answer, read, &mut self.transcript)
    }

    /// Calls the tools that the model requests, and ends the turn.
    async fn proceed(
        &mut self,
        turns: &mut Turns,
        toolset: &Toolset,
        mut next: Next,
    ) -> Result<ControlFlow<Halt>, GenerateError> {
        if let Next::Call(planned) = next {
            let results = match Box::pin(self.call_tools(turns, toolset, planned)).await? {
                Called::All(results) => results,
                Called::Waiting(asks) => return Ok(ControlFlow::Break(Halt::PutDown(asks))),
            };
            if self.have_calls_used() {
                self.record_progress().await?;
            }
            self.leave_calls();
            next = turns.tools_returned(results, &self.transcript)?;
        }
        match next {
            Next::Done(ended) => return Ok(ControlFlow::Break(Halt::Ended(ended))),
            Next::Call(_) | Next::Ask => self.finish_turn(),
            Next::Repair { detail } => {
                self.finish_turn();
                if let Some(sequencer) = &mut self.sequencer {
                    sequencer.reject(detail);
                }
                self.record_repair(turns).await?;
            }
        }
        self.publish().await?;
        Ok(ControlFlow::Continue(()))
    }

    /// Forgets what only concerns the calls of the last turn.
    fn leave_calls(&mut self) {
        self.continuation = None;
        self.is_interrupted = false;
    }

    /// Returns the fairness lane of the run's evaluations.
    fn lane(&self) -> Lane {
        Lane::of(&self.record.agent_id, self.record.user_id.as_deref())
    }

    fn finish_turn(&mut self) {
        if let (Some(sequencer), Some(step)) = (&mut self.sequencer, self.transcript.last()) {
            sequencer.finish_turn(step.finish_reason, step.usage);
        }
    }

    /// Sends pending events to subscribers, and waits for the first one if it is behind. Returns
    /// `Cancelled` if the run has lost its last subscriber and does not continue without.
    async fn publish(&mut self) -> Result<(), GenerateError> {
        let events = self.sequencer.as_mut().map(EventSequencer::take).unwrap_or_default();
        if events.is_empty() {
            return Ok(());
        }
        if !self.subscribers.borrow_mut().send(events) {
            return Err(GenerateError::Cancelled);
        }
        // after sending, so that the first events are there when `begun` resolves
        self.announce_begin();
        let Some(room) = self.subscribers.borrow_mut().ask_for_room() else { return Ok(()) };
        if room.await.is_err() && !self.subscribers.borrow_mut().lose_first() {
            return Err(GenerateError::Cancelled);
        }
        Ok(())
    }

    /// Notifies the caller that the run has begun, once.
    fn announce_begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            // the caller may not wait for it
            let _ = begin.send(());
        }
    }
}

/// Failure for a panic of ours. The panic message is in the panic hook's log only.
fn defect() -> GenerateError {
    GenerateError::Failed("the generation stopped unexpectedly".to_owned())
}

fn ending() -> GenerateError {
    GenerateError::Unavailable(Unavailable::Draining { execution: None })
}
