//! Notifications after a commit, and their order.

use std::sync::Arc;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::ports::store::{Acknowledgement, Header};

use super::changes::Part;
use super::job::Job;
use super::session::Verdict;
use super::writer::Writer;

impl Writer {
    /// Notifies observers, then the shards in commit order, then callers of single requests.
    /// Returns the jobs that have further parts.
    pub(super) fn answer(&self, batch: Vec<Job>, verdicts: Vec<Verdict<Part>>) -> Vec<Job> {
        let sink = self.shared.sink.get();
        let wants_facts = sink.is_some_and(|sink| sink.wants_facts());
        let mut facts: Vec<(Arc<Header>, Arc<[Recorded]>)> = Vec::new();
        let mut by_shard: Vec<(usize, Vec<Acknowledgement>)> = Vec::new();
        let (mut waiting, mut changes) = (Vec::new(), Vec::new());
        let mut unfinished = Vec::new();
        for (job, verdict) in batch.into_iter().zip(verdicts) {
            let result = verdict.clone().map(drop);
            match job {
                Job::Append(prepared) => {
                    let append = prepared.append;
                    let (ticket, upto) = (append.ticket, append.projection.last_seq);
                    if wants_facts && result.is_ok() {
                        facts.push((append.projection.header, append.facts));
                    }
                    add(&mut by_shard, Acknowledgement { ticket, upto, result });
                }
                Job::Refuse(outcome) => add(&mut by_shard, outcome),
                Job::Snapshot(snapshot) => {
                    if let Err(error) = result {
                        log::debug!(
                            "no snapshot of execution {} was stored: {error}",
                            snapshot.execution
                        );
                    }
                }
                Job::Timers(changes) => {
                    if let Err(error) = result {
                        // timers that are due stay due and fire again
                        log::warn!("lost {} changes of timers: {error}", changes.len());
                    }
                }
                Job::Definition { done, .. }
                | Job::Generation { done, .. }
                | Job::Interrupt { done, .. } => waiting.push((done, result)),
                Job::Change { change, changed, done } => match verdict {
                    Ok(part) if !part.is_last => {
                        let changed = changed + part.changed;
                        unfinished.push(Job::Change { change, changed, done });
                    }
                    ended => changes.push((done, ended.map(|part| changed + part.changed))),
                },
                Job::Logs { logs, written, done } => match verdict {
                    Ok(part) if !part.is_last => {
                        let written = written + part.changed as usize;
                        unfinished.push(Job::Logs { logs, written, done });
                    }
                    _ => waiting.push((done, result)),
                },
                #[cfg(test)]
                Job::Pause(_) => {}
            }
        }
        if let Some(sink) = sink {
            if !facts.is_empty() {
                sink.publish(facts);
            }
            for (shard, outcomes) in by_shard {
                sink.committed(shard, outcomes);
            }
        }
        for (done, result) in waiting {
            // fails if the caller no longer waits
            let _ = done.send(result);
        }
        for (done, result) in changes {
            let _ = done.send(result);
        }
        unfinished
    }
}

fn add(by_shard: &mut Vec<(usize, Vec<Acknowledgement>)>, outcome: Acknowledgement) {
    let shard = outcome.ticket.shard;
    // few shards: a linear search is faster than a map
    match by_shard.iter_mut().find(|(known, _)| *known == shard) {
        Some((_, outcomes)) => outcomes.push(outcome),
        None => by_shard.push((shard, vec![outcome])),
    }
}
