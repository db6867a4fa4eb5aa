//! Log records: written to the console, and stored.
//!
//! The process has one logger. It redacts each record once, writes it as one line to the console,
//! and queues it for the [`LogStoreWriter`], which passes batches to the store and to other sinks.
//! Callers never wait: a record is counted and dropped if the queue of the console or of the
//! writer is full.

mod console;
mod log_store_writer;
mod logger;
mod panics;
mod queue;
mod record_builder;
mod redaction;
mod screen;

use std::sync::{Arc, OnceLock};

use greenroom_actors::observe::log_record::{LogLevel, LogRecord};
use log::LevelFilter;

use self::logger::Logger;
use self::queue::Queue;
use self::redaction::Redaction;
use crate::telemetry::redact::Secrets;

pub use self::console::LogFormat;
pub use self::log_store_writer::{LogStoreSettings, LogStoreWriter};
pub use self::queue::without_recording;
pub use self::screen::{Screen, ScreenLimits, drain_screen, lines_dropped, screen};

/// Receiver of batches of log records. Called by one thread, which it must not block.
pub trait LogSink: Send + Sync {
    fn take(&self, batch: &[Arc<LogRecord>]);
}

impl<F: Fn(&[Arc<LogRecord>]) + Send + Sync> LogSink for F {
    fn take(&self, batch: &[Arc<LogRecord>]) {
        self(batch);
    }
}

/// Options of the logger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// Filter of the console: a level, or levels by module as in `warn,greenroom=debug`.
    pub console: String,
    pub format: LogFormat,
    /// Limits of the queue of the console.
    pub screen: ScreenLimits,
    /// Least severe level that is stored.
    pub level: LevelFilter,
    /// Maximum number of records that wait to be stored.
    pub queue: usize,
    /// Maximum length of a message.
    pub message_bytes_max: usize,
    /// Targets that log as errors what clients do to their own connections. They are logged at
    /// debug level, because any client could fill the log with them.
    pub noisy: &'static [&'static str],
}

/// Queue of the process's logger; empty if the program has another logger.
static QUEUE: OnceLock<Arc<Queue>> = OnceLock::new();
/// Redaction of the process's logger; empty if the program has another logger.
static REDACTION: OnceLock<Arc<Redaction>> = OnceLock::new();

/// Installs the process's logger and a panic hook that logs panics. A program that already has a
/// logger keeps it and its panic hook, and its records are not stored. With several servers in one
/// process, the options of the first apply.
pub fn install(options: &LogOptions, secrets: &Secrets) {
    if QUEUE.get().is_some() {
        return;
    }
    let queue = Arc::new(Queue::new(options.level, options.queue));
    let redaction = Arc::new(Redaction::new(secrets));
    let logger = Logger::new(options, Arc::clone(&redaction), Arc::clone(&queue));
    let level = logger.level();
    // fails if the program already has a logger; the server warns of it when it starts
    if log::set_boxed_logger(Box::new(logger)).is_ok() {
        log::set_max_level(level);
        panics::log_panics();
        // cannot fail: the logger is installed once
        let _ = QUEUE.set(queue);
        let _ = REDACTION.set(redaction);
    }
}

/// Returns true if the process uses this logger.
pub fn is_installed() -> bool {
    QUEUE.get().is_some()
}

/// Adds secrets to redact from now on.
pub fn redact_also(secrets: &Secrets) {
    if let Some(redaction) = REDACTION.get() {
        redaction.add(secrets);
    }
}

/// Returns the number of records of a level shown or stored since the process started.
pub fn logged(level: LogLevel) -> u64 {
    QUEUE.get().map_or(0, |queue| queue.logged(level))
}

/// Returns the number of records dropped since the process started because the queue was full.
pub fn dropped() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.dropped())
}
