//! What is special about a store in a file: crashes, full disks, files that are not ours.

mod agents;

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

/// Failures that a test asks of the writer.
#[derive(Default)]
pub(super) struct Faults {
    /// Commits and probes fail like an fsync.
    broken: AtomicBool,
    /// Most pages of the database, like a full disk; 0 for no limit.
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

fn open(path: &Path) -> Arc<SqliteStore> {
    let store = SqliteStore::open_with(path, Durability::Normal, Duration::from_millis(1));
    Arc::new(store.unwrap())
}

fn database(directory: &TempDir) -> PathBuf {
    directory.path().join("greenroom.db")
}

/// A store with three executions, one of which went on; closed.
async fn filled(path: &Path) -> Vec<Draft> {
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

async fn assert_has(store: &dyn Store, drafts: &[Draft]) {
    for draft in drafts {
        let stored = store.load(&draft.header.id).await.unwrap();
        let stored = stored.unwrap();
        assert_eq!(stored.projection, draft.projection());
        assert!(stored.facts.ends_with(&draft.facts), "facts of {}", draft.header.id);
    }
}

#[tokio::test]
async fn keeps_the_rules_of_the_port() {
    let directories = RefCell::new(Vec::new());
    let fresh = || -> Arc<dyn Store> {
        let directory = tempfile::tempdir().unwrap();
        let store = open(&database(&directory));
        directories.borrow_mut().push(directory);
        store
    };
    conformance::run(fresh).await;
}

#[tokio::test]
async fn everything_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let drafts = filled(&path).await;
    let left: Vec<String> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "greenroom.db" && name != "greenroom.db.lock")
        .collect();
    assert!(left.is_empty(), "a closed store leaves no log behind: {left:?}");

    let store = open(&path);
    assert_has(&*store, &drafts).await;
    assert!(store.next_row() > drafts[2].row, "row numbers go on");
}

#[tokio::test]
async fn a_copy_taken_while_open_has_all_that_was_acknowledged() {
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
        // What a crash here would leave behind.
        let crashed = tempfile::tempdir().unwrap();
        for name in ["greenroom.db", "greenroom.db-wal"] {
            fs::copy(directory.path().join(name), crashed.path().join(name)).unwrap();
        }
        assert_has(&*open(&database(&crashed)), &drafts).await;
    }
}

#[tokio::test]
async fn a_queue_is_one_commit_and_is_acknowledged_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let mut bench = Bench::new(store.clone());
    let (go_on, pause) = mpsc::channel();
    store.queue(Job::Pause(pause)).map_err(drop).unwrap();
    // Two shards take turns; every fifth is refused and must not disturb the others.
    let mut expected = Vec::new();
    for i in 0..100_u64 {
        let mut draft = bench.creation(&format!("e{}", if i % 5 == 4 { 0 } else { i }));
        draft.ticket = Ticket { shard: usize::from(i % 2 == 1), key: i };
        store.append(draft.append());
        let result = if i % 5 == 4 { Err(AppendError::Exists) } else { Ok(()) };
        expected.push((draft.ticket, result));
    }
    assert!(bench.heard_already().is_none(), "nothing is acknowledged before the commit");
    drop(go_on);
    let mut heard = Vec::new();
    for _ in 0..100 {
        let outcome = bench.outcome().await;
        heard.push((outcome.ticket, outcome.result));
    }
    for shard in [0, 1] {
        let of = |outcomes: &[(Ticket, Verdict)]| -> Vec<(Ticket, Verdict)> {
            outcomes.iter().filter(|(ticket, _)| ticket.shard == shard).cloned().collect()
        };
        assert_eq!(of(&heard), of(&expected), "shard {shard} hears in the order of its appends");
    }
    // The pause alone, or with the first appends behind it, and then the rest.
    let batches = store.shared.faults.batches.load(Ordering::SeqCst);
    assert!(batches <= 2, "the queue took {batches} commits");
}

#[tokio::test]
async fn a_write_that_only_one_request_cannot_make_spoils_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let mut bench = Bench::new(store.clone());
    let first = bench.creation("bad");
    bench.take(&first).await;
    // A chunk that nobody knows of: the next one violates the key.
    let sql = "INSERT INTO chunks VALUES (?1, 2, 1, x'5b5d')";
    Connection::open(database(&directory)).unwrap().execute(sql, [first.row]).unwrap();

    let (go_on, pause) = mpsc::channel();
    store.queue(Job::Pause(pause)).map_err(drop).unwrap();
    let before = bench.creation("before");
    let bad = bench.continuation(&first, vec![step_started(2)]);
    let after = bench.creation("after");
    for draft in [&before, &bad, &after] {
        store.append(draft.append());
    }
    drop(go_on);
    assert_eq!(bench.outcome().await.result, Ok(()));
    let refused = bench.outcome().await.result;
    assert!(matches!(refused, Err(AppendError::Unavailable(_))), "{refused:?}");
    assert_eq!(bench.outcome().await.result, Ok(()));
    assert!(store.is_writable());
    assert_has(&*store, &[first, before, after]).await;
}

