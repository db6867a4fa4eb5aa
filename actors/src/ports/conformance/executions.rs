//! Rules of executions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::bench::{
    Bench, Draft, completed, held, numbers, recorded, started, step_started, steps,
};
use super::read;
use super::timers::key;
use crate::domain::event::events_of;
use crate::domain::fact::{Fact, Others, Parent, Recorded, ResumedBy, Suspension};
use crate::domain::failure::ErrorClass;
use crate::domain::ids::ExecutionId;
use crate::domain::principal::Principal;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    AppendError, FactCursor, Failure, Portion, Snapshot, Status, Timer, TimerChange, TimerKey,
};

pub(super) async fn creation_and_continuation(mut bench: Bench) {
    assert_eq!(bench.describe("a").await, None, "nothing is stored at first");
    assert!(bench.facts("a", 0, 10).await.is_empty(), "no facts of what is not stored");
    let first = bench.creation("a");
    bench.take(&first).await;
    assert_eq!(bench.describe("a").await, Some(first.projection()), "creation");
    let mut second = bench.continuation(&first, vec![step_started(2), completed(3)]);
    second.status = Status::Completed;
    bench.take(&second).await;
    assert_eq!(second.last_seq, 4, "a completion gives two events");
    let stored = bench.load("a").await;
    assert_eq!(stored.row, first.row, "an execution keeps its row");
    assert_eq!(stored.projection, second.projection(), "continuation");
    assert_eq!(stored.snapshot, None, "no snapshot was given");
    assert_eq!(stored.facts, [started(1), step_started(2), completed(3)], "all facts, in order");
    let (one, two) = (bench.row(), bench.row());
    assert!(two > one && one > first.row, "row numbers grow");
}

pub(super) async fn every_column_comes_back(mut bench: Bench) {
    let mut first = bench.creation("child");
    first.header.user_id = Some(Arc::from("u1"));
    first.header.conversation_id = Some(Arc::from("c1"));
    first.header.parent =
        Some(Parent { execution: ExecutionId::trusted("parent"), path: Arc::from("checks/ask") });
    first.header.trace.parent_span = "b7ad6b7169203331".parse().ok();
    first.header.trace.root_id = Arc::from("family");
    let suspension = Suspension {
        id: Some(Arc::from("5f1e")),
        reason: Arc::from("approve"),
        suspended_at: Timestamp(1000),
        step_id: Arc::from("ask"),
        path: Arc::from("checks/ask"),
        step_index: 3,
        payload: Some(Arc::new(json!({ "who": ["a", "b"] }))),
        deadline: Some(Timestamp(9000)),
        by: Some(Arc::new(Principal::verified("lea"))),
        pause: false,
        payload_omitted: false,
    };
    first.others = Some(Others {
        suspensions: vec![Suspension {
            by: None,
            payload: None,
            payload_omitted: true,
            ..suspension.clone()
        }],
        omitted: 7,
    });
    first.suspension = Some(suspension);
    bench.take(&first).await;
    assert_eq!(bench.describe("child").await, Some(first.projection()), "describe");
    assert_eq!(bench.load("child").await.projection, first.projection(), "load");
    let mut second = bench.continuation(&first, vec![step_started(2)]);
    second.status = Status::Running;
    bench.take(&second).await;
    assert_eq!(bench.describe("child").await, Some(second.projection()), "the suspension is gone");
    let mut third = bench.continuation(&second, vec![step_started(3)]);
    third.status = Status::Error;
    third.error = Some(Failure {
        message: Arc::from("no \"luck\""),
        step_id: Some(Arc::from("ask")),
        path: Some(Arc::from("checks/ask")),
        class: Some(ErrorClass::http(404)),
    });
    bench.take(&third).await;
    assert_eq!(bench.describe("child").await, Some(third.projection()), "the error is there");

    let mut at_once = bench.creation("at once");
    at_once.status = Status::Error;
    at_once.error =
        Some(Failure { message: Arc::from("no"), step_id: None, path: None, class: None });
    bench.take(&at_once).await;
    assert_eq!(bench.describe("at once").await, Some(at_once.projection()), "in one commit");
}

