//! Threads for blocking work: of handlers (metrics, documents, files), and of functions of a program.

use std::io;
use std::panic::resume_unwind;
use std::sync::OnceLock;

use greenroom_actors::observe::log_record::LogScope;
use greenroom_actors::threads::{Pool, shared};
use tokio::task::spawn_blocking;

/// Maximum number of threads.
const ASIDE_MAX: usize = 32;

static ASIDE: OnceLock<Pool> = OnceLock::new();

/// Runs work that may block on a separate thread, so that it does not delay other requests.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    start_aside()?.run(work).await
}

/// Runs a function of the program that may block, and passes its panic on. Its log records have the ids
/// of those of the caller. It continues when the future is dropped.
pub(crate) async fn blocking<T: Send + 'static>(
    function: impl FnOnce() -> T + Send + 'static,
) -> Result<T, &'static str> {
    let scope = LogScope::current().unwrap_or_default();
    match spawn_blocking(move || scope.within(function)).await {
        Ok(ended) => Ok(ended),
        Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
        Err(_) => Err("the server is stopping"),
    }
}

/// Starts the first of the threads of [`aside`].
pub(crate) fn start_aside() -> io::Result<&'static Pool> {
    shared(&ASIDE, "greenroom-aside", ASIDE_MAX)
}
