//! Notes of calls: where they can continue if the process ends.

use std::fmt;
use std::sync::Arc;

use actix::{Message, Recipient};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::domain::ids::StepPath;

/// Maximum size of a note in bytes of JSON.
pub(crate) const NOTE_BYTES_MAX: usize = 128 * 1024;

/// A note of a call of an agent.
#[derive(Debug)]
pub(crate) struct Note {
    /// Position of the call among those of its turn.
    pub(crate) number: usize,
    pub(crate) memo: Option<Arc<Value>>,
    /// False if the note before is withdrawn, and `memo` that of a question again.
    pub(crate) is_note: bool,
    /// Notified once it is durable.
    pub(crate) taken: oneshot::Sender<()>,
}

/// A note of the tool of a step, for the actor of the execution; answered true once it is durable.
#[derive(Debug, Message)]
#[rtype(result = "bool")]
pub(crate) struct StepNote {
    pub(crate) path: StepPath,
    pub(crate) attempt: u32,
    /// Null withdraws the note before.
    pub(crate) memo: Arc<Value>,
}

/// Returns true once what makes a call stops because the process ends, or another one is to serve it.
pub(crate) type IsInterrupted = Arc<dyn Fn() -> bool + Send + Sync>;

/// Sender of the notes of a call.
#[derive(Clone)]
pub(crate) struct NoteSender {
    pub(crate) recipient: NoteRecipient,
    pub(crate) is_interrupted: IsInterrupted,
}

/// Recipient of the notes of a call.
#[derive(Debug, Clone)]
pub(crate) enum NoteRecipient {
    Generation { number: usize, sender: mpsc::Sender<Note> },
    Step { path: StepPath, attempt: u32, execution: Recipient<StepNote> },
}

impl fmt::Debug for NoteSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NoteSender").field(&self.recipient).finish()
    }
}

impl NoteSender {
    /// Returns true once the note is durable.
    pub(super) async fn send(&self, memo: Arc<Value>) -> bool {
        self.deliver(Some(memo), true).await
    }

    /// Withdraws the note before; `memo` is that of the newest question, which an agent's call keeps
    /// there. Returns true once that is durable.
    pub(super) async fn withdraw(&self, memo: Option<Arc<Value>>) -> bool {
        self.deliver(memo, false).await
    }

    async fn deliver(&self, memo: Option<Arc<Value>>, is_note: bool) -> bool {
        match &self.recipient {
            NoteRecipient::Generation { number, sender } => {
                let (taken, done) = oneshot::channel();
                let note = Note { number: *number, memo, is_note, taken };
                sender.send(note).await.is_ok() && done.await.is_ok()
            }
            NoteRecipient::Step { path, attempt, execution } => {
                let memo = memo.filter(|_| is_note).unwrap_or_default();
                let note = StepNote { path: Arc::clone(path), attempt: *attempt, memo };
                execution.send(note).await.unwrap_or_default()
            }
        }
    }
}
