//! Whoever does what must not keep an arbiter from its other work.

/// A piece of work. It does not panic.
pub type Job = Box<dyn FnOnce() + Send>;

/// Takes jobs and does them aside.
pub trait Workers: Send + Sync {
    /// Takes a job on, to be done after those before it. Never blocks. A job that is dropped
    /// instead tells its owner so by itself.
    fn take(&self, job: Job);
}
