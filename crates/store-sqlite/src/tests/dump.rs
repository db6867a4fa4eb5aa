//! Copies of whole stores: what is copied, and files that are refused.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_actors::domain::assignment::AskRules;
use greenroom_actors::domain::message::{Part, Role};
use greenroom_actors::ports::store::{
    ApprovedTools, AskChange, AskKind, AskSubject, Asks as _, ContinuationChange,
    ConversationWrite, Conversations as _, GenerationWrite, Generations as _, NewAsk, PageSize,
    StoredMessage,
};
use greenroom_store_codec::dump::{Kind, Target as _, Value, copy};

use super::agents::{key, record};
use super::*;
use crate::dump::{FileSource, FileTarget, statements};

/// Returns the names in a statement that adds records: the table, and its columns.
fn written(kind: Kind) -> (String, BTreeSet<String>) {
    let statement = statements::insert(kind).strip_prefix("INSERT INTO ").unwrap();
    let (table, rest) = statement.split_once(" (").unwrap();
    let (columns, _) = rest.split_once(") VALUES").unwrap();
    (table.to_owned(), columns.split(',').map(|column| column.trim().to_owned()).collect())
}

#[test]
fn every_column_of_every_table_is_copied() {
    let directory = tempfile::tempdir().unwrap();
    drop(open(&database(&directory)));
    let connection = Connection::open(database(&directory)).unwrap();
    let columns = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name <> 'probe' AND t.name NOT LIKE 'messages_text%'";
    let mut statement = connection.prepare(columns).unwrap();
    let mut tables = BTreeMap::<String, BTreeSet<String>>::new();
    let mut rows = statement.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        tables.entry(row.get(0).unwrap()).or_default().insert(row.get(1).unwrap());
    }
    assert_eq!(Kind::ALL.map(written).into_iter().collect::<BTreeMap<_, _>>(), tables);
}

#[test]
fn copies_read_along_keys() {
    for kind in Kind::ALL {
        let directory = tempfile::tempdir().unwrap();
        drop(open(&database(&directory)));
        let connection = Connection::open(database(&directory)).unwrap();
        let plan = format!("EXPLAIN QUERY PLAN {}", statements::select(kind));
        let mut statement = connection.prepare(&plan).unwrap();
        let steps = statement.query_map([], |row| row.get::<_, String>(3)).unwrap();
        let steps = steps.collect::<rusqlite::Result<Vec<_>>>().unwrap().join("; ");
        assert!(!steps.contains("TEMP B-TREE"), "{kind}: {steps}");
    }
}

/// Adds a generation with two messages, an ask and a continuation.
async fn add_generation(store: &SqliteStore) {
    let message = |text: &str| StoredMessage {
        id: format!("id of {text}"),
        role: Role::User,
        parts: vec![Part::Text { text: text.to_owned() }],
        created_at: Timestamp(1000),
        generation_id: None,
    };
    let messages = vec![message("first text"), message("second text")];
    let (key, at) = (key("talk"), Timestamp(1000));
    let messages = Some(ConversationWrite {
        key,
        cut_after: None,
        messages,
        approved_tools: ApprovedTools::from([(Arc::from("pay"), Arc::from("schema"))]),
        at,
    });
    let ask = NewAsk {
        id: Arc::from("ask_1"),
        kind: AskKind::Input,
        place: Arc::from("call"),
        tool_name: Some(Arc::from("ask_person")),
        reason: Arc::from("which one?"),
        opened_at: Timestamp(1000),
        deadline: None,
        rules: AskRules { remind_ms: vec![10], ..AskRules::default() },
        next_due: Some(Timestamp(1010)),
        details: Some(Arc::new(serde_json::json!({ "from": 2 }))),
    };
    let continuation =
        ContinuationChange::Put { body: Arc::from("{}"), asks: vec![AskChange::Open(ask)] };
    let row = store.next_generation_row().unwrap();
    let write =
        GenerationWrite { row, record: record("g1"), steps: Vec::new(), messages, continuation };
    store.record_generation(write).await.unwrap();
}

#[tokio::test]
async fn a_file_is_copied_to_another_one() {
    let (directory, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let drafts = filled(&database(&directory)).await;
    let store = open(&database(&directory));
    add_generation(&store).await;
    drop(store);
    let target = database(&copies);
    // what an earlier copy left when its process was killed
    std::fs::write(crate::files::beside(&target, ".copying"), "half").unwrap();

    let mut source = FileSource::open(&database(&directory)).unwrap();
    let mut filling = FileTarget::create(&target).unwrap();
    assert!(SqliteStore::open(&target, Durability::Normal).is_err(), "the target is locked");
    let copied = copy(&mut source, &mut filling, &mut |_| {}).unwrap();
    assert_eq!((copied.count(Kind::Executions), copied.count(Kind::Messages)), (3, 2));
    assert_eq!((copied.count(Kind::Asks), copied.count(Kind::Continuations)), (1, 1));
    drop((source, filling));
    let names: Vec<_> = std::fs::read_dir(copies.path()).unwrap().collect();
    assert_eq!(names.len(), 2, "the store and its lock: {names:?}");
    let store = open(&target);
    assert_has(&*store, &drafts).await;
    let found =
        store.search_messages("clerk", Some("u1"), "SECOND", PageSize::of(10)).await.unwrap();
    assert_eq!(found.len(), 1, "the text is searched");
    let approved = store.approved_tools(&key("talk")).await.unwrap();
    assert_eq!(approved.get("pay").map(|schema| &**schema), Some("schema"));
    let ask = store.due_asks(Timestamp(1010), None, 10).await.unwrap().asks.remove(0);
    let AskSubject::Call(call) = ask.subject else { panic!("an ask of a call") };
    assert_eq!((&*call.generation_id, &*call.tool_name), ("g1", "ask_person"));
    assert_eq!(store.continuation("g1").await.unwrap().unwrap().revision, 1);
    let row = store.next_row().unwrap();
    assert!(drafts.iter().all(|draft| draft.row < row), "numbers continue");
}

#[tokio::test]
async fn files_that_cannot_be_used_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    filled(&path).await;
    let missing = directory.path().join("missing.db");
    let refusal = FileSource::open(&missing).unwrap_err().to_string();
    assert!(refusal.starts_with("there is no store at "), "{refusal}");
    assert!(!missing.exists());

    let refusal = FileTarget::create(&path).unwrap_err().to_string();
    assert!(refusal.contains("exists; a copy overwrites nothing"), "{refusal}");
    let store = open(&path);
    let refusal = FileSource::open(&path).unwrap_err().to_string();
    assert!(refusal.contains("is in use by another process"), "{refusal}");
    drop(store);

    let target = directory.path().join("other.db");
    let mut filling = FileTarget::create(&target).unwrap();
    let definition = vec![Value::Text("hash".into()), Value::Bytes(b"{}".to_vec())];
    filling.write(Kind::Definitions, vec![definition]).unwrap();
    drop(filling);
    assert!(
        !target.exists() && !crate::files::beside(&target, ".copying").exists(),
        "not complete"
    );
}
