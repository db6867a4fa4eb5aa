//! Counts running generations by agent.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// Counts live generations by agent; shared by all arbiters.
#[derive(Debug)]
pub struct ActiveGenerations {
    by_agent: Mutex<HashMap<Arc<str>, usize>>,
    all: watch::Sender<usize>,
}

impl Default for ActiveGenerations {
    fn default() -> Self {
        Self { by_agent: Mutex::default(), all: watch::Sender::new(0) }
    }
}

impl ActiveGenerations {
    /// Counts a generation of the agent until the guard is dropped.
    pub fn enter(self: &Arc<Self>, agent_id: &str) -> ActiveGuard {
        let agent_id: Arc<str> = Arc::from(agent_id);
        *self.counts().entry(Arc::clone(&agent_id)).or_insert(0) += 1;
        self.all.send_modify(|live| *live += 1);
        ActiveGuard { active: Arc::clone(self), agent_id }
    }

    /// Returns the agents with a live generation.
    pub fn working(&self) -> BTreeSet<Arc<str>> {
        self.counts().keys().cloned().collect()
    }

    /// Returns the number of live generations, over all agents.
    pub fn live(&self) -> usize {
        *self.all.borrow()
    }

    /// Resolves once no generation is live. The last record of each is durable by then.
    pub async fn idle(&self) {
        // the sender lives as long as `self`: waiting cannot fail
        let _ = self.all.subscribe().wait_for(|live| *live == 0).await;
    }

    fn leave(&self, agent_id: &str) {
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(agent_id) {
            *count -= 1;
            if *count == 0 {
                counts.remove(agent_id);
            }
        }
        drop(counts);
        self.all.send_modify(|live| *live -= 1);
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.by_agent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One live generation; uncounts it on drop, also during unwinding.
#[derive(Debug)]
pub struct ActiveGuard {
    active: Arc<ActiveGenerations>,
    agent_id: Arc<str>,
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        self.active.leave(&self.agent_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_working_while_a_guard_lives() {
        let active = Arc::new(ActiveGenerations::default());
        let first = active.enter("writer");
        let second = active.enter("writer");
        let writer = BTreeSet::from([Arc::from("writer")]);
        assert_eq!(active.working(), writer);
        assert_eq!(active.live(), 2);

        drop(first);
        assert_eq!(active.working(), writer);

        drop(second);
        assert_eq!(active.working(), BTreeSet::new());
        assert_eq!(active.live(), 0);
    }
}
