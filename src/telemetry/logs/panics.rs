//! Panics, as log records.
//!
//! The hook of the standard library writes to standard error itself, and so waits for whoever reads
//! it; what it writes is neither bounded nor redacted, and no object where the console has objects.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::Write as _;
use std::panic::PanicHookInfo;

use super::screen::{drain_screen, screen};

/// The target of their records.
const TARGET: &str = "panic";

/// Has panics of this process logged from now on.
pub(super) fn log_panics() {
    std::panic::set_hook(Box::new(log_panic));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let said = panic.payload_as_str().unwrap_or("(no text)");
    match panic.location() {
        Some(place) => log::error!(target: TARGET, "thread {name} panicked at {place}: {said}"),
        None => log::error!(target: TARGET, "thread {name} panicked: {said}"),
    }
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        // a screen takes all that it is given
        let _ = screen().write_all(format!("{backtrace}\n").as_bytes());
    }
    if name == "main" {
        // this may be the end of the process
        drain_screen();
    }
}
