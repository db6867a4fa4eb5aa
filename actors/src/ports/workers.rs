//! Whoever does what must not keep an arbiter from its other work.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A piece of work. It does not panic.
pub type Job = Box<dyn FnOnce() + Send>;

/// Whose work it is: of one workflow, agent or tool, for one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lane(u64);

impl Lane {
    /// Of what is run, for a user. The same wherever it is made.
    pub fn of(what: &str, user: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        (what, user).hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Takes jobs and does them aside.
pub trait Workers: Send + Sync {
    /// Takes a job on, to be done after those before it in its lane; lanes have their turns, one job
    /// each. Never blocks. A job that is dropped instead tells its owner so by itself.
    fn take(&self, lane: Lane, job: Job);
}
