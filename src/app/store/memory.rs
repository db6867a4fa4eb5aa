//! The store in memory, which ends with its process.

#[cfg(all(feature = "cli", feature = "sqlite"))]
mod copies;

use std::io;
use std::sync::Arc;

use greenroom_actors::ports::crash_marks::NoCrashMarks;
use greenroom_actors::ports::memory::MemoryStore;

#[cfg(all(feature = "cli", feature = "sqlite"))]
use super::copying::Copies;
use super::{ConfiguredStore, Opened};
#[cfg(feature = "cli")]
use crate::app::finding::{Finding, STORE, State};
use crate::config::Config;
use crate::telemetry::metrics::Metrics;

/// `memory:` in `store.url`.
pub(super) struct Memory;

impl ConfiguredStore for Memory {
    fn open(&self, _: &Config, _: Option<&Metrics>) -> io::Result<Opened> {
        Ok(Opened::alone(Arc::new(MemoryStore::default()), Arc::new(NoCrashMarks)))
    }

    #[cfg(feature = "cli")]
    fn look(&self, _: &Config) -> Vec<Finding> {
        let text = "\"memory:\" keeps nothing when the server ends";
        vec![Finding::new(State::Warned, STORE, text)]
    }

    #[cfg(all(feature = "cli", feature = "sqlite"))]
    fn copies(&self) -> &dyn Copies {
        self
    }
}
