//! What a runtime stands on: its store, clock, meter and the rest that is outside of it.

use std::sync::Arc;

use crate::observe::span::Observer;
use crate::ports::clock::Clock;
use crate::ports::crash_marks::{CrashMarks, NoCrashMarks};
use crate::ports::external_calls::{ExternalCalls, NoExternalCalls};
use crate::ports::meter::{Meter, NoMeter};
use crate::ports::store::Store;
use crate::ports::workers::Workers;

/// What a runtime stands on. Cheap to clone.
#[derive(Clone)]
pub struct RuntimePorts {
    pub store: Arc<dyn Store>,
    /// Where it is noted what a process may end with.
    pub crash_marks: Arc<dyn CrashMarks>,
    pub clock: Arc<dyn Clock>,
    pub meter: Arc<dyn Meter>,
    pub external_calls: Arc<dyn ExternalCalls>,
    /// Whoever evaluates what costs much, in place of threads of the runtime's own.
    pub workers: Option<Arc<dyn Workers>>,
    /// Listeners from the first moment on: they hear of what goes on again after a restart.
    pub observers: Vec<Observer>,
}

impl RuntimePorts {
    /// Without anybody who counts or listens, with nothing outside, and without crash marks.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            crash_marks: Arc::new(NoCrashMarks),
            clock,
            meter: Arc::new(NoMeter),
            external_calls: Arc::new(NoExternalCalls),
            workers: None,
            observers: Vec::new(),
        }
    }
}

impl std::fmt::Debug for RuntimePorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimePorts").finish_non_exhaustive()
    }
}
