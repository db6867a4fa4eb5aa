//! A server with its store, and callers that execute beside the measured load.

use std::time::Duration;

use tempfile::TempDir;

use crate::calls::{Outcome, execute_many};
use crate::instance::{CONFIG, Instance, execute};

/// A server with an empty store. Ends on drop.
pub(crate) struct Server {
    pub(crate) instance: Instance,
    /// Last, so that it is dropped after the process.
    _directory: TempDir,
}

impl Server {
    /// Starts a server with the configuration of the other benches and `more`.
    pub(crate) fn start(more: &str) -> Outcome<Self> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let instance = Instance::start(directory.path(), &format!("{CONFIG}\n{more}"))?;
        Ok(Self { instance, _directory: directory })
    }

    /// Executes `noop3` from several callers; returns executions per second and the longest time
    /// of one.
    pub(crate) fn execute(&self, executions: usize) -> Outcome<(f64, Duration)> {
        execute_many(self.instance.address, executions, |stream| {
            execute(stream, "noop3", "{\"input\":{\"n\":1}}", "\"completed\"")
        })
    }
}
