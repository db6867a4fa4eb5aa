//! Idempotency keys in memory.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::time::Timestamp;
use crate::ports::store::IdempotencyRecord;

/// Number of keys from which on expired ones are dropped.
const PURGED_FROM: usize = 1024;

/// Keys by scope.
#[derive(Clone, Default)]
pub(super) struct StoredKeys {
    by_scope: HashMap<Arc<str>, IdempotencyRecord>,
    /// Number of keys that the last purge left.
    left: usize,
}

impl StoredKeys {
    /// Returns a key that has not expired.
    pub(super) fn get(&self, scope: &str, now: Timestamp) -> Option<&IdempotencyRecord> {
        self.by_scope.get(scope).filter(|key| key.expires_at > now)
    }

    /// Stores a key. Drops expired ones each time the keys have doubled.
    pub(super) fn keep(&mut self, record: IdempotencyRecord, now: Timestamp) {
        if self.by_scope.len() >= (2 * self.left).max(PURGED_FROM) {
            self.by_scope.retain(|_, key| key.expires_at > now);
            self.left = self.by_scope.len();
        }
        self.by_scope.insert(Arc::clone(&record.scope), record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::ExecutionId;

    #[test]
    fn expired_keys_are_dropped() {
        let mut keys = StoredKeys::default();
        let record = |number: i64| IdempotencyRecord {
            scope: Arc::from(number.to_string()),
            body_hash: Arc::from("h"),
            execution: ExecutionId::trusted("e"),
            after_seq: 0,
            expires_at: Timestamp(number + 10),
        };
        for number in 0..10_000 {
            keys.keep(record(number), Timestamp(number));
        }
        assert!(keys.by_scope.len() <= PURGED_FROM, "{}", keys.by_scope.len());
        for number in 9_990..10_000 {
            let found = keys.get(&number.to_string(), Timestamp(9_999));
            assert_eq!(found.is_some(), number > 9_989, "{number}");
        }
    }
}
