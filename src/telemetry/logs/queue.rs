//! Records that wait to be kept: a bounded queue that nobody ever waits for.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_actors::observe::log_record::{LogLevel, LogRecord};
use log::{LevelFilter, Metadata};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Modules whose records go to the console alone: kept, they would make the next ones.
const OWN_TARGET: &str = "greenroom::telemetry";

thread_local! {
    static IS_OFF_THE_RECORD: Cell<bool> = const { Cell::new(false) };
}

/// Runs what keeps or exports records: what is logged on this thread meanwhile goes to the console
/// alone, so that keeping a record never makes another one.
pub fn off_the_record<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_OFF_THE_RECORD.set(self.0);
        }
    }
    let _before = Before(IS_OFF_THE_RECORD.replace(true));
    work()
}

/// The logger's side.
#[derive(Debug)]
pub(super) struct Queue {
    level: LevelFilter,
    sender: Sender<Arc<LogRecord>>,
    /// Until somebody reads.
    receiver: Mutex<Option<Receiver<Arc<LogRecord>>>>,
    /// Before the first reader comes, records wait for it; after it has left, nothing is kept.
    is_open: AtomicBool,
    dropped: AtomicU64,
    /// By level, in the order of [`LogLevel::ALL`].
    logged: [AtomicU64; 5],
}

impl Queue {
    pub(super) fn new(level: LevelFilter, records_max: usize) -> Self {
        let (sender, receiver) = channel(records_max.max(1));
        Self {
            level,
            sender,
            receiver: Mutex::new(Some(receiver)),
            is_open: AtomicBool::new(level != LevelFilter::Off),
            dropped: AtomicU64::new(0),
            logged: Default::default(),
        }
    }

    pub(super) fn level(&self) -> LevelFilter {
        self.level
    }

    /// Records that may wait.
    pub(super) fn records_max(&self) -> usize {
        self.sender.max_capacity()
    }

    /// Whether such a record is kept.
    pub(super) fn wants(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= self.level
            && self.is_open.load(Ordering::Relaxed)
            && !IS_OFF_THE_RECORD.get()
            && !is_own(metadata.target())
    }

    /// Adds a record, or drops it when there is no room.
    pub(super) fn push(&self, record: Arc<LogRecord>) {
        if self.sender.try_send(record).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a record that is shown or kept.
    pub(super) fn count(&self, level: LogLevel) {
        self.logged[level as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Records of a level so far.
    pub(super) fn logged(&self, level: LogLevel) -> u64 {
        self.logged[level as usize].load(Ordering::Relaxed)
    }

    /// Records that were dropped so far.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Counts records that were dropped later than here.
    pub(super) fn add_dropped(&self, records: usize) {
        self.dropped.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// The other side; there is one at a time, and none when nothing is kept.
    pub(super) fn reader(self: &Arc<Self>) -> Option<Reader> {
        if self.level == LevelFilter::Off {
            return None;
        }
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.is_open.store(true, Ordering::Relaxed);
        Some(Reader { queue: Arc::clone(self), receiver: Some(receiver) })
    }
}

fn is_own(target: &str) -> bool {
    let rest = target.strip_prefix(OWN_TARGET);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The keeper's side. Dropped, it closes the queue until there is another one.
#[derive(Debug)]
pub(super) struct Reader {
    queue: Arc<Queue>,
    /// Taken when this is dropped.
    receiver: Option<Receiver<Arc<LogRecord>>>,
}

impl Reader {
    pub(super) fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Waits for a record.
    pub(super) async fn next(&mut self) -> Option<Arc<LogRecord>> {
        self.receiver.as_mut()?.recv().await
    }

    /// Records that wait.
    pub(super) fn waiting(&self) -> usize {
        self.receiver.as_ref().map_or(0, Receiver::len)
    }

    /// Moves records that wait into a batch until it has `records_max`.
    pub(super) fn fill(&mut self, batch: &mut Vec<Arc<LogRecord>>, records_max: usize) {
        let Some(receiver) = &mut self.receiver else { return };
        while batch.len() < records_max {
            let Ok(record) = receiver.try_recv() else { return };
            batch.push(record);
        }
    }

    /// Lets nothing more in.
    pub(super) fn close(&self) {
        self.queue.is_open.store(false, Ordering::Relaxed);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.close();
        let mut place = self.queue.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        *place = self.receiver.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::logs::scribe::tests::record;

    fn wants(queue: &Queue, level: log::Level, target: &str) -> bool {
        queue.wants(&Metadata::builder().level(level).target(target).build())
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let queue = Arc::new(Queue::new(LevelFilter::Info, 2));
        for number in 0..5 {
            queue.push(record(&format!("{number}")));
        }
        assert_eq!(queue.dropped(), 3);
        let mut reader = queue.reader().unwrap();
        assert!(queue.reader().is_none(), "there is one reader");
        let mut batch = Vec::new();
        reader.fill(&mut batch, 10);
        let kept: Vec<_> = batch.iter().map(|record| record.message.as_str()).collect();
        assert_eq!((kept, reader.waiting()), (vec!["0", "1"], 0));
    }

    #[test]
    fn a_reader_that_has_left_closes_the_queue_until_the_next_one() {
        let queue = Arc::new(Queue::new(LevelFilter::Info, 2));
        let wants = |queue: &Queue| wants(queue, log::Level::Info, "a");
        assert!(wants(&queue), "records wait for the first reader");
        drop(queue.reader().unwrap());
        assert!(!wants(&queue));
        let _reader = queue.reader().unwrap();
        assert!(wants(&queue));
    }

    #[test]
    fn what_keeps_records_is_not_kept() {
        let queue = Queue::new(LevelFilter::Info, 2);
        for (target, level, expected) in [
            ("greenroom::app", log::Level::Info, true),
            ("greenroom::app", log::Level::Debug, false),
            ("greenroom::telemetry::logs::keeper", log::Level::Error, false),
            ("greenroom::telemetry", log::Level::Error, false),
            ("greenroom::telemetrybox", log::Level::Error, true),
        ] {
            assert_eq!(wants(&queue, level, target), expected, "{target}");
        }
        off_the_record(|| {
            off_the_record(|| ());
            assert!(!wants(&queue, log::Level::Error, "hyper"));
        });
        assert!(wants(&queue, log::Level::Error, "hyper"));
        let off = Arc::new(Queue::new(LevelFilter::Off, 2));
        assert!(!wants(&off, log::Level::Error, "a") && off.reader().is_none());
    }
}
