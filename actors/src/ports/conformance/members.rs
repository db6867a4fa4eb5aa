//! Rules of stores that several processes share.

use std::sync::Arc;

use super::bench::{Bench, step_started};
use super::continuations::with_continuation;
use super::generations::working;
use super::read;
use crate::domain::cluster::NodeId;
use crate::domain::ids::ExecutionId;
use crate::domain::slot::{Slot, SlotSet};
use crate::domain::time::Timestamp;
use crate::ports::members::{MemberState, Members, View};
use crate::ports::store::{
    AppendError, ContinuationChange, GenerationStatus, GenerationWrite, Row, Snapshot, Store,
    Timer, TimerChange, TimerKey,
};

/// Execution in slot 1.
const IN_ONE: &str = "01932f6c-9d1e-7a3b-8c4d-5e6f70800001";
/// Execution in slot 2.
const IN_TWO: &str = "01932f6c-9d1e-7a3b-8c4d-5e6f70800002";

/// A member of a store, as the factory of a store makes it.
pub type NewMember = (Arc<dyn Store>, Arc<dyn Members>);

/// Runs the rules of stores that several processes share. `fresh` makes a new store and so many
/// members of it, each with another name; a beat must not take longer than a second.
///
/// Rules wait for beats: this needs a runtime of tokio.
pub async fn run_over_members(fresh: impl AsyncFn(usize) -> Vec<NewMember>) {
    let shared = async || {
        let [one, two] = processes(fresh(2).await);
        (one, two)
    };
    let with = async |slots: &[u16]| {
        let (one, two) = shared().await;
        let slots = slots_of(slots);
        assert_eq!(read(one.members.claim(&slots)).await, slots);
        (one, two)
    };
    rule!(slots_are_claimed_once, processes(fresh(3).await));
    rule!(free_slots_alone_are_claimed, shared().await);
    rule!(beats_grow, shared().await);
    rule!(appends_outside_of_own_slots_are_lost, with(&[1]).await);
    rule!(a_member_that_beats_again_is_not_fenced, with(&[1]).await);
    rule!(a_fenced_member_stores_nothing, with(&[1, 2]).await);
    rule!(a_fenced_member_changes_no_owners, with(&[1]).await);
    rule!(a_taker_continues_where_the_fenced_one_stopped, with(&[1, 2]).await);
    rule!(given_slots_belong_to_the_taker, with(&[1, 2]).await);
    rule!(slots_are_given_to_active_members_only, with(&[1, 2]).await);
    rule!(a_leaving_member_is_shown_and_takes_nothing, with(&[1]).await);
    rule!(a_member_that_closes_frees_its_slots, with(&[1, 2]).await);
    rule!(generations_of_gone_members_are_interrupted, shared().await);
    rule!(one_of_two_members_adopts_a_generation, processes(fresh(3).await));
    rule!(a_fenced_member_settles_nothing, shared().await);
}

/// A member under test.
struct Process {
    bench: Bench,
    members: Arc<dyn Members>,
}

impl Process {
    fn node(&self) -> NodeId {
        self.members.own()
    }

    /// Waits for a view.
    async fn view(&self, wanted: impl Fn(&View) -> bool) -> Arc<View> {
        let mut views = self.members.views();
        let found = views.wait_for(|view| view.as_ref().is_some_and(|view| wanted(view))).await;
        let found = found.expect("a member has views").clone();
        found.expect("the wanted view is one")
    }

    /// Fences a member, as soon as no beat comes between.
    async fn fence(&self, other: &Self) {
        let node = other.node();
        let mut beat = None;
        loop {
            // a later beat than the last one, so that the next has time
            let view = self.view(|view| beat_of(view, node) > beat).await;
            beat = beat_of(&view, node);
            let beat = beat.expect("it is a member");
            if read(self.members.fence(node, beat)).await {
                return;
            }
        }
    }

