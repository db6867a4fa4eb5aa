//! The threads that a server needs, which are there before it says that it is ready.

use std::io;

use greenroom_actors::{Placement, evaluation_threads};
use log::LevelFilter;

use crate::config::Config;
use crate::http_client::start_lookups;
use greenroom_actors::threads::{TooFewThreads, reserve};

use crate::threads::start_aside;
use crate::web::settings::WebConfig;

/// Threads for the store: one that writes, and the first of those that read.
const OF_STORE: usize = 2;
/// For look-ups of names, and for what handlers leave to others.
const OF_POOLS: usize = 2;
/// The one that accepts connections.
const OF_LISTENER: usize = 1;
/// The one that sends to a collector.
const OF_EXPORTER: usize = 1;
/// What libraries start when they are asked to read files, and more of the pools.
const SPARE: usize = 2;

/// Makes sure that all threads can be started, and starts those that belong to the process. A
/// machine that has too few is told of now, in one line: later each request would find out.
pub(super) fn prepare(config: &Config, web: &WebConfig) -> io::Result<()> {
    let Placement::Threads(arbiters) = config.runtime_limits().placement else {
        return Err(io::Error::other("a server runs on threads of its own"));
    };
    let keeper = usize::from(config.logs.level != LevelFilter::Off);
    let own = web.workers
        + arbiters
        + evaluation_threads()
        + keeper
        + OF_STORE
        + OF_POOLS
        + OF_LISTENER
        + OF_EXPORTER;
    reserve(own + SPARE).map_err(|few| io::Error::other(told(&few)))?;
    start_lookups()?;
    start_aside()?;
    Ok(())
}

fn told(few: &TooFewThreads) -> String {
    format!(
        "{few}; allow the process more (ulimit -u, pids.max, TasksMax) or lower server.workers and \
         limits.arbiters"
    )
}
