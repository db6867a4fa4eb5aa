//! A server on a separate thread, beside the other parts of a program.

use std::io;
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;

use crate::app::{Registered, StopsOn, run};
use crate::config::Config;
use crate::greenroom::error::ServeError;
use crate::handle::Handle;

/// A running server, made by [`Greenroom::start`](crate::Greenroom::start). Dropping it asks the
/// server to stop, without waiting for that.
#[derive(Debug)]
#[must_use = "a server that is dropped stops"]
pub struct Server {
    handle: Handle,
    end: End,
}

/// The end of a server.
#[derive(Debug)]
enum End {
    Ahead(oneshot::Receiver<io::Result<()>>),
    /// With this error, if any.
    Told(Option<Arc<io::Error>>),
}

impl Server {
    /// Starts a server on a new thread, and returns when its address is bound and what was running
    /// continues.
    pub(crate) async fn start(config: Config, registered: Registered) -> Result<Self, ServeError> {
        let (begun, begins) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        thread::Builder::new().name("greenroom".to_owned()).spawn(move || {
            let served = run(config, registered, StopsOn::Handles, |handle| {
                // the program no longer waits for the start, and has no handle to stop it
                if let Err(handle) = begun.send(handle) {
                    handle.stop();
                }
            });
            // an error: the program does not wait for the end
            let _ = end.send(served);
        })?;
        match begins.await {
            Ok(handle) => Ok(Self { handle, end: End::Ahead(ended) }),
            // it did not begin; its end is the reason
            Err(_) => {
                Err(ended.await.unwrap_or_else(|_| Err(lost())).err().unwrap_or_else(lost).into())
            }
        }
    }

    /// Returns a handle of the server.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops the server, and returns when everything is durable and its port is free: running steps
    /// get `server.shutdown_grace`. Fails if the server had ended with an error.
    pub async fn stop(mut self) -> Result<(), ServeError> {
        self.handle.stop();
        self.ended().await
    }

    /// Returns when the server has ended: asked by a handle, or with an error, such as when another
    /// server has taken its store over. Later calls return the same.
    pub async fn ended(&mut self) -> Result<(), ServeError> {
        if let End::Ahead(ended) = &mut self.end {
            let ended = ended.await.unwrap_or_else(|_| Err(lost()));
            self.end = End::Told(ended.err().map(Arc::new));
        }
        match &self.end {
            End::Told(Some(error)) => Err(io::Error::new(error.kind(), Arc::clone(error)).into()),
            End::Told(None) | End::Ahead(_) => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handle.stop();
    }
}

fn lost() -> io::Error {
    io::Error::other("the thread of the server ended unexpectedly")
}

#[cfg(test)]
mod tests;