    /// Records a working generation.
    async fn record(&self, id: &str) -> Result<(), AppendError> {
        let row = self.bench.generation_row();
        let write = GenerationWrite {
            row,
            record: working(id),
            steps: Vec::new(),
            messages: None,
            continuation: ContinuationChange::Keep,
        };
        self.bench.store.record_generation(write).await
    }

    async fn status_of(&self, id: &str) -> Option<GenerationStatus> {
        read(self.bench.store.generation(id)).await.map(|entry| entry.record.status)
    }
}

fn processes<const N: usize>(made: Vec<NewMember>) -> [Process; N] {
    let made =
        made.into_iter().map(|(store, members)| Process { bench: Bench::new(store), members });
    let made: Vec<Process> = made.collect();
    made.try_into().unwrap_or_else(|_| unreachable!("{N} members were asked for"))
}

fn slots_of(numbers: &[u16]) -> SlotSet {
    numbers.iter().filter_map(|number| Slot::new(*number)).collect()
}

fn beat_of(view: &View, node: NodeId) -> Option<u64> {
    view.members.iter().find(|member| member.node == node).map(|member| member.beat)
}

fn abandoned(id: &str, due: i64) -> Timer {
    let (execution, key) = (ExecutionId::trusted(id), TimerKey::Abandoned);
    Timer { execution, key, due: Timestamp(due) }
}

fn disarm(timer: &Timer) -> TimerChange {
    TimerChange::Disarm { execution: timer.execution.clone(), key: timer.key.clone() }
}

async fn slots_are_claimed_once([one, two, three]: [Process; 3]) {
    let all = SlotSet::all();
    let claims =
        [&one, &two, &three].map(|process| async { read(process.members.claim(&all)).await });
    let taken = futures_util::future::join_all(claims).await;
    let count: usize = taken.iter().map(SlotSet::len).sum();
    let union: SlotSet = taken.iter().flat_map(SlotSet::iter).collect();
    assert_eq!((count, &union), (all.len(), &all), "each slot was taken by one");
    let nodes = [one.node(), two.node(), three.node()];
    let is_whole = |view: &View| view.owners.slots_of(None).is_empty();
    for process in [&one, &two, &three] {
        let view = process.view(is_whole).await;
        for (node, taken) in nodes.iter().zip(&taken) {
            assert_eq!(view.owners.slots_of(Some(*node)), *taken, "the slots of {node}");
        }
    }
}

async fn free_slots_alone_are_claimed((one, two): (Process, Process)) {
    let (of_one, asked) = (slots_of(&[1, 2]), slots_of(&[2, 3]));
    assert_eq!(read(one.members.claim(&of_one)).await, of_one);
    assert_eq!(read(two.members.claim(&asked)).await, slots_of(&[3]), "2 has an owner");
    assert_eq!(read(two.members.claim(&asked)).await, SlotSet::new(), "nothing is left");
    assert_eq!(read(one.members.claim(&SlotSet::new())).await, SlotSet::new());
    let node = two.node();
    let view = one.view(|view| view.owners.counts().contains_key(&node)).await;
    assert_eq!(view.owners.slots_of(Some(one.node())), of_one);
    assert_eq!(view.owners.slots_of(Some(node)), slots_of(&[3]));
}

async fn beats_grow((one, two): (Process, Process)) {
    let nodes = [one.node(), two.node()];
    assert!(nodes[0] < nodes[1], "later processes have greater numbers");
    let first = one.view(|view| view.members.len() == 2).await;
    let shown: Vec<NodeId> = first.members.iter().map(|member| member.node).collect();
    assert_eq!(shown, nodes, "in the order of their nodes");
    assert!(first.members.iter().all(|member| member.state == MemberState::Active));
    assert_ne!(first.members[0].name, first.members[1].name, "they have their names");
    let has_grown = |view: &View| nodes.iter().all(|of| beat_of(view, *of) > beat_of(&first, *of));
    let later = one.view(has_grown).await;
    assert!(later.sent > first.sent, "and each was sent after the one before");
    assert_eq!(one.members.lease(), two.members.lease());
}

