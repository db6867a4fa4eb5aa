//! Migrated files have errors, counts and revisions of their executions.

use greenroom_actors::ports::conformance::{held, started};
use greenroom_actors::ports::store::{ExecutionFilter, Executions as _};

use super::*;

/// Creates a file of an older schema.
fn of_version(path: &Path, version: i32) -> Connection {
    let connection = schema::open_writer(path, Durability::Normal).unwrap();
    for step in &schema::MIGRATIONS[..version as usize] {
        connection.execute_batch(step).unwrap();
    }
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    connection.pragma_update(None, "user_version", version).unwrap();
    connection
}

/// Creates a store of the schema before counts, with four ended executions.
fn before_counts(path: &Path) {
    let connection = of_version(path, 4);
    let mut insert = connection
        .prepare(
            "INSERT INTO executions (n, id, workflow, status, created, updated, ended, last_seq,
                definition, trace, root_workflow, events) VALUES (?1, ?2, 'order', ?3, ?1, ?1, ?1,
                3, 'd', '0af7651916cd43dd8448eb211c80319c', 'order', ?4)",
        )
        .unwrap();
    let failed = |error: &str, step: &str| {
        format!(
            "[{{\"n\":1,\"t\":1,\"f\":\"WorkflowResumed\"}},{{\"n\":2,\"t\":1,\"f\":\
             {{\"WorkflowFailed\":{{\"since\":1,\"error\":\"{error}\",\"step_id\":{step}}}}}}}]"
        )
        .into_bytes()
    };
    let rows = [
        (1, "whole", 2, Some(failed("no \\\"luck\\\"", "\"ask\""))),
        (2, "in parts", 2, None),
        (3, "broken", 2, Some(b"[{".to_vec())),
        (4, "done", 4, Some(b"[]".to_vec())),
    ];
    for (n, id, status, events) in rows {
        insert.execute(rusqlite::params![n, id, status, events]).unwrap();
    }
    let mut chunk = connection.prepare("INSERT INTO chunks VALUES (2, ?1, 0, ?2)").unwrap();
    for (last, events) in [(5, b"[]".to_vec()), (9, failed(&"x".repeat(900), "null"))] {
        chunk.execute(rusqlite::params![last, events]).unwrap();
    }
}

#[tokio::test]
async fn executions_of_older_files_are_listed_with_errors_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    before_counts(&path);
    let store = open(&path);
    let filter = ExecutionFilter { status: Some(Status::Error), ..ExecutionFilter::default() };
    let (page, _) = store.list(&filter, None, 10).await.unwrap();
    let shown = |place: usize| {
        let error = page[place].error.as_deref()?;
        Some((error.message.to_string(), error.step_id.as_deref().map(str::to_owned)))
    };
    assert_eq!(shown(0), None, "a damaged row does not fail the migration");
    assert_eq!(shown(1), Some(("x".repeat(500), None)));
    assert_eq!(shown(2), Some(("no \"luck\"".to_owned(), Some("ask".to_owned()))));
    let ended = ExecutionFilter { ended_from: Some(Timestamp(2)), ..filter };
    let (page, _) = store.list(&ended, None, 10).await.unwrap();
    let ids: Vec<_> = page.iter().map(|row| row.header.id.as_str()).collect();
    assert_eq!(ids, ["broken", "in parts"], "also those that ended before this version");
    let counts = store.counts().await.unwrap();
    let counts: Vec<_> = counts.iter().map(|it| (it.status, it.count)).collect();
    assert_eq!(counts, [(Status::Error, 3), (Status::Completed, 1)]);
}

/// Creates a store of the schema before revisions, with executions that were created with their
/// facts in the row (and two chunks that end with one number), in a chunk, and with nothing more.
fn before_revisions(path: &Path) {
    let connection = of_version(path, 6);
    let json = |facts: &[Recorded]| serde_json::to_vec(facts).unwrap();
    let mut insert = connection
        .prepare(
            "INSERT INTO executions (n, id, workflow, status, created, updated, last_seq,
                definition, trace, root_workflow, events) VALUES (?1, ?2, 'order', 1, ?1, ?1, 1,
                'd', '0af7651916cd43dd8448eb211c80319c', 'order', ?3)",
        )
        .unwrap();
    let inline = || Some(json(&[started(1)]));
    for (n, id, events) in [(1, "waits", inline()), (2, "large", None), (3, "new", inline())] {
        insert.execute(rusqlite::params![n, id, events]).unwrap();
    }
    let mut chunk = connection.prepare("INSERT INTO chunks VALUES (?1, ?2, ?3, ?4)").unwrap();
    for (n, last, part, facts) in [(1, 2, 0, held(2)), (1, 2, 1, held(2)), (2, 1, 0, started(1))] {
        chunk.execute(rusqlite::params![n, last, part, json(&[facts])]).unwrap();
    }
    let snapshot = "INSERT INTO snapshots VALUES (1, 1, 2, 0, x'00')";
    connection.execute_batch(snapshot).unwrap();
}

#[tokio::test]
async fn executions_of_older_files_are_continued() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    before_revisions(&path);
    let store = open(&path);
    let mut bench = Bench::new(store.clone());
    let cases = [
        (1, "waits", 2, vec![started(1), held(2), held(2)]),
        (2, "large", 1, vec![started(1)]),
        (3, "new", 0, vec![started(1)]),
    ];
    for (row, name, revision, mut facts) in cases {
        let id = ExecutionId::trusted(name);
        let stored = store.load(&id).await.unwrap().unwrap();
        assert_eq!((stored.row, stored.revision), (row, revision), "{name}");
        let newest = Draft { row, revision, ..bench.creation(name) };
        let next = bench.continuation(&newest, vec![held(2), step_started(2)]);
        assert_eq!(bench.append(&next).await, Ok(()), "{name}");
        facts.extend(next.facts.iter().cloned());
        assert_eq!(store.facts(&id, 0, 10).await, Ok(facts.clone()), "{name}");
        let stored = store.load(&id).await.unwrap().unwrap();
        assert_eq!(stored.revision, revision + 1, "{name}");
        let included = if stored.snapshot.is_some() { 2 } else { 0 };
        assert_eq!(stored.facts, facts[included..], "after the snapshot of {name}");
    }
}
