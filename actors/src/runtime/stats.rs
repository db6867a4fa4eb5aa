//! How much of everything there is just now, read without asking any actor.

use std::sync::atomic::Ordering;

use super::Runtime;

/// One reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeStats {
    /// Executions in memory.
    pub executions_live: usize,
    /// Bytes of memory that they hold, by an estimate.
    pub executions_memory: u64,
    /// As much of it as they may hold.
    pub executions_memory_max: u64,
    /// Executions that wait for memory to be brought back from their rows.
    pub executions_waiting: usize,
    /// Callers that were refused because executions in memory hold as much as they may.
    pub executions_refused: u64,
    /// Executions with the status `running`, by the id of their workflow.
    pub executions_running: Vec<(String, usize)>,
    /// Waiting executions that have left memory.
    pub executions_passivated: u64,
    /// Executions that came back from their rows.
    pub executions_rebuilt: u64,
    /// Actors of executions that panicked.
    pub actors_panicked: u64,
    /// Steps at work outside the machine: functions, agents.
    pub steps_running: usize,
    pub generations_live: usize,
    /// Commands refused because a supervisor was behind.
    pub orders_refused: u64,
    /// Timers held in memory because they are due soon.
    pub timers_held: usize,
    /// Listeners of spans and logs.
    pub observers: usize,
    /// Executions that nothing can move on, as far as they were found.
    pub executions_stuck: usize,
    /// Executions that were set aside at the start.
    pub executions_set_aside: usize,
    /// Events that the feed could not take.
    pub feed_dropped: u64,
    /// Things that functions said of their progress, too large or too many to be passed on.
    pub progress_dropped: u64,
    /// Evaluations that cost more than a turn and went to threads of their own.
    pub evaluations_moved: u64,
    /// Of these, those that cost more than they may.
    pub evaluations_exceeded: u64,
    /// Of these, those that wait or are at work.
    pub evaluations_pending: usize,
    /// Threads of executions that do not answer.
    pub threads_stalled: usize,
    /// Whether new work is taken.
    pub is_ready: bool,
}

impl Runtime {
    /// Reads the counts. Takes no lock that an actor holds for long.
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
            steps_running: shared.bodies.load(Ordering::Relaxed),
            generations_live: self.generations.active.live(),
            orders_refused: counters.refused.load(Ordering::Relaxed),
            timers_held: counters.timers_held.load(Ordering::Relaxed),
            observers: shared.feed.observers(),
            executions_stuck: self.stuck().len(),
            feed_dropped: shared.feed.dropped(),
            progress_dropped: counters.progress_dropped.load(Ordering::Relaxed),
            executions_set_aside: shared.quarantine.set_aside(),
            evaluations_moved: evaluations.moved.load(Ordering::Relaxed),
            evaluations_exceeded: evaluations.exceeded.load(Ordering::Relaxed),
            evaluations_pending: evaluations.pending.load(Ordering::Relaxed),
            threads_stalled: shared.pulse.stalled().len(),
            is_ready: self.is_ready(),
        }
    }
}
