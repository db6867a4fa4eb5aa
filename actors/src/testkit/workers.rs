//! Workers that a test holds and lets go.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ports::workers::{Job, Lane, Workers};
use crate::shard::evaluation::lanes::Lanes;

/// Does jobs on the test's own thread: each at once, or while they are held, when they are let go.
#[derive(Default)]
pub struct ScriptedWorkers(Mutex<Script>);

#[derive(Default)]
struct Script {
    is_held: bool,
    /// Jobs that came while they were held.
    jobs: Lanes<Job>,
}

impl ScriptedWorkers {
    fn lock(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves jobs undone from now on.
    pub fn hold(&self) {
        self.lock().is_held = true;
    }

    /// Does the job that is held and whose turn it is; those that come with it are held as before.
    pub fn do_one(&self) {
        let job = self.lock().jobs.pop();
        job.into_iter().for_each(soon);
    }

    /// Does what was held, and what comes at once.
    pub fn let_go(&self) {
        let mut script = self.lock();
        script.is_held = false;
        let mut jobs = std::mem::take(&mut script.jobs);
        std::iter::from_fn(|| jobs.pop()).for_each(soon);
    }

    /// Jobs that are held.
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
