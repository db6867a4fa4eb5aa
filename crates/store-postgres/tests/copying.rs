//! Copies of whole stores between SQLite and a real PostgreSQL, compared through the ports.
#![expect(clippy::unwrap_used, reason = "a test says what it expects")]

#[path = "copying/content.rs"]
mod content;
#[path = "copying/fill.rs"]
mod fill;

use std::path::Path;
use std::sync::Arc;

use greenroom_actors::ports::conformance::{Bench, completed};
use greenroom_actors::ports::meter::NoMeter;
use greenroom_actors::ports::store::{
    AskChange, AskSubject, Asks as _, Conversations as _, Executions as _, GenerationWrite,
    Generations as _, PageSize, Status, Store,
};
use greenroom_store_codec::dump::{Copied, Kind, Source, Target, copy};
use greenroom_store_postgres::{DatabaseSource, DatabaseTarget, PostgresSettings, PostgresStore};
use greenroom_store_sqlite::{Durability, FileSource, FileTarget, SqliteStore};
use support::postgres;

use content::content;

fn settings(url: &str) -> PostgresSettings {
    PostgresSettings::new(url.parse().unwrap(), "test")
}

fn open_file(path: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, Durability::Normal).unwrap())
}

fn open_database(url: &str) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(settings(url), Arc::new(NoMeter)).unwrap())
}

/// Copies a store, on a thread that may block.
async fn copied<S: Source, T: Target>(
    source: impl FnOnce() -> S + Send + 'static,
    target: impl FnOnce() -> T + Send + 'static,
) -> Copied {
    let copying =
        move || copy(&mut source(), &mut target(), &mut |_| {}).expect("it can be copied");
    tokio::task::spawn_blocking(copying).await.unwrap()
}

async fn to_database(file: &Path, url: &str) -> Copied {
    let (file, url) = (file.to_owned(), url.to_owned());
    let source = move || FileSource::open(&file).unwrap();
    copied(source, move || DatabaseTarget::open(settings(&url)).unwrap()).await
}

async fn to_file(url: &str, file: &Path) -> Copied {
    let (file, url) = (file.to_owned(), url.to_owned());
    let target = move || FileTarget::create(&file).unwrap();
    copied(move || DatabaseSource::open(settings(&url)).unwrap(), target).await
}

/// Closes a store, after its content was read.
async fn closed(store: Arc<dyn Store>) -> content::Content {
    let content = content(&*store).await;
    store.close();
    content
}

#[tokio::test]
async fn a_store_moves_to_a_database_and_back() {
    let Some(url) = postgres::fresh_url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["a.db", "b.db"].map(|name| directory.path().join(name));
    fill::fill(open_file(&first)).await;
    let original = closed(open_file(&first)).await;
    assert!(original.is_rich(), "{original:#?}");

    let there = to_database(&first, &url).await;
    for kind in Kind::ALL {
        assert!(there.count(kind) > 0, "{kind} are not tried");
    }
    assert_eq!(closed(open_database(&url)).await, original);
    let back = to_file(&url, &second).await;
    assert_eq!(back, there);
    assert_eq!(closed(open_file(&second)).await, original);
}

#[tokio::test]
async fn a_copy_continues_where_the_original_ended() {
    let Some(url) = postgres::fresh_url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["a.db", "b.db"].map(|name| directory.path().join(name));
    let held = fill::fill(open_file(&first)).await;
    to_database(&first, &url).await;
    let store = open_database(&url);
    let mut bench = Bench::new(Arc::clone(&store) as _);

    let mut last = bench.continuation(&held, vec![completed(held.last_seq + 1)]);
    last.status = Status::Completed;
    bench.take(&last).await;
    let mut new = bench.creation("new");
    new.asks = vec![AskChange::Open(fill::ask("new", None))];
    bench.take(&new).await;
    let asked = store.ask("new").await.unwrap().unwrap();
    let AskSubject::Step(step) = asked.subject else { panic!("an ask of a step") };
    assert_eq!(step.execution_id.as_str(), "new", "its number is new");
    let before = store.generations("clerk", None, 0, PageSize::of(100)).await.unwrap();
    let write = fill::generation("new", Some(("talk", &["again"])));
    let row = store.next_generation_row().unwrap();
    store.record_generation(GenerationWrite { row, ..write }).await.unwrap();
    let after = store.generations("clerk", None, 0, PageSize::of(100)).await.unwrap();
    assert_eq!(after.total, before.total + 1);
    assert_eq!(after.entries[0].record.id, "new", "it is the newest of the history");
    let messages = store.messages(&fill::key("talk"), None, PageSize::of(100)).await.unwrap();
    assert_eq!(messages.last().unwrap().id, "again", "it is the newest of the conversation");
    let copy_id = Arc::from("copy of talk");
    assert_eq!(store.clone_conversation(fill::key("talk"), copy_id, at(9)).await, Ok(true));
    drop(bench);

    let continued = closed(store).await;
    to_file(&url, &second).await;
    let store = open_file(&second);
    assert_eq!(content(&*store).await, continued);
    let counts = store.counts().await.unwrap();
    assert!(counts.iter().any(|it| it.status == Status::Completed && it.count > 0), "{counts:?}");
    assert!(store.forget_user("u1".to_owned()).await.unwrap() > 0, "the user is found");
}

fn at(ms: i64) -> greenroom_actors::domain::time::Timestamp {
    greenroom_actors::domain::time::Timestamp(ms)
}

#[tokio::test]
async fn a_value_of_64_mebibytes_is_copied_both_ways() {
    let Some(url) = postgres::fresh_url() else { return };
    let directory = tempfile::tempdir().unwrap();
    let [first, second] = ["a.db", "b.db"].map(|name| directory.path().join(name));
    let large = serde_json::Value::from("x".repeat(64 * 1024 * 1024));
    let store = open_file(&first);
    fill::put_definition(&*store, "large", &large).await;
    drop(store);
    to_database(&first, &url).await;
    to_file(&url, &second).await;
    assert!(fill::definition(&*open_file(&second), "large").await == Some(large));
}
