//! The logger of the process.

use std::fmt;
use std::io;
use std::sync::Arc;

use anstream::AutoStream;
use env_logger::Target;
use log::{Level, LevelFilter, Log, Metadata, Record};

use super::panics;
use super::queue::Queue;
use super::record_builder::RecordBuilder;
use super::redaction::Redaction;
use super::screen::screen;
use super::{LogFormat, LogOptions};

/// Writes records to the console and to the queue of the store.
pub(super) struct Logger {
    console: env_logger::Logger,
    /// The console for panics, without a filter.
    panics: env_logger::Logger,
    format: LogFormat,
    record_builder: RecordBuilder,
    queue: Arc<Queue>,
    noisy: &'static [&'static str],
}

impl Logger {
    pub(super) fn new(options: &LogOptions, secrets: Arc<Redaction>, queue: Arc<Queue>) -> Self {
        let screen = screen();
        screen.limit(options.screen);
        let console = || {
            let mut console = env_logger::Builder::new();
            // the queue hides from env_logger whether standard error is a terminal
            console.write_style(AutoStream::choice(&io::stderr()).into());
            console.target(Target::Pipe(Box::new(screen.clone())));
            console
        };
        Self::over(console, options, secrets, queue)
    }

    fn over(
        console: impl Fn() -> env_logger::Builder,
        options: &LogOptions,
        secrets: Arc<Redaction>,
        queue: Arc<Queue>,
    ) -> Self {
        let format = options.format;
        let (mut filtered, mut panics) = (console(), console());
        filtered.parse_filters(&options.console);
        panics.filter_level(LevelFilter::Error);
        for console in [&mut filtered, &mut panics] {
            console.format(move |buffer, record| format.write(buffer, record));
        }
        Self {
            console: filtered.build(),
            panics: panics.build(),
            format,
            record_builder: RecordBuilder::new(secrets, options.message_bytes_max),
            queue,
            noisy: options.noisy,
        }
    }

    /// Returns the least severe level that the console or the store takes. Panics always pass.
    pub(super) fn level(&self) -> LevelFilter {
        self.console.filter().max(self.queue.level()).max(self.panics.filter())
    }
}

fn is_panic(metadata: &Metadata<'_>) -> bool {
    metadata.target() == panics::TARGET && metadata.level() == Level::Error
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_panic(metadata) || self.console.enabled(metadata) || self.queue.takes(metadata)
    }

    fn log(&self, record: &Record<'_>) {
        let metadata = demoted(record.metadata(), self.noisy);
        let record = &record.to_builder().metadata(metadata).build();
        let console = if is_panic(record.metadata()) { &self.panics } else { &self.console };
        let (is_shown, is_stored) = (console.matches(record), self.queue.takes(record.metadata()));
        if !is_shown && !is_stored {
            return;
        }
        let made = self.record_builder.build(record);
        self.queue.count(made.level);
        if is_shown {
            let shown = self.format.show(&made, record.level());
            console.log(
                &Record::builder()
                    .metadata(record.metadata().clone())
                    .args(format_args!("{shown}"))
                    .build(),
            );
        }
        if is_stored {
            self.queue.push(Arc::new(made));
        }
    }

    fn flush(&self) {
        self.console.flush();
    }
}

/// Lowers the level of noisy targets to debug.
fn demoted<'a>(metadata: &Metadata<'a>, noisy: &[&str]) -> Metadata<'a> {
    let is_noisy = noisy.iter().any(|target| metadata.target().starts_with(target));
    if is_noisy && metadata.level() < Level::Debug {
        return Metadata::builder().level(Level::Debug).target(metadata.target()).build();
    }
    metadata.clone()
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logger").field("queue", &self.queue).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
