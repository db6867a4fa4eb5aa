//! The threads of executions: a fixed pool, or the caller's thread in tests.

use std::sync::{Mutex, PoisonError};

use actix::{Arbiter, ArbiterHandle};

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

    /// Stops the threads and joins them.
    pub(crate) fn end(&self) {
        for arbiter in self.take() {
            arbiter.stop();
            if arbiter.join().is_err() {
                log::error!("a thread of executions panicked");
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
