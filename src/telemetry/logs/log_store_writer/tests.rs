//! Records from the queue to a store, in virtual time.

use std::future::ready;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use greenroom_actors::ports::clock::SystemClock;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{LogFilter, LogNumber, LogPage, Read};
use log::LevelFilter;
use tokio::sync::watch;

use super::super::queue::Queue;
use super::super::record_builder::tests::record;
use super::*;

type Messages = Arc<Mutex<Vec<String>>>;

/// A queue, a store, and the messages that a sink received.
struct World {
    queue: Arc<Queue>,
    store: Arc<MemoryStore>,
    received: Messages,
}

impl World {
    fn new(room: usize) -> Self {
        Self {
            queue: Arc::new(Queue::new(LevelFilter::Info, room)),
            store: Arc::default(),
            received: Messages::default(),
        }
    }

    fn settings(&self, retention: Duration, rows_max: u64) -> LogStoreSettings {
        let received = Arc::clone(&self.received);
        let sink = move |batch: &[Arc<LogRecord>]| {
            received.lock().unwrap().extend(batch.iter().map(|record| record.message.clone()));
        };
        LogStoreSettings {
            store: Arc::clone(&self.store) as _,
            clock: Arc::new(SystemClock),
            retention,
            rows_max,
            sinks: vec![Arc::new(sink)],
        }
    }

    /// Runs the writer as a task of the test.
    fn start(
        &self,
        retention: Duration,
        rows_max: u64,
    ) -> (oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let (running, stopped) = oneshot::channel();
        let work = Work::new(self.queue.reader().unwrap(), self.settings(retention, rows_max));
        (running, tokio::spawn(work.run(stopped)))
    }

    fn log(&self, messages: &[&str]) {
        messages.iter().for_each(|message| self.queue.push(record(message)));
    }

    async fn stored(&self) -> Vec<String> {
        let page = self.store.logs(&LogFilter::default(), None, 10_000).await.unwrap();
        page.records.into_iter().map(|record| record.message).collect()
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[tokio::test(start_paused = true)]
async fn records_logged_before_and_after_the_start_are_stored_in_batches() {
    let world = World::new(100);
    world.log(&["before"]);
    let (running, ended) = world.start(LONG, 100);
    tokio::time::sleep(BATCH_AGE / 2).await;
    world.log(&["meanwhile"]);
    assert!(world.stored().await.is_empty(), "the batch is not old enough");
    tokio::time::sleep(BATCH_AGE).await;
    assert_eq!(world.stored().await, ["before", "meanwhile"]);
    // stopping does not wait for the age of a batch
    world.log(&["last"]);
    tokio::time::sleep(BATCH_CHECK).await;
    drop(running);
    ended.await.unwrap();
    assert_eq!(world.stored().await, ["before", "meanwhile", "last"]);
    assert_eq!(world.received(), world.stored().await);
}

#[tokio::test(start_paused = true)]
async fn dropped_records_are_reported_once() {
    let world = World::new(2);
    world.log(&["a", "b", "c", "d", "e"]);
    let (_running, _ended) = world.start(LONG, 100);
    tokio::time::sleep(BATCH_AGE * 4).await;
    world.log(&["f"]);
    tokio::time::sleep(BATCH_AGE * 4).await;
    assert_eq!(
        world.stored().await,
        ["a", "b", "3 log records were dropped: the queue was full", "f"]
    );
}

#[tokio::test(start_paused = true)]
async fn all_queued_records_are_stored_at_the_end() {
    let world = World::new(BATCH_MAX * 3);
    for number in 0..BATCH_MAX * 2 + 1 {
        world.log(&[&number.to_string()]);
    }
    let (running, ended) = world.start(LONG, 10_000);
    drop(running);
    ended.await.unwrap();
    assert_eq!(world.stored().await.len(), BATCH_MAX * 2 + 1);
}

#[tokio::test(start_paused = true)]
async fn records_wait_while_the_store_rejects_writes() {
    let world = World::new(3);
    let (_running, _ended) = world.start(LONG, 100);
    world.store.set_writable(false);
    world.log(&["a", "b"]);
    tokio::time::sleep(BATCH_AGE * 2).await;
    assert_eq!(world.received(), ["a", "b"], "sinks do not wait for the store");
    world.log(&["c", "d"]);
    tokio::time::sleep(BATCH_AGE * 2).await;
    world.store.set_writable(true);
    tokio::time::sleep(WRITE_PAUSE * 2).await;
    assert_eq!(world.stored().await, ["b", "c", "d"]);
    world.log(&["e"]);
    tokio::time::sleep(BATCH_AGE * 2).await;
    assert_eq!(world.stored().await[3..], ["e", "1 log records were dropped: the queue was full"]);
}

/// A store that writes in another way.
struct Writing<W> {
    store: Arc<MemoryStore>,
    write: W,
}

impl<W> Logs for Writing<W>
where
    W: Fn(Vec<Arc<LogRecord>>) -> BoxFuture<'static, Result<(), AppendError>> + Send + Sync,
{
    fn write_logs(
        &self,
        batch: Vec<Arc<LogRecord>>,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        (self.write)(batch)
    }

    fn logs<'a>(
        &'a self,
        filter: &'a LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Read<'a, LogPage> {
        self.store.logs(filter, before, limit)
    }

    fn prune_logs(
        &self,
        before: Timestamp,
        rows_max: u64,
    ) -> BoxFuture<'static, Result<u64, AppendError>> {
        self.store.prune_logs(before, rows_max)
    }

    fn log_count(&self) -> Read<'_, u64> {
        self.store.log_count()
    }
}

