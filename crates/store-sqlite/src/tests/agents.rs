//! Agents' history and conversations in a file.

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use greenroom_actors::domain::message::{Part, Role};
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::ports::model::Usage;
use greenroom_actors::ports::store::{
    ApprovedTools, ContinuationChange, Conversation, ConversationFilter, ConversationKey,
    ConversationPatch, ConversationWrite, Conversations as _, GenerationPage, GenerationRecord,
    GenerationStatus, GenerationStep, GenerationWrite, Generations as _, PageSize, StoredMessage,
};
use serde_json::{Map, json};

use super::*;
use crate::queue::CHANGES_MAX;

const MANY: PageSize = PageSize::of(100);

pub(super) fn record(id: &str) -> GenerationRecord {
    GenerationRecord {
        id: id.to_owned(),
        agent_id: "clerk".to_owned(),
        status: GenerationStatus::Completed,
        start_time: Timestamp(100),
        end_time: Some(Timestamp(150)),
        input: json!("hi"),
        output: Some(json!({ "text": "hello" })),
        usage: Some(Usage { total_tokens: 3, ..Usage::default() }),
        error: None,
        user_id: Some("u1".to_owned()),
        conversation_id: None,
        origin: None,
        trace: Trace::of(id, EntityType::Agent, &Arc::from("clerk"), TraceOrigin::New),
    }
}

/// Returns an unused row number, above those of migrated generations.
fn free_row() -> Row {
    static LAST: AtomicI64 = AtomicI64::new(1000);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

fn step(text: &str) -> Arc<GenerationStep> {
    Arc::new(GenerationStep { text: text.to_owned(), ..GenerationStep::default() })
}

pub(super) fn key(id: &str) -> ConversationKey {
    ConversationKey {
        agent_id: Arc::from("clerk"),
        user_id: Some(Arc::from("u1")),
        conversation_id: Arc::from(id),
    }
}

fn messages(texts: impl IntoIterator<Item = String>) -> Vec<StoredMessage> {
    let message = |text: String| StoredMessage {
        id: format!("id of {text}"),
        role: Role::Assistant,
        parts: vec![Part::Text { text }],
        created_at: Timestamp(1000),
        generation_id: None,
    };
    texts.into_iter().map(message).collect()
}

/// Returns the write of a generation with one turn that adds texts to a conversation.
fn write_of(
    id: &str,
    conversation: &str,
    texts: impl IntoIterator<Item = String>,
) -> GenerationWrite {
    let (key, messages, at) = (key(conversation), messages(texts), Timestamp(1000));
    let approved_tools = ApprovedTools::new();
    let messages = ConversationWrite { key, cut_after: None, messages, approved_tools, at };
    GenerationWrite {
        row: free_row(),
        record: record(id),
        steps: vec![(0, step("one"))],
        messages: Some(messages),
        continuation: ContinuationChange::Keep,
    }
}

pub(super) fn empty_conversation(id: &str) -> Conversation {
    Conversation {
        key: key(id),
        title: None,
        metadata: Map::new(),
        working_memory: None,
        created_at: Timestamp(1000),
        updated_at: Timestamp(1000),
    }
}

async fn history(store: &SqliteStore) -> (Vec<String>, u64) {
    let GenerationPage { entries, total } =
        store.generations("clerk", None, 0, MANY).await.unwrap();
    (entries.into_iter().map(|entry| entry.record.id).collect(), total)
}

const TABLES: [&str; 6] =
    ["generations", "steps", "memories", "conversations", "messages", "messages_text_docsize"];

fn counts(path: &Path) -> [i64; 6] {
    let reader = schema::open_reader(path).unwrap();
    TABLES.map(|table| {
        let count = format!("SELECT count(*) FROM {table}");
        reader.query_row(&count, [], |row| row.get(0)).unwrap()
    })
}

/// Creates a store of the first schema, with generations of two agents.
fn first_schema(path: &Path) {
    let connection = schema::open_writer(path, Durability::Normal).unwrap();
    connection.execute_batch(schema::MIGRATIONS[0]).unwrap();
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    let mut insert = connection
        .prepare(
            "INSERT INTO generations VALUES (?1, ?2, ?3, ?4, 100, ?5, ?6, ?7, ?8, NULL, ?9, NULL)",
        )
        .unwrap();
    let json = |value: serde_json::Value| serde_json::to_vec(&value).unwrap();
    let usage = json!({ "promptTokens": 0, "completionTokens": 0, "totalTokens": 3,
        "cachedInputTokens": 0, "reasoningTokens": 0 });
    let (hi, hello) = (json(json!("hi")), json(json!({ "text": "hello" })));
    insert
        .execute(rusqlite::params![3, "a", "clerk", 1, 150, hi, hello, json(usage), "u1"])
        .unwrap();
    let nothing = None::<Vec<u8>>;
    for (n, id, agent, status) in [(5, "b", "cook", 0), (9, "c", "clerk", 0)] {
        let values = rusqlite::params![
            n,
            id,
            agent,
            status,
            None::<i64>,
            hi,
            nothing,
            nothing,
            None::<String>
        ];
        insert.execute(values).unwrap();
    }
}

#[tokio::test]
async fn a_store_of_the_first_schema_is_migrated() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    first_schema(&path);
    let store = open(&path);
    let kept = store.generation("a").await.unwrap().unwrap();
    assert_eq!((kept.record, kept.steps), (record("a"), Vec::new()));
    assert_eq!(history(&store).await, (vec!["c".to_owned(), "a".to_owned()], 2));
    let written = store.record_generation(write_of("d", "c1", ["tea".to_owned()])).await;
    assert_eq!(written, Ok(()));
    assert_eq!(history(&store).await.0, ["d", "c", "a"], "numbers continue");
    let of_user = store.generations("clerk", Some("u1"), 0, MANY).await.unwrap();
    let ids = of_user.entries.iter().map(|entry| entry.record.id.as_str());
    assert!(ids.eq(["d", "a"]) && of_user.total == 2, "of one user: {of_user:?}");
    assert_eq!(store.interrupt_working(Timestamp(200)).await, Ok(()));
    let interrupted = store.generation("b").await.unwrap().unwrap().record;
    assert_eq!(interrupted.status, GenerationStatus::Error);
    assert_eq!(schema::user_version(&schema::open_reader(&path).unwrap()), Ok(schema::VERSION));
}

