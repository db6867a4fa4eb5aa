//! Workers that a test can hold and release.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ports::workers::{Job, Lane, Workers};
use crate::shard::evaluation::lanes::Lanes;

/// Runs jobs on the test's thread: at once, or after release while they are held.
#[derive(Default)]
pub struct ScriptedWorkers(Mutex<Script>);

#[derive(Default)]
struct Script {
    is_held: bool,
    /// Held jobs.
    jobs: Lanes<Job>,
}

impl ScriptedWorkers {
    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds jobs from now on.
    pub fn hold(&self) {
        self.lock().is_held = true;
    }

    /// Runs the next held job; jobs that it queues are held.
    pub fn do_one(&self) {
        let job = self.lock().jobs.pop();
        job.into_iter().for_each(soon);
    }

    /// Runs held jobs, and later ones at once.
    pub fn release(&self) {
        let mut script = self.lock();
        script.is_held = false;
        let mut jobs = std::mem::take(&mut script.jobs);
        std::iter::from_fn(|| jobs.pop()).for_each(soon);
    }

    /// Returns the number of held jobs.
    pub fn held(&self) -> usize {
        self.lock().jobs.len()
    }
}

fn soon(job: Job) {
    actix::spawn(async move { job() });
}

impl Workers for ScriptedWorkers {
    fn take(&self, lane: Lane, job: Job) {
        let mut script = self.lock();
        if script.is_held {
            script.jobs.push(lane, job);
        } else {
            soon(job);
        }
    }
}

impl fmt::Debug for ScriptedWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedWorkers").field("held", &self.held()).finish_non_exhaustive()
    }
}
