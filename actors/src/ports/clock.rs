//! Time and new ids. Nothing else reads a clock or a random source.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::domain::ids::ExecutionId;
use crate::domain::slot::{Slot, execution_id};
use crate::domain::time::Timestamp;

/// Wall-clock time, and ids derived from it.
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;

    /// Returns a new id, sortable by creation time (UUID v7, so that neighbours share pages of the
    /// store's index).
    fn new_id(&self) -> Arc<str>;

    /// Returns the id of a new execution, in a random slot.
    fn new_execution_id(&self) -> ExecutionId {
        execution_id(&self.new_id(), None)
    }

    /// Returns the id of a new execution in this slot. (Ids of a clock that makes no UUIDs are in
    /// the slots of their hashes.)
    fn new_execution_id_in(&self, slot: Slot) -> ExecutionId {
        execution_id(&self.new_id(), Some(slot))
    }
}

/// The system clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this is the Clock that everything else uses")]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        since_1970(SystemTime::now())
    }

    fn new_id(&self) -> Arc<str> {
        let mut buffer = uuid::Uuid::encode_buffer();
        let id = match self.now() {
            Timestamp(0..) => uuid::Uuid::now_v7(),
            // ids have no earlier time
            Timestamp(_) => uuid::Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 0, 0)),
        };
        let text: &str = id.hyphenated().encode_lower(&mut buffer);
        Arc::from(text)
    }
}

/// Returns a time of the system, also one before 1970, which a clock shows that was never set.
fn since_1970(time: SystemTime) -> Timestamp {
    let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    Timestamp(match time.duration_since(UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::slot::{SlotSet, slot_of};

    #[test]
    fn times_before_1970_are_times() {
        for (time, expected) in [
            (UNIX_EPOCH + Duration::from_millis(5), 5),
            (UNIX_EPOCH, 0),
            (UNIX_EPOCH - Duration::from_millis(5), -5),
        ] {
            assert_eq!(since_1970(time), Timestamp(expected));
        }
    }

    #[test]
    fn ids_of_executions_are_uuids_of_the_first_cell() {
        let slot = slot_of(&ExecutionId::trusted("order-1"));
        let mut before: Option<ExecutionId> = None;
        for _ in 0..1000 {
            let (own, placed) =
                (SystemClock.new_execution_id(), SystemClock.new_execution_id_in(slot));
            assert_eq!(slot_of(&placed), slot);
            assert!(own < placed && before.is_none_or(|before| before < own), "in order of time");
            for id in [&own, &placed] {
                let uuid = uuid::Uuid::try_parse(id.as_str()).unwrap();
                assert_eq!((uuid.get_version_num(), &id.as_str()[31..33]), (7, "00"), "{id}");
            }
            before = Some(placed);
        }
    }

    #[test]
    fn new_executions_are_spread_over_the_slots() {
        let slots: SlotSet = (0..4096).map(|_| slot_of(&SystemClock.new_execution_id())).collect();
        // of random ones 2589 on average
        assert!(slots.len() > 2000, "{}", slots.len());
    }
}
