//! The ability to write, of all lanes together.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Lanes that cannot write at present, and the end of the ownership.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// Number of lanes in an outage.
    lanes: AtomicUsize,
    /// True once this process may no longer write.
    is_lost: AtomicBool,
}

impl Outages {
    /// Returns true if writes are expected to succeed.
    pub(crate) fn is_writable(&self) -> bool {
        self.lanes.load(Ordering::SeqCst) == 0 && !self.is_lost()
    }

    /// Returns true once this process may no longer write.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Notes that a lane cannot write; logs the first of an outage.
    pub(super) fn begin(&self, reason: &str) {
        if self.lanes.fetch_add(1, Ordering::SeqCst) == 0 {
            log::error!("the store rejects writes, retrying: {reason}");
        }
    }

    /// Notes that a lane can write again; logs the last of an outage.
    pub(super) fn end(&self) {
        if self.lanes.fetch_sub(1, Ordering::SeqCst) == 1 {
            log::info!("the store accepts writes again");
        }
    }

    /// Notes that this process may no longer write.
    pub(super) fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }
}