async fn appends_outside_of_own_slots_are_lost((mut one, mut two): (Process, Process)) {
    let mut own = one.bench.creation(IN_ONE);
    own.timers = vec![TimerChange::Arm(abandoned(IN_ONE, 5))];
    one.bench.take(&own).await;
    let free = one.bench.creation(IN_TWO);
    assert_eq!(one.bench.append(&free).await, Err(AppendError::Lost), "without an owner");
    assert_eq!(one.bench.describe(IN_TWO).await, None, "nothing of it is stored");
    let foreign = two.bench.continuation(&own, vec![step_started(2)]);
    assert_eq!(two.bench.append(&foreign).await, Err(AppendError::Lost), "that of another");
    let execution = own.header.id.clone();
    let snapshot = Snapshot { execution, row: own.row, revision: 0, state: vec![7] };
    two.bench.store.store_snapshot(0, snapshot);
    two.bench.store.change_timers(0, vec![disarm(&abandoned(IN_ONE, 5))]);
    assert_eq!(two.bench.append(&foreign).await, Err(AppendError::Lost), "behind the others");
    let stored = one.bench.load(IN_ONE).await;
    assert_eq!((stored.revision, stored.snapshot), (0, None));
    assert_eq!(two.bench.timers(10, 10).await, [abandoned(IN_ONE, 5)], "its timer stays");
    one.bench.take(&foreign).await;
}

async fn a_member_that_beats_again_is_not_fenced((mut one, two): (Process, Process)) {
    let node = one.node();
    let old = two.view(|view| beat_of(view, node).is_some()).await;
    let old = beat_of(&old, node);
    two.view(|view| beat_of(view, node) > old).await;
    let old = old.unwrap_or_default();
    assert!(!read(two.members.fence(node, old)).await, "it has beaten since");
    assert!(!read(two.members.fence(NodeId(i64::MAX), 0)).await, "no member has this number");
    let draft = one.bench.creation(IN_ONE);
    one.bench.take(&draft).await;
}

async fn a_fenced_member_stores_nothing((mut one, two): (Process, Process)) {
    let mut kept = one.bench.creation(IN_ONE);
    kept.timers = vec![TimerChange::Arm(abandoned(IN_ONE, 5))];
    one.bench.take(&kept).await;
    two.fence(&one).await;
    let execution = kept.header.id.clone();
    let snapshot = Snapshot { execution, row: kept.row, revision: 0, state: vec![7] };
    one.bench.store.store_snapshot(0, snapshot);
    let moved = TimerChange::Arm(abandoned(IN_TWO, 6));
    one.bench.store.change_timers(0, vec![disarm(&abandoned(IN_ONE, 5)), moved]);
    let next = one.bench.continuation(&kept, vec![step_started(2)]);
    assert_eq!(one.bench.append(&next).await, Err(AppendError::Lost), "a continuation");
    let new = one.bench.creation(IN_TWO);
    assert_eq!(one.bench.append(&new).await, Err(AppendError::Lost), "a creation");
    assert_eq!(one.record("g1").await, Err(AppendError::Lost), "a generation");
    let stored = two.bench.load(IN_ONE).await;
    assert_eq!((stored.revision, stored.snapshot), (0, None));
    assert_eq!(two.bench.describe(IN_TWO).await, None);
    assert_eq!(two.bench.timers(10, 10).await, [abandoned(IN_ONE, 5)]);
    assert_eq!(two.status_of("g1").await, None);
}

