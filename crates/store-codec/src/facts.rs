//! Pages of an execution's facts.

use greenroom_actors::domain::event::events_of;
use greenroom_actors::domain::fact::Recorded;

/// A page of facts, filled from chunks in their order. It may end inside a chunk.
#[derive(Debug)]
pub struct FactPage {
    after: u64,
    /// Number of facts with events that still fit.
    left: usize,
    facts: Vec<Recorded>,
}

impl FactPage {
    /// Starts a page of the facts after a number, with up to `limit` facts that have events.
    pub fn new(after: u64, limit: usize) -> Self {
        Self { after, left: limit, facts: Vec::new() }
    }

    /// Returns true if nothing more fits.
    pub fn is_full(&self) -> bool {
        self.left == 0
    }

    /// Adds as many facts of the next chunk as fit.
    pub fn add(&mut self, chunk: Vec<Recorded>) {
        for fact in chunk.into_iter().filter(|fact| fact.seq > self.after) {
            if self.is_full() {
                return;
            }
            self.left -= usize::from(!events_of(&fact.fact).is_empty());
            self.facts.push(fact);
        }
    }

    /// Returns the facts, in order.
    pub fn into_facts(self) -> Vec<Recorded> {
        self.facts
    }
}
