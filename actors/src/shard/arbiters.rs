//! The threads of executions: a fixed pool, or the caller's thread in tests.

use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use actix::{Arbiter, ArbiterHandle};

/// Time that threads get to end. One that was given blocking work ends only after that.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Threads that the runtime's actors run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// A pool of this many threads.
    Threads(usize),
    /// The thread that launches the runtime, so that paused time applies to every actor.
    Here,
}

impl Placement {
    /// Returns the number of threads that run executions.
    pub(crate) fn threads(self) -> usize {
        match self {
            Self::Threads(count) => count.max(1),
            Self::Here => 1,
        }
    }
}

/// The pool. Dropping it stops the threads.
pub(crate) struct Arbiters {
    owned: Mutex<Vec<Arbiter>>,
    handles: Vec<ArbiterHandle>,
}

impl Arbiters {
    pub(crate) fn start(placement: Placement) -> Self {
        match placement {
            Placement::Threads(_) => {
                let owned: Vec<Arbiter> =
                    (0..placement.threads()).map(|_| Arbiter::new()).collect();
                let handles = owned.iter().map(Arbiter::handle).collect();
                Self { owned: Mutex::new(owned), handles }
            }
            Placement::Here => Self { owned: Mutex::default(), handles: vec![Arbiter::current()] },
        }
    }

    /// Stops the threads, and returns when they have ended. Those that a function of the program
    /// blocks, or that have much to do, are left behind: the end of the process does not wait for them.
    pub(crate) fn end(&self) {
        let (ended, ends) = mpsc::channel();
        let mut joining = 0;
        for arbiter in self.take() {
            arbiter.stop();
            let ended = ended.clone();
            let join = thread::Builder::new().name("greenroom-join".to_owned());
            // an error: nothing waits for it
            let started = join.spawn(move || drop(ended.send(arbiter.join())));
            joining += usize::from(started.is_ok());
        }
        let until = Instant::now() + END_WITHIN;
        for left in (1..=joining).rev() {
            match ends.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Ok(())) => {}
                Ok(Err(_)) => log::error!("a thread of executions panicked"),
                Err(_) => {
                    log::warn!(
                        "threads of executions did not end in time, and are left behind: {left}. A \
                         function of the program blocks them, or they have much to do"
                    );
                    return;
                }
            }
        }
    }

    fn take(&self) -> Vec<Arbiter> {
        std::mem::take(&mut self.owned.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the thread for an id, chosen by the random end of the id.
    pub(crate) fn spread(&self, id: &str) -> Option<&ArbiterHandle> {
        let spread = id.bytes().rev().take(4).map(usize::from).sum::<usize>();
        self.handles.get(spread.checked_rem(self.handles.len())?)
    }

    pub(crate) fn handles(&self) -> &[ArbiterHandle] {
        &self.handles
    }
}

impl Drop for Arbiters {
    fn drop(&mut self) {
        // Not joined: this may run on one of them.
        self.take().iter().for_each(|arbiter| {
            arbiter.stop();
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::task::spawn_blocking;

    use super::*;

    #[test]
    fn the_end_does_not_wait_for_functions_that_block() {
        let _system = actix::System::new();
        let arbiters = Arbiters::start(Placement::Threads(2));
        let (block, blocked) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel();
        assert!(arbiters.handles()[0].spawn(async move {
            drop(spawn_blocking(move || {
                begin.send(()).unwrap();
                blocked.recv()
            }));
        }));
        begun.recv().unwrap();
        let (end, ended) = oneshot::channel::<()>();
        assert!(arbiters.handles()[1].spawn(async move {
            let _until_the_end = end;
            std::future::pending::<()>().await;
        }));
        // without a limit it would never return
        arbiters.end();
        assert!(ended.blocking_recv().is_err(), "the other thread has ended");
        drop(block);
    }
}
