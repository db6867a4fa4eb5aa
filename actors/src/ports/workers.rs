//! Workers for jobs that would block an arbiter.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A job. It does not panic.
pub type Job = Box<dyn FnOnce() + Send>;

/// Fairness class of a job: one workflow, agent or tool, for one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lane(u64);

impl Lane {
    /// Returns the lane of `what` for a user; deterministic within a process.
    pub fn of(what: &str, user: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        (what, user).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Runs jobs in the background.
pub trait Workers: Send + Sync {
    /// Queues a job behind earlier jobs of its lane. Lanes take turns, one job each. Never blocks.
    /// A job that is dropped instead notifies its owner itself.
    fn take(&self, lane: Lane, job: Job);
}