async fn a_fenced_member_changes_no_owners((one, two): (Process, Process)) {
    two.fence(&one).await;
    let (own, free) = (slots_of(&[1]), slots_of(&[2]));
    let nothing = |taken: Result<SlotSet, _>| taken.is_err() || taken == Ok(SlotSet::new());
    assert!(nothing(one.members.claim(&free).await), "it claims nothing");
    assert!(nothing(one.members.give(&own, two.node()).await), "it has nothing to give");
    let node = one.node();
    let view = two.view(|view| beat_of(view, node).is_none()).await;
    assert_eq!(view.owners.slots_of(None), SlotSet::all(), "what it had is free");
    let beat = beat_of(&view, two.node()).expect("it is a member");
    let fenced = one.members.fence(two.node(), beat + 1).await;
    assert_ne!(fenced, Ok(true), "it fences no other");
    let mut views = one.members.views();
    let ended = views.wait_for(|_| false).await;
    assert!(ended.is_err(), "its views end");
}

async fn a_taker_continues_where_the_fenced_one_stopped((mut one, mut two): (Process, Process)) {
    let (first, other) = (one.bench.creation(IN_ONE), one.bench.creation(IN_TWO));
    one.bench.take(&first).await;
    one.bench.take(&other).await;
    two.fence(&one).await;
    let late = two.bench.continuation(&first, vec![step_started(2)]);
    assert_eq!(two.bench.append(&late).await, Err(AppendError::Lost), "it is not claimed yet");
    let both = slots_of(&[1, 2]);
    assert_eq!(read(two.members.claim(&both)).await, both);
    for draft in [first, other] {
        let stored = two.bench.load(draft.header.id.as_str()).await;
        assert_eq!((stored.row, stored.revision), (draft.row, 0));
        assert_eq!(stored.projection, draft.projection());
        let next = two.bench.continuation(&draft, vec![step_started(2)]);
        two.bench.take(&next).await;
    }
}

async fn given_slots_belong_to_the_taker((mut one, mut two): (Process, Process)) {
    let (first, other) = (one.bench.creation(IN_ONE), one.bench.creation(IN_TWO));
    one.bench.take(&first).await;
    one.bench.take(&other).await;
    let given = slots_of(&[1]);
    assert_eq!(read(one.members.give(&slots_of(&[1, 3]), two.node())).await, given, "3 is not its");
    let next = one.bench.continuation(&first, vec![step_started(2)]);
    assert_eq!(one.bench.append(&next).await, Err(AppendError::Lost), "it was given away");
    let of_other = one.bench.continuation(&other, vec![step_started(2)]);
    one.bench.take(&of_other).await;
    let node = two.node();
    let view = two.view(|view| view.owners.counts().contains_key(&node)).await;
    assert_eq!(view.owners.slots_of(Some(node)), given);
    assert_eq!(view.owners.slots_of(Some(one.node())), slots_of(&[2]));
    // with the view that shows them
    assert_eq!(two.bench.append(&next).await, Ok(()), "the taker writes there");
    let node = one.node();
    let has = async |count| one.view(|view| view.owners.slots_of(Some(node)).len() == count).await;
    has(1).await;
    assert_eq!(read(two.members.give(&given, node)).await, given, "and can give them back");
    has(2).await;
    let last = one.bench.continuation(&next, vec![step_started(3)]);
    one.bench.take(&last).await;
}

async fn slots_are_given_to_active_members_only((mut one, two): (Process, Process)) {
    let nothing = SlotSet::new();
    let unknown = NodeId(i64::MAX);
    let own = slots_of(&[1, 2]);
    assert_eq!(read(one.members.give(&own, unknown)).await, nothing, "there is no such member");
    read(two.members.set_leaving()).await;
    assert_eq!(read(one.members.give(&own, two.node())).await, nothing, "it takes none");
    for id in [IN_ONE, IN_TWO] {
        let draft = one.bench.creation(id);
        one.bench.take(&draft).await;
    }
}

async fn a_leaving_member_is_shown_and_takes_nothing((mut one, two): (Process, Process)) {
    read(one.members.set_leaving()).await;
    let node = one.node();
    let is_leaving = |view: &View| {
        let state = view.members.iter().find(|it| it.node == node).map(|it| it.state);
        state == Some(MemberState::Leaving)
    };
    two.view(is_leaving).await;
    one.view(is_leaving).await;
    let free = slots_of(&[3]);
    assert_eq!(read(one.members.claim(&free)).await, SlotSet::new());
    let draft = one.bench.creation(IN_ONE);
    one.bench.take(&draft).await;
    let own = slots_of(&[1]);
    assert_eq!(read(one.members.give(&own, two.node())).await, own, "it gives what it has");
}

