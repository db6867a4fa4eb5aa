//! The server as a whole.

use std::io;

use crate::config::Config;

/// Serves until a signal to stop.
pub fn run(_config: Config) -> io::Result<()> {
    Err(io::Error::other("not built yet"))
}
