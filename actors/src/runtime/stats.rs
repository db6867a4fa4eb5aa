//! Numbers about the runtime, read without involving any actor.

use std::sync::atomic::Ordering;

use super::Runtime;
use crate::cluster::figures::ClusterStats;

/// Numbers about a runtime at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeStats {
    /// Executions in memory.
    pub executions_live: usize,
    /// Estimated bytes of memory that they hold.
    pub executions_memory: u64,
    /// Limit of these bytes.
    pub executions_memory_max: u64,
    /// Executions that wait for memory to be loaded.
    pub executions_waiting: usize,
    /// Callers refused because the memory of executions was used up.
    pub executions_refused: u64,
    /// Executions with the status `running`, by the id of their workflow.
    pub executions_running: Vec<(String, usize)>,
    /// Waiting executions that were unloaded.
    pub executions_passivated: u64,
    /// Executions that were loaded from their rows.
    pub executions_rebuilt: u64,
    /// Actors of executions that panicked.
    pub actors_panicked: u64,
    /// Running bodies of steps: functions, calls, agents.
    pub steps_running: usize,
    pub generations_live: usize,
    /// Commands refused because a supervisor's mailbox was full.
    pub commands_refused: u64,
    /// Timers held in memory because they are due soon.
    pub timers_held: usize,
    /// Observers of spans and logs.
    pub observers: usize,
    /// Known stuck executions.
    pub executions_stuck: usize,
    /// Executions set aside at the start.
    pub executions_set_aside: usize,
    /// Events dropped because the feed was full.
    pub feed_dropped: u64,
    /// Progress values of functions dropped because they were too large or too many.
    pub progress_dropped: u64,
    /// Evaluations that cost more than a turn and were moved to other threads, and compiled schemas of
    /// questions.
    pub evaluations_moved: u64,
    /// Of these, evaluations stopped at a limit.
    pub evaluations_exceeded: u64,
    /// Of these, evaluations that wait or run.
    pub evaluations_pending: usize,
    /// Threads of executions that do not respond.
    pub threads_stalled: usize,
    /// True if new work is accepted.
    pub is_ready: bool,
    /// True if writes are expected to succeed.
    pub is_store_writable: bool,
}

impl Runtime {
    /// Reads the numbers about this process among the members of its store; `None` if it has the
    /// store alone.
    pub fn cluster_stats(&self) -> Option<ClusterStats> {
        self.shared.ownership.figures()
    }

    /// Reads the numbers. Takes no lock that an actor holds for long.
    pub fn stats(&self) -> RuntimeStats {
        let shared = &self.shared;
        let counters = &shared.counters;
        let evaluations = shared.evaluations.counts();
        RuntimeStats {
            executions_live: shared.live.load(Ordering::Relaxed),
            executions_memory: shared.memory.held(),
            executions_memory_max: shared.memory.max(),
            executions_waiting: shared.memory.waiting.load(Ordering::Relaxed),
            executions_refused: shared.memory.refused(),
            executions_running: shared.current.now().running(),
            executions_passivated: counters.passivated.load(Ordering::Relaxed),
            executions_rebuilt: counters.rebuilt.load(Ordering::Relaxed),
            actors_panicked: counters.panicked.load(Ordering::Relaxed),
            steps_running: shared.bodies.count(),
            generations_live: self.generations.active.live(),
            commands_refused: counters.refused.load(Ordering::Relaxed),
            timers_held: counters.timers_held.load(Ordering::Relaxed),
            observers: shared.feed.observers(),
            executions_stuck: shared.stuck_here().len(),
            feed_dropped: shared.feed.dropped(),
            progress_dropped: counters.progress_dropped.load(Ordering::Relaxed),
            executions_set_aside: shared.quarantine.set_aside(),
            evaluations_moved: evaluations.moved.load(Ordering::Relaxed),
            evaluations_exceeded: evaluations.exceeded.load(Ordering::Relaxed),
            evaluations_pending: evaluations.pending.load(Ordering::Relaxed),
            threads_stalled: shared.pulse.stalled().len(),
            is_ready: self.is_ready(),
            is_store_writable: shared.store.is_writable(),
        }
    }
}
