//! Timers in memory.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{Timer, TimerChange, TimerKey};

/// Timers of all executions.
#[derive(Clone, Default)]
pub(super) struct Timers {
    by_key: BTreeMap<(ExecutionId, TimerKey), Timestamp>,
    by_due: BTreeSet<(Timestamp, ExecutionId, TimerKey)>,
}

impl Timers {
    pub(super) fn change(&mut self, changes: Vec<TimerChange>) {
        for change in changes {
            match change {
                TimerChange::Arm(Timer { execution, key, due }) => {
                    self.disarm(execution.clone(), key.clone());
                    self.by_due.insert((due, execution.clone(), key.clone()));
                    self.by_key.insert((execution, key), due);
                }
                TimerChange::Disarm { execution, key } => self.disarm(execution, key),
            }
        }
    }

    fn disarm(&mut self, execution: ExecutionId, key: TimerKey) {
        let place = (execution, key);
        if let Some(due) = self.by_key.remove(&place) {
            self.by_due.remove(&(due, place.0, place.1));
        }
    }

    /// Removes the timers of nodes of an execution.
    pub(super) fn drop_nodes(&mut self, id: &ExecutionId) {
        self.drop_where(id, |key| matches!(key, TimerKey::Node(_)));
    }

    /// Removes all timers of an execution.
    pub(super) fn drop_all(&mut self, id: &ExecutionId) {
        self.drop_where(id, |_| true);
    }

    fn drop_where(&mut self, id: &ExecutionId, is_gone: impl Fn(&TimerKey) -> bool) {
        let gone: Vec<_> = self.of(id).map(|timer| timer.key).filter(|key| is_gone(key)).collect();
        gone.into_iter().for_each(|key| self.disarm(id.clone(), key));
    }

    /// Iterates over the timers of an execution.
    pub(super) fn of(&self, id: &ExecutionId) -> impl Iterator<Item = Timer> {
        // the first kind of key
        let first = (id.clone(), TimerKey::Abandoned);
        let own = self.by_key.range(first..).take_while(move |((execution, _), _)| execution == id);
        own.map(|((execution, key), due)| timer(execution, key, *due))
    }

    /// Iterates over the timers that are due before a time, soonest first.
    pub(super) fn due(&self, until: Timestamp) -> impl Iterator<Item = Timer> {
        let due = self.by_due.iter().take_while(move |(due, _, _)| *due < until);
        due.map(|(due, execution, key)| timer(execution, key, *due))
    }
}

fn timer(execution: &ExecutionId, key: &TimerKey, due: Timestamp) -> Timer {
    Timer { execution: execution.clone(), key: key.clone(), due }
}
