//! Faults that tests switch on and off.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

use super::MemoryStore;
use crate::domain::ids::ExecutionId;
use crate::domain::slot::SlotSet;
use crate::ports::store::{Append, Journal as _, Row, Written};

/// Faults of one store; none at first.
#[derive(Default)]
pub(super) struct Faults {
    refuses_writes: AtomicBool,
    refuses_reads: AtomicBool,
    has_no_rows: AtomicBool,
    is_silent: AtomicBool,
    lost: Mutex<SlotSet>,
    /// Appends and answers that wait, during an outage.
    waiting: Mutex<Option<Waiting>>,
    /// Acknowledgements that wait while writes continue; dropped when they may come.
    late: Mutex<Option<Vec<oneshot::Sender<()>>>>,
    changes: Changes,
}

/// Count of changes, and the number of those that are admitted.
struct Changes {
    count: watch::Sender<u64>,
    admitted: AtomicU64,
}

impl Default for Changes {
    fn default() -> Self {
        Self { count: watch::Sender::new(0), admitted: AtomicU64::new(u64::MAX) }
    }
}

#[derive(Default)]
struct Waiting {
    appends: Vec<Append>,
    /// Dropped at the end of the outage.
    answers: Vec<oneshot::Sender<()>>,
}

impl Faults {
    pub(super) fn refuses_writes(&self) -> bool {
        self.refuses_writes.load(Ordering::SeqCst)
    }

    /// Counts a change and returns true, or returns false if it is refused.
    pub(super) fn admits_change(&self) -> bool {
        let Changes { count, admitted } = &self.changes;
        if *count.borrow() >= admitted.load(Ordering::SeqCst) {
            self.refuses_writes.store(true, Ordering::SeqCst);
            // wakes those who wait for the refusal
            count.send_modify(|_| ());
        }
        if self.refuses_writes() {
            return false;
        }
        count.send_modify(|count| *count += 1);
        true
    }

    pub(super) fn refuses_reads(&self) -> bool {
        self.refuses_reads.load(Ordering::SeqCst)
    }

    /// Returns true for a member that does not show that it is alive.
    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::SeqCst)
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn late(&self) -> MutexGuard<'_, Option<Vec<oneshot::Sender<()>>>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true during an outage.
    pub(super) fn delays_appends(&self) -> bool {
        self.waiting().is_some()
    }

    /// Returns the append, unless it has to wait.
    pub(super) fn admit(&self, append: Append) -> Option<Append> {
        match &mut *self.waiting() {
            Some(waiting) => {
                waiting.appends.push(append);
                None
            }
            None => Some(append),
        }
    }

    /// Returns the answer to the record of a generation, which may be later than the record.
    pub(super) fn acknowledged<T: Send + 'static>(&self, recorded: Written<T>) -> Written<T> {
        let (answer, end) = oneshot::channel();
        match (self.waiting().as_mut(), self.late().as_mut()) {
            (Some(waiting), _) => waiting.answers.push(answer),
            (None, Some(late)) => late.push(answer),
            (None, None) => return recorded,
        }
        after(end, recorded)
    }

    /// Returns the answer to a change, which comes at the end of an outage.
    pub(super) fn after_outage<T: Send + 'static>(&self, changed: Written<T>) -> Written<T> {
        let (answer, end) = oneshot::channel();
        match self.waiting().as_mut() {
            Some(waiting) => waiting.answers.push(answer),
            None => return changed,
        }
        after(end, changed)
    }

    /// Returns true if another process owns the execution.
    pub(super) fn has_lost(&self, id: &ExecutionId) -> bool {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).has(id)
    }

    /// Returns the row number after the last one.
    pub(super) fn new_row(&self, last: &AtomicI64) -> Option<Row> {
        let has_rows = !self.has_no_rows.load(Ordering::SeqCst);
        has_rows.then(|| last.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

impl MemoryStore {
    /// Makes every write fail with [`AppendError::Unavailable`], or succeed again.
    ///
    /// [`AppendError::Unavailable`]: crate::ports::store::AppendError::Unavailable
    pub fn set_writable(&self, writable: bool) {
        self.faults.refuses_writes.store(!writable, Ordering::SeqCst);
    }

    /// Returns the count of changes so far, and wakes at each one and at the first refusal.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.faults.changes.count.subscribe()
    }

    /// Admits so many changes in all, and refuses those after as [`Self::set_writable`] does.
    pub fn admit_changes(&self, count: u64) {
        self.faults.changes.admitted.store(count, Ordering::SeqCst);
    }

    /// Makes appends wait, and the acknowledgements of generations, as in an outage of a database,
    /// until [`MemoryStore::end_outage`].
    pub fn begin_outage(&self) {
        self.faults.waiting().get_or_insert_default();
    }

    /// Ends an outage: carries out the appends that wait, in order.
    pub fn end_outage(&self) {
        let Some(waiting) = self.faults.waiting().take() else { return };
        for append in waiting.appends {
            self.append(append);
        }
    }

    /// Stores records of generations, but does not say so until
    /// [`MemoryStore::release_acknowledgements`].
    pub fn hold_acknowledgements(&self) {
        self.faults.late().get_or_insert_default();
    }

    /// Acknowledges what is stored.
    pub fn release_acknowledgements(&self) {
        drop(self.faults.late().take());
    }

    /// Makes every read fail with [`ReadError::Unavailable`], or succeed again.
    ///
    /// [`ReadError::Unavailable`]: crate::ports::store::ReadError::Unavailable
    pub fn set_readable(&self, readable: bool) {
        self.faults.refuses_reads.store(!readable, Ordering::SeqCst);
    }

    /// Deletes the asks of an execution, as if a version had written it which knows none.
    pub fn forget_asks(&self, id: &ExecutionId) {
        let mut state = self.disk.state();
        if let Some(row) = state.executions.get(id).map(|entry| entry.row) {
            state.asks.forget_of(row, id);
        }
    }

    /// Makes new row numbers unavailable, or available again.
    pub fn set_rows_available(&self, available: bool) {
        self.faults.has_no_rows.store(!available, Ordering::SeqCst);
    }

    /// Makes appends to executions of these slots fail with [`AppendError::Lost`], and to no
    /// others.
    ///
    /// [`AppendError::Lost`]: crate::ports::store::AppendError::Lost
    pub fn set_lost(&self, slots: SlotSet) {
        *self.faults.lost.lock().unwrap_or_else(PoisonError::into_inner) = slots;
    }

    /// Makes a member fall silent, or speak again: it does not beat, and cannot change the owners of
    /// slots. What it stores arrives nevertheless, until it is fenced.
    pub fn set_silent(&self, silent: bool) {
        self.faults.is_silent.store(silent, Ordering::SeqCst);
    }
}

/// Returns an answer that comes once the channel has closed.
fn after<T: Send + 'static>(end: oneshot::Receiver<()>, answer: Written<T>) -> Written<T> {
    Box::pin(async {
        // closes without a value
        let _ = end.await;
        answer.await
    })
}
