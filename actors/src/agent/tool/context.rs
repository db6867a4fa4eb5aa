//! The context of a call, as the function of a tool has it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::agent::ask::ToolAsk;
use crate::domain::expression::json_bytes_exceed;
use crate::domain::note::Queued;
use crate::domain::trace::Trace;
use crate::function::ProgressSender;
use crate::home::Home;
use crate::ports::store::McpCall;

use super::error::ToolError;
use super::note::{NOTE_BYTES_MAX, NoteSender};

/// Context of one call, for a tool's function.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The agent that called; none for a direct call.
    pub agent_id: Option<Arc<str>>,
    /// The generation that called; none for a direct call.
    pub generation_id: Option<Arc<str>>,
    pub tool_call_id: Arc<str>,
    pub user_id: Option<Arc<str>>,
    pub conversation_id: Option<Arc<str>>,
    /// The operation context: the caller's object plus `user`, `userId`, `conversationId`.
    pub context: Arc<Map<String, Value>>,
    /// Stays the same when this call is repeated. Pass it on to services that the tool calls.
    pub idempotency_key: String,
    /// Fires when the call is cancelled or timed out. The future itself is dropped then; the token
    /// stops work that it has moved to other threads.
    pub cancellation: CancellationToken,
    /// Trace of the call, below the call's own span; pass it on to what the tool calls, over HTTP
    /// with [`Trace::headers`]. For a direct call, the caller's trace, if it sent one.
    pub trace: Option<Trace>,
    /// True if the call is made again because its process ended during the attempt before, which may
    /// have had its effect. For agents, `on_crash` decides first whether it is.
    pub is_repetition: bool,
    /// Answers of people to earlier makings of this call.
    pub answers: Arc<Answers>,
    /// [`ToolAsk::memo`] of the newest ask of this call, or what it has noted since.
    pub memo: Option<Arc<Value>>,
    /// [`CallApproval::subject`](crate::agent::CallApproval::subject) of the newest approval of a person
    /// that this call has asked for.
    pub approved: Option<Arc<str>>,
    /// Sends progress, if the call is that of a step.
    pub(crate) progress: ProgressSender,
    /// True if `memo` is what the call has noted, and not that of a question.
    pub(crate) has_noted: bool,
    /// Takes notes, unless it is a direct call.
    pub(crate) notes: Option<NoteSender>,
    /// Distinguishes the call of a step from those with the same key that have failed before, if there
    /// are any.
    pub(crate) after: Option<Arc<str>>,
    /// Its place among the concurrent calls of the tool, if these are limited.
    pub(crate) slot: Weak<OwnedSemaphorePermit>,
    /// Fires when the call follows a task.
    pub(crate) follows_task: CancellationToken,
    pub(crate) reached: Reached,
    pub(crate) expiry: Expiry,
    pub(crate) home: Home,
}

/// The place of a call among the concurrent calls of its tool, which is free once this is dropped.
#[derive(Debug)]
#[must_use = "the place is free once this is dropped"]
pub struct ToolSlot {
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}

/// Newest request of a call to an MCP server. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reached(Arc<Mutex<Option<McpCall>>>);

impl Reached {
    pub(crate) fn take(&self) -> Option<McpCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Mark of a call whose time is over. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expiry(Arc<AtomicBool>);

impl Expiry {
    /// Sets the mark; has to come before the call is dropped.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers to the questions of a call, in the order in which it asked them.
#[derive(Debug, Default)]
pub struct Answers {
    given: Vec<Value>,
    taken: AtomicUsize,
}

impl Answers {
    pub(crate) fn new(given: Vec<Value>) -> Self {
        Self { given, taken: AtomicUsize::new(0) }
    }

    /// Returns all answers, also those that [`ToolContext::ask`] has returned.
    pub fn given(&self) -> &[Value] {
        &self.given
    }

    fn next(&self) -> Option<&Value> {
        self.given.get(self.taken.fetch_add(1, Ordering::Relaxed))
    }
}

impl ToolContext {
    /// Creates the context of a call that has only its ids: no caller, nothing asked before, and nothing
    /// that takes progress or notes.
    pub(crate) fn new(tool_call_id: Arc<str>, idempotency_key: String) -> Self {
        Self {
            agent_id: None,
            generation_id: None,
            tool_call_id,
            user_id: None,
            conversation_id: None,
            context: Arc::default(),
            idempotency_key,
            cancellation: CancellationToken::new(),
            trace: None,
            is_repetition: false,
            answers: Arc::default(),
            memo: None,
            approved: None,
            progress: ProgressSender::default(),
            has_noted: false,
            notes: None,
            after: None,
            slot: Weak::new(),
            follows_task: CancellationToken::new(),
            reached: Reached::default(),
            expiry: Expiry::default(),
            home: Home::default(),
        }
    }

