//! Parts that a program brings in place of the server's own.

use std::fmt;
use std::sync::Arc;

use greenroom_actors::ports::answer_guard::AnswerGuard;
use greenroom_actors::ports::clock::{Clock, SystemClock};
use greenroom_actors::ports::crash_marks::CrashMarks;
use greenroom_actors::ports::store::Store;

/// Parts of a program; each that is absent is the server's own. Cheap to clone.
#[derive(Clone, Default)]
pub struct Parts {
    /// In place of the store of the configuration.
    pub store: Option<Arc<dyn Store>>,
    /// In place of the file beside a SQLite store.
    pub crash_marks: Option<Arc<dyn CrashMarks>>,
    /// Check of answers; without it, all pass.
    pub answer_guard: Option<Arc<dyn AnswerGuard>>,
    /// In place of the system's clock.
    pub clock: Option<Arc<dyn Clock>>,
}

impl Parts {
    /// Returns the clock of the runtime.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.clock.clone().unwrap_or_else(|| Arc::new(SystemClock))
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { store, crash_marks, answer_guard, clock } = self;
        f.debug_struct("Parts")
            .field("store", &store.as_ref().map(|store| store.technology()))
            .field("crash_marks", &crash_marks.is_some())
            .field("answer_guard", &answer_guard.is_some())
            .field("clock", &clock.is_some())
            .finish()
    }
}
