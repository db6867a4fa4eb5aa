//! Rules of reads by slot.

use super::bench::{Bench, Draft};
use super::read;
use crate::domain::ids::ExecutionId;
use crate::domain::slot::{Slot, SlotSet, slot_of};
use crate::domain::time::Timestamp;
use crate::ports::store::{Row, Status, Timer, TimerChange, TimerKey};

/// Ids in two slots, and one whose slot follows from its hash.
const IDS: [&str; 5] = [
    "01932f6c-9d1e-7a3b-8c4d-5e6f70800001",
    "01932f6c-9d1e-7a3b-8c4d-5e6f70900fff",
    "01932f6c-9d1e-7a3b-8c4d-5e6f70a00001",
    "order-1",
    "01932f6c-9d1e-7a3b-8c4d-5e6f70b00001",
];

fn slots_of(places: &[usize]) -> SlotSet {
    places.iter().map(|place| slot_of(&ExecutionId::trusted(IDS[*place]))).collect()
}

/// Sets of slots, and the places of the ids that they have.
fn cases() -> [(SlotSet, &'static [usize]); 6] {
    let mut all_but_one = SlotSet::all();
    assert!(slots_of(&[3]).iter().all(|slot| all_but_one.remove(slot)), "it was there");
    [
        (SlotSet::all(), &[0, 1, 2, 3, 4]),
        (SlotSet::new(), &[]),
        (slots_of(&[0]), &[0, 2, 4]),
        (slots_of(&[1, 3]), &[1, 3]),
        (all_but_one, &[0, 1, 2, 4]),
        (Slot::new(2).into_iter().collect(), &[]),
    ]
}

pub(super) async fn running_executions_are_listed_by_slot(mut bench: Bench) {
    let mut drafts: Vec<Draft> = Vec::new();
    for id in IDS {
        let mut draft = bench.creation(id);
        draft.status = Status::Running;
        bench.take(&draft).await;
        drafts.push(draft);
    }
    for (slots, places) in cases() {
        let of_slots: Vec<(Row, ExecutionId)> =
            places.iter().map(|it| (drafts[*it].row, drafts[*it].header.id.clone())).collect();
        let found = read(bench.store.running(&slots, 0, 10)).await;
        assert_eq!(found, of_slots, "those of {slots:?}");
        let found = read(bench.store.running(&slots, 0, 2)).await;
        assert_eq!(found, of_slots[..places.len().min(2)], "the first page of {slots:?}");
        let Some((last, _)) = found.last() else { continue };
        let found = read(bench.store.running(&slots, *last, 10)).await;
        assert_eq!(found, of_slots[places.len().min(2)..], "the page after it of {slots:?}");
    }
}

pub(super) async fn timers_are_listed_by_slot(mut bench: Bench) {
    let mut first = bench.creation("a");
    let timer = |(id, due): (&str, i64)| Timer {
        execution: ExecutionId::trusted(id),
        key: TimerKey::Abandoned,
        due: Timestamp(due),
    };
    let timers: Vec<Timer> = IDS.into_iter().zip(1..).map(timer).collect();
    first.timers = timers.iter().cloned().map(TimerChange::Arm).collect();
    bench.take(&first).await;
    for (slots, places) in cases() {
        let of_slots: Vec<Timer> = places.iter().map(|place| timers[*place].clone()).collect();
        assert_eq!(bench.timers_in(&slots, 100, 10).await, of_slots, "those of {slots:?}");
        let page = bench.timers_in(&slots, 100, 2).await;
        assert_eq!(page, of_slots[..places.len().min(2)], "the soonest of {slots:?}");
        let due: Vec<_> = of_slots.iter().filter(|it| it.due < Timestamp(3)).cloned().collect();
        assert_eq!(bench.timers_in(&slots, 3, 10).await, due, "those due in {slots:?}");
    }
}
