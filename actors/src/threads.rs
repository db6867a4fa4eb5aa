//! Thread pools for blocking work, threads that drive connections, and a check that the machine
//! allows enough threads.
//!
//! Starting a thread on demand can fail, and the request with it. So every pool starts its first
//! thread at once and keeps it; more are started under load, and where the machine refuses those,
//! work waits for the existing ones.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

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

/// A thread with its own runtime, which drives connections. It ends when this is dropped.
#[derive(Debug)]
pub struct Driver {
    handle: Handle,
    running: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Driver {
    /// Starts the thread. Blocking work, such as the resolution of a name, has `end_after` when the
    /// thread ends; without, nothing is waited for.
    pub fn start(name: &str, end_after: Duration) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
            // an error: the driver was dropped, which means the same
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(end_after);
        })?;
        Ok(Self { handle, running: Mutex::new(Some((stop, thread))) })
    }

    /// Returns the runtime of the thread.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs a future on the thread; blocks. Returns `None` if it panics, or does not end in time.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        within: Option<Duration>,
    ) -> Option<T> {
        let (done, result) = mpsc::channel();
        let task = self.handle.spawn(async move {
            // an error: the time is over
            let _ = done.send(work.await);
        });
        let result = match within {
            Some(within) => result.recv_timeout(within).ok(),
            None => result.recv().ok(),
        };
        task.abort();
        result
    }

    /// Returns false once the thread is to end.
    pub fn is_running(&self) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns true on the thread itself, which must not block.
    pub fn is_current(&self) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.as_ref().is_some_and(|(_, thread)| thread.thread().id() == thread::current().id())
    }

    /// Ends the thread and every task on it; blocks.
    pub fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((stop, thread)) = running else { return };
        // an error: the thread has ended
        let _ = stop.send(());
        // the last owner may be a task of the thread
        if thread.thread().id() != thread::current().id() && thread.join().is_err() {
            log::error!("a thread that drives connections panicked");
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop();
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
        match thread::Builder::new().name("greenroom-probe".to_owned()).spawn(wait) {
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
                sender.send(thread::current().id()).unwrap();
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
