//! The next reminder, escalation or deadline of asks, so that regular work on them need not be
//! frequent to be punctual.

pub(crate) mod next_look;

use tokio::sync::watch;

use crate::domain::time::Timestamp;
use crate::ports::store::AskChange;

/// Notes what becomes due of asks of this process.
#[derive(Debug, Default)]
pub(crate) struct AskAlarm(watch::Sender<Option<Timestamp>>);

impl AskAlarm {
    /// Notes what becomes due of asks that are about to be opened.
    pub(crate) fn note_opened(&self, changes: &[AskChange]) {
        for change in changes {
            if let AskChange::Open(ask) = change {
                self.note(ask.next_due, ask.opened_at);
            }
        }
    }

    /// Notes a time, unless an earlier one is still to come.
    pub(crate) fn note(&self, due: Option<Timestamp>, now: Timestamp) {
        let Some(due) = due else { return };
        self.0.send_if_modified(|next| {
            let is_earlier = next.is_none_or(|next| due < next || next <= now);
            if is_earlier {
                *next = Some(due);
            }
            is_earlier
        });
    }
}