async fn a_member_that_closes_frees_its_slots((mut one, mut two): (Process, Process)) {
    let draft = one.bench.creation(IN_ONE);
    one.bench.take(&draft).await;
    let node = one.node();
    two.view(|view| view.owners.counts().contains_key(&node)).await;
    one.bench.store.close();
    let view = two.view(|view| beat_of(view, node).is_none()).await;
    assert_eq!(view.owners.slots_of(None), SlotSet::all());
    let own = slots_of(&[1, 2]);
    assert_eq!(read(two.members.claim(&own)).await, own);
    let next = two.bench.continuation(&draft, vec![step_started(2)]);
    two.bench.take(&next).await;
}

async fn generations_of_gone_members_are_interrupted((one, two): (Process, Process)) {
    assert_eq!(one.record("g1").await, Ok(()));
    assert_eq!(two.bench.store.interrupt_working(Timestamp(9)).await, Ok(()));
    assert_eq!(two.status_of("g1").await, Some(GenerationStatus::Working), "one is alive");
    two.fence(&one).await;
    assert_eq!(two.record("g2").await, Ok(()));
    assert_eq!(two.bench.store.interrupt_working(Timestamp(9)).await, Ok(()));
    assert_eq!(two.status_of("g1").await, Some(GenerationStatus::Error), "one is gone");
    assert_eq!(two.status_of("g2").await, Some(GenerationStatus::Working), "two is alive");
}

/// Adopts interrupted generations; returns their ids.
async fn adopted(process: &Process) -> Vec<String> {
    let adopted = process.bench.store.adopt_interrupted(Row::MIN, 10).await;
    adopted.expect("the store can be written").into_iter().map(|(_, id)| id).collect()
}

async fn one_of_two_members_adopts_a_generation([one, two, three]: [Process; 3]) {
    for id in ["g1", "g2", "g3"] {
        let row = one.bench.generation_row();
        let write = GenerationWrite { row, ..with_continuation(&working(id), "{}") };
        assert_eq!(one.bench.store.record_generation(write).await, Ok(()));
    }
    assert_eq!(one.record("without").await, Ok(()));
    assert_eq!(adopted(&two).await, [""; 0], "one is alive");
    assert_eq!(adopted(&one).await, [""; 0], "and works on its own");
    two.fence(&one).await;
    assert_eq!(two.bench.store.interrupt_working(Timestamp(9)).await, Ok(()));
    let (of_two, of_three) = futures_util::future::join(adopted(&two), adopted(&three)).await;
    let mut all = [of_two, of_three].concat();
    all.sort();
    assert_eq!(all, ["g1", "g2", "g3"], "each once");
    assert_eq!(adopted(&two).await, [""; 0], "they have been adopted");
    assert_eq!(two.status_of("g1").await, Some(GenerationStatus::Working));
    assert_eq!(two.status_of("without").await, Some(GenerationStatus::Error));
    let late = one.bench.store.adopt_interrupted(Row::MIN, 10).await;
    assert!(late.is_err() || late == Ok(Vec::new()), "one is gone");
}

async fn a_fenced_member_settles_nothing((one, two): (Process, Process)) {
    let write = |process: &Process| {
        let row = process.bench.generation_row();
        GenerationWrite { row, ..with_continuation(&working("g1"), "{}") }
    };
    assert_eq!(one.bench.store.record_generation(write(&one)).await, Ok(()));
    two.fence(&one).await;
    let late = one.bench.store.settle_generation(1, write(&one)).await;
    assert_eq!(late, Err(AppendError::Lost), "it is gone");
    assert_eq!(two.bench.store.settle_generation(1, write(&two)).await, Ok(true));
}