pub(super) async fn refusals_store_nothing(mut bench: Bench) {
    let first = bench.creation("a");
    bench.take(&first).await;
    let timer =
        Timer { execution: ExecutionId::trusted("a"), key: TimerKey::Abandoned, due: Timestamp(1) };
    let record = key("k", 1, 5000);

    let mut again = bench.creation("a");
    let mut stale = bench.continuation(&first, vec![step_started(2)]);
    stale.revision = 7;
    let mut unknown = bench.creation("never");
    unknown.revision = 1;
    for (draft, refusal) in [
        (&mut again, AppendError::Exists),
        (&mut stale, AppendError::Stale),
        (&mut unknown, AppendError::Stale),
    ] {
        draft.timers = vec![TimerChange::Arm(timer.clone())];
        draft.idempotency = Some(record.clone());
        draft.snapshot = Some(b"state".to_vec());
        assert_eq!(bench.append(draft).await, Err(refusal), "append to {}", draft.header.id);
    }

    let stored = bench.load("a").await;
    assert_eq!(stored.projection, first.projection(), "a refused append changes no row");
    assert_eq!(stored.facts, [started(1)], "nor facts");
    assert_eq!(stored.snapshot, None, "nor the snapshot");
    assert_eq!(bench.describe("never").await, None, "nor creates anything");
    assert!(bench.timers(i64::MAX, 10).await.is_empty(), "nor arms timers");
    let kept = read(bench.store.idempotency("k", Timestamp(0))).await;
    assert_eq!(kept, None, "nor takes a key");
    assert!(bench.store.is_writable(), "a refusal is not a failure of the store");
}

pub(super) async fn appends_follow_the_newest_revision(mut bench: Bench) {
    let first = bench.creation("a");
    bench.take(&first).await;
    assert_eq!(bench.load("a").await.revision, 0, "the creation");
    let second = bench.continuation(&first, vec![held(2)]);
    bench.take(&second).await;
    assert_eq!(second.last_seq, first.last_seq, "a fact without events");
    assert_eq!(bench.load("a").await.revision, 1, "every append counts");

    let behind = bench.continuation(&first, vec![held(2)]);
    let mut repeated = bench.continuation(&first, vec![step_started(2)]);
    repeated.status = Status::Running;
    let mut ahead = bench.continuation(&second, vec![step_started(2)]);
    ahead.revision += 1;
    for (draft, case) in [(behind, "behind"), (repeated, "behind, running"), (ahead, "ahead")] {
        let refused = bench.append(&draft).await;
        assert_eq!(refused, Err(AppendError::Stale), "the right number, but {case}");
    }
    let stored = bench.load("a").await;
    assert_eq!((stored.revision, stored.facts), (1, vec![started(1), held(2)]), "nothing changed");

    let mut third = bench.continuation(&second, vec![step_started(2)]);
    third.status = Status::Running;
    bench.take(&third).await;
    let mut fourth = bench.continuation(&third, vec![held(3)]);
    fourth.status = Status::Running;
    bench.take(&fourth).await;
    let mut late = bench.continuation(&third, vec![step_started(3)]);
    late.status = Status::Running;
    assert_eq!(bench.append(&late).await, Err(AppendError::Stale), "running follows running");
    assert_eq!(bench.load("a").await.revision, 3);
}

