//! The first check that failed, which ends the other threads and is named wherever one ends.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;

/// The message of the first panic.
#[derive(Debug, Default)]
pub(super) struct Failure(OnceLock<String>);

impl Failure {
    /// Runs what a thread does, and notes its panic if it is the first one.
    pub(super) fn watch<T>(&self, work: impl FnOnce() -> T) -> T {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
            self.note(message(&*panic));
            resume_unwind(panic)
        })
    }

    /// Notes why everything has to end, unless it has to already.
    pub(super) fn note(&self, why: &str) {
        self.0.get_or_init(|| why.to_owned());
    }

    /// Panics if a check has failed on another thread.
    pub(super) fn assert_none(&self) {
        if let Some(first) = self.0.get() {
            panic!("ended by the first failure: {first}");
        }
    }
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
