//! Threads for what blocks, and whether the machine has enough of them.
//!
//! A thread that is started when a request needs it may be refused: then the request fails. So
//! every pool has its first thread from the start and keeps it; more are started under load, and
//! where the machine refuses those, work waits for the ones that there are.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Threads end with their pool, not before.
const FOR_EVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Fewer threads than are needed.
#[derive(Debug, thiserror::Error)]
#[error("only {started} of {needed} threads can be started: {reason}")]
pub struct TooFewThreads {
    pub started: usize,
    pub needed: usize,
    reason: io::Error,
}

/// Threads that run what blocks.
#[derive(Debug)]
pub struct Pool {
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
}

impl Pool {
    /// Starts the first thread; there will be `threads_max` at most.
    pub fn start(name: &'static str, threads_max: usize) -> io::Result<Self> {
        reserve(1).map_err(|refused| refused.reason)?;
        let runtime = Builder::new_current_thread()
            .thread_name(name)
            .max_blocking_threads(threads_max.max(1))
            .thread_keep_alive(FOR_EVER)
            .build()?;
        // Nobody waits for it: what comes next waits until the thread is there.
        drop(runtime.spawn_blocking(|| ()));
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs something on one of the threads. It goes on when the caller leaves.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<T> {
        let Some(runtime) = &self.runtime else { return Err(io::ErrorKind::NotConnected.into()) };
        runtime.spawn_blocking(work).await.map_err(io::Error::other)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // whoever drops this may be unable to wait
            runtime.shutdown_background();
        }
    }
}

/// The pool of a place in the process, started unless it is there.
pub fn shared(
    place: &'static OnceLock<Pool>,
    name: &'static str,
    threads_max: usize,
) -> io::Result<&'static Pool> {
    match place.get() {
        Some(pool) => Ok(pool),
        None => {
            let pool = Pool::start(name, threads_max)?;
            Ok(place.get_or_init(|| pool))
        }
    }
}

/// Finds out whether so many further threads can be there at once, by starting them. They have
/// ended when this returns.
pub fn reserve(needed: usize) -> Result<(), TooFewThreads> {
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let mut started = Vec::with_capacity(needed);
    let mut refused = None;
    while started.len() < needed && refused.is_none() {
        let gate = Arc::clone(&gate);
        let wait = move || drop(gate.lock());
        match std::thread::Builder::new().name("greenroom-probe".to_owned()).spawn(wait) {
            Ok(thread) => started.push(thread),
            Err(reason) => refused = Some(reason),
        }
    }
    drop(closed);
    let count = started.len();
    // They do nothing that could fail.
    started.into_iter().for_each(|thread| drop(thread.join()));
    match refused {
        None => Ok(()),
        Some(reason) => Err(TooFewThreads { started: count, needed, reason }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn more_work_than_threads_waits_for_them() {
        let pool = Pool::start("test", 2).unwrap();
        let (told, ran) = channel();
        let work = |number: u32| {
            let told = told.clone();
            pool.run(move || {
                told.send(std::thread::current().id()).unwrap();
                number
            })
        };
        let done = futures_util::future::join_all((0..50).map(work)).await;
        assert!(done.into_iter().map(Result::unwrap).eq(0..50));
        let mut threads: Vec<_> = ran.try_iter().map(|id| format!("{id:?}")).collect();
        threads.sort();
        threads.dedup();
        assert!((1..=2).contains(&threads.len()), "{threads:?}");
    }

    #[tokio::test]
    async fn work_that_panics_fails_alone() {
        let pool = Pool::start("test", 1).unwrap();
        assert!(pool.run(|| panic!("at work")).await.is_err());
        assert_eq!(pool.run(|| 1).await.unwrap(), 1);
    }
}