pub(super) async fn snapshots_shorten_the_facts_that_load_returns(mut bench: Bench) {
    let mut first = bench.creation("a");
    first.snapshot = Some(b"one".to_vec());
    bench.take(&first).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((1, b"one".to_vec())), "a snapshot of the creation");
    assert!(stored.facts.is_empty(), "it includes the facts it came with");

    let second = bench.continuation(&first, steps(2..5));
    bench.take(&second).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((1, b"one".to_vec())), "kept while there is no newer one");
    assert_eq!(numbers(&stored.facts), [2, 3, 4], "only facts after it");

    // a snapshot that ends with facts without events includes them, whatever their number
    let mut third = bench.continuation(&second, vec![step_started(5), held(6)]);
    third.snapshot = Some(b"two".to_vec());
    bench.take(&third).await;
    let fourth = bench.continuation(&third, vec![held(6), step_started(6)]);
    bench.take(&fourth).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((5, b"two".to_vec())), "the newest snapshot");
    assert_eq!(stored.facts, [held(6), step_started(6)], "facts appended after the snapshot");
    let all = bench.facts("a", 0, 100).await;
    assert_eq!(numbers(&all), [1, 2, 3, 4, 5, 6, 6, 6], "the whole history can still be read");
}

pub(super) async fn snapshots_of_an_older_revision_are_ignored(mut bench: Bench) {
    let keep = |bench: &Bench, of: &Draft, state: &str| {
        let (row, revision, state) = (of.row, of.revision, state.as_bytes().to_vec());
        let execution = of.header.id.clone();
        bench.store.store_snapshot(0, Snapshot { execution, row, revision, state });
    };
    let first = bench.creation("a");
    bench.take(&first).await;
    keep(&bench, &first, "one");
    // later requests are committed later
    let next = bench.creation("b");
    bench.take(&next).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((1, b"one".to_vec())), "a state of the first facts");
    assert!(stored.facts.is_empty(), "it includes all facts");

    let second = bench.continuation(&first, vec![step_started(2), held(3)]);
    bench.take(&second).await;
    keep(&bench, &first, "late");
    let next = bench.creation("c");
    bench.take(&next).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((1, b"one".to_vec())), "a state that is too old is dropped");
    assert_eq!(stored.facts, [step_started(2), held(3)], "with the facts that it lacks");

    keep(&bench, &second, "two");
    let third = bench.continuation(&second, vec![held(3), step_started(3)]);
    bench.take(&third).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((2, b"two".to_vec())), "a newer state takes its place");
    assert_eq!(stored.facts, [held(3), step_started(3)], "and facts queued after it follow");

    let fourth = bench.continuation(&third, vec![held(4)]);
    bench.take(&fourth).await;
    keep(&bench, &third, "late, with the same number");
    let next = bench.creation("d");
    bench.take(&next).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.snapshot, Some((2, b"two".to_vec())), "a fact without events counts");
}

pub(super) async fn facts_are_paged(mut bench: Bench) {
    let first = bench.creation("a");
    bench.take(&first).await;
    let second = bench.continuation(&first, steps(2..6));
    bench.take(&second).await;
    let third = bench.continuation(&second, steps(6..9));
    bench.take(&third).await;
    let cases: [(u64, usize, &[u64]); 8] = [
        (0, 100, &[1, 2, 3, 4, 5, 6, 7, 8]),
        (0, 1, &[1]),
        (0, 3, &[1, 2, 3]),
        (1, 2, &[2, 3]),
        (3, 4, &[4, 5, 6, 7]),
        (5, 100, &[6, 7, 8]),
        (8, 100, &[]),
        (2, 0, &[]),
    ];
    for (after, limit, expected) in cases {
        let page = bench.facts("a", after, limit).await;
        assert_eq!(numbers(&page), expected, "facts after {after}, at most {limit}");
    }
}