#[tokio::test]
async fn history_and_conversations_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    for i in 0..3 {
        let texts = (0..20).map(|j| format!("text {i}-{j}"));
        let write = write_of(&format!("g{i}"), &format!("c{}", i % 2), texts);
        assert_eq!(store.record_generation(write).await, Ok(()));
    }
    let mut of_other = record("of u2");
    of_other.user_id = Some("u2".to_owned());
    let of_other = GenerationWrite {
        row: free_row(),
        record: of_other,
        steps: Vec::new(),
        messages: None,
        continuation: ContinuationChange::Keep,
    };
    assert_eq!(store.record_generation(of_other).await, Ok(()));
    assert_eq!(store.forget_user("u2".to_owned()).await, Ok(0));
    drop(store);

    let store = open(&path);
    let entry = store.generation("g1").await.unwrap().unwrap();
    assert_eq!((entry.record, entry.steps), (record("g1"), vec![(*step("one")).clone()]));
    let write = write_of("new", "c1", ["text new".to_owned()]);
    assert_eq!(store.record_generation(write).await, Ok(()));
    let (ids, total) = history(&store).await;
    assert_eq!((&ids[..], total), (&["new", "g2", "g1", "g0"].map(str::to_owned)[..], 4));
    let kept = store.messages(&key("c1"), None, MANY).await.unwrap();
    assert_eq!(kept.len(), 21);
    assert_eq!(kept.last(), messages(["text new".to_owned()]).last());
    let found = store.search_messages("clerk", Some("u1"), "TEXT 2-1", MANY).await.unwrap();
    assert_eq!(found.len(), 11, "2-1 and 2-10 to 2-19");
}

