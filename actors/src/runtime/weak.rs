//! A handle of the runtime for what the runtime itself owns.

use std::any::Any;
use std::sync::{Arc, Weak};

use crate::agent::tool::ToolContext;
use crate::function::StepContext;
use crate::home::Home;
use crate::runtime::rows::RowReads;
use crate::runtime::{Runtime, SystemActors};
use crate::shard::arbiters::Arbiters;
use crate::shared::Shared;

/// A runtime that this does not keep alive.
#[derive(Clone)]
pub(crate) struct WeakRuntime {
    shared: Weak<Shared>,
    system: Weak<SystemActors>,
    arbiters: Weak<Arbiters>,
    row_reads: RowReads,
}

impl WeakRuntime {
    pub(crate) fn upgrade(&self) -> Option<Runtime> {
        let shared = self.shared.upgrade()?;
        Some(Runtime {
            generations: shared.generations.get()?.clone(),
            shared,
            system: self.system.upgrade()?,
            arbiters: self.arbiters.upgrade()?,
            row_reads: self.row_reads.clone(),
        })
    }
}

impl Runtime {
    pub(super) fn downgrade(&self) -> WeakRuntime {
        WeakRuntime {
            shared: Arc::downgrade(&self.shared),
            system: Arc::downgrade(&self.system),
            arbiters: Arc::downgrade(&self.arbiters),
            row_reads: self.row_reads.clone(),
        }
    }
}

fn runtime_of(home: &Home) -> Option<Runtime> {
    home.get::<WeakRuntime>()?.upgrade()
}

impl StepContext {
    /// Returns the runtime that runs the step; `None` in unit tests, and once it has ended.
    pub fn runtime(&self) -> Option<Runtime> {
        runtime_of(&self.home)
    }

    /// Returns [`RuntimePorts::host`](crate::RuntimePorts::host) of the runtime.
    pub fn host(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.home.host()
    }
}

impl ToolContext {
    /// Returns the runtime that makes the call; `None` in unit tests, and once it has ended.
    pub fn runtime(&self) -> Option<Runtime> {
        runtime_of(&self.home)
    }

    /// Returns [`RuntimePorts::host`](crate::RuntimePorts::host) of the runtime.
    pub fn host(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.home.host()
    }
}
