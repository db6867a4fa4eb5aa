//! Idempotency keys that this actor has recorded recently.
//!
//! Two calls with one key may both have looked it up before either was recorded. The second is
//! refused here: a refusal by the store would end the actor and its running bodies, because memory
//! and journal would differ.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ports::store::IdempotencyRecord;

/// Number of remembered keys. Older ones are found in the store.
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
