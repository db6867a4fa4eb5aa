//! Rules of continuations.

use std::sync::Arc;

use futures_util::future::join_all;

use super::asks::{listed, open_ones};
use super::bench::Bench;
use super::calls::{ask, open, put};
use super::generations::{completed, entry, record, step, with_steps, working};
use super::read;
use crate::domain::ids::ExecutionId;
use crate::domain::message::{Part, Role};
use crate::domain::time::Timestamp;
use crate::ports::store::{
    ApprovedTools, ContinuationChange, ConversationKey, ConversationWrite, GenerationRecord,
    GenerationStatus, GenerationWrite, PageSize, Row, StepOrigin, StoredContinuation,
    StoredMessage, UserCursor,
};

/// Number of writes that settle one generation at the same time.
const AT_ONCE: usize = 50;

pub(super) async fn run(bench: &impl AsyncFn() -> Bench) {
    rule!(a_continuation_is_put_replaced_and_removed, bench().await);
    rule!(a_generation_is_settled_at_its_revision, bench().await);
    rule!(one_of_many_settles_a_generation, bench().await);
    rule!(suspended_generations_of_a_conversation_are_found, bench().await);
    rule!(interrupted_generations_are_adopted, bench().await);
    rule!(a_restart_leaves_what_can_continue, bench().await);
    rule!(asks_and_continuation_are_deleted_with_their_generation, bench().await);
    rule!(generations_of_steps_stay_without_their_forgotten_user, bench().await);
}

pub(super) fn with_continuation(record: &GenerationRecord, body: &str) -> GenerationWrite {
    let continuation = ContinuationChange::Put { body: Arc::from(body), asks: Vec::new() };
    GenerationWrite { continuation, ..with_steps(record, &[]) }
}

fn suspended(id: &str) -> GenerationRecord {
    GenerationRecord { status: GenerationStatus::Suspended, ..working(id) }
}

fn stored(revision: u64, body: &str) -> Option<StoredContinuation> {
    Some(StoredContinuation { revision, body: Arc::from(body) })
}

async fn continuation(bench: &Bench, id: &str) -> Option<StoredContinuation> {
    read(bench.store.continuation(id)).await
}

async fn settle(bench: &Bench, revision: u64, write: GenerationWrite) -> bool {
    let write = GenerationWrite { row: bench.generation_row(), ..write };
    bench.store.settle_generation(revision, write).await.expect("the store can be written")
}