#[tokio::test]
async fn a_generation_recorded_at_once_is_one_row() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let alone = |status| {
        let record = GenerationRecord { status, ..record("g1") };
        GenerationWrite {
            row: free_row(),
            record,
            steps: vec![(0, step("one"))],
            messages: None,
            continuation: ContinuationChange::Keep,
        }
    };
    assert_eq!(store.record_generation(alone(GenerationStatus::Completed)).await, Ok(()));
    assert_eq!(counts(&path), [1, 0, 0, 0, 0, 0]);
    assert_eq!(store.record_generation(alone(GenerationStatus::Completed)).await, Ok(()));
    assert_eq!(counts(&path), [1, 1, 0, 0, 0, 0], "a step that comes later");
}

#[tokio::test]
async fn deletions_leave_no_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let many = |name: &'static str| (0..1100).map(move |i| format!("{name} {i}"));
    for (id, conversation) in [("g1", "c1"), ("g2", "c2")] {
        assert_eq!(store.record_generation(write_of(id, conversation, many("a"))).await, Ok(()));
    }
    let steps = (0..3).map(|number| (number, step("more"))).collect();
    let began = GenerationWrite {
        row: free_row(),
        record: GenerationRecord { status: GenerationStatus::Working, ..record("g3") },
        steps,
        messages: None,
        continuation: ContinuationChange::Keep,
    };
    let ended = GenerationWrite { record: record("g3"), steps: Vec::new(), ..began.clone() };
    for write in [began, ended] {
        assert_eq!(store.record_generation(write).await, Ok(()));
    }
    assert_eq!(counts(&path), [3, 3, 1, 2, 2200, 2200]);
    assert_eq!(store.delete_conversation(key("c1")).await, Ok(true));
    assert_eq!(counts(&path), [3, 3, 1, 1, 1100, 1100]);
    assert_eq!(store.delete_conversation(key("c2")).await, Ok(true));
    assert_eq!(counts(&path), [3, 3, 0, 0, 0, 0]);

    assert_eq!(store.record_generation(write_of("g4", "c1", many("b"))).await, Ok(()));
    let to = Arc::from("copy");
    assert_eq!(store.clone_conversation(key("c1"), to, Timestamp(5)).await, Ok(true));
    assert_eq!(counts(&path), [4, 3, 1, 2, 2200, 2200]);
    let (cut_after, at) = (Some("id of b 9".to_owned()), Timestamp(5));
    let (messages, approved_tools) = (Vec::new(), ApprovedTools::new());
    let cut = ConversationWrite { key: key("c1"), cut_after, messages, approved_tools, at };
    let write = GenerationWrite {
        row: free_row(),
        record: record("g4"),
        steps: Vec::new(),
        messages: Some(cut),
        continuation: ContinuationChange::Keep,
    };
    assert_eq!(store.record_generation(write).await, Ok(()));
    assert_eq!(counts(&path), [4, 3, 1, 2, 1110, 1110]);
    for i in 0..1200 {
        // many without messages, so that these take several parts, too
        let made = store.create_conversation(empty_conversation(&format!("e{i}")));
        assert_eq!(made.await, Ok(()));
    }
    assert_eq!(store.forget_user("u1".to_owned()).await, Ok(1202));
    assert_eq!(counts(&path), [0; 6]);
}

