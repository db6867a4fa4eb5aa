//! Threads of their own for evaluations: fewer than there are cores, so that whoever waits for an
//! arbiter does not wait for them.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::lanes::Lanes;
use crate::ports::workers::{Job, Lane, Workers};

/// How many threads evaluate: as many as leave a core to others.
pub fn evaluation_threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    cores.saturating_sub(1).max(1)
}

/// The threads. Dropping it lets them end; what still waits is dropped.
pub(super) struct EvaluationThreads(Arc<Pool>);

#[derive(Default)]
struct Pool {
    jobs: Mutex<Lanes<Job>>,
    more: Condvar,
    is_ending: AtomicBool,
}

impl EvaluationThreads {
    /// Starts all of them, or says why one cannot be started.
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
