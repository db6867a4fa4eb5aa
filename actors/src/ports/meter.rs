//! What is counted and measured, as it becomes true.

use std::time::Duration;

use crate::domain::fact::Recorded;
use crate::ports::store::{GenerationRecord, GenerationStep, Header};

/// Counts. Called on the threads of actors after the facts are durable; must not block.
pub trait Meter: Send + Sync {
    /// Facts of one execution, in order.
    fn recorded(&self, header: &Header, facts: &[Recorded]);

    /// An execution was suspended for so long and goes on, or has ended.
    fn waited(&self, header: &Header, wait: Duration);

    /// A step kept its thread from everybody else for so long.
    fn blocked(&self, header: &Header, path: &str, held: Duration);

    /// A timer came up, so much later than it was due. One that comes up again counts again.
    fn timer_fired(&self, late: Duration);

    /// A generation has ended: its record as it is in the history, and its turns.
    fn generation_ended(
        &self,
        record: &GenerationRecord,
        turns: &mut dyn Iterator<Item = &GenerationStep>,
    );

    /// A record was read that makes no sense.
    fn met_defect(&self);
}

/// Measures how a store writes, on its writer's thread, and what it reads, on any; must not block.
pub trait JournalMeter: Send + Sync {
    /// So many requests became durable together, which took so long.
    fn committed(&self, jobs: usize, elapsed: Duration);

    /// Something that was asked for could not be written.
    fn failed(&self);

    /// A record was to be read that makes no sense.
    fn met_defect(&self);
}

/// Counts nothing.
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

    fn generation_ended(&self, _: &GenerationRecord, _: &mut dyn Iterator<Item = &GenerationStep>) {
    }

    fn met_defect(&self) {}
}
