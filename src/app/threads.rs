//! The threads of a server, which are reserved before it is ready.

use std::io;

use greenroom_actors::{Placement, evaluation_threads};
use log::LevelFilter;

use crate::config::Config;
#[cfg(feature = "http-client")]
use crate::http_client::start_lookups;
use greenroom_actors::threads::reserve;

use crate::threads::start_aside;
use crate::web::settings::WebConfig;

/// Threads of the store: the writer and the first reader.
const OF_STORE: usize = 2;
/// First threads of the pools for DNS lookups and for blocking work of handlers.
const OF_POOLS: usize = 2;
/// The thread that accepts connections.
const OF_LISTENER: usize = 1;
/// The thread that exports telemetry.
const OF_EXPORTER: usize = 1;
/// Threads that libraries start to read files, and further ones of the pools.
const SPARE: usize = 2;

/// Runs a future on an actix system of this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    actix_web::rt::System::new().block_on(future)
}

/// Returns true if this thread runs an actix system.
pub(crate) fn runs_in_system() -> bool {
    actix_web::rt::System::try_current().is_some()
}

/// Checks that all threads can be started, and starts those of the pools. Fails now, in one line,
/// if the system allows too few; otherwise each request would fail later.
pub(super) fn prepare(config: &Config, web: &WebConfig) -> io::Result<()> {
    let Placement::Threads(arbiters) = config.runtime_limits().placement else {
        return Err(io::Error::other("a server needs separate threads for executions"));
    };
    let log_writer = usize::from(config.logs.level != LevelFilter::Off);
    let own = web.workers
        + arbiters
        + evaluation_threads()
        + log_writer
        + OF_STORE
        + OF_POOLS
        + OF_LISTENER
        + OF_EXPORTER;
    reserve(own + SPARE).map_err(|few| {
        io::Error::other(format!(
            "{few}; allow the process more (ulimit -u, pids.max, TasksMax) or lower \
             server.workers and limits.arbiters"
        ))
    })?;
    #[cfg(feature = "http-client")]
    start_lookups()?;
    start_aside()?;
    Ok(())
}
