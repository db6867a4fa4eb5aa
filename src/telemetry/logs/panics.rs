//! Panics, as log records.
//!
//! The hook of the standard library writes to standard error itself, so it blocks if standard
//! error is not read; its text is neither bounded nor redacted, and never JSON. The console shows
//! panics whatever its filter says: the process may end with one.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

use super::screen::drain_screen;

/// Target of records of panics.
pub(super) const TARGET: &str = "panic";

/// Installs a panic hook that logs panics.
pub(super) fn log_panics() {
    std::panic::set_hook(Box::new(log_panic));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let message = panic.payload_as_str().unwrap_or("(no text)");
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        log::error!(
            target: TARGET, backtrace:% = backtrace; "thread {name} panicked{place}: {message}"
        );
    } else {
        log::error!(target: TARGET, "thread {name} panicked{place}: {message}");
    }
    if name == "main" {
        // the process may end now
        drain_screen();
    }
}
