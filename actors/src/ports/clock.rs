//! Time and new ids. Nothing else reads a clock or a random source.

use std::sync::Arc;

use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;

/// Wall-clock time, and ids derived from it.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Returns a new id, sortable by creation time (UUID v7, so that neighbours share pages of the
    /// store's index).
    fn new_id(&self) -> Arc<str>;

    fn new_execution_id(&self) -> ExecutionId {
        ExecutionId::trusted(self.new_id())
    }
}

/// The system clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this is the Clock that everything else uses")]
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
