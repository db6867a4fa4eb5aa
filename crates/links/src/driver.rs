//! The thread that drives all connections.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

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
        let thread = Builder::new().name("links".to_owned()).spawn(move || {
            // an error: the driver was dropped, which means the same
            let _ = runtime.block_on(stopped);
            // a name that is being resolved is not waited for
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, running: Mutex::new(Some((stop, thread))) })
    }

    /// Returns the runtime of the thread.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Ends the thread and every task on it; blocks, except on the thread itself.
    pub(crate) fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((stop, thread)) = running else { return };
        // an error: the thread has ended
        let _ = stop.send(());
        // the last owner may be an answerer on the thread
        if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
            log::error!("the thread of links panicked");
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop();
    }
}
