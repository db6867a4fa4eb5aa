//! Records on the console and in the queue.

use std::io::{self, Write};
use std::sync::Mutex;

use greenroom_actors::observe::log_record::LogRecord;
use log::Level;

use super::*;
use crate::telemetry::logs::ScreenLimits;
use crate::telemetry::redact::Secrets;

/// A console that tests can read.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const RECORDS: [(&str, Level); 3] =
    [("a", Level::Info), ("b", Level::Debug), ("greenroom::telemetry::logs", Level::Warn)];

/// Logs [`RECORDS`]; returns the lines of the console and the queued messages.
fn logged(console: &str, level: LevelFilter, format: LogFormat) -> (Vec<String>, Vec<String>) {
    logged_of(&RECORDS, console, level, format)
}

/// Logs records with these targets and levels; returns the lines of the console and the queued
/// messages.
fn logged_of(
    records: &[(&str, Level)],
    console: &str,
    level: LevelFilter,
    format: LogFormat,
) -> (Vec<String>, Vec<String>) {
    let options = LogOptions {
        console: console.to_owned(),
        format,
        screen: ScreenLimits::default(),
        level,
        queue: 100,
        message_bytes_max: 100,
        noisy: &["chatty"],
    };
    let mut secrets = Secrets::default();
    secrets.add("canary-4711");
    let queue = Arc::new(Queue::new(level, options.queue));
    let screen = Screen::default();
    let builder = || {
        let mut builder = env_logger::Builder::new();
        builder.target(Target::Pipe(Box::new(screen.clone())));
        builder
    };
    let logger =
        Logger::over(builder, &options, Arc::new(Redaction::new(&secrets)), Arc::clone(&queue));
    for &(target, level) in records {
        if level > logger.level() {
            continue;
        }
        let args = format_args!("{target}\ncanary-4711");
        logger.log(&Record::builder().args(args).level(level).target(target).build());
    }
    let mut batch: Vec<Arc<LogRecord>> = Vec::new();
    if let Some(mut reader) = queue.reader() {
        reader.fill(&mut batch, 100);
    }
    let shown = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
    let shown = shown.lines().map(str::to_owned).collect();
    (shown, batch.iter().map(|record| record.message.clone()).collect())
}

/// Any client can cause such errors; they are not errors of the server.
#[test]
fn errors_of_noisy_targets_are_logged_at_debug_level() {
    let connection = |level| Metadata::builder().level(level).target("chatty::h1").build();
    let own = Metadata::builder().level(Level::Error).target("greenroom::web").build();
    assert_eq!(demoted(&own, &["chatty"]).level(), Level::Error);
    for (level, expected) in [(Level::Error, Level::Debug), (Level::Trace, Level::Trace)] {
        assert_eq!(demoted(&connection(level), &["chatty"]).level(), expected);
    }
    let level = LevelFilter::Debug;
    let queue = Arc::new(Queue::new(level, 100));
    let options = LogOptions {
        console: "info".to_owned(),
        format: LogFormat::Text,
        screen: ScreenLimits::default(),
        level,
        queue: 100,
        message_bytes_max: 100,
        noisy: &["chatty"],
    };
    let screen = Screen::default();
    let builder = || {
        let mut builder = env_logger::Builder::new();
        builder.target(Target::Pipe(Box::new(screen.clone())));
        builder
    };
    let secrets = Arc::new(Redaction::new(&Secrets::default()));
    let logger = Logger::over(builder, &options, secrets, Arc::clone(&queue));
    let args = format_args!("stream error");
    logger.log(&Record::builder().args(args).metadata(connection(Level::Error)).build());
    assert!(screen.0.lock().unwrap().is_empty());
    let mut batch = Vec::new();
    queue.reader().unwrap().fill(&mut batch, 100);
    assert_eq!(batch[0].level, log::Level::Debug.into());
}

#[test]
fn the_console_and_the_store_have_separate_levels() {
    let (shown, kept) = logged("info", LevelFilter::Debug, LogFormat::Text);
    assert_eq!(kept, ["a\n[redacted]", "b\n[redacted]"]);
    assert!(shown[0].ends_with("INFO  a] a\\n[redacted]"), "{shown:?}");
    assert!(shown[1].ends_with("greenroom::telemetry::logs\\n[redacted]"), "{shown:?}");
    let (shown, kept) = logged("debug", LevelFilter::Off, LogFormat::Json);
    assert_eq!((shown.len(), kept.len()), (3, 0));
    let read: serde_json::Value = serde_json::from_str(&shown[1]).unwrap();
    assert_eq!((&read["target"], &read["level"]), (&"b".into(), &"debug".into()));
    let (shown, kept) = logged("off", LevelFilter::Info, LogFormat::Text);
    assert_eq!((shown.len(), kept.len()), (0, 1));
}

#[test]
fn a_panic_is_shown_whatever_the_filter_says() {
    let records = [("a", Level::Error), ("panic", Level::Error), ("panic", Level::Warn)];
    for console in ["off", "b=debug", "panic=off", "error/nothing like it"] {
        let (shown, kept) = logged_of(&records, console, LevelFilter::Off, LogFormat::Text);
        assert!(kept.is_empty());
        let [shown] = &shown[..] else { panic!("{console}: {shown:?}") };
        assert!(shown.ends_with("ERROR panic] panic\\n[redacted]"), "{console}: {shown}");
    }
    let (shown, _) = logged_of(&records, "info", LevelFilter::Off, LogFormat::Text);
    assert_eq!(shown.len(), 3, "each once: {shown:?}");
}
