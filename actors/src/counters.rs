//! Counters of the actors of one runtime.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters behind `RuntimeStats`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) passivated: AtomicU64,
    pub(crate) rebuilt: AtomicU64,
    pub(crate) panicked: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) timers_held: AtomicUsize,
    pub(crate) progress_dropped: AtomicU64,
}

impl Counters {
    pub(crate) fn add_one(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}
