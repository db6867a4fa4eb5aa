//! What is counted and measured, as it becomes true.

use crate::domain::fact::Recorded;
use crate::ports::store::{GenerationRecord, GenerationStep, Header};

/// Counts. Called on the threads of actors after the facts are durable; must not block.
pub trait Meter: Send + Sync {
    /// Facts of one execution, in order.
    fn recorded(&self, header: &Header, facts: &[Recorded]);

    /// A generation has ended: its record as it is in the history, and its turns.
    fn generation_ended(
        &self,
        record: &GenerationRecord,
        turns: &mut dyn Iterator<Item = &GenerationStep>,
    );
}

/// Counts nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoMeter;

impl Meter for NoMeter {
    fn recorded(&self, _: &Header, _: &[Recorded]) {}

    fn generation_ended(&self, _: &GenerationRecord, _: &mut dyn Iterator<Item = &GenerationStep>) {
    }
}
