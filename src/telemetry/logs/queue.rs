//! Bounded queue of records to be stored. Senders never wait.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_actors::observe::log_record::{LogLevel, LogRecord};
use log::{LevelFilter, Metadata};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Modules whose records go only to the console: stored, each would cause the next.
const OWN_TARGET: &str = "greenroom::telemetry";

thread_local! {
    static IS_RECORDING_OFF: Cell<bool> = const { Cell::new(false) };
}

/// Runs work that stores or exports records. Records that this thread logs meanwhile go only to
/// the console, so that storing a record never creates another.
pub fn without_recording<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_RECORDING_OFF.set(self.0);
        }
    }
    let _before = Before(IS_RECORDING_OFF.replace(true));
    work()
}

/// Sender's side, used by the logger.
#[derive(Debug)]
pub(super) struct Queue {
    level: LevelFilter,
    sender: Sender<Arc<LogRecord>>,
    /// `None` while a [`Reader`] has it.
    receiver: Mutex<Option<Receiver<Arc<LogRecord>>>>,
    /// True before the first reader and while there is one; records are rejected after it ended.
    is_open: AtomicBool,
    dropped: AtomicU64,
    /// Number of records by level, in the order of [`LogLevel::ALL`].
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

    /// Returns the capacity.
    pub(super) fn records_max(&self) -> usize {
        self.sender.max_capacity()
    }

    /// Returns true if such a record is stored.
    pub(super) fn takes(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= self.level
            && self.is_open.load(Ordering::Relaxed)
            && !IS_RECORDING_OFF.get()
            && !is_own(metadata.target())
    }

    /// Adds a record, or counts it as dropped if the queue is full.
    pub(super) fn push(&self, record: Arc<LogRecord>) {
        if self.sender.try_send(record).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a record that is shown or stored.
    pub(super) fn count(&self, level: LogLevel) {
        self.logged[level as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of counted records of a level.
    pub(super) fn logged(&self, level: LogLevel) -> u64 {
        self.logged[level as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of dropped records.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Counts records dropped after they left the queue.
    pub(super) fn add_dropped(&self, records: usize) {
        self.dropped.fetch_add(records as u64, Ordering::Relaxed);
    }

    /// Returns the receiver's side. `None` if there is one already or if storing is off.
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

/// Receiver's side. Dropping it closes the queue until there is another reader.
#[derive(Debug)]
pub(super) struct Reader {
    queue: Arc<Queue>,
    /// `Some` until this is dropped.
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

    /// Returns the number of queued records.
    pub(super) fn waiting(&self) -> usize {
        self.receiver.as_ref().map_or(0, Receiver::len)
    }

    /// Moves queued records into a batch until it has `records_max`.
    pub(super) fn fill(&mut self, batch: &mut Vec<Arc<LogRecord>>, records_max: usize) {
        let Some(receiver) = &mut self.receiver else { return };
        while batch.len() < records_max {
            let Ok(record) = receiver.try_recv() else { return };
            batch.push(record);
        }
    }

    /// Rejects further records.
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
    use crate::telemetry::logs::record_builder::tests::record;

    fn takes(queue: &Queue, level: log::Level, target: &str) -> bool {
        queue.takes(&Metadata::builder().level(level).target(target).build())
    }

    #[test]
    fn records_beyond_the_capacity_are_counted_as_dropped() {
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
    fn dropping_the_reader_closes_the_queue_until_the_next_reader() {
        let queue = Arc::new(Queue::new(LevelFilter::Info, 2));
        let takes = |queue: &Queue| takes(queue, log::Level::Info, "a");
        assert!(takes(&queue), "records are queued before the first reader");
        drop(queue.reader().unwrap());
        assert!(!takes(&queue));
        let _reader = queue.reader().unwrap();
        assert!(takes(&queue));
    }

    #[test]
    fn records_about_storing_records_are_not_stored() {
        let queue = Queue::new(LevelFilter::Info, 2);
        for (target, level, expected) in [
            ("greenroom::app", log::Level::Info, true),
            ("greenroom::app", log::Level::Debug, false),
            ("greenroom::telemetry::logs::log_store_writer", log::Level::Error, false),
            ("greenroom::telemetry", log::Level::Error, false),
            ("greenroom::telemetrybox", log::Level::Error, true),
        ] {
            assert_eq!(takes(&queue, level, target), expected, "{target}");
        }
        without_recording(|| {
            without_recording(|| ());
            assert!(!takes(&queue, log::Level::Error, "hyper"));
        });
        assert!(takes(&queue, log::Level::Error, "hyper"));
        let off = Arc::new(Queue::new(LevelFilter::Off, 2));
        assert!(!takes(&off, log::Level::Error, "a") && off.reader().is_none());
    }
}