#[tokio::test]
async fn a_refused_change_does_not_affect_others_of_its_batch() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let paused = pause(&store);
    let text = |text: &str| [text.to_owned()];
    let before = store.record_generation(write_of("before", "c1", text("first")));
    let refused = store.create_conversation(empty_conversation("c1"));
    let unknown =
        store.change_conversation(key("nowhere"), ConversationPatch::default(), Timestamp(5));
    let taken = store.clone_conversation(key("c1"), Arc::from("c1"), Timestamp(5));
    let after = store.record_generation(write_of("after", "c1", text("second")));
    drop(paused);
    assert_eq!(before.await, Ok(()));
    assert_eq!(refused.await, Err(AppendError::Exists));
    assert_eq!(unknown.await, Ok(false));
    assert_eq!(taken.await, Err(AppendError::Exists));
    assert_eq!(after.await, Ok(()));
    let kept = store.messages(&key("c1"), None, MANY).await.unwrap();
    assert_eq!(kept, messages(["first", "second"].map(str::to_owned)));
    let batches = store.shared.faults.batches.load(Ordering::SeqCst);
    assert!(batches <= 2, "the queue took {batches} commits");
}

#[tokio::test]
async fn other_requests_are_committed_between_parts_of_a_long_change() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let texts = (0..2000).map(|i| format!("text {i}"));
    assert_eq!(store.record_generation(write_of("g1", "c1", texts)).await, Ok(()));
    let paused = pause(&store);
    let deleted = store.delete_conversation(key("c1")).map(|deleted| deleted.map(|_| "deleted"));
    let other = store.record_generation(write_of("g2", "c2", ["other".to_owned()]));
    let other = other.map(|recorded| recorded.map(|()| "recorded"));
    // yields the answers in the order of completion
    let mut answers = FuturesUnordered::from_iter([deleted.boxed(), other.boxed()]);
    assert!(answers.next().now_or_never().is_none(), "the writer pauses");
    let before = store.shared.faults.batches.load(Ordering::SeqCst);
    drop(paused);
    assert_eq!(answers.next().await, Some(Ok("recorded")), "asked last");
    assert_eq!(answers.next().await, Some(Ok("deleted")));
    let commits = store.shared.faults.batches.load(Ordering::SeqCst) - before;
    assert!(commits >= 4, "2000 messages went in {commits} commits");
}

#[tokio::test]
async fn numbers_of_a_rolled_back_transaction_are_reused() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let mut bench = Bench::new(store.clone());
    let first = with_conflicting_chunk(&directory, &mut bench).await;
    let paused = pause(&store);
    let one = store.record_generation(write_of("g1", "c1", ["one".to_owned()]));
    store.append(bench.continuation(&first, vec![step_started(2)]).append());
    let two = store.record_generation(write_of("g2", "c1", ["two".to_owned()]));
    drop(paused);
    assert_eq!((one.await, two.await), (Ok(()), Ok(())));
    assert!(bench.outcome().await.result.is_err());
    assert_eq!(history(&store).await, (vec!["g2".to_owned(), "g1".to_owned()], 2));
}

#[tokio::test]
async fn writes_of_agents_fail_while_the_store_rejects_writes() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    assert_eq!(store.record_generation(write_of("g1", "c1", ["tea".to_owned()])).await, Ok(()));
    store.shared.faults.broken.store(true, Ordering::SeqCst);
    let is_unavailable = |refusal: AppendError| matches!(refusal, AppendError::Unavailable(_));
    let write = write_of("g2", "c1", ["lost".to_owned()]);
    assert!(store.record_generation(write).await.is_err_and(is_unavailable));
    let made = empty_conversation("c2");
    assert!(store.create_conversation(made).await.is_err_and(is_unavailable));
    assert!(store.delete_conversation(key("c1")).await.is_err_and(is_unavailable));
    assert!(store.forget_user("u1".to_owned()).await.is_err_and(is_unavailable));
    assert_eq!(counts(&path), [1, 0, 1, 1, 1, 1], "reads work, and nothing has changed");

    store.shared.faults.broken.store(false, Ordering::SeqCst);
    while store.record_generation(write_of("g3", "c1", ["more".to_owned()])).await.is_err() {
        std::thread::yield_now();
    }
    assert_eq!(history(&store).await, (vec!["g3".to_owned(), "g1".to_owned()], 2));
}

