//! Moves log records in batches from the queue to the store and to other sinks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::{LogLevel, LogRecord};
use greenroom_actors::ports::clock::Clock;
use greenroom_actors::ports::store::{AppendError, LOG_BATCH_MAX, Logs};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::queue::{Reader, without_recording};
use super::{LogSink, QUEUE};

/// Maximum number of records of a batch.
const BATCH_MAX: usize = 512;
/// Maximum age of the first record of a batch.
const BATCH_AGE: Duration = Duration::from_millis(250);
/// Interval of checks whether a batch is full.
const BATCH_CHECK: Duration = Duration::from_millis(25);
/// Time after which a write is late. It is still awaited, but it does not delay other sinks any
/// longer.
const WRITE_MAX: Duration = Duration::from_secs(5);
/// Pause after the store rejected a batch.
const WRITE_PAUSE: Duration = Duration::from_secs(1);
/// Interval of deletions of old records.
const PRUNE_EVERY: Duration = Duration::from_secs(60);
/// Time to write the remaining records when the server stops.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// The store of log records, its limits, and other receivers of them.
pub struct LogStoreSettings {
    pub store: Arc<dyn Logs>,
    pub clock: Arc<dyn Clock>,
    /// Maximum age of stored records.
    pub retention: Duration,
    /// Maximum number of stored records; the oldest are deleted first.
    pub rows_max: u64,
    /// Receive every batch after the store has it.
    pub sinks: Vec<Arc<dyn LogSink>>,
}

impl fmt::Debug for LogStoreSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("LogStoreSettings");
        debug.field("retention", &self.retention).finish_non_exhaustive()
    }
}

/// Handle of the thread that stores log records. Dropping it ends the thread.
#[derive(Debug)]
pub struct LogStoreWriter {
    /// Dropped to stop the thread.
    running: oneshot::Sender<()>,
    /// Resolves once all records are written.
    ended: oneshot::Receiver<()>,
}

impl LogStoreWriter {
    /// Starts to store the records of the process's logger, including those already queued. `None`
    /// if storing is off, if the program has another logger, or if another server of the process
    /// stores them.
    pub fn start(settings: LogStoreSettings) -> Option<Self> {
        Self::over(QUEUE.get()?.reader()?, settings)
    }

    fn over(reader: Reader, settings: LogStoreSettings) -> Option<Self> {
        let (running, stopped) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            match runtime {
                Ok(runtime) => {
                    without_recording(|| runtime.block_on(Work::new(reader, settings).run(stopped)))
                }
                Err(error) => log::error!("log records are not stored: {error}"),
            }
            // fails if `stop` has timed out
            let _ = end.send(());
        };
        let thread = std::thread::Builder::new().name("greenroom-logs".to_owned()).spawn(work);
        match thread {
            Ok(_) => Some(Self { running, ended }),
            Err(error) => {
                log::error!("log records are not stored: {error}");
                None
            }
        }
    }

    /// Writes the remaining records and ends the thread. Call before the store is closed; later
    /// records go only to the console.
    pub async fn stop(self) {
        let Self { running, ended } = self;
        drop(running);
        if timeout(FLUSH_MAX, ended).await.is_err() {
            log::warn!(
                "the newest log records were not stored: the store did not answer within \
                 {FLUSH_MAX:?}"
            );
        }
    }
}

struct Work {
    reader: Reader,
    settings: LogStoreSettings,
    /// Records that the store has not accepted so far.
    unwritten: Vec<Arc<LogRecord>>,
    /// A late write of the first of them.
    late: Option<Write>,
    /// Time of the last failure; `None` while the store accepts records.
    failed_at: Option<Instant>,
    /// Number of dropped records that have been reported.
    reported: u64,
}

/// A write of so many records.
struct Write {
    records: usize,
    outcome: BoxFuture<'static, Result<(), AppendError>>,
}

