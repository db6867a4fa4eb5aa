//! From the queue into a store, with time that is moved.

use std::sync::Mutex;

use greenroom_actors::ports::clock::SystemClock;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::LogFilter;
use log::LevelFilter;

use super::super::queue::Queue;
use super::super::scribe::tests::record;
use super::*;

type Heard = Arc<Mutex<Vec<String>>>;

/// A queue with this much room, a store behind it, and what a sink beside it has heard.
struct World {
    queue: Arc<Queue>,
    store: Arc<MemoryStore>,
    heard: Heard,
}

impl World {
    fn new(room: usize) -> Self {
        Self {
            queue: Arc::new(Queue::new(LevelFilter::Info, room)),
            store: Arc::default(),
            heard: Heard::default(),
        }
    }

    fn keeping(&self, keep: Duration, rows_max: u64) -> Keeping {
        let heard = Arc::clone(&self.heard);
        let sink = move |batch: &[Arc<LogRecord>]| {
            heard.lock().unwrap().extend(batch.iter().map(|record| record.message.clone()));
        };
        Keeping {
            store: Arc::clone(&self.store) as _,
            clock: Arc::new(SystemClock),
            keep,
            rows_max,
            sinks: vec![Arc::new(sink)],
        }
    }

    /// The keeper as a task of this test.
    fn start(
        &self,
        keep: Duration,
        rows_max: u64,
    ) -> (oneshot::Sender<()>, tokio::task::JoinHandle<()>) {
        let (go_on, over) = oneshot::channel();
        let work = Work::new(self.queue.reader().unwrap(), self.keeping(keep, rows_max));
        (go_on, tokio::spawn(work.run(over)))
    }

    fn log(&self, messages: &[&str]) {
        messages.iter().for_each(|message| self.queue.push(record(message)));
    }

    async fn kept(&self) -> Vec<String> {
        let page = self.store.logs(&LogFilter::default(), None, 10_000).await.unwrap();
        page.records.into_iter().map(|record| record.message).collect()
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

#[tokio::test(start_paused = true)]
async fn what_was_logged_before_and_meanwhile_is_kept_in_batches() {
    let world = World::new(100);
    world.log(&["before"]);
    let (go_on, ended) = world.start(LONG, 100);
    tokio::time::sleep(BATCH_AGE / 2).await;
    world.log(&["meanwhile"]);
    assert!(world.kept().await.is_empty(), "a batch has time");
    tokio::time::sleep(BATCH_AGE).await;
    assert_eq!(world.kept().await, ["before", "meanwhile"]);
    world.log(&["last"]);
    drop(go_on);
    ended.await.unwrap();
    assert_eq!(world.kept().await, ["before", "meanwhile", "last"]);
    assert_eq!(world.heard(), world.kept().await);
}

#[tokio::test(start_paused = true)]
async fn what_was_dropped_is_reported_once() {
    let world = World::new(2);
    world.log(&["a", "b", "c", "d", "e"]);
    let (_go_on, _ended) = world.start(LONG, 100);
    tokio::time::sleep(BATCH_AGE * 4).await;
    world.log(&["f"]);
    tokio::time::sleep(BATCH_AGE * 4).await;
    assert_eq!(world.kept().await, ["a", "b", "3 log records were dropped", "f"]);
}

#[tokio::test(start_paused = true)]
async fn many_records_are_more_than_one_batch() {
    let world = World::new(BATCH_MAX * 3);
    for number in 0..BATCH_MAX * 2 + 1 {
        world.log(&[&number.to_string()]);
    }
    let (go_on, ended) = world.start(LONG, 10_000);
    drop(go_on);
    ended.await.unwrap();
    assert_eq!(world.kept().await.len(), BATCH_MAX * 2 + 1);
}

#[tokio::test(start_paused = true)]
async fn records_wait_while_the_store_refuses_them() {
    let world = World::new(3);
    let (_go_on, _ended) = world.start(LONG, 100);
    world.store.set_writable(false);
    world.log(&["a", "b"]);
    tokio::time::sleep(BATCH_AGE * 2).await;
    assert_eq!(world.heard(), ["a", "b"], "others need not wait");
    world.log(&["c", "d"]);
    tokio::time::sleep(BATCH_AGE * 2).await;
    world.store.set_writable(true);
    tokio::time::sleep(WRITE_PAUSE * 2).await;
    assert_eq!(world.kept().await, ["b", "c", "d"]);
    world.log(&["e"]);
    tokio::time::sleep(BATCH_AGE * 2).await;
    assert_eq!(world.kept().await[3..], ["e", "1 log records were dropped"]);
}

#[tokio::test(start_paused = true)]
async fn old_records_and_too_many_are_dropped_every_minute() {
    let world = World::new(100);
    // those of the tests are from 2023
    let (_go_on, _ended) = world.start(LONG, 2);
    tokio::time::sleep(BATCH_AGE).await;
    world.log(&["a", "b", "c"]);
    tokio::time::sleep(PRUNE_EVERY / 2).await;
    assert_eq!(world.kept().await.len(), 3);
    tokio::time::sleep(PRUNE_EVERY).await;
    assert_eq!(world.kept().await, ["b", "c"]);

    let world = World::new(100);
    let (_go_on, _ended) = world.start(Duration::from_secs(7 * 24 * 3600), 100);
    world.log(&["a"]);
    tokio::time::sleep(PRUNE_EVERY * 2).await;
    assert!(world.kept().await.is_empty());
}

#[tokio::test]
async fn a_keeper_writes_the_rest_before_it_ends() {
    let world = World::new(100);
    let reader = world.queue.reader().unwrap();
    let keeper = Keeper::over(reader, world.keeping(LONG, 100)).unwrap();
    world.log(&["a", "b"]);
    keeper.stop().await;
    assert_eq!(world.kept().await, ["a", "b"]);
    assert!(world.queue.reader().is_some(), "the next server may keep");
}
