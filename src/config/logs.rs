//! `[logs]`: how the console looks, and which log records are kept.

use std::time::Duration;

use log::LevelFilter;

use super::entry::Entry;
use super::section::Section;
use crate::telemetry::logs::{LogFormat, LogOptions, ScreenLimits};

const LEVELS: [(&str, LevelFilter); 6] = [
    ("off", LevelFilter::Off),
    ("error", LevelFilter::Error),
    ("warn", LevelFilter::Warn),
    ("info", LevelFilter::Info),
    ("debug", LevelFilter::Debug),
    ("trace", LevelFilter::Trace),
];

/// How the console looks, and which log records are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogsConfig {
    /// What the console shows: a level, or levels by module as in `warn,greenroom=debug`. No key
    /// of the file; `--log` on the command line.
    pub console: String,
    /// How the console shows it.
    pub format: LogFormat,
    /// Records that are less grave are not kept.
    pub level: LevelFilter,
    /// How long records are kept.
    pub keep: Duration,
    /// Records that are kept; beyond it the oldest are dropped.
    pub rows_max: u64,
    /// Records that may wait to be kept; beyond it they are dropped.
    pub queue: usize,
    /// What may wait for the console; beyond it lines are dropped.
    pub screen: ScreenLimits,
    /// Longest message.
    pub message_bytes_max: usize,
}

impl Default for LogsConfig {
    fn default() -> Self {
        Self {
            console: "info".to_owned(),
            format: LogFormat::Text,
            level: LevelFilter::Info,
            keep: Duration::from_secs(7 * 24 * 3600),
            rows_max: 100_000,
            queue: 8192,
            screen: ScreenLimits::default(),
            message_bytes_max: 8192,
        }
    }
}

impl LogsConfig {
    /// What the logger has to know.
    pub fn options(&self) -> LogOptions {
        let Self { console, format, level, queue, screen, message_bytes_max, .. } = self;
        LogOptions {
            console: console.clone(),
            format: *format,
            screen: *screen,
            level: *level,
            queue: *queue,
            message_bytes_max: *message_bytes_max,
            noisy: &[],
        }
    }

    pub(crate) fn read(section: Section<'_>) -> Self {
        let default = Self::default();
        let format = section.get("format").and_then(|entry| one_of(&entry, &LogFormat::NAMES));
        let level = section.get("level").and_then(|entry| one_of(&entry, &LEVELS));
        let bytes = 64..=1 << 20;
        let logs = Self {
            console: default.console,
            format: format.unwrap_or(default.format),
            level: level.unwrap_or(default.level),
            keep: section.duration("keep", default.keep),
            rows_max: section.integer("rows_max", 1..=1_000_000_000, default.rows_max),
            queue: section.integer("queue", 1..=1_000_000, default.queue),
            screen: ScreenLimits {
                lines: section.integer("console_queue", 1..=1_000_000, default.screen.lines),
                bytes: section.integer("console_queue_bytes", 1024..=1 << 30, default.screen.bytes),
            },
            message_bytes_max: section.integer(
                "message_bytes_max",
                bytes,
                default.message_bytes_max,
            ),
        };
        section.misplaced("console", "is said by `--log` on the command line");
        section.close();
        logs
    }
}

fn one_of<T: Copy>(entry: &Entry<'_>, names: &[(&str, T)]) -> Option<T> {
    let written = entry.text()?;
    let found = names.iter().find(|(name, _)| *name == written);
    if found.is_none() {
        let names: Vec<_> = names.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        entry.place.refuse(format!("must be one of {}", names.join(", ")));
    }
    found.map(|(_, value)| *value)
}
