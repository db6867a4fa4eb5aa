//! The thread that drives all connections.

use std::future::Future;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Time that open work has when the thread ends.
const END_AFTER: Duration = Duration::from_secs(5);

/// A thread with its own runtime, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Driver {
    handle: Handle,
    running: Mutex<Option<(oneshot::Sender<()>, JoinHandle<()>)>>,
}

impl Driver {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = Builder::new().name("store-pg".to_owned()).spawn(move || {
            // an error: the driver was dropped, which means the same
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(END_AFTER);
        })?;
        Ok(Self { handle, running: Mutex::new(Some((stop, thread))) })
    }

    /// Returns the runtime of the thread.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Runs a future on the thread; blocks. Returns `None` if it panics, or does not end in time.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
        within: Option<Duration>,
    ) -> Option<T> {
        let (done, result) = std::sync::mpsc::channel();
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
    pub(crate) fn is_running(&self) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Returns true on the thread itself, which must not block.
    pub(crate) fn is_current(&self) -> bool {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running
            .as_ref()
            .is_some_and(|(_, thread)| thread.thread().id() == std::thread::current().id())
    }

    /// Ends the thread and every task on it; blocks.
    pub(crate) fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((stop, thread)) = running else { return };
        // an error: the thread has ended
        let _ = stop.send(());
        // the last owner may be a task of the thread
        if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
            log::error!("the thread of the store's connections panicked");
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop();
    }
}