impl Work {
    fn new(reader: Reader, settings: LogStoreSettings) -> Self {
        let (unwritten, late, failed_at) = (Vec::new(), None, None);
        Self { reader, settings, unwritten, late, failed_at, reported: 0 }
    }

    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        let mut prune = tokio::time::interval(PRUNE_EVERY);
        prune.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_last = false;
        while !is_last {
            tokio::select! {
                biased;
                _ = &mut stopped => is_last = true,
                Some(first) = self.reader.next() => {
                    is_last = tokio::select! {
                        biased;
                        _ = &mut stopped => true,
                        () = self.batch() => false,
                    };
                    self.take(vec![first]).await;
                }
                _ = prune.tick() => self.prune().await,
                () = tokio::time::sleep(WRITE_PAUSE), if !self.unwritten.is_empty() => {
                    self.write().await;
                }
            }
        }
        self.reader.close();
        self.take(Vec::new()).await;
        // also if the store failed a moment ago
        self.write().await;
    }

    /// Waits until a batch is full or old enough.
    async fn batch(&mut self) {
        let until = Instant::now() + BATCH_AGE;
        while self.reader.waiting() + 1 < BATCH_MAX && Instant::now() < until {
            tokio::time::sleep(BATCH_CHECK).await;
        }
    }

    /// Delivers `batch` and all queued records.
    async fn take(&mut self, mut batch: Vec<Arc<LogRecord>>) {
        loop {
            self.reader.fill(&mut batch, BATCH_MAX);
            let is_last = batch.len() < BATCH_MAX;
            batch.extend(self.report());
            self.deliver(std::mem::take(&mut batch)).await;
            if is_last {
                return;
            }
        }
    }

    /// Writes a batch to the store, then passes it to the sinks. In this order, a client that
    /// subscribes and then reads the store misses no record.
    async fn deliver(&mut self, batch: Vec<Arc<LogRecord>>) {
        self.unwritten.extend(batch.iter().cloned());
        let is_paused = self.failed_at.is_some_and(|at| at.elapsed() < WRITE_PAUSE);
        if !is_paused {
            self.write().await;
        }
        let beyond = self.unwritten.len().saturating_sub(self.reader.queue().records_max());
        if beyond > 0 {
            self.unwritten.drain(..beyond);
            if let Some(late) = &mut self.late {
                late.records = late.records.saturating_sub(beyond);
            }
            self.reader.queue().add_dropped(beyond);
        }
        if !batch.is_empty() {
            self.settings.sinks.iter().for_each(|sink| sink.take(&batch));
        }
    }

    /// Writes all records, unless the store fails.
    async fn write(&mut self) {
        while !self.unwritten.is_empty() {
            if let Err(reason) = self.write_once().await {
                self.fail(&reason);
                return;
            }
        }
        if self.failed_at.take().is_some() {
            log::info!("log records are stored again");
        }
    }

    /// Writes as many of the records as are stored as a whole, since a rejected write is repeated. Or
    /// waits for the write of the first of them.
    async fn write_once(&mut self) -> Result<(), String> {
        let wait = match (&self.late, self.failed_at) {
            (Some(_), Some(_)) => BATCH_CHECK,
            _ => WRITE_MAX,
        };
        let mut write = self.late.take().unwrap_or_else(|| {
            let batch: Vec<_> = self.unwritten.iter().take(LOG_BATCH_MAX).cloned().collect();
            let records = batch.len();
            Write { records, outcome: self.settings.store.write_logs(batch) }
        });
        match timeout(wait, &mut write.outcome).await {
            Ok(Ok(())) => {
                self.unwritten.drain(..write.records);
                Ok(())
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => {
                // written again, they would be there twice
                self.late = Some(write);
                Err(format!("it has not answered within {WRITE_MAX:?}"))
            }
        }
    }

    /// Notes a failure of the store; logs the first one.
    fn fail(&mut self, reason: &str) {
        if self.failed_at.replace(Instant::now()).is_none() {
            log::warn!("log records wait for the store, retrying every second: {reason}");
        }
    }

    /// Returns a record about records dropped since the last report.
    fn report(&mut self) -> Option<Arc<LogRecord>> {
        let dropped = self.reader.queue().dropped();
        let records = dropped - std::mem::replace(&mut self.reported, dropped);
        if records == 0 {
            return None;
        }
        let message = format!("{records} log records were dropped: the queue was full");
        log::warn!("{message}");
        Some(Arc::new(LogRecord {
            at: self.settings.clock.now(),
            level: LogLevel::Warn,
            target: Arc::from(module_path!()),
            message,
            attributes: vec![("dropped".to_owned(), records.into())],
            scope: Arc::default(),
        }))
    }

    /// Deletes old records, unless the store fails.
    async fn prune(&mut self) {
        if self.failed_at.is_some() {
            return;
        }
        let LogStoreSettings { store, clock, retention, rows_max, .. } = &self.settings;
        let retention = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp(clock.now().0.saturating_sub(retention));
        match store.prune_logs(before, *rows_max).await {
            Ok(0) => {}
            Ok(records) => log::debug!("deleted {records} old log records"),
            Err(error) => {
                let reason = format!("old ones cannot be deleted: {error}");
                self.fail(&reason);
            }
        }
    }
}

#[cfg(test)]
mod tests;