async fn a_continuation_is_put_replaced_and_removed(bench: Bench) {
    let g1 = working("g1");
    record(&bench, with_steps(&g1, &[])).await;
    assert_eq!(continuation(&bench, "g1").await, None, "none yet");
    assert_eq!(continuation(&bench, "unknown").await, None);
    record(&bench, with_continuation(&g1, "{}")).await;
    assert_eq!(continuation(&bench, "g1").await, stored(1, "{}"), "the first one");
    record(&bench, with_continuation(&suspended("g1"), r#"{"text":"grün \u0000"}"#)).await;
    let second = stored(2, r#"{"text":"grün \u0000"}"#);
    assert_eq!(continuation(&bench, "g1").await, second, "replaced");
    record(&bench, with_steps(&g1, &[(0, step("one"))])).await;
    assert_eq!(continuation(&bench, "g1").await, second, "kept by other writes");
    record(&bench, with_continuation(&working("g2"), "2")).await;
    assert_eq!(continuation(&bench, "g2").await, stored(1, "2"), "with a first record");

    let removed = || ContinuationChange::Remove { asks: Vec::new() };
    for _ in 0..2 {
        let write =
            GenerationWrite { continuation: removed(), ..with_steps(&completed("g1"), &[]) };
        record(&bench, write).await;
        assert_eq!(continuation(&bench, "g1").await, None, "removed");
    }
    assert_eq!(continuation(&bench, "g2").await, stored(1, "2"), "another one stays");
    record(&bench, with_continuation(&g1, "again")).await;
    assert_eq!(continuation(&bench, "g1").await, stored(1, "again"), "numbered anew");
}

fn key(conversation: &str, user: Option<&str>) -> ConversationKey {
    ConversationKey {
        agent_id: Arc::from("clerk"),
        user_id: user.map(Arc::from),
        conversation_id: Arc::from(conversation),
    }
}

fn message(id: &str) -> StoredMessage {
    StoredMessage {
        id: id.to_owned(),
        role: Role::Assistant,
        parts: vec![Part::Text { text: id.to_owned() }],
        created_at: Timestamp(1),
        generation_id: None,
    }
}

/// Returns a write that changes everything of a generation.
fn whole(id: &str, text: &str) -> GenerationWrite {
    let messages = ConversationWrite {
        key: key("c1", None),
        cut_after: None,
        messages: vec![message(text)],
        approved_tools: ApprovedTools::new(),
        at: Timestamp(1),
    };
    let steps = [(0, step("one")), (1, step(text))];
    let continuation =
        ContinuationChange::Put { body: Arc::from(text), asks: vec![open(ask(text, 1))] };
    GenerationWrite { messages: Some(messages), continuation, ..with_steps(&working(id), &steps) }
}

async fn a_generation_is_settled_at_its_revision(bench: Bench) {
    record(&bench, whole("g1", "first")).await;
    let before = entry(&bench, "g1").await;
    let late = GenerationRecord { error: Some("late".to_owned()), ..working("g1") };
    for revision in [0, 2, u64::MAX] {
        let write = GenerationWrite { record: late.clone(), ..whole("g1", "late") };
        assert!(!settle(&bench, revision, write).await, "{revision} is another revision");
    }
    assert!(!settle(&bench, 1, whole("unknown", "late")).await, "there is no such generation");
    assert_eq!(entry(&bench, "unknown").await, None);
    assert_eq!(entry(&bench, "g1").await, before, "nothing has changed");
    assert_eq!(continuation(&bench, "g1").await, stored(1, "first"));
    assert_eq!(listed(&bench, &open_ones()).await, ["first"], "no ask was opened");
    let texts = async || {
        let messages = read(bench.store.messages(&key("c1", None), None, PageSize::of(10))).await;
        messages.into_iter().map(|message| message.id).collect::<Vec<_>>()
    };
    assert_eq!(texts().await, ["first"], "no message was added");

    assert!(settle(&bench, 1, whole("g1", "second")).await, "the stored revision");
    assert_eq!(continuation(&bench, "g1").await, stored(2, "second"));
    assert_eq!(listed(&bench, &open_ones()).await, ["first", "second"]);
    assert_eq!(texts().await, ["first", "second"]);
    let steps = entry(&bench, "g1").await.expect("it is stored").steps;
    assert_eq!(steps.iter().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["one", "second"]);
    let continuation = ContinuationChange::Remove { asks: Vec::new() };
    let ended = GenerationWrite { continuation, ..with_steps(&completed("g1"), &[]) };
    assert!(settle(&bench, 2, ended.clone()).await, "an end");
    assert!(!settle(&bench, 2, ended).await, "it has ended");
}

async fn one_of_many_settles_a_generation(bench: Bench) {
    record(&bench, with_continuation(&suspended("g1"), "0")).await;
    for revision in 1..=3 {
        let writes = (0..AT_ONCE).map(|number| {
            let body = number.to_string();
            settle(&bench, revision, whole_with(&body))
        });
        let settled = join_all(writes).await;
        let winners: Vec<_> = settled.iter().enumerate().filter(|(_, is_true)| **is_true).collect();
        assert_eq!(winners.len(), 1, "one of {AT_ONCE} at revision {revision}");
        let body = winners[0].0.to_string();
        assert_eq!(continuation(&bench, "g1").await, stored(revision + 1, &body));
    }
}

fn whole_with(body: &str) -> GenerationWrite {
    let continuation = ContinuationChange::Put { body: Arc::from(body), asks: Vec::new() };
    GenerationWrite { continuation, ..with_steps(&working("g1"), &[(0, step(body))]) }
}

async fn suspended_generations_of_a_conversation_are_found(bench: Bench) {
    let of = |id: &str, conversation: &str, user: Option<&str>| GenerationRecord {
        conversation_id: Some(conversation.to_owned()),
        user_id: user.map(str::to_owned),
        ..suspended(id)
    };
    let other_agent = GenerationRecord { agent_id: "cook".to_owned(), ..of("g5", "c1", None) };
    let at_work = GenerationRecord { status: GenerationStatus::Working, ..of("g6", "c1", None) };
    let generations = [
        of("g1", "c1", None),
        of("g2", "c2", None),
        of("g3", "c1", Some("ann")),
        of("g4", "c1", None),
        other_agent,
        at_work,
        suspended("g7"),
    ];
    for one in &generations {
        record(&bench, with_continuation(one, "{}")).await;
    }
    let found =
        async |conversation, user| read(bench.store.suspended_in(&key(conversation, user))).await;
    assert_eq!(found("c1", None).await, ["g1", "g4"]);
    assert_eq!(found("c2", None).await, ["g2"]);
    assert_eq!(found("c1", Some("ann")).await, ["g3"]);
    assert_eq!(found("c2", Some("ann")).await, [""; 0]);
    let again = GenerationRecord { status: GenerationStatus::Working, ..of("g1", "c1", None) };
    record(&bench, with_steps(&again, &[])).await;
    assert_eq!(found("c1", None).await, ["g4"], "it continues");
}

async fn interrupted_generations_are_adopted(bench: Bench) {
    let adopt = async |after: Row, limit| {
        let adopted = bench.store.adopt_interrupted(after, limit).await;
        adopted.expect("the store can be written")
    };
    assert_eq!(adopt(Row::MIN, 10).await, [], "none");
    let origin = StepOrigin { execution_id: ExecutionId::trusted("e1"), path: Arc::from("ask") };
    let of_step = GenerationRecord { origin: Some(origin), ..working("g3") };
    let mut rows = Vec::new();
    for one in [&working("g1"), &working("g2"), &of_step] {
        let row = bench.generation_row();
        let write = GenerationWrite { row, ..with_continuation(one, "{}") };
        assert_eq!(bench.store.record_generation(write).await, Ok(()));
        rows.push((row, one.id.clone()));
    }
    record(&bench, with_steps(&working("without"), &[])).await;
    record(&bench, with_continuation(&suspended("waits"), "{}")).await;
    record(&bench, with_continuation(&completed("ended"), "{}")).await;
    assert_eq!(adopt(Row::MIN, 10).await, rows, "by row");
    assert_eq!(adopt(Row::MIN, 2).await, rows[..2], "at most the limit");
    assert_eq!(adopt(rows[1].0, 2).await, rows[2..], "behind a row");
    assert_eq!(adopt(rows[2].0, 2).await, []);
}

async fn a_restart_leaves_what_can_continue(bench: Bench) {
    record(&bench, with_steps(&working("without"), &[])).await;
    record(&bench, with_continuation(&working("with"), "{}")).await;
    record(&bench, with_continuation(&suspended("waits"), "{}")).await;
    record(&bench, with_steps(&suspended("waits without"), &[])).await;
    assert_eq!(bench.store.interrupt_working(Timestamp(999)).await, Ok(()));
    let status = async |id| entry(&bench, id).await.map(|entry| entry.record.status);
    assert_eq!(status("without").await, Some(GenerationStatus::Error), "interrupted");
    assert_eq!(status("with").await, Some(GenerationStatus::Working), "it continues");
    assert_eq!(status("waits").await, Some(GenerationStatus::Suspended));
    assert_eq!(status("waits without").await, Some(GenerationStatus::Suspended));
    assert_eq!(continuation(&bench, "with").await, stored(1, "{}"));
}

async fn asks_and_continuation_are_deleted_with_their_generation(bench: Bench) {
    let of_user =
        |id: &str, user: &str| GenerationRecord { user_id: Some(user.to_owned()), ..completed(id) };
    for (id, user) in [("g1", "ann"), ("g2", "bob")] {
        record(&bench, put(&of_user(id, user), vec![open(ask(&format!("of-{id}"), 1))])).await;
    }
    let row = bench.generation_row();
    let write = GenerationWrite { row, ..put(&completed("g3"), vec![open(ask("of-g3", 1))]) };
    assert_eq!(bench.store.record_generation(write).await, Ok(()));
    assert_eq!(bench.store.drop_generations(vec![row]).await, Ok(1), "retention");
    assert_eq!(read(bench.store.ask("of-g3")).await, None, "its ask");
    assert_eq!(continuation(&bench, "g3").await, None, "its continuation");

    assert_eq!(bench.store.forget_user("ann".to_owned()).await, Ok(0), "no conversations");
    assert_eq!(listed(&bench, &open_ones()).await, ["of-g2"], "asks of the user are deleted");
    assert_eq!(continuation(&bench, "g1").await, None);
    assert!(continuation(&bench, "g2").await.is_some(), "those of another stay");
    // the id is free again
    record(&bench, with_steps(&working("g1"), &[])).await;
    assert_eq!(continuation(&bench, "g1").await, None, "nothing is left");
}

async fn generations_of_steps_stay_without_their_forgotten_user(bench: Bench) {
    let of = |user: &str, record: GenerationRecord| GenerationRecord {
        user_id: Some(user.to_owned()),
        conversation_id: Some("c1".to_owned()),
        ..record
    };
    let origin = StepOrigin { execution_id: ExecutionId::trusted("e"), path: "a".into() };
    let of_step = |record| GenerationRecord { origin: Some(origin.clone()), ..record };
    let cooks = GenerationRecord { agent_id: "cook".to_owned(), ..suspended("of a cook") };
    for (user, of_one) in [
        ("ann", cooks),
        ("ann", suspended("waits")),
        ("bob", suspended("of another")),
        ("ann", of_step(working("works"))),
        ("ann", of_step(completed("ended"))),
        ("ann", of_step(suspended("newest"))),
    ] {
        record(&bench, with_continuation(&of(user, of_one), "{}")).await;
    }
    let unfinished = async |user: &str, after: Option<&UserCursor>, limit| {
        read(bench.store.unfinished_of_user(user, after, limit)).await
    };
    let ids = |page: &[(UserCursor, String)]| -> Vec<String> {
        page.iter().map(|(_, id)| id.clone()).collect()
    };
    let all = unfinished("ann", None, 10).await;
    assert_eq!(ids(&all), ["waits", "works", "newest", "of a cook"]);
    for (count, (place, _)) in all.iter().enumerate() {
        assert_eq!(unfinished("ann", None, count).await, all[..count], "a page of {count}");
        assert_eq!(unfinished("ann", Some(place), 10).await, all[count + 1..], "behind {count}");
    }
    assert_eq!(unfinished("unknown", None, 10).await, []);

    assert_eq!(bench.store.forget_user("ann".to_owned()).await, Ok(0), "no conversations");
    let left = unfinished("ann", None, 10).await;
    assert_eq!(ids(&left), ["waits", "of a cook"], "those of no step");
    let owner = async |id| {
        let found = entry(&bench, id).await;
        found.map(|entry| (entry.record.user_id, entry.record.conversation_id))
    };
    for id in ["works", "newest"] {
        assert_eq!(owner(id).await, Some((None, None)), "{id} continues without its user");
        assert_eq!(continuation(&bench, id).await, stored(1, "{}"), "{id}");
    }
    assert_eq!(owner("ended").await, None, "it is deleted");
    let of_bob = Some((Some("bob".to_owned()), Some("c1".to_owned())));
    assert_eq!(owner("of another").await, of_bob);
}
