//! Metrics of the runtime and the store.

use std::time::Duration;

use crate::domain::fact::Recorded;
use crate::ports::store::{GenerationRecord, GenerationStep, Header};

/// Metrics of the runtime. Called on the threads of actors after the facts are durable; must not
/// block.
pub trait Meter: Send + Sync {
    /// Counts facts of one execution, in order.
    fn recorded(&self, header: &Header, facts: &[Recorded]);

    /// Measures a suspension that a resume or the end of the execution finished.
    fn waited(&self, header: &Header, wait: Duration);

    /// Measures how long a step blocked its thread.
    fn blocked(&self, header: &Header, path: &str, held: Duration);

    /// Measures the delay of a timer. One that fires again counts again.
    fn timer_fired(&self, late: Duration);

    /// Counts an ended generation, with its recorded entry and turns, and measures the time that it
    /// worked: not the time that it waited for people. `None`: it ended without a record of that, and
    /// never waited.
    fn generation_ended(
        &self,
        record: &GenerationRecord,
        turns: &mut dyn Iterator<Item = &GenerationStep>,
        worked: Option<Duration>,
    );

    /// Counts a corrupt record that was read.
    fn met_defect(&self);
}

/// Metrics of a store. Writes are measured on the writer's thread, reads on any; must not block.
pub trait JournalMeter: Send + Sync {
    /// Measures a commit of `jobs` requests.
    fn committed(&self, jobs: usize, elapsed: Duration);

    /// Counts a request that could not be written.
    fn failed(&self);

    /// Counts a corrupt record that was read.
    fn met_defect(&self);

    /// Counts a connection that was opened in place of one that failed. A store in this process has
    /// none, and no use for the methods that follow either.
    fn reconnected(&self) {}

    /// Counts a commit whose connection failed before the answer, once its outcome is known.
    fn settled(&self, outcome: SettledOutcome) {
        let _ = outcome;
    }

    /// Counts a loss of commits that the store had confirmed.
    fn lost_history(&self) {}

    /// Notes by how many seconds the wall clock of this process is ahead of the store's.
    fn compared_clocks(&self, ahead: f64) {
        let _ = ahead;
    }
}

/// Outcome of a commit that was unknown at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettledOutcome {
    Committed,
    /// Nothing was stored, so the commit is sent again.
    NotCommitted,
}

/// Discards all measurements.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoMeter;

impl JournalMeter for NoMeter {
    fn committed(&self, _: usize, _: Duration) {}

    fn failed(&self) {}

    fn met_defect(&self) {}
}

impl Meter for NoMeter {
    fn recorded(&self, _: &Header, _: &[Recorded]) {}

    fn waited(&self, _: &Header, _: Duration) {}

    fn blocked(&self, _: &Header, _: &str, _: Duration) {}

    fn timer_fired(&self, _: Duration) {}

    fn generation_ended(
        &self,
        _: &GenerationRecord,
        _: &mut dyn Iterator<Item = &GenerationStep>,
        _: Option<Duration>,
    ) {
    }

    fn met_defect(&self) {}
}
