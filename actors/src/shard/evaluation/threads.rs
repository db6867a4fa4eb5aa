//! The thread pool for evaluations: one thread fewer than there are cores, so that other threads
//! still run.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::lanes::Lanes;
use crate::ports::workers::{Job, Lane, Workers};

/// Returns the number of evaluation threads, which leaves one core free.
pub fn evaluation_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.saturating_sub(1).max(1)
}

/// The pool. Dropping it ends the threads and drops waiting jobs.
pub(super) struct EvaluationThreads(Arc<Pool>);

#[derive(Default)]
struct Pool {
    jobs: Mutex<Lanes<Job>>,
    more: Condvar,
    is_ending: AtomicBool,
}

impl EvaluationThreads {
    /// Starts all threads, or returns the error of the one that cannot be started.
    pub(super) fn start() -> io::Result<Self> {
        let threads = Self(Arc::default());
        for index in 0..evaluation_threads() {
            let pool = Arc::clone(&threads.0);
            let thread = std::thread::Builder::new().name(format!("evaluation-{index}"));
            thread.spawn(move || pool.work())?;
        }
        Ok(threads)
    }
}

impl Workers for EvaluationThreads {
    fn take(&self, lane: Lane, job: Job) {
        self.0.lock().push(lane, job);
        self.0.more.notify_one();
    }
}

impl Drop for EvaluationThreads {
    fn drop(&mut self) {
        self.0.is_ending.store(true, Ordering::Release);
        let left = std::mem::take(&mut *self.0.lock());
        self.0.more.notify_all();
        drop(left);
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Lanes<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut jobs = self.lock();
        loop {
            if self.is_ending.load(Ordering::Acquire) {
                return None;
            }
            if let Some(job) = jobs.pop() {
                return Some(job);
            }
            jobs = self.more.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
