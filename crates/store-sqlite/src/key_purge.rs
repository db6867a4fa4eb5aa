//! Deletion of expired idempotency keys.

use greenroom_actors::domain::time::Timestamp;

use super::job::Job;
use super::session::Session;

/// Interval of deletions.
const PURGE_EVERY_MS: u64 = 10_000;

/// Maximum number of keys deleted at once, so that a request waits a few milliseconds at most.
const PURGE_BATCH: usize = 100;

/// Schedule of deletions. Its time is that of the newest append: the writer has no clock.
#[derive(Default)]
pub(super) struct KeyPurge {
    newest: Timestamp,
    last_purge: Timestamp,
}

impl KeyPurge {
    pub(super) fn note(&mut self, batch: &[Job]) {
        for job in batch {
            if let Job::Append(prepared) = job {
                self.newest = self.newest.max(prepared.append.projection.updated_at);
            }
        }
    }

    /// Deletes one batch if it is due; returns true if it did.
    pub(super) fn run_if_due(&mut self, session: &mut Session<'_>) -> rusqlite::Result<bool> {
        if self.newest.ms_since(self.last_purge) < PURGE_EVERY_MS {
            return Ok(false);
        }
        if session.purge_keys(self.newest, PURGE_BATCH)? < PURGE_BATCH {
            self.last_purge = self.newest;
        }
        Ok(true)
    }
}
