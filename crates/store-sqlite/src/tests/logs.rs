//! Log records in a file.

use std::sync::atomic::AtomicU64;

use greenroom_actors::observe::log_record::{LogLevel, LogRecord, LogScope};
use greenroom_actors::ports::store::{Conversations as _, LogFilter, LogPage, Logs as _};
use greenroom_actors::visibility::Visibility;

use super::*;

fn record(message: String, user: Option<&str>) -> Arc<LogRecord> {
    Arc::new(LogRecord {
        at: Timestamp(1000),
        level: LogLevel::Info,
        target: Arc::from("greenroom"),
        message,
        attributes: Vec::new(),
        scope: Arc::new(LogScope { user_id: user.map(Arc::from), ..LogScope::default() }),
    })
}

fn batch(name: &str, count: usize, user: Option<&str>) -> Vec<Arc<LogRecord>> {
    (0..count).map(|i| record(format!("{name} {i}"), user)).collect()
}

async fn messages(store: &SqliteStore) -> Vec<String> {
    let LogPage { records, older } = store.logs(&LogFilter::default(), None, 5000).await.unwrap();
    assert_eq!(older, None);
    records.into_iter().map(|record| record.message).collect()
}

#[tokio::test]
async fn logs_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    assert_eq!(store.write_logs(batch("a", 3, None)).await, Ok(()));
    drop(store);
    let store = open(&path);
    assert_eq!(store.write_logs(batch("b", 1, None)).await, Ok(()));
    assert_eq!(messages(&store).await, ["a 0", "a 1", "a 2", "b 0"]);
    Connection::open(&path).unwrap().execute_batch("UPDATE logs SET level = 77").unwrap();
    assert_eq!(messages(&store).await, [""; 0]);
}

#[tokio::test]
async fn a_commit_takes_a_limited_number_of_logs() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    let mut bench = Bench::new(store.clone());
    let paused = pause(&store);
    while store.queued() > 0 {
        std::thread::yield_now();
    }
    let written = [("a", 100), ("b", 300), ("c", 1)];
    let written = written.map(|(name, count)| store.write_logs(batch(name, count, None)));
    let draft = bench.creation("e1");
    store.append(draft.append());
    assert_eq!(store.queued(), 4);
    let before = store.shared.faults.batches.load(Ordering::SeqCst);
    drop(paused);
    assert_eq!(bench.outcome().await.result, Ok(()));
    for written in written {
        assert_eq!(written.await, Ok(()));
    }
    let commits = store.shared.faults.batches.load(Ordering::SeqCst) - before;
    assert!((4..=5).contains(&commits), "401 records took {commits} commits");
    let all = [batch("a", 100, None), batch("b", 300, None), batch("c", 1, None)].concat();
    let all: Vec<_> = all.iter().map(|record| record.message.as_str()).collect();
    assert_eq!(messages(&store).await, all);
    assert_eq!(store.queued(), 0);
}

#[tokio::test]
async fn on_a_full_disk_only_logs_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let mut bench = Bench::new(store.clone());
    let pages = "PRAGMA page_count";
    let pages: u32 =
        schema::open_reader(&path).unwrap().query_row(pages, [], |row| row.get(0)).unwrap();
    store.shared.faults.pages_max.store(pages + 20, Ordering::SeqCst);
    let paused = pause(&store);
    let drafts = ["before", "after"].map(|id| bench.creation(id));
    store.append(drafts[0].append());
    let many = batch(&"long".repeat(500), 500, None);
    let refused = [store.write_logs(many.clone()), store.write_logs(many.clone())];
    store.append(drafts[1].append());
    drop(paused);
    for _ in &drafts {
        assert_eq!(bench.outcome().await.result, Ok(()));
    }
    for refused in refused {
        assert!(matches!(refused.await, Err(AppendError::Unavailable(_))));
    }
    assert!(store.write_logs(many.clone()).await.is_err(), "also without other requests");
    assert!(store.is_writable());
    assert_has(&*store, &drafts).await;
    store.shared.faults.pages_max.store(0, Ordering::SeqCst);
    assert_eq!(store.write_logs(many).await, Ok(()));
    assert_eq!(store.log_count().await.unwrap(), 500);
}

#[tokio::test]
async fn logs_are_pruned_and_forgotten_in_parts() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(&database(&directory));
    for user in [Some("u1"), None, Some("u2")] {
        assert_eq!(store.write_logs(batch("a", 1200, user)).await, Ok(()));
    }
    let commits = || store.shared.faults.batches.load(Ordering::SeqCst);
    let before = commits();
    assert_eq!(store.forget_user("u1".to_owned()).await, Ok(0));
    assert_eq!((store.log_count().await.unwrap(), commits() - before), (2400, 3));
    let before = commits();
    assert_eq!(store.prune_logs(Timestamp(0), 1300).await, Ok(1100));
    assert_eq!((store.log_count().await.unwrap(), commits() - before), (1300, 3));
}

#[tokio::test]
async fn a_page_of_logs_scans_a_limited_number_of_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let store = open(&path);
    let many = "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 12000)
        INSERT INTO logs (n, at, level, target, message, agent)
        SELECT n, n, 2, 'greenroom', 'text', iif(n = 1, 'rare', 'usual') FROM i";
    Connection::open(&path).unwrap().execute_batch(many).unwrap();
    let filter = LogFilter { agent_id: Some("rare".to_owned()), ..LogFilter::default() };
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = store.logs(&filter, before, 10).await.unwrap();
        pages.push(page.records.len());
        before = page.older;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(pages, [0, 0, 1], "pages advance, however many records are skipped");
    let nothing = LogFilter { visibility: Visibility::Nothing, ..LogFilter::default() };
    assert_eq!(store.logs(&nothing, None, 10).await.unwrap(), LogPage::default());
}

/// Counts commits and failures.
#[derive(Default)]
struct Tally {
    jobs: AtomicU64,
    failures: AtomicU64,
}

impl JournalMeter for Tally {
    fn committed(&self, jobs: usize, _: Duration) {
        self.jobs.fetch_add(jobs as u64, Ordering::SeqCst);
    }

    fn failed(&self) {
        self.failures.fetch_add(1, Ordering::SeqCst);
    }

    fn met_defect(&self) {}
}

#[tokio::test]
async fn commits_are_counted_and_files_measured() {
    let directory = tempfile::tempdir().unwrap();
    let path = database(&directory);
    let tally = Arc::new(Tally::default());
    let store =
        SqliteStore::open_measured(&path, Durability::Normal, Arc::clone(&tally) as _).unwrap();
    for _ in 0..3 {
        assert_eq!(store.write_logs(batch("a", 10, None)).await, Ok(()));
    }
    assert_eq!(tally.jobs.load(Ordering::SeqCst), 3);
    let FileSizes { database, log } = store.file_sizes();
    assert!(log > 0, "recent writes are in the write-ahead log");
    assert_eq!(database, fs::metadata(&path).unwrap().len());
    store.shared.faults.broken.store(true, Ordering::SeqCst);
    assert!(store.write_logs(batch("a", 1, None)).await.is_err());
    store.close();
    assert_eq!(store.file_sizes().log, 0, "closed");
    assert_eq!((tally.jobs.load(Ordering::SeqCst), tally.failures.load(Ordering::SeqCst)), (3, 1));
}
