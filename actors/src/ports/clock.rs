//! Time and fresh ids, so that nothing else reads a clock or a random source.

use std::sync::Arc;

use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;

/// Wall-clock time and ids that follow it.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// A fresh id, sorted by the time it was made (UUID v7: neighbours in the store's index).
    fn new_id(&self) -> Arc<str>;

    fn new_execution_id(&self) -> ExecutionId {
        ExecutionId::trusted(self.new_id())
    }
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this is the Clock that all others ask")]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(chrono::Utc::now().timestamp_millis())
    }

    fn new_id(&self) -> Arc<str> {
        let mut buffer = uuid::Uuid::encode_buffer();
        let text: &str = uuid::Uuid::now_v7().hyphenated().encode_lower(&mut buffer);
        Arc::from(text)
    }
}
