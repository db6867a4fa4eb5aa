//! Thread pools for blocking work, and a check that the machine allows enough threads.
//!
//! Starting a thread on demand can fail, and the request with it. So every pool starts its first
//! thread at once and keeps it; more are started under load, and where the machine refuses those,
//! work waits for the existing ones.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

/// Threads end with their pool, not before.
const UNLIMITED: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Fewer threads can be started than are needed.
#[derive(Debug, thiserror::Error)]
#[error("only {started} of {needed} threads can be started: {reason}")]
pub struct TooFewThreads {
    pub started: usize,
    pub needed: usize,
    reason: io::Error,
}

/// Threads for blocking work.
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
            .thread_keep_alive(UNLIMITED)
            .build()?;
        // Not awaited: later work queues until the thread is there.
        drop(runtime.spawn_blocking(|| ()));
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs `work` on one of the threads. It continues when the future is dropped.
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
            // the dropping thread may not be allowed to block
            runtime.shutdown_background();
        }
    }
}

/// Returns the pool stored in a static, starting it if necessary.
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

/// Checks that so many more threads can exist at once, by starting them. They have ended when this
/// returns.
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
        let (sender, ran) = channel();
        let work = |number: u32| {
            let sender = sender.clone();
            pool.run(move || {
                sender.send(std::thread::current().id()).unwrap();
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
    async fn panicking_work_fails_without_ending_the_pool() {
        let pool = Pool::start("test", 1).unwrap();
        assert!(pool.run(|| panic!("boom")).await.is_err());
        assert_eq!(pool.run(|| 1).await.unwrap(), 1);
    }
}
