//! `[logs]`: the console, and stored log records.

use std::time::Duration;

use log::LevelFilter;

use super::entry::Entry;
use super::keys::{Takes, Value, section};
use crate::telemetry::logs::{LogFormat, LogOptions, ScreenLimits};

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::Off),
    ("error", LevelFilter::Error),
    ("warn", LevelFilter::Warn),
    ("info", LevelFilter::Info),
    ("debug", LevelFilter::Debug),
    ("trace", LevelFilter::Trace),
];

section! {
    /// The console, and stored log records.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LogsConfig {
        /// Records that the console shows: a level, or levels by module as in
        /// `warn,greenroom=debug`. Not a key of the file.
        console: String = "info".to_owned(),
            Takes::Elsewhere("is set with `--log` on the command line");
        /// Format of the console: text for people, or one JSON object per line.
        format: LogFormat = LogFormat::Text, Takes::OneOf(&["text", "json"]);
        /// Lowest level of records that are stored and served, for example by `/api/logs` and
        /// `/ws/logs`; `"off"` stores none.
        level: LevelFilter = LevelFilter::Info,
            Takes::OneOf(&["off", "error", "warn", "info", "debug", "trace"]);
        /// Time that records are stored.
        retention: Duration = Duration::from_secs(7 * 24 * 3600), Takes::Duration, formerly "keep";
        /// Maximum number of stored records; beyond that the oldest are deleted.
        rows_max: u64 = 100_000, Takes::Integer(1..=1_000_000_000);
        /// Records that may wait to be stored; further ones are dropped and counted.
        queue: usize = 8192, Takes::Integer(1..=1_000_000);
        /// Lines that may wait for the console; further ones are dropped and counted.
        console_queue: usize = ScreenLimits::default().lines, Takes::Integer(1..=1_000_000);
        /// Bytes of the lines that may wait for the console.
        console_queue_bytes: usize = ScreenLimits::default().bytes, Takes::Bytes(1024..=1 << 30);
        /// Longest message, and longest values of one record together; longer ones are truncated and
        /// marked.
        message_bytes_max: usize = 8192, Takes::Bytes(64..=1 << 20);
    }
}

impl LogsConfig {
    /// Returns the options of the logger.
    pub fn options(&self) -> LogOptions {
        LogOptions {
            console: self.console.clone(),
            format: self.format,
            screen: ScreenLimits { lines: self.console_queue, bytes: self.console_queue_bytes },
            level: self.level,
            queue: self.queue,
            message_bytes_max: self.message_bytes_max,
            noisy: &[],
        }
    }
}

impl Value for LogFormat {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        entry.one_of(&Self::NAMES)
    }
}

impl Value for LevelFilter {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        entry.one_of(&LEVELS)
    }
}
