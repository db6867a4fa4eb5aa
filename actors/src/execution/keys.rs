//! Idempotency keys that this actor has just recorded.
//!
//! Of two calls with one key, both may have looked for it before either was recorded. The second
//! is refused here: if the store refused it, memory and record would differ, the actor would end,
//! and with it what is at work.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ports::store::IdempotencyRecord;

/// Keys remembered. What is older was found by whoever looked for it.
const KEYS_MAX: usize = 64;

#[derive(Default)]
pub(super) struct RecentKeys(VecDeque<Arc<str>>);

impl RecentKeys {
    pub(super) fn remember(&mut self, record: &IdempotencyRecord) {
        self.0.truncate(KEYS_MAX - 1);
        self.0.push_front(Arc::clone(&record.scope));
    }

    pub(super) fn know(&self, record: Option<&IdempotencyRecord>) -> bool {
        record.is_some_and(|record| self.0.contains(&record.scope))
    }
}
