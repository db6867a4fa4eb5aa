//! Damaged rows among sound ones, for each query.

use std::sync::atomic::AtomicU64;

use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::domain::message::{Part, Role};
use greenroom_actors::domain::principal::{FORGOTTEN, Principal};
use greenroom_actors::observe::log_record::{LogLevel, LogRecord};
use greenroom_actors::ports::store::{
    ApprovedTools, ContinuationChange, ConversationFilter, ConversationWrite, Conversations as _,
    GenerationStep, GenerationWrite, LogFilter, Logs as _, PageSize, ReadError, Retention as _,
    Root, RootFilter, StoredMessage, TimerKey, TraceQuery, TraceSize, Traces as _,
};
use serde_json::json;

use super::agents::{empty_conversation, key, record};
use super::*;

/// Counts damaged reads.
#[derive(Default)]
struct Tally(AtomicU64);

impl JournalMeter for Tally {
    fn committed(&self, _: usize, _: Duration) {}

    fn failed(&self) {}

    fn met_defect(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

struct Damaged {
    store: SqliteStore,
    tally: Arc<Tally>,
    _directory: TempDir,
}

impl Damaged {
    /// Changes the file of a closed store and opens it.
    fn open(directory: TempDir, sql: &str) -> Self {
        let path = database(&directory);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let tally = Arc::new(Tally::default());
        let store =
            SqliteStore::open_measured(&path, Durability::Normal, Arc::clone(&tally) as _).unwrap();
        Self { store, tally, _directory: directory }
    }

    fn met(&self) -> u64 {
        self.tally.0.swap(0, Ordering::SeqCst)
    }
}

fn corrupt<T: std::fmt::Debug>(record: &str) -> impl Fn(Result<T, ReadError>) {
    let expected = ReadError::Corrupt(Arc::from(record));
    move |read| assert_eq!(read.unwrap_err(), expected)
}

fn generation(store: &SqliteStore, id: &str) -> GenerationWrite {
    let message = StoredMessage {
        id: format!("m-{id}"),
        role: Role::User,
        parts: vec![Part::Text { text: format!("the text of {id}") }],
        created_at: Timestamp(1000),
        generation_id: None,
    };
    GenerationWrite {
        row: store.next_generation_row().unwrap(),
        record: record(id),
        steps: vec![(0, Arc::new(GenerationStep::default()))],
        messages: Some(ConversationWrite {
            key: key("talk"),
            cut_after: None,
            messages: vec![message],
            approved_tools: ApprovedTools::new(),
            at: Timestamp(1000),
        }),
        continuation: ContinuationChange::Keep,
    }
}

/// Creates a store with three executions, three generations with a message each, two conversations
/// and three log records.
async fn sound() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    filled(&database(&directory)).await;
    let store = open(&database(&directory));
    for id in ["g1", "g2", "g3"] {
        store.record_generation(generation(&store, id)).await.unwrap();
    }
    store.create_conversation(empty_conversation("other")).await.unwrap();
    let log = |message: &str| {
        Arc::new(LogRecord {
            at: Timestamp(1000),
            level: LogLevel::Info,
            target: Arc::from("t"),
            attributes: Vec::new(),
            message: message.to_owned(),
            scope: Arc::default(),
        })
    };
    store.write_logs(vec![log("l1"), log("l2"), log("l3")]).await.unwrap();
    store.close();
    directory
}

fn id(text: &str) -> ExecutionId {
    ExecutionId::trusted(text)
}

#[tokio::test]
async fn a_damaged_execution_affects_no_other() {
    for damage in [
        "UPDATE executions SET suspension = x'7b' WHERE id = 'b'",
        "UPDATE executions SET around = x'7b' WHERE id = 'b'",
        "UPDATE executions SET status = 17 WHERE id = 'b'",
        "UPDATE executions SET last_seq = -4 WHERE id = 'b'",
    ] {
        let damaged = Damaged::open(sound().await, damage);
        let store = &damaged.store;
        corrupt("execution b")(store.describe(&id("b")).await);
        corrupt("execution b")(store.load(&id("b")).await.map(|it| it.map(|it| it.row)));
        assert_eq!(damaged.met(), 2, "{damage}");
        assert!(store.load(&id("a")).await.unwrap().is_some(), "{damage}");
        let (page, _) = store.list(&ExecutionFilter::default(), None, 10).await.unwrap();
        let ids: Vec<&str> = page.iter().map(|row| row.header.id.as_str()).collect();
        assert_eq!(ids, ["c", "a"], "{damage}");
        let roots = store.roots(&RootFilter::default(), None, 10).await.unwrap().roots;
        let executions = roots.iter().filter(|root| matches!(root, Root::Execution(_))).count();
        assert_eq!((executions, roots.len()), (2, 5), "{damage}");
        assert!(store.running(&SlotSet::all(), 0, 10).await.is_ok(), "{damage}");
        assert!(store.is_writable(), "{damage}");
    }
}

#[tokio::test]
async fn pages_continue_after_damaged_rows() {
    let damaged = Damaged::open(sound().await, "UPDATE executions SET around = x'7b'");
    let store = &damaged.store;
    let filter = ExecutionFilter::default();
    let (mut after, mut pages) = (None, 0);
    loop {
        let (page, next) = store.list(&filter, after, 1).await.unwrap();
        assert!(page.is_empty());
        pages += 1;
        let Some(next) = next else { break };
        after = Some(next);
    }
    assert_eq!(pages, 3);
}

#[tokio::test]
async fn damaged_facts_affect_their_execution_and_truncate_its_trace() {
    for (damage, record) in [
        ("UPDATE executions SET events = x'5b7b' WHERE id = 'b'", "execution b"),
        ("UPDATE chunks SET events = CAST('[{\"n\":1}]' AS BLOB)", "execution a"),
    ] {
        let damaged = Damaged::open(sound().await, damage);
        let store = &damaged.store;
        let bad = id(record.trim_start_matches("execution "));
        corrupt(record)(store.load(&bad).await.map(|it| it.map(|it| it.row)));
        corrupt(record)(store.facts(&bad, 0, 100).await);
        let row = store.describe(&bad).await.unwrap().unwrap();
        let trace_id = row.header.trace.id.to_string();
        let query =
            TraceQuery { trace_id, most: TraceSize::of_facts(100), ..TraceQuery::default() };
        let trace = store.trace(&query).await.unwrap();
        assert!(trace.is_cut, "{damage}");
        assert!(trace.executions.iter().all(|(header, _)| header.id != bad), "{damage}");
        let (page, _) = store.list(&ExecutionFilter::default(), None, 10).await.unwrap();
        assert_eq!(page.len(), 3, "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_snapshot_is_ignored() {
    let put = "INSERT INTO snapshots (execution, last_seq, last, part, state)
        SELECT n, -4, 0, 0, x'7b' FROM executions WHERE id = 'b'";
    let damaged = Damaged::open(sound().await, put);
    let stored = damaged.store.load(&id("b")).await.unwrap().unwrap();
    assert!(stored.snapshot.is_none() && !stored.facts.is_empty());
    assert_eq!(damaged.met(), 1);
}

#[tokio::test]
async fn a_damaged_timer_does_not_delay_others() {
    let put = "INSERT INTO timers (execution, key, due) VALUES
        ('a', 'nonsense', 5), ('b', 'node:x', 6)";
    let damaged = Damaged::open(sound().await, put);
    let due = damaged.store.timers_due(&SlotSet::all(), Timestamp(10), 10).await.unwrap();
    let keys: Vec<_> = due.iter().map(|timer| (timer.execution.as_str(), &timer.key)).collect();
    assert_eq!(keys, [("b", &TimerKey::Node(Arc::from("x")))]);
    assert!(damaged.store.timers_of(&id("a")).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_damaged_generation_is_omitted_from_the_history() {
    for damage in [
        "UPDATE generations SET input = x'7b' WHERE id = 'g2'",
        "UPDATE generations SET usage = x'5b5d' WHERE id = 'g2'",
        "UPDATE generations SET steps = x'7b7d' WHERE id = 'g2'",
        "UPDATE generations SET around = x'7b' WHERE id = 'g2'",
        "INSERT INTO steps (generation, number, body)
            SELECT n, 0, x'7b' FROM generations WHERE id = 'g2'",
    ] {
        let damaged = Damaged::open(sound().await, damage);
        let store = &damaged.store;
        corrupt("generation g2")(store.generation("g2").await);
        for user in [None, Some("u1")] {
            let page = store.generations("clerk", user, 0, PageSize::of(10)).await.unwrap();
            let ids: Vec<&str> = page.entries.iter().map(|it| it.record.id.as_str()).collect();
            assert_eq!((ids.as_slice(), page.total), (&["g3", "g1"][..], 3), "{damage}");
        }
        let trace_id = greenroom_actors::domain::trace::own_trace_id("g2").to_string();
        let query =
            TraceQuery { trace_id, most: TraceSize::of_facts(100), ..TraceQuery::default() };
        let trace = store.trace(&query).await.unwrap();
        assert!(trace.is_cut && trace.generations.is_empty(), "{damage}");
        assert!(store.roots(&RootFilter::default(), None, 10).await.is_ok(), "{damage}");
        assert!(store.interrupt_working(Timestamp(1)).await.is_ok(), "{damage}");
    }
}

#[tokio::test]
async fn a_damaged_message_is_omitted_from_its_conversation() {
    let damage = "UPDATE messages SET parts = x'7b' WHERE id = 'm-g2'";
    let damaged = Damaged::open(sound().await, damage);
    let store = &damaged.store;
    let messages = async |id: &str| -> Vec<String> {
        let messages = store.messages(&key(id), None, PageSize::of(10)).await.unwrap();
        messages.into_iter().map(|message| message.id).collect()
    };
    assert_eq!(messages("talk").await, ["m-g1", "m-g3"]);
    for sought in ["text of", "te"] {
        let found =
            store.search_messages("clerk", Some("u1"), sought, PageSize::of(10)).await.unwrap();
        assert_eq!(found.len(), 2, "{sought}");
    }
    // a copy of a conversation is made by the writer, which reads the messages
    let copied = store.clone_conversation(key("talk"), Arc::from("copy"), Timestamp(1)).await;
    assert_eq!(copied, Ok(true));
    assert_eq!(messages("copy").await.len(), 2);
    assert!(store.is_writable());
}

#[tokio::test]
async fn a_damaged_conversation_is_omitted_from_lists() {
    let damage = "UPDATE conversations SET metadata = x'5b5d' WHERE id = 'other'";
    let damaged = Damaged::open(sound().await, damage);
    let store = &damaged.store;
    corrupt("conversation other")(store.conversation(&key("other")).await);
    let filter = ConversationFilter::default();
    let (page, total) = store.conversations(&filter, 0, PageSize::of(10)).await.unwrap();
    assert_eq!((page.len(), total), (1, 2));
}

#[tokio::test]
async fn a_damaged_log_record_is_omitted() {
    let damage = "UPDATE logs SET attributes = x'5b' WHERE message = 'l2'";
    let damaged = Damaged::open(sound().await, damage);
    let page = damaged.store.logs(&LogFilter::default(), None, 10).await.unwrap();
    let messages: Vec<&str> = page.records.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages, ["l1", "l3"]);
}

#[tokio::test]
async fn a_damaged_definition_is_replaced_by_the_next_start() {
    let directory = sound().await;
    let store = open(&database(&directory));
    store.put_definition("h1", &json!({ "id": "w" })).await.unwrap();
    store.close();
    drop(store);
    let damaged = Damaged::open(directory, "UPDATE definitions SET body = x'7b'");
    let store = &damaged.store;
    corrupt("definition h1")(store.definition("h1").await);
    store.put_definition("h1", &json!({ "id": "w" })).await.unwrap();
    assert_eq!(store.definition("h1").await, Ok(Some(json!({ "id": "w" }))));
}

#[tokio::test]
async fn damaged_executions_can_be_deleted() {
    let damage = "UPDATE executions SET around = x'7b' WHERE id = 'a'";
    let damaged = Damaged::open(sound().await, damage);
    let store = &damaged.store;
    let rows: Vec<Row> = {
        let reader = schema::open_reader(&store.path).unwrap();
        let n = reader.query_row("SELECT n FROM executions WHERE id = 'a'", [], |row| row.get(0));
        vec![n.unwrap()]
    };
    assert_eq!(store.drop_executions(rows).await, Ok(1));
    assert_eq!(store.describe(&id("a")).await, Ok(None));
}

/// Creates executions a and b, which name lea in the row, in the suspension and in a chunk.
async fn acted_on() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::new(open(&database(&directory)));
    let by = Some(Arc::new(Principal::verified("lea")));
    for id in ["a", "b"] {
        let mut first = bench.creation(id);
        first.facts[0].by.clone_from(&by);
        bench.take(&first).await;
        let mut second = bench.continuation(&first, vec![step_started(2)]);
        second.facts[0].by.clone_from(&by);
        second.suspension = Some(Suspension {
            id: None,
            reason: Arc::from("stop"),
            suspended_at: Timestamp(1000),
            step_id: Arc::from("a"),
            path: Arc::from("a"),
            step_index: 0,
            payload: None,
            deadline: None,
            by: by.clone(),
            pause: false,
            payload_omitted: false,
        });
        bench.take(&second).await;
    }
    directory
}

#[tokio::test]
async fn a_forgotten_user_stays_in_the_index_for_damaged_records() {
    const LEA: &str = r#"{"id":"lea","verified":true}"#;
    for (table, column, found) in [
        ("chunks", "events", "execution = (SELECT n FROM executions WHERE id = 'a')"),
        ("executions", "events", "id = 'a'"),
        ("executions", "suspension", "id = 'a'"),
    ] {
        let directory = acted_on().await;
        let place = format!("{table} SET {column}");
        let sound = format!(
            "CREATE TABLE kept AS SELECT {column} FROM {table} WHERE {found};
             UPDATE {place} = CAST('[{{\"by\":{LEA}' AS BLOB) WHERE {found}"
        );
        let damaged = Damaged::open(directory, &sound);
        let named = || -> Vec<String> {
            let reader = schema::open_reader(&damaged.store.path).unwrap();
            let sql = "SELECT id FROM executions WHERE n IN (SELECT execution FROM acted)";
            let mut found = reader.prepare(sql).unwrap();
            let ids = found.query_map([], |row| row.get(0)).unwrap();
            ids.collect::<rusqlite::Result<_>>().unwrap()
        };
        assert_eq!(named(), ["a", "b"]);
        assert_eq!(damaged.store.forget_user("lea".to_owned()).await, Ok(0));
        assert_eq!((damaged.met(), named()), (1, vec!["a".to_owned()]), "{place}");
        // once the record is repaired, a repeated request removes the user
        let mend = format!("UPDATE {place} = (SELECT {column} FROM kept) WHERE {found}");
        Connection::open(&damaged.store.path).unwrap().execute_batch(&mend).unwrap();
        assert_eq!(damaged.store.forget_user("lea".to_owned()).await, Ok(0));
        assert_eq!((damaged.met(), named()), (0, vec![]), "{place}");
        let stored = damaged.store.load(&id("a")).await.unwrap().unwrap();
        let written = serde_json::to_string(&stored.facts).unwrap();
        let shown = stored.projection.suspension.and_then(|shown| shown.by.clone()).unwrap();
        assert!(!written.contains("lea") && *shown.id == *FORGOTTEN, "{place}: {written}");
    }
}
