//! Executions whose asks are not in the inbox, because their records cannot be read.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::domain::ids::ExecutionId;
use crate::observe::log_record::LogScope;
use crate::requests::Unavailable;

/// Executions that are remembered as unreadable; beyond that, the inbox remains incomplete.
const UNREADABLE_MAX: usize = 1_000;

/// Executions without asks whose records cannot be read. A process notes them until it ends: the
/// next one may be able to read them.
#[derive(Default)]
pub(crate) struct UnreadableAsks(Mutex<HashSet<ExecutionId>>);

impl UnreadableAsks {
    pub(crate) fn count(&self) -> usize {
        self.all().len()
    }

    pub(crate) fn contains(&self, id: &ExecutionId) -> bool {
        self.all().contains(id)
    }

    /// Notes an execution, and reports it.
    pub(crate) fn add(&self, id: &ExecutionId, why: &Unavailable) {
        let mut all = self.all();
        if all.len() < UNREADABLE_MAX {
            all.insert(id.clone());
        }
        drop(all);
        LogScope::of_execution(id).within(|| {
            log::warn!("asks of execution {id} are not in the inbox: {why}");
        });
    }

    /// Forgets executions that are not among these.
    pub(crate) fn keep(&self, missing: &HashSet<ExecutionId>) {
        self.all().retain(|id| missing.contains(id));
    }

    fn all(&self) -> MutexGuard<'_, HashSet<ExecutionId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
