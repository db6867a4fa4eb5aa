//! Running bodies of steps, and their slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::domain::slot::{SLOTS, Slot, SlotSet};

/// Counts running bodies.
pub(crate) struct Bodies {
    all: AtomicUsize,
    /// Notified when none runs.
    done: Notify,
    of_slots: Box<[AtomicU32]>,
}

impl Default for Bodies {
    fn default() -> Self {
        let of_slots = (0..SLOTS).map(|_| AtomicU32::new(0)).collect();
        Self { all: AtomicUsize::new(0), done: Notify::new(), of_slots }
    }
}

impl Bodies {
    /// Counts a body until the guard is dropped; `slot` is that of its execution, if it has one.
    pub(crate) fn enter(self: &Arc<Self>, slot: Option<Slot>) -> BodyGuard {
        if let Some(count) = self.of(slot) {
            count.fetch_add(1, Ordering::AcqRel);
        }
        self.all.fetch_add(1, Ordering::AcqRel);
        BodyGuard { bodies: Arc::clone(self), slot }
    }

    /// Returns the number of running bodies.
    pub(crate) fn count(&self) -> usize {
        self.all.load(Ordering::Acquire)
    }

    /// Resolves once none runs.
    pub(crate) async fn done(&self) {
        loop {
            let done = self.done.notified();
            if self.count() == 0 {
                return;
            }
            done.await;
        }
    }

    /// Returns the slots of executions with a running body.
    pub(crate) fn slots(&self) -> SlotSet {
        let is_busy =
            |slot: &Slot| self.of(Some(*slot)).is_some_and(|it| it.load(Ordering::Acquire) > 0);
        Slot::all().filter(is_busy).collect()
    }

    fn of(&self, slot: Option<Slot>) -> Option<&AtomicU32> {
        self.of_slots.get(usize::from(slot?.number()))
    }
}

/// A running body; uncounts it on drop.
pub(crate) struct BodyGuard {
    bodies: Arc<Bodies>,
    slot: Option<Slot>,
}

impl Drop for BodyGuard {
    fn drop(&mut self) {
        if let Some(count) = self.bodies.of(self.slot) {
            count.fetch_sub(1, Ordering::AcqRel);
        }
        if self.bodies.all.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.bodies.done.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_are_counted_by_slot_until_they_end() {
        let bodies = Arc::<Bodies>::default();
        bodies.done().await;
        let slot = Slot::new(4095);
        let guards = [bodies.enter(slot), bodies.enter(slot), bodies.enter(None)];
        assert_eq!((bodies.count(), bodies.slots()), (3, slot.into_iter().collect()));
        let [first, second, other] = guards;
        drop(first);
        assert_eq!((bodies.count(), bodies.slots().len()), (2, 1), "another one runs there");
        drop(second);
        assert_eq!((bodies.count(), bodies.slots().len()), (1, 0));
        drop(other);
        bodies.done().await;
    }
}
