//! The ports of a runtime: its store, clock, meter and everything else outside of it.

use std::sync::Arc;

use crate::home::Host;
use crate::observe::span::Observer;
use crate::ports::answer_guard::AnswerGuard;
use crate::ports::clock::Clock;
use crate::ports::crash_marks::{CrashMarks, NoCrashMarks};
use crate::ports::external_calls::{ExternalCalls, NoExternalCalls};
use crate::ports::links::Links;
use crate::ports::members::Members;
use crate::ports::meter::{Meter, NoMeter};
use crate::ports::store::Store;
use crate::ports::workers::Workers;

/// The ports of a runtime. Cheap to clone.
#[derive(Clone)]
pub struct RuntimePorts {
    pub store: Arc<dyn Store>,
    /// The processes that share the store; `None`: this one has it alone.
    pub members: Option<Arc<dyn Members>>,
    /// Connections to these processes; without them, requests for executions that another one
    /// serves are refused.
    pub links: Option<Arc<dyn Links>>,
    /// Store of crash marks: what a process that dies was evaluating.
    pub crash_marks: Arc<dyn CrashMarks>,
    pub clock: Arc<dyn Clock>,
    pub meter: Arc<dyn Meter>,
    pub external_calls: Arc<dyn ExternalCalls>,
    /// Runs costly evaluations in place of the runtime's threads.
    pub workers: Option<Arc<dyn Workers>>,
    /// Observers of this process alone, as exporters are, from the start on, so that they see
    /// executions that continue after a restart.
    pub observers: Vec<Observer>,
    /// Check of answers of the program, in this process; `None`: all pass.
    pub answer_guard: Option<Arc<dyn AnswerGuard>>,
    /// Owner of the runtime, for functions of steps and tools.
    pub host: Option<Host>,
}

impl RuntimePorts {
    /// Returns ports without members, links, meter, observers, external calls, crash marks, guard and
    /// host.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            members: None,
            links: None,
            crash_marks: Arc::new(NoCrashMarks),
            clock,
            meter: Arc::new(NoMeter),
            external_calls: Arc::new(NoExternalCalls),
            workers: None,
            observers: Vec::new(),
            answer_guard: None,
            host: None,
        }
    }
}

impl std::fmt::Debug for RuntimePorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimePorts").finish_non_exhaustive()
    }
}
