//! Tests of a store in a file: crashes, full disks, foreign and damaged files.

mod agents;
mod defects;
mod displaced;
mod dump;
mod files;
mod logs;
mod older;
mod retention;
mod traces;

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::mpsc;

use greenroom_actors::ports::conformance::{self, Bench, Draft, completed, step_started};
use greenroom_actors::ports::store::{Generations as _, Status, Store, Ticket};
use rusqlite::{Connection, ffi};
use tempfile::TempDir;

use super::*;
use crate::session::Verdict;

/// Faults to inject into the writer.
#[derive(Default)]
pub(super) struct Faults {
    /// True to fail commits and probes like a failed fsync.
    broken: AtomicBool,
    /// Maximum number of pages of the database, to simulate a full disk; 0 for no limit.
    pages_max: AtomicU32,
    batches: AtomicU32,
}

impl Faults {
    pub(super) fn before_batch(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.batches.fetch_add(1, Ordering::SeqCst);
        let pages = match self.pages_max.load(Ordering::SeqCst) {
            0 => 4_294_967_294,
            limit => i64::from(limit),
        };
        connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
    }

    pub(super) fn before_commit(&self) -> rusqlite::Result<()> {
        if self.broken.load(Ordering::SeqCst) {
            let failure = ffi::Error::new(ffi::SQLITE_IOERR_FSYNC);
            return Err(rusqlite::Error::SqliteFailure(failure, Some("fsync failed".to_owned())));
        }
        Ok(())
    }
}

pub(super) fn open(path: &Path) -> Arc<SqliteStore> {
    let store = SqliteStore::open_with(
        path,
        Durability::Normal,
        Duration::from_millis(1),
        Arc::new(NoMeter),
    );
    Arc::new(store.unwrap())
}

pub(super) fn database(directory: &TempDir) -> PathBuf {
    directory.path().join("greenroom.db")
}

/// Fills a store with three executions, one of which has completed, and closes it.
pub(super) async fn filled(path: &Path) -> Vec<Draft> {
    let mut bench = Bench::new(open(path));
    let drafts = ["a", "b", "c"].map(|id| bench.creation(id)).to_vec();
    for draft in &drafts {
        bench.take(draft).await;
    }
    let mut last = bench.continuation(&drafts[0], vec![step_started(2), completed(3)]);
    last.status = Status::Completed;
    bench.take(&last).await;
    vec![last, drafts[1].clone(), drafts[2].clone()]
}

pub(super) async fn assert_has(store: &dyn Store, drafts: &[Draft]) {
    for draft in drafts {
        let stored = store.load(&draft.header.id).await.unwrap();
        let stored = stored.unwrap();
        assert_eq!(stored.projection, draft.projection());
        assert!(stored.facts.ends_with(&draft.facts), "facts of {}", draft.header.id);
    }
}

/// Pauses the writer until the result is dropped, so that requests queued meanwhile are one batch.
/// Returns once the writer is paused, in a separate batch.
fn pause(store: &SqliteStore) -> mpsc::SyncSender<()> {
    let (paused, pause) = mpsc::sync_channel(0);
    store.queue.put(Job::Pause(pause)).map_err(drop).unwrap();
    paused.send(()).unwrap();
    paused
}

/// Creates an execution whose next append violates a key, because a foreign chunk has its number.
async fn with_conflicting_chunk(directory: &TempDir, bench: &mut Bench) -> Draft {
    let first = bench.creation("bad");
    bench.take(&first).await;
    let sql = "INSERT INTO chunks VALUES (?1, 2, 1, x'5b5d')";
    Connection::open(database(directory)).unwrap().execute(sql, [first.row]).unwrap();
    first
}

#[tokio::test]
async fn the_store_conforms_to_the_ports() {
    let directories = RefCell::new(Vec::new());
    let fresh = async || {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&database(&directory));
        directories.borrow_mut().push(directory);
        store
    };
    conformance::run(fresh).await;
    let directory = tempfile::tempdir().unwrap();
    conformance::run_over_restarts(async || open(&database(&directory))).await;
}

#[tokio::test]
async fn executions_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let drafts = filled(&path).await;
    let left: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "greenroom.db" && name != "greenroom.db.lock")
        .collect();
    assert!(left.is_empty(), "a closed store leaves no log: {left:?}");

    let store = open(&path);
    assert_has(&*store, &drafts).await;
    assert!(store.next_row() > Some(drafts[2].row), "row numbers continue");
}

#[tokio::test]
async fn files_copied_while_open_have_all_acknowledged_appends() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let mut bench = Bench::new(open(&path));
    let mut drafts = Vec::new();
    for i in 0..20 {
        let mut draft = bench.creation(&format!("e{i}"));
        bench.take(&draft).await;
        if i % 2 == 0 {
            draft = bench.continuation(&draft, vec![step_started(2)]);
            bench.take(&draft).await;
        }
        drafts.push(draft);
        if i % 5 != 0 {
            continue;
        }
        // the files that a crash would leave here
        let crashed = tempfile::tempdir().unwrap();
        for name in ["greenroom.db", "greenroom.db-wal"] {
            fs::copy(directory.path().join(name), crashed.path().join(name)).unwrap();
        }
        assert_has(&*open(&database(&crashed)), &drafts).await;
    }
}

