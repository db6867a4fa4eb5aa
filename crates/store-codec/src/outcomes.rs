//! Notification of the actors after a commit.

use std::sync::Arc;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::ports::store::{Acknowledgement, Append, AppendError, CommitSink, Header};

/// Outcomes of one commit, in commit order.
pub struct Outcomes<'s> {
    sink: Option<&'s dyn CommitSink>,
    wants_facts: bool,
    facts: Vec<(Arc<Header>, Arc<[Recorded]>)>,
    by_shard: Vec<(usize, Vec<Acknowledgement>)>,
}

impl<'s> Outcomes<'s> {
    /// Begins a notification of the sink, if there is one.
    pub fn of(sink: Option<&'s Arc<dyn CommitSink>>) -> Self {
        let sink = sink.map(|sink| &**sink);
        let wants_facts = sink.is_some_and(CommitSink::wants_facts);
        Self { sink, wants_facts, facts: Vec::new(), by_shard: Vec::new() }
    }

    /// Adds the outcome of an append.
    pub fn add_append(&mut self, append: Append, result: Result<(), AppendError>) {
        let (ticket, upto) = (append.ticket, append.projection.last_seq);
        if self.wants_facts && result.is_ok() {
            self.facts.push((append.projection.header, append.facts));
        }
        self.add(Acknowledgement { ticket, upto, result });
    }

    /// Adds an outcome without facts.
    pub fn add(&mut self, outcome: Acknowledgement) {
        let shard = outcome.ticket.shard;
        // few shards: a linear search is faster than a map
        match self.by_shard.iter_mut().find(|(known, _)| *known == shard) {
            Some((_, outcomes)) => outcomes.push(outcome),
            None => self.by_shard.push((shard, vec![outcome])),
        }
    }

    /// Publishes the facts, then notifies the shards.
    pub fn report(self) {
        let Some(sink) = self.sink else { return };
        if !self.facts.is_empty() {
            sink.publish(self.facts);
        }
        for (shard, outcomes) in self.by_shard {
            sink.committed(shard, outcomes);
        }
    }
}
