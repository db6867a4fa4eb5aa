//! A limit of the memory that the values of all executions in memory take together, by an estimate
//! ([ADR 025](../../docs/adr/025-memory-of-executions.md)).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Reserved memory and its limit. Starts and resumes by callers need room; executions in memory
/// continue without.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    max: u64,
    held: AtomicU64,
    /// Callers that were refused because memory was used up.
    refused: AtomicU64,
    /// Executions that wait for room to be loaded.
    pub(crate) waiting: AtomicUsize,
}

/// Memory reserved for one execution; released on drop.
#[derive(Debug)]
pub(crate) struct Claim {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl MemoryBudget {
    pub(crate) fn new(max: u64) -> Self {
        Self {
            max,
            held: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
        }
    }

    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Acquire)
    }

    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.held() >= self.max
    }

    /// Counts a refused caller.
    pub(crate) fn note_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Reserves memory if there is room. While nothing is reserved, any size fits: an execution
    /// above the limit could never run otherwise.
    pub(crate) fn claim(self: &Arc<Self>, bytes: u64) -> Option<Claim> {
        let fits = |held: u64| {
            let after = held.saturating_add(bytes);
            (held == 0 || after <= self.max).then_some(after)
        };
        self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).ok()?;
        Some(Claim { budget: Arc::clone(self), bytes })
    }

    /// Reserves memory also above the limit, for an execution that must continue.
    pub(crate) fn claim_anyway(self: &Arc<Self>, bytes: u64) -> Claim {
        self.held.fetch_add(bytes, Ordering::AcqRel);
        Claim { budget: Arc::clone(self), bytes }
    }
}

impl Claim {
    /// Changes the size of the reservation.
    pub(crate) fn resize(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.budget.held.fetch_add(bytes - self.bytes, Ordering::AcqRel);
        } else if bytes < self.bytes {
            self.budget.held.fetch_sub(self.bytes - bytes, Ordering::AcqRel);
        }
        self.bytes = bytes;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_succeed_up_to_the_limit() {
        let budget = Arc::new(MemoryBudget::new(100));
        let first = budget.claim(60).unwrap();
        let second = budget.claim(40).unwrap();
        assert!(budget.is_used_up());
        assert!(budget.claim(1).is_none());
        drop(first);
        assert!(!budget.is_used_up());
        assert!(budget.claim(61).is_none());
        drop((second, budget.claim(60)));
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn a_claim_above_the_limit_succeeds_only_alone() {
        let budget = Arc::new(MemoryBudget::new(100));
        let alone = budget.claim(1000).unwrap();
        assert!(budget.claim(0).is_none(), "nothing beside it");
        drop(alone);
        assert!(budget.claim(100).is_some());
    }

    #[test]
    fn a_claim_can_grow_above_the_limit_and_shrink() {
        let budget = Arc::new(MemoryBudget::new(100));
        let mut claim = budget.claim_anyway(90);
        claim.resize(150);
        assert_eq!(budget.held(), 150);
        claim.resize(20);
        assert_eq!(budget.held(), 20);
        drop(claim);
        assert_eq!(budget.held(), 0);
    }
}
