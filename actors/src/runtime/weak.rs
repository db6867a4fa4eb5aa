//! A handle of the runtime for what the runtime itself owns.

use std::sync::{Arc, Weak};

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
