//! Threads for what handlers leave to others: metrics, documents, files.

use std::io;
use std::sync::OnceLock;

use greenroom_actors::threads::{Pool, shared};

/// How many there are at most.
const ASIDE_MAX: usize = 32;

static ASIDE: OnceLock<Pool> = OnceLock::new();

/// Runs something that may block where it holds no other request up.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    start_aside()?.run(work).await
}

/// Starts the threads of [`aside`].
pub(crate) fn start_aside() -> io::Result<&'static Pool> {
    shared(&ASIDE, "greenroom-aside", ASIDE_MAX)
}