#[tokio::test]
async fn a_failed_sync_refuses_all_and_is_recovered_from() {
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
        assert!(!store.is_writable(), "known before the first answer");
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
async fn a_full_disk_refuses_and_is_recovered_from() {
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

/// Asks until the store has recovered by itself; every refusal must say so.
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
async fn a_second_process_is_kept_out_and_the_lock_is_given_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let first = open(&path);
    let second = SqliteStore::open(&path, Durability::Full).unwrap_err();
    assert!(matches!(second, OpenError::InUse { .. }), "{second:?}");
    assert!(second.to_string().contains("greenroom.db.lock"), "{second}");
    drop(first);
    SqliteStore::open(&path, Durability::Full).unwrap();
}

/// A way in which a store's file can be wrong.
struct Case {
    name: &'static str,
    spoil: fn(&Path),
    says: &'static str,
}

fn rewrite(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn execute(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

const SPOILT: [Case; 12] = [
    Case {
        name: "a text",
        spoil: |path| fs::write(path, "hello ".repeat(1000)).unwrap(),
        says: "not a SQLite database",
    },
    Case {
        name: "a few bytes",
        spoil: |path| fs::write(path, "SQLite").unwrap(),
        says: "not a SQLite database",
    },
    Case {
        name: "a zeroed header",
        spoil: |path| rewrite(path, |bytes| bytes[..100].fill(0)),
        says: "not a SQLite database",
    },
    Case {
        name: "a truncated file",
        spoil: |path| rewrite(path, |bytes| bytes.truncate(bytes.len() / 2)),
        says: "damaged: it is shorter than it says",
    },
    Case {
        name: "a file cut inside its last page",
        spoil: |path| rewrite(path, |bytes| bytes.truncate(bytes.len() - 1)),
        says: "damaged: it is shorter than it says",
    },
    Case {
        name: "a garbled schema",
        spoil: |path| rewrite(path, |bytes| bytes[100..4096].fill(0x5a)),
        says: "damaged",
    },
    Case {
        name: "a garbled table",
        spoil: |path| rewrite(path, |bytes| bytes[4096..4200].fill(0xff)),
        says: "damaged",
    },
    Case {
        name: "a missing table",
        spoil: |path| execute(path, "DROP TABLE chunks"),
        says: "damaged",
    },
    Case {
        name: "a newer schema",
        spoil: |path| execute(path, "PRAGMA user_version = 1000"),
        says: "newer greenroom (schema 1000, this one knows 2)",
    },
    Case {
        name: "a database of another program",
        spoil: |path| execute(path, "PRAGMA application_id = 7"),
        says: "another program (application id 7)",
    },
    Case {
        name: "a database of nobody in particular",
        spoil: |path| {
            fs::remove_file(path).unwrap();
            execute(path, "CREATE TABLE notes (text TEXT)");
        },
        says: "another program (application id 0)",
    },
    Case {
        name: "a log without its database",
        spoil: |path| {
            fs::remove_file(path).unwrap();
            fs::write(path.with_extension("db-wal"), [0_u8; 64]).unwrap();
        },
        says: "no database",
    },
];

#[tokio::test]
async fn files_that_cannot_be_used_are_refused_and_left_alone() {
    for Case { name, spoil, says } in SPOILT {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory);
        filled(&path).await;
        spoil(&path);
        let before = fs::read(&path).ok();
        let refusal = SqliteStore::open(&path, Durability::Full).expect_err(name).to_string();
        assert!(refusal.contains(says), "{name}: {refusal}");
        assert!(refusal.contains("greenroom.db"), "{name}: {refusal}");
        assert_eq!(fs::read(&path).ok(), before, "{name}: the file was changed");
    }
}

#[test]
fn a_directory_that_is_missing_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("no/such/greenroom.db");
    let refusal = SqliteStore::open(&path, Durability::Full).unwrap_err();
    assert!(refusal.to_string().contains("no/such does not exist"), "{refusal}");
    let refusal = SqliteStore::open(directory.path(), Durability::Full).unwrap_err();
    assert!(refusal.to_string().contains("it is a directory"), "{refusal}");
}

#[tokio::test]
async fn a_first_start_that_was_cut_off_is_made_up_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    drop(schema::open_writer(&path, Durability::Full).unwrap());
    filled(&path).await;
}

#[tokio::test]
async fn rows_that_cannot_be_understood_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    filled(&path).await;
    for sql in [
        "UPDATE executions SET events = x'5b7b' WHERE id = 'a'",
        "UPDATE executions SET status = 77 WHERE id = 'b'",
        "UPDATE executions SET last_seq = -1 WHERE id = 'c'",
        "INSERT INTO timers VALUES ('a', 'what', 1)",
        "INSERT INTO definitions VALUES ('h', x'00')",
    ] {
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    }
    let store = open(&path);
    for id in ["a", "b", "c"].map(ExecutionId::trusted) {
        assert!(store.load(&id).await.is_err(), "{id}");
    }
    assert!(store.facts(&ExecutionId::trusted("a"), 0, 10).await.is_err());
    assert!(store.timers_due(Timestamp(5), 10).await.is_err());
    assert!(store.definition("h").await.is_err());
    assert!(store.is_writable(), "reading says nothing of writing");
}

#[tokio::test]
async fn expired_keys_are_dropped_when_there_is_time() {
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
    // The writer tidies up before it sleeps, and it ends only with an empty queue.
    while kept_keys(&path) > 0 {
        std::thread::yield_now();
    }
}

fn kept_keys(path: &Path) -> i64 {
    let reader = schema::open_reader(path).unwrap();
    reader.query_row("SELECT count(*) FROM idempotency", [], |row| row.get(0)).unwrap()
}
