//! Notifications after a commit, and their order.

use greenroom_store_codec::outcomes::Outcomes;

use super::changes::Part;
use super::job::Job;
use super::session::Verdict;
use super::writer::Writer;

impl Writer {
    /// Notifies observers, then the shards in commit order, then callers of single requests.
    /// Returns the jobs that have further parts.
    pub(super) fn answer(&self, batch: Vec<Job>, verdicts: Vec<Verdict<Part>>) -> Vec<Job> {
        let mut outcomes = Outcomes::of(self.shared.sink.get());
        let (mut waiting, mut changes) = (Vec::new(), Vec::new());
        let mut unfinished = Vec::new();
        for (job, verdict) in batch.into_iter().zip(verdicts) {
            let result = verdict.clone().map(drop);
            match job {
                Job::Append(prepared) => outcomes.add_append(prepared.append, result),
                Job::Refuse(outcome) => outcomes.add(outcome),
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
                Job::Change { change, changed, done, room } => match verdict {
                    Ok(part) if !part.is_last => {
                        let changed = changed + part.changed;
                        unfinished.push(Job::Change { change, changed, done, room });
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
        outcomes.report();
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
