//! Log records: written to the console, and kept.
//!
//! The process has one logger. What it is given is redacted once and then goes two ways: as one
//! line to the console, and through a queue to the [`Keeper`], which hands batches to the store and
//! to other sinks. No caller waits for either: what has no room in the queue of the console or in
//! that of the keeper is counted and dropped.

mod console;
mod keeper;
mod logger;
mod panics;
mod queue;
mod screen;
mod scribe;
mod striking;

use std::sync::{Arc, OnceLock};

use greenroom_actors::observe::log_record::{LogLevel, LogRecord};
use log::LevelFilter;

use self::logger::Logger;
use self::queue::Queue;
use self::striking::Striking;
use crate::telemetry::redact::Secrets;

pub use self::console::LogFormat;
pub use self::keeper::{Keeper, Keeping};
pub use self::queue::off_the_record;
pub use self::screen::{Screen, ScreenLimits, drain_screen, lines_dropped, screen};

/// Takes what is logged, batch by batch. Called by one thread, which must not be held up.
pub trait LogSink: Send + Sync {
    fn take(&self, batch: &[Arc<LogRecord>]);
}

impl<F: Fn(&[Arc<LogRecord>]) + Send + Sync> LogSink for F {
    fn take(&self, batch: &[Arc<LogRecord>]) {
        self(batch);
    }
}

/// What the logger does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// What the console shows: a level, or levels by module as in `warn,greenroom=debug`.
    pub console: String,
    /// How it shows it.
    pub format: LogFormat,
    /// What may wait for it.
    pub screen: ScreenLimits,
    /// Records that are less grave are not kept.
    pub level: LevelFilter,
    /// Records that may wait to be kept.
    pub queue: usize,
    /// Longest message.
    pub message_bytes_max: usize,
    /// Targets that log as errors what clients do to their own connections. Every client could fill
    /// the log with them: they are details.
    pub noisy: &'static [&'static str],
}

/// The queue of this process's logger, if that is ours.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();
/// What this process's logger strikes, if that is ours.
static STRIKING: OnceLock<Arc<Striking>> = OnceLock::new();

/// Gives the process its logger, and has panics logged. A program that has a logger already keeps
/// it and its panic hook, and nothing is kept of what it logs. Of several servers in one process the
/// options of the first one count.
pub fn install(options: &LogOptions, secrets: &Secrets) {
    if QUEUE.get().is_some() {
        return;
    }
    let queue = Arc::new(Queue::new(options.level, options.queue));
    let striking = Arc::new(Striking::new(secrets));
    let logger = Logger::new(options, Arc::clone(&striking), Arc::clone(&queue));
    let level = logger.level();
    // A program that has a logger of its own keeps it; the start says so.
    if log::set_boxed_logger(Box::new(logger)).is_ok() {
        log::set_max_level(level);
        panics::log_panics();
        // Set once, here: nobody else has installed this logger.
        let _ = QUEUE.set(queue);
        let _ = STRIKING.set(striking);
    }
}

/// Whether the process has this logger, and not one of its own.
pub fn is_installed() -> bool {
    QUEUE.get().is_some()
}

/// Strikes these secrets as well from here on.
pub fn strike_also(secrets: &Secrets) {
    if let Some(striking) = STRIKING.get() {
        striking.also(secrets);
    }
}

/// Records of a level that were shown or kept since the process began.
pub fn logged(level: LogLevel) -> u64 {
    QUEUE.get().map_or(0, |queue| queue.logged(level))
}

/// Records that were dropped since the process began because nobody took them in time.
pub fn dropped() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.dropped())
}