    /// Creates a context like that of a direct call without a caller, for unit tests. The fields are
    /// public and can be set.
    ///
    /// ```
    /// use greenroom_actors::agent::tool::ToolContext;
    ///
    /// let mut context = ToolContext::for_test();
    /// context.user_id = Some("ann".into());
    /// assert_eq!(context.idempotency_key, "test");
    /// ```
    pub fn for_test() -> Self {
        Self::new(Arc::from("test"), "test".to_owned())
    }

    /// Holds the place of the call among the concurrent calls of its tool, for work on another thread.
    /// A call that times out or is cancelled frees its place otherwise, while such work continues.
    pub fn hold_slot(&self) -> ToolSlot {
        ToolSlot { _permit: self.slot.upgrade() }
    }

    /// Says that the call from now on follows a task, which works elsewhere. Its place among the
    /// concurrent calls of the tool becomes free, and `ToolDefinition::task_timeout` limits its time.
    pub fn follow_task(&self) {
        self.follows_task.cancel();
    }

    /// Sends a `step-progress` with this `event` to the current subscribers of the execution whose step
    /// makes the call. Nothing is recorded. Returns false if it was not sent: in calls of agents and
    /// direct ones, without subscribers when the attempt began, above 64 kB, and above a hundred per
    /// second.
    pub fn progress(&self, event: impl Into<Value>) -> bool {
        self.progress.0.as_ref().is_some_and(|send| send(event.into()))
    }

    /// Says which request to an MCP server the call has made, for the span of a call of an agent or of an
    /// attempt of a step. The newest one counts.
    pub fn reached(&self, request: McpCall) {
        *self.reached.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
    }

    /// Notes where the call can continue if this process ends: it is made again then, whatever
    /// `on_crash` of the tool says, and finds this as [`ToolContext::memo`]. In a step, that is for
    /// attempts that were interrupted; one that follows a failure is another call. Returns true once
    /// the note is durable, and false if nothing is noted: for direct calls, and above 128 KiB.
    pub async fn note(&self, memo: Value) -> bool {
        let Some(notes) = &self.notes else { return false };
        if json_bytes_exceed(&memo, NOTE_BYTES_MAX) {
            return false;
        }
        notes.send(Arc::new(memo)).await
    }

    /// Notes that the call waits for its place among the concurrent calls of its tool. One that continues
    /// from its own note has no need of that.
    pub(in crate::agent) async fn note_queued(&self) -> bool {
        let queued = Queued { memo: self.memo.clone(), is_repetition: self.is_repetition };
        !self.has_noted && self.note(queued.to_note()).await
    }

    /// Withdraws that note, before the call is made. Returns true once that is durable.
    pub(in crate::agent) async fn withdraw_queued(&self) -> bool {
        match &self.notes {
            Some(notes) => notes.withdraw(self.memo.clone()).await,
            None => true,
        }
    }

    /// Returns the context with true if the process before ended while the call waited for its place: it
    /// is made as if it had not waited.
    pub(in crate::agent) fn after_queue(self) -> (Self, bool) {
        match self.memo.as_deref().and_then(Queued::of) {
            Some(Queued { memo, is_repetition }) => {
                (Self { memo, is_repetition, has_noted: false, ..self }, true)
            }
            None => (self, false),
        }
    }

    /// Returns true if the call is dropped because the process ends, or another one continues what
    /// makes it; false if it is given up. A call that has noted where it continues leaves alone then
    /// what it follows.
    pub fn is_interrupted(&self) -> bool {
        self.notes.as_ref().is_some_and(|notes| (notes.is_interrupted)())
    }

    /// Returns true if the call is dropped because its time is over, by its own limit or by that of the
    /// attempt that makes it; false if it is given up for another reason.
    pub fn has_timed_out(&self) -> bool {
        self.expiry.0.load(Ordering::Relaxed)
    }

    /// Asks a person, and waits for the answer for as long as it takes: the call ends with this
    /// error, the generation is put down, and once there is an answer the tool is called again, with
    /// the same arguments and idempotency key. This then returns the answer. A tool that asks
    /// several questions has to ask them in the same order each time.
    ///
    /// A step that calls the tool suspends in the same way. Direct calls cannot wait, and fail.
    pub fn ask(&self, ask: ToolAsk) -> Result<Value, ToolError> {
        self.answers.next().cloned().ok_or_else(|| ToolError::Waits(Box::new(ask)))
    }
}
