//! Executions that processes ended with, again and again, are set aside: a fault that no bound
//! catches (memory, the stack) would otherwise end every process that goes on with them.
//!
//! While an execution that came back from its rows has got nowhere yet, and while a costly decision
//! is made for it, a mark says so. A process that ends in the middle leaves the mark to the next.
//! Steps at work are not marked: how often they are begun again is bounded by `crash_attempts`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::domain::ids::ExecutionId;
use crate::observe::log_record::LogScope;
use crate::observe::scope::scope_of;
use crate::ports::crash_marks::{CRASH_MARK_SLOTS, Crash, CrashMark, CrashMarks, MarkedWork};
use crate::ports::store::{Projection, Store};

pub(crate) struct Quarantine {
    marks: Arc<dyn CrashMarks>,
    /// Slots of marks that nobody uses just now.
    free: Mutex<Vec<usize>>,
    /// Set once, at the start.
    found: OnceLock<Found>,
}

/// What the processes before this one ended with.
#[derive(Default)]
struct Found {
    /// Those to be ended, with the error to end them with.
    doomed: HashMap<ExecutionId, Arc<str>>,
    /// Those that cannot even be read.
    unreadable: HashSet<ExecutionId>,
}

impl Quarantine {
    pub(crate) fn new(marks: Arc<dyn CrashMarks>) -> Self {
        Self { marks, free: Mutex::new((0..CRASH_MARK_SLOTS).collect()), found: OnceLock::new() }
    }

    /// Looks at what processes ended with; returns the executions that are to be set aside after
    /// `crashes_max` of them at the same point. With 0, none ever is.
    pub(crate) async fn examine(&self, store: &dyn Store, crashes_max: u32) -> Vec<ExecutionId> {
        let mut found = Found::default();
        let mut kept = Vec::new();
        for crash in self.marks.crashes() {
            let execution = &crash.mark.execution;
            let scope = match store.describe(execution).await {
                Ok(Some(row)) if stands_at(&row, &crash) => scope_of(&row.header),
                Ok(_) => continue,
                // Whoever asks for it is told why; the count goes on.
                Err(error) => {
                    let scope = LogScope::of_execution(execution);
                    scope.within(|| log::warn!("execution {execution}: {error}"));
                    scope
                }
            };
            if crashes_max > 0 && crash.count >= crashes_max {
                scope.within(|| found.take(&crash));
            } else {
                let doing = doing(crash.mark.work);
                scope.within(|| {
                    log::warn!("the process ended while execution {execution} was {doing}");
                });
            }
            kept.push(crash);
        }
        self.marks.keep(&kept);
        let doomed = found.doomed.keys().cloned().collect();
        let _ = self.found.set(found);
        doomed
    }

    /// The error that an execution is to be ended with, if it is.
    pub(crate) fn error_of(&self, id: &ExecutionId) -> Option<Arc<str>> {
        self.found.get()?.doomed.get(id).cloned()
    }

    pub(crate) fn is_unreadable(&self, id: &ExecutionId) -> bool {
        self.found.get().is_some_and(|found| found.unreadable.contains(id))
    }

    /// Executions set aside at the start.
    pub(crate) fn set_aside(&self) -> usize {
        self.found.get().map_or(0, Found::count)
    }

    /// Marks what is being done until the guard is dropped. None when too much is marked already.
    pub(crate) fn mark(
        &self,
        execution: &ExecutionId,
        last_seq: u64,
        work: MarkedWork,
    ) -> Option<MarkGuard<'_>> {
        let slot = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        self.marks.set(slot, &CrashMark { execution: execution.clone(), last_seq, work });
        Some(MarkGuard { quarantine: self, slot })
    }

    pub(crate) fn close(&self) {
        self.marks.close();
    }
}

impl Found {
    fn take(&mut self, crash: &Crash) {
        let Crash { mark: CrashMark { execution, work, .. }, count } = crash;
        let doing = doing(*work);
        let error = format!(
            "it was set aside: the process ended {count} times while it was {doing}, at the same \
             point"
        );
        log::error!("execution {execution}: {error}");
        match work {
            MarkedWork::Load => drop(self.unreadable.insert(execution.clone())),
            MarkedWork::Decide => drop(self.doomed.insert(execution.clone(), Arc::from(error))),
        }
    }

    fn count(&self) -> usize {
        self.doomed.len() + self.unreadable.len()
    }
}

/// Whether an execution is still where a process ended with it.
fn stands_at(row: &Projection, crash: &Crash) -> bool {
    !row.status.is_terminal() && row.last_seq == crash.mark.last_seq
}

fn doing(work: MarkedWork) -> &'static str {
    match work {
        MarkedWork::Load => "being read",
        MarkedWork::Decide => "being evaluated",
    }
}

/// Something is marked.
pub(crate) struct MarkGuard<'a> {
    quarantine: &'a Quarantine,
    slot: usize,
}

impl Drop for MarkGuard<'_> {
    fn drop(&mut self) {
        self.quarantine.marks.clear(self.slot);
        self.quarantine.free.lock().unwrap_or_else(PoisonError::into_inner).push(self.slot);
    }
}