#[tokio::test]
async fn a_generation_and_its_messages_are_one_transaction() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    for i in 0..12_usize {
        let (id, text) = (format!("g{i}"), format!("text {i}"));
        assert_eq!(store.record_generation(write_of(&id, "c1", [text])).await, Ok(()));
        if i % 3 != 0 {
            continue;
        }
        // the files that a crash would leave here
        let crashed = tempfile::tempdir().unwrap();
        for name in ["greenroom.db", "greenroom.db-wal"] {
            fs::copy(directory.path().join(name), crashed.path().join(name)).unwrap();
        }
        let store = open(&database(&crashed));
        assert_eq!(history(&store).await.1, i as u64 + 1);
        let kept = store.messages(&key("c1"), None, MANY).await.unwrap();
        assert_eq!(kept, messages((0..=i).map(|i| format!("text {i}"))));
        let found = store.search_messages("clerk", Some("u1"), "text", MANY).await.unwrap();
        assert_eq!(found.len(), i + 1, "searched too");
    }
}

#[tokio::test]
async fn damaged_rows_of_agents_affect_only_their_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let write = write_of("g1", "c1", ["some tea".to_owned()]);
    assert_eq!(store.record_generation(write).await, Ok(()));
    for sql in [
        "UPDATE generations SET steps = x'00'",
        "UPDATE conversations SET metadata = x'5b5d'",
        "UPDATE messages SET role = 77",
    ] {
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    }
    assert!(store.generation("g1").await.is_err());
    assert_eq!(history(&store).await, (Vec::new(), 1));
    assert!(store.conversation(&key("c1")).await.is_err());
    assert_eq!(store.messages(&key("c1"), None, MANY).await, Ok(Vec::new()));
    for text in ["tea", "te"] {
        let found = store.search_messages("clerk", Some("u1"), text, MANY).await;
        assert_eq!(found, Ok(Vec::new()), "{text}");
    }
    assert!(store.is_writable(), "failed reads do not affect writes");
}

#[tokio::test]
async fn long_reads_wait_for_their_turn_and_hold_up_no_short_ones() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let taken = [Lane::Lists, Lane::Searches].map(|lane| {
        let turns = store.readers.turns(lane);
        let all = u32::try_from(turns.available_permits()).unwrap();
        Arc::clone(turns).try_acquire_many_owned(all).unwrap()
    });
    let (own, filter) = (key("c1"), ConversationFilter::default());
    let mut searching = store.search_messages("clerk", None, "tea", MANY);
    assert!((&mut searching).now_or_never().is_none());
    assert!(store.generations("clerk", None, 0, MANY).now_or_never().is_none());
    assert!(store.conversations(&filter, 0, MANY).now_or_never().is_none());
    assert!(store.messages(&own, None, MANY).now_or_never().is_none());
    assert!(store.messages(&own, None, PageSize::of(10)).now_or_never().is_some(), "a few");
    assert!(store.generation("g1").now_or_never().is_some());
    drop(taken);
    assert_eq!(searching.await, Ok(Vec::new()));
}

#[tokio::test]
async fn a_change_whose_caller_leaves_before_there_is_room_is_not_made() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let paused = pause(&store);
    let create = |id: &str| store.create_conversation(empty_conversation(id));
    let queued: Vec<_> = (0..CHANGES_MAX).map(|i| create(&format!("c{i}"))).collect();
    assert_eq!(create("left").now_or_never(), None);
    let waiting = create("patient");
    drop(paused);
    assert_eq!(waiting.await, Ok(()));
    for made in queued {
        assert_eq!(made.await, Ok(()));
    }
    assert_eq!(store.conversation(&empty_conversation("left").key).await, Ok(None));
    assert_eq!(store.queued(), 0);
}
