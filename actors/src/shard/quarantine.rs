//! Sets aside executions that repeatedly kill the process: a fault that no limit catches (memory,
//! stack overflow) would otherwise end every process that continues them.
//!
//! An execution is marked while it has recorded nothing since it was loaded, and while a costly
//! decision is made for it. A process that dies leaves its marks to the next one. Running
//! steps are not marked: the number of their restarts is bounded by `crash_attempts`.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::domain::ids::ExecutionId;
use crate::observe::log_record::LogScope;
use crate::observe::scope::scope_of;
use crate::ports::crash_marks::{CRASH_MARK_SLOTS, Crash, CrashMark, CrashMarks, MarkedWork};
use crate::ports::store::{Projection, Store};

pub(crate) struct Quarantine {
    marks: Arc<dyn CrashMarks>,
    /// Slots of marks that are not in use.
    free: Mutex<Vec<usize>>,
    /// Set once, at the start.
    crashed: OnceLock<Crashed>,
}

/// Executions that earlier processes died with.
#[derive(Default)]
struct Crashed {
    /// Executions to be failed, with the number of their last event then, and their error.
    doomed: HashMap<ExecutionId, (u64, Arc<str>)>,
    /// Executions that cannot even be read.
    unreadable: HashSet<ExecutionId>,
}

impl Quarantine {
    pub(crate) fn new(marks: Arc<dyn CrashMarks>) -> Self {
        Self { marks, free: Mutex::new((0..CRASH_MARK_SLOTS).collect()), crashed: OnceLock::new() }
    }

    /// Examines the marks of earlier processes. Returns the executions that are to be failed
    /// because `crashes_max` processes died at the same point; zero disables this.
    pub(crate) async fn examine(&self, store: &dyn Store, crashes_max: u32) -> Vec<ExecutionId> {
        let mut crashed = Crashed::default();
        let mut kept = Vec::new();
        for crash in self.marks.crashes() {
            let execution = &crash.mark.execution;
            let scope = match store.describe(execution).await {
                Ok(Some(row)) if is_unchanged_since(&row, &crash) => scope_of(&row.header),
                Ok(_) => continue,
                // The error is reported on access; its crashes still count.
                Err(error) => {
                    let scope = LogScope::of_execution(execution);
                    scope.within(|| log::warn!("execution {execution}: {error}"));
                    scope
                }
            };
            if crashes_max > 0 && crash.count >= crashes_max {
                scope.within(|| crashed.take(&crash));
            } else {
                let doing = doing(crash.mark.work);
                scope.within(|| {
                    log::warn!("an earlier process died while execution {execution} was {doing}");
                });
            }
            kept.push(crash);
        }
        self.marks.keep(&kept);
        let doomed = crashed.doomed.keys().cloned().collect();
        let _ = self.crashed.set(crashed);
        doomed
    }

    /// Returns the error that an execution is to be failed with, if it is. One that has got further
    /// since has failed already, and may have to be compensated.
    pub(crate) fn error_of(&self, id: &ExecutionId, last_seq: u64) -> Option<Arc<str>> {
        let (marked, error) = self.crashed.get()?.doomed.get(id)?;
        (*marked == last_seq).then(|| Arc::clone(error))
    }

    pub(crate) fn is_unreadable(&self, id: &ExecutionId) -> bool {
        self.crashed.get().is_some_and(|crashed| crashed.unreadable.contains(id))
    }

    /// Returns the number of executions set aside at the start.
    pub(crate) fn set_aside(&self) -> usize {
        self.crashed.get().map_or(0, Crashed::count)
    }

    /// Sets a mark until the guard is dropped. Returns `None` when all slots are in use.
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

impl Crashed {
    fn take(&mut self, crash: &Crash) {
        let Crash { mark: CrashMark { execution, last_seq, work }, count } = crash;
        let doing = doing(*work);
        let error = format!(
            "set aside: the process died {count} times while it was {doing}, at the same point"
        );
        log::error!("execution {execution}: {error}");
        match work {
            MarkedWork::Load => drop(self.unreadable.insert(execution.clone())),
            MarkedWork::Decide => {
                self.doomed.insert(execution.clone(), (*last_seq, Arc::from(error)));
            }
        }
    }

    fn count(&self) -> usize {
        self.doomed.len() + self.unreadable.len()
    }
}

/// Returns true if an execution has not changed since the process died.
fn is_unchanged_since(row: &Projection, crash: &Crash) -> bool {
    !row.status.is_terminal() && row.last_seq == crash.mark.last_seq
}

fn doing(work: MarkedWork) -> &'static str {
    match work {
        MarkedWork::Load => "being read",
        MarkedWork::Decide => "being evaluated",
    }
}

/// Clears a mark when dropped.
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