#[tokio::test(start_paused = true)]
async fn records_of_a_late_write_are_stored_once_and_delay_no_sink_again() {
    let world = World::new(3);
    let (answer, answers) = watch::channel(false);
    let store = Arc::clone(&world.store);
    let write = move |batch| -> BoxFuture<'static, _> {
        let (store, mut answers) = (Arc::clone(&store), answers.clone());
        Box::pin(async move {
            answers.wait_for(|answers| *answers).await.unwrap();
            store.write_logs(batch).await
        })
    };
    let store = Arc::new(Writing { store: Arc::clone(&world.store), write });
    let settings = LogStoreSettings { store, ..world.settings(LONG, 100) };
    let work = Work::new(world.queue.reader().unwrap(), settings);
    let (_running, stopped) = oneshot::channel();
    tokio::spawn(work.run(stopped));
    world.log(&["a", "b"]);
    tokio::time::sleep(BATCH_AGE * 2 + WRITE_MAX).await;
    assert_eq!(world.received(), ["a", "b"]);
    world.log(&["c", "d"]);
    tokio::time::sleep(BATCH_AGE * 2).await;
    assert_eq!(world.received(), ["a", "b", "c", "d"]);
    assert!(world.stored().await.is_empty());

    answer.send_replace(true);
    tokio::time::sleep(WRITE_PAUSE * 2).await;
    // `a` was given up for want of room, but its write was under way
    assert_eq!(world.stored().await, ["a", "b", "c", "d"]);
}

#[tokio::test(start_paused = true)]
async fn records_of_a_batch_that_is_refused_in_part_are_stored_once() {
    let world = World::new(BATCH_MAX);
    let (store, parts) = (Arc::clone(&world.store), AtomicUsize::new(0));
    // commits batches in parts, and refuses the second part
    let write = move |batch: Vec<Arc<LogRecord>>| -> BoxFuture<'static, _> {
        for part in batch.chunks(LOG_BATCH_MAX) {
            if parts.fetch_add(1, Ordering::Relaxed) == 1 {
                let full = AppendError::Unavailable(Arc::from("the disk is full"));
                return Box::pin(ready(Err(full)));
            }
            let written = store.write_logs(part.to_vec()).now_or_never();
            assert_eq!(written, Some(Ok(())));
        }
        Box::pin(ready(Ok(())))
    };
    let store = Arc::new(Writing { store: Arc::clone(&world.store), write });
    let settings = LogStoreSettings { store, ..world.settings(LONG, 10_000) };
    let work = Work::new(world.queue.reader().unwrap(), settings);
    let (_running, stopped) = oneshot::channel();
    tokio::spawn(work.run(stopped));
    let messages: Vec<_> = (0..LOG_BATCH_MAX * 3).map(|number| number.to_string()).collect();
    messages.iter().for_each(|message| world.log(&[message]));
    tokio::time::sleep(BATCH_AGE * 2).await;
    assert_eq!(world.stored().await, messages[..LOG_BATCH_MAX]);
    tokio::time::sleep(WRITE_PAUSE * 2).await;
    assert_eq!(world.stored().await, messages);
}

#[tokio::test(start_paused = true)]
async fn old_and_excess_records_are_deleted_every_minute() {
    let world = World::new(100);
    // records of the tests are from 2023
    let (_running, _ended) = world.start(LONG, 2);
    tokio::time::sleep(BATCH_AGE).await;
    world.log(&["a", "b", "c"]);
    tokio::time::sleep(PRUNE_EVERY / 2).await;
    assert_eq!(world.stored().await.len(), 3);
    tokio::time::sleep(PRUNE_EVERY).await;
    assert_eq!(world.stored().await, ["b", "c"]);

    let world = World::new(100);
    let (_running, _ended) = world.start(Duration::from_secs(7 * 24 * 3600), 100);
    world.log(&["a"]);
    tokio::time::sleep(PRUNE_EVERY * 2).await;
    assert!(world.stored().await.is_empty());
}

#[tokio::test]
async fn stop_writes_the_remaining_records() {
    let world = World::new(100);
    let reader = world.queue.reader().unwrap();
    let writer = LogStoreWriter::over(reader, world.settings(LONG, 100)).unwrap();
    world.log(&["a", "b"]);
    writer.stop().await;
    assert_eq!(world.stored().await, ["a", "b"]);
    assert!(world.queue.reader().is_some(), "the next server may store records");
}
