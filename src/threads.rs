//! Threads for blocking work of handlers: metrics, documents, files.

use std::io;
use std::sync::OnceLock;

use greenroom_actors::threads::{Pool, shared};

/// Maximum number of threads.
const ASIDE_MAX: usize = 32;

static ASIDE: OnceLock<Pool> = OnceLock::new();

/// Runs work that may block on a separate thread, so that it does not delay other requests.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    start_aside()?.run(work).await
}

/// Starts the first of the threads of [`aside`].
pub(crate) fn start_aside() -> io::Result<&'static Pool> {
    shared(&ASIDE, "greenroom-aside", ASIDE_MAX)
}
