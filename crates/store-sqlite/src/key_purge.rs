//! When keys of callers that have expired are dropped.

use greenroom_actors::domain::time::Timestamp;

use super::job::Job;
use super::session::Session;

/// Expired keys are looked for when the newest append is this much later than at the last look.
const PURGE_EVERY_MS: u64 = 10_000;

/// Expired keys dropped in one go, so that a request waits for a few milliseconds at most.
const PURGE_BATCH: usize = 100;

/// When expired keys are dropped. The time is that of the newest append: the writer has no clock.
#[derive(Default)]
pub(super) struct KeyPurge {
    newest: Timestamp,
    looked_at: Timestamp,
}

impl KeyPurge {
    pub(super) fn note(&mut self, batch: &[Job]) {
        for job in batch {
            if let Job::Append(prepared) = job {
                self.newest = self.newest.max(prepared.append.projection.updated_at);
            }
        }
    }

    /// Drops one batch if it is time to; tells whether it did.
    pub(super) fn run_if_due(&mut self, session: &mut Session<'_>) -> rusqlite::Result<bool> {
        if self.newest.ms_since(self.looked_at) < PURGE_EVERY_MS {
            return Ok(false);
        }
        if session.purge_keys(self.newest, PURGE_BATCH)? < PURGE_BATCH {
            self.looked_at = self.newest;
        }
        Ok(true)
    }
}
