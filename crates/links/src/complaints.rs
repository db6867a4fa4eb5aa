//! Failures that have been logged: each is logged once per peer and cause.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Number of failures that are remembered.
const REMEMBERED: usize = 256;

/// Failures that have been logged, the newest last.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<VecDeque<(String, String)>>);

impl Complaints {
    /// Returns true if a failure is new, and remembers it.
    pub(crate) fn is_new(&self, peer: &str, cause: &str) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.iter().any(|(of, known)| of == peer && known == cause) {
            return false;
        }
        if known.len() >= REMEMBERED {
            known.pop_front();
        }
        known.push_back((peer.to_owned(), cause.to_owned()));
        true
    }

    /// Forgets the failures of a peer: it has connected.
    pub(crate) fn forget(&self, peer: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, _)| of != peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_new_once_per_peer_and_cause() {
        let complaints = Complaints::default();
        assert!(complaints.is_new("a", "refused"));
        assert!(!complaints.is_new("a", "refused"));
        assert!(complaints.is_new("a", "silent") && complaints.is_new("b", "refused"));
        complaints.forget("a");
        assert!(complaints.is_new("a", "refused") && !complaints.is_new("b", "refused"));
        for peer in 0..2 * REMEMBERED {
            assert!(complaints.is_new(&peer.to_string(), "refused"));
        }
        assert_eq!(complaints.0.lock().unwrap().len(), REMEMBERED);
    }
}