pub(super) async fn portions_return_every_fact_once(mut bench: Bench) {
    let bytes = [1, 200, 1000, 1 << 20];
    assert!(
        bench.portion("a", FactCursor::default(), 10).await.facts.is_empty(),
        "nothing is stored"
    );
    let first = bench.creation("a");
    bench.take(&first).await;
    let second = bench.continuation(&first, steps(2..6));
    bench.take(&second).await;
    let third = bench.continuation(&second, vec![held(6), held(6), step_started(6)]);
    bench.take(&third).await;
    let fourth = bench.continuation(&third, steps(7..40));
    bench.take(&fourth).await;
    // facts without events may be returned twice
    let with_events = |mut facts: Vec<Recorded>| {
        facts.retain(|fact| !events_of(&fact.fact).is_empty());
        facts
    };
    let all = with_events(bench.facts("a", 0, 1000).await);
    for bytes in bytes {
        for above in [0, 1, 5, 6, 30, 39, 50] {
            let wanted: Vec<_> = all.iter().filter(|fact| fact.seq > above).cloned().collect();
            let (mut cursor, mut read) = (FactCursor::above(above), Vec::new());
            loop {
                let Portion { facts, next } = bench.portion("a", cursor, bytes).await;
                let facts = with_events(facts);
                let sought = bench.portion("a", FactCursor::above(cursor.above), bytes).await.facts;
                assert_eq!(with_events(sought).first(), facts.first(), "with or without a mark");
                if facts.is_empty() {
                    break;
                }
                assert!(next.above > cursor.above, "{cursor:?} with {bytes} bytes");
                cursor = next;
                read.extend(facts);
            }
            assert_eq!(read, wanted, "above {above} with {bytes} bytes");
        }
    }
    let end = bench.portion("a", FactCursor::default(), 1 << 20).await.next;
    let fifth = bench.continuation(&fourth, vec![completed(40)]);
    bench.take(&fifth).await;
    let rest = bench.portion("a", end, 1).await;
    assert_eq!(rest.facts, [completed(40)], "later facts follow");
}

pub(super) async fn facts_without_events_keep_their_place(mut bench: Bench) {
    let first = bench.creation("a");
    bench.take(&first).await;
    let mut draft = bench.continuation(&first, vec![held(2)]);
    bench.take(&draft).await;
    assert_eq!(draft.last_seq, 1, "no event was published");
    draft = bench.continuation(&draft, vec![held(2), held(2)]);
    bench.take(&draft).await;
    let resumed = Fact::StepResumed {
        path: Arc::from("a"),
        data: Arc::new(json!(null)),
        by: ResumedBy::Caller,
        id: Some(Arc::from("5f1e")),
    };
    draft = bench.continuation(&draft, vec![recorded(2, resumed.clone()), step_started(3)]);
    bench.take(&draft).await;
    let stored = bench.load("a").await;
    let expected = [started(1), held(2), held(2), held(2), recorded(2, resumed), step_started(3)];
    assert_eq!(stored.facts, expected, "facts of one number keep their order");
    let page = bench.facts("a", 1, 1).await;
    assert_eq!(page, expected[1..5], "facts without events do not use up a page");
    assert_eq!(numbers(&bench.facts("a", 2, 1).await), [3], "the next page");
}

pub(super) async fn large_facts_survive_changes_of_the_row(mut bench: Bench) {
    let mut first = bench.creation("a");
    let output = Arc::new(Value::String("x".repeat(100_000)));
    let large = Fact::StepCompleted {
        path: Arc::from("a"),
        attempt: 1,
        since: Timestamp(1),
        output,
        usage: None,
        mcp: None,
        compensable: false,
        skipped: false,
    };
    first.facts.push(recorded(2, large));
    first.last_seq = 2;
    first.status = Status::Running;
    bench.take(&first).await;
    let mut second = bench.continuation(&first, vec![completed(3)]);
    second.status = Status::Completed;
    bench.take(&second).await;
    let stored = bench.load("a").await;
    assert_eq!(stored.facts[..2], first.facts[..], "the large facts");
    assert_eq!(stored.facts[2..], second.facts[..], "and what followed");
    assert_eq!(numbers(&bench.facts("a", 1, 10).await), [2, 3], "read in pages too");
}
