//! Panics, as log records.
//!
//! The hook of the standard library writes to standard error itself, and so waits for whoever reads
//! it; what it writes is neither bounded nor redacted, and no object where the console has objects.
//! The console shows these records whatever its filter says: the process may end with one.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;

use super::screen::drain_screen;

/// The target of their records.
pub(super) const TARGET: &str = "panic";

/// Has panics of this process logged from now on.
pub(super) fn log_panics() {
    std::panic::set_hook(Box::new(log_panic));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let said = panic.payload_as_str().unwrap_or("(no text)");
    let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        log::error!(
            target: TARGET, backtrace:% = backtrace; "thread {name} panicked{place}: {said}"
        );
    } else {
        log::error!(target: TARGET, "thread {name} panicked{place}: {said}");
    }
    if name == "main" {
        // this may be the end of the process
        drain_screen();
    }
}