#[tokio::test]
async fn queued_appends_are_one_commit_and_acknowledged_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let mut bench = Bench::new(store.clone());
    let paused = pause(&store);
    // two shards alternate; every fifth append is refused and must not affect the others
    let mut expected = Vec::new();
    for i in 0..100_u64 {
        let mut draft = bench.creation(&format!("e{}", if i % 5 == 4 { 0 } else { i }));
        draft.ticket = Ticket { shard: usize::from(i % 2 == 1), key: i };
        store.append(draft.append());
        let result = if i % 5 == 4 { Err(AppendError::Exists) } else { Ok(()) };
        expected.push((draft.ticket, result));
    }
    assert!(bench.outcome_now().is_none(), "nothing is acknowledged before the commit");
    drop(paused);
    let mut received = Vec::new();
    for _ in 0..100 {
        let outcome = bench.outcome().await;
        received.push((outcome.ticket, outcome.result));
    }
    for shard in [0, 1] {
        let of = |outcomes: &[(Ticket, Verdict)]| -> Vec<(Ticket, Verdict)> {
            outcomes.iter().filter(|(ticket, _)| ticket.shard == shard).cloned().collect()
        };
        assert_eq!(of(&received), of(&expected), "shard {shard}: in the order of its appends");
    }
    // the pause, and then the rest
    let batches = store.shared.faults.batches.load(Ordering::SeqCst);
    assert!(batches <= 2, "the queue took {batches} commits");
}

#[tokio::test]
async fn a_failing_append_does_not_affect_others_of_its_batch() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let mut bench = Bench::new(store.clone());
    let first = with_conflicting_chunk(&directory, &mut bench).await;

    let paused = pause(&store);
    let before = bench.creation("before");
    let bad = bench.continuation(&first, vec![step_started(2)]);
    let after = bench.creation("after");
    for draft in [&before, &bad, &after] {
        store.append(draft.append());
    }
    drop(paused);
    assert_eq!(bench.outcome().await.result, Ok(()));
    let refused = bench.outcome().await.result;
    assert!(matches!(refused, Err(AppendError::Unavailable(_))), "{refused:?}");
    assert_eq!(bench.outcome().await.result, Ok(()));
    assert!(store.is_writable());
    assert_has(&*store, &[first, before, after]).await;
}

#[tokio::test]
async fn after_a_failed_sync_appends_are_refused_until_writes_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let mut bench = Bench::new(store.clone());
    let kept = bench.creation("kept");
    bench.take(&kept).await;

    store.shared.faults.broken.store(true, Ordering::SeqCst);
    let lost = [bench.creation("lost-1"), bench.creation("lost-2")];
    for draft in &lost {
        store.append(draft.append());
    }
    for _ in &lost {
        let refused = bench.outcome().await.result;
        assert!(matches!(refused, Err(AppendError::Unavailable(_))), "{refused:?}");
        assert!(!store.is_writable(), "set before the first answer");
    }
    assert_has(&*store, std::slice::from_ref(&kept)).await;
    assert!(store.put_definition("h", &serde_json::json!(1)).await.is_err());
    assert!(store.interrupt_working(Timestamp(1)).await.is_err());

    store.shared.faults.broken.store(false, Ordering::SeqCst);
    let again = append_until_taken(&mut bench, &lost[0]).await;
    assert!(store.is_writable());
    assert_has(&*store, &[kept, again]).await;
    assert!(store.describe(&lost[1].header.id).await.unwrap().is_none(), "never acknowledged");
}

#[tokio::test]
async fn on_a_full_disk_appends_are_refused_until_writes_succeed() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let mut bench = Bench::new(store.clone());
    let mut taken = vec![bench.creation("first")];
    bench.take(&taken[0]).await;
    store.shared.faults.pages_max.store(40, Ordering::SeqCst);
    let refused = loop {
        let mut draft = bench.creation(&format!("e{}", taken.len()));
        draft.facts.extend((2..100).map(step_started));
        draft.last_seq = 99;
        match bench.append(&draft).await {
            Ok(()) => taken.push(draft),
            Err(refusal) => {
                assert!(matches!(refusal, AppendError::Unavailable(_)), "{refusal:?}");
                break draft;
            }
        }
    };
    assert!(!store.is_writable());
    assert_has(&*store, &taken).await;

    store.shared.faults.pages_max.store(0, Ordering::SeqCst);
    taken.push(append_until_taken(&mut bench, &refused).await);
    assert_has(&*store, &taken).await;
    drop((bench, store));
    let check = Connection::open(database(&directory)).unwrap();
    let verdict: String = check.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
}

/// Appends until the store has recovered; until then every append must be refused.
async fn append_until_taken(bench: &mut Bench, draft: &Draft) -> Draft {
    loop {
        match bench.append(draft).await {
            Ok(()) => return draft.clone(),
            Err(refusal) => {
                assert!(matches!(refusal, AppendError::Unavailable(_)), "{refusal:?}");
                std::thread::yield_now();
            }
        }
    }
}

#[tokio::test]
async fn expired_keys_are_deleted_when_the_writer_is_idle() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let mut bench = Bench::new(store.clone());
    for i in 0..250 {
        let mut draft = bench.creation(&format!("e{i}"));
        draft.idempotency = Some(IdempotencyRecord {
            scope: Arc::from(format!("k{i}")),
            body_hash: Arc::from("h"),
            execution: draft.header.id.clone(),
            after_seq: 1,
            expires_at: Timestamp(2000 + i),
        });
        store.append(draft.append());
        bench.outcome().await;
    }
    let mut late = bench.creation("late");
    late.at = Timestamp(100_000);
    bench.take(&late).await;
    // the writer deletes keys when its queue is empty
    while stored_keys(&path) > 0 {
        std::thread::yield_now();
    }
}

fn stored_keys(path: &Path) -> i64 {
    let reader = schema::open_reader(path).unwrap();
    reader.query_row("SELECT count(*) FROM idempotency", [], |row| row.get(0)).unwrap()
}
