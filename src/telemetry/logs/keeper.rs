//! Takes records out of the queue, in batches: into the store, and to the other sinks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::{LogLevel, LogRecord};
use greenroom_actors::ports::clock::Clock;
use greenroom_actors::ports::store::Logs;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use super::queue::{Reader, off_the_record};
use super::{LogSink, QUEUE};

/// A batch is taken when it has this many records,
const BATCH_MAX: usize = 512;
/// or when its first one has waited this long.
const BATCH_AGE: Duration = Duration::from_millis(250);
/// How often a batch that is not full is looked at.
const BATCH_LOOK: Duration = Duration::from_millis(25);
/// How long the store may take for a batch.
const WRITE_MAX: Duration = Duration::from_secs(5);
/// How long a store that refused a batch is left alone.
const WRITE_PAUSE: Duration = Duration::from_secs(1);
/// How often old records are dropped from the store.
const PRUNE_EVERY: Duration = Duration::from_secs(60);
/// How long records that wait at the end of the server have to be written.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// Where records are kept, and for how long.
pub struct Keeping {
    pub store: Arc<dyn Logs>,
    pub clock: Arc<dyn Clock>,
    /// Records are dropped when they are older.
    pub keep: Duration,
    /// Records that are kept; beyond it the oldest are dropped.
    pub rows_max: u64,
    /// Get every batch, after the store has it.
    pub sinks: Vec<Arc<dyn LogSink>>,
}

impl fmt::Debug for Keeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keeping").field("keep", &self.keep).finish_non_exhaustive()
    }
}

/// Keeps what is logged while it lives, on a thread of its own.
#[derive(Debug)]
pub struct Keeper {
    /// Dropped to end it.
    go_on: oneshot::Sender<()>,
    /// Resolves when everything is written.
    ended: oneshot::Receiver<()>,
}

impl Keeper {
    /// Starts to keep what this process's logger has heard and hears. None where nothing is to be
    /// kept, where the logger is not ours, and where another server of the process keeps it.
    pub fn start(keeping: Keeping) -> Option<Self> {
        Self::over(QUEUE.get()?.reader()?, keeping)
    }

    fn over(reader: Reader, keeping: Keeping) -> Option<Self> {
        let (go_on, over) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            match runtime {
                Ok(runtime) => {
                    off_the_record(|| runtime.block_on(Work::new(reader, keeping).run(over)))
                }
                Err(error) => log::error!("log records are not kept: {error}"),
            }
            // The other side may have stopped waiting.
            let _ = end.send(());
        };
        let thread = std::thread::Builder::new().name("greenroom-logs".to_owned()).spawn(work);
        match thread {
            Ok(_) => Some(Self { go_on, ended }),
            Err(error) => {
                log::error!("log records are not kept: {error}");
                None
            }
        }
    }

    /// Writes what waits, and ends. Called before the store is closed; what is logged from now on
    /// goes to the console alone.
    pub async fn stop(self) {
        let Self { go_on, ended } = self;
        drop(go_on);
        if timeout(FLUSH_MAX, ended).await.is_err() {
            log::warn!("the newest log records were not kept: the store took too long");
        }
    }
}

struct Work {
    reader: Reader,
    keeping: Keeping,
    /// Not in the store yet, which has refused them.
    unwritten: Vec<Arc<LogRecord>>,
    /// Set while the store refuses.
    refused_at: Option<Instant>,
    /// Dropped records that have been reported.
    reported: u64,
}

impl Work {
    fn new(reader: Reader, keeping: Keeping) -> Self {
        Self { reader, keeping, unwritten: Vec::new(), refused_at: None, reported: 0 }
    }

    async fn run(mut self, mut over: oneshot::Receiver<()>) {
        let mut prune = tokio::time::interval(PRUNE_EVERY);
        prune.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_over = false;
        while !is_over {
            tokio::select! {
                biased;
                _ = &mut over => is_over = true,
                Some(first) = self.reader.next() => {
                    is_over = tokio::select! {
                        biased;
                        _ = &mut over => true,
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
        self.refused_at = None;
        self.take(Vec::new()).await;
    }

    /// Waits until there is enough for a batch, or it is time.
    async fn batch(&self) {
        let until = Instant::now() + BATCH_AGE;
        while self.reader.waiting() + 1 < BATCH_MAX && Instant::now() < until {
            tokio::time::sleep(BATCH_LOOK).await;
        }
    }

    /// Hands on what waits, behind what was taken already.
    async fn take(&mut self, mut batch: Vec<Arc<LogRecord>>) {
        loop {
            self.reader.fill(&mut batch, BATCH_MAX);
            let is_last = batch.len() < BATCH_MAX;
            batch.extend(self.report());
            self.hand_on(std::mem::take(&mut batch)).await;
            if is_last {
                return;
            }
        }
    }

    /// Those who hear of a record find it in the store: nobody who reads first and listens then
    /// misses one.
    async fn hand_on(&mut self, batch: Vec<Arc<LogRecord>>) {
        self.unwritten.extend(batch.iter().cloned());
        let is_left_alone = self.refused_at.is_some_and(|at| at.elapsed() < WRITE_PAUSE);
        if !is_left_alone {
            self.write().await;
        }
        let beyond = self.unwritten.len().saturating_sub(self.reader.queue().records_max());
        if beyond > 0 {
            self.unwritten.drain(..beyond);
            self.reader.queue().add_dropped(beyond);
        }
        if !batch.is_empty() {
            self.keeping.sinks.iter().for_each(|sink| sink.take(&batch));
        }
    }

    async fn write(&mut self) {
        if self.unwritten.is_empty() {
            return;
        }
        let written = self.keeping.store.write_logs(self.unwritten.clone());
        match timeout(WRITE_MAX, written).await {
            Ok(Ok(())) => {
                self.unwritten.clear();
                if self.refused_at.take().is_some() {
                    log::info!("log records are kept again");
                }
            }
            Ok(Err(error)) => {
                if self.refused_at.replace(Instant::now()).is_none() {
                    log::warn!("log records wait for the store: {error}");
                }
            }
            Err(_) => {
                // The store has them and may write them yet; handed over again they would be there
                // twice.
                self.unwritten.clear();
                log::warn!("the store takes more than {WRITE_MAX:?} for log records");
            }
        }
    }

    /// Tells of records that were dropped since it was told last.
    fn report(&mut self) -> Option<Arc<LogRecord>> {
        let dropped = self.reader.queue().dropped();
        let records = dropped - std::mem::replace(&mut self.reported, dropped);
        if records == 0 {
            return None;
        }
        let message = format!("{records} log records were dropped");
        log::warn!("{message}");
        Some(Arc::new(LogRecord {
            at: self.keeping.clock.now(),
            level: LogLevel::Warn,
            target: Arc::from(module_path!()),
            message,
            attributes: vec![("dropped".to_owned(), records.into())],
            scope: Arc::default(),
        }))
    }

    async fn prune(&mut self) {
        let Keeping { store, clock, keep, rows_max, .. } = &self.keeping;
        let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
        let before = Timestamp(clock.now().0.saturating_sub(keep));
        match store.prune_logs(before, *rows_max).await {
            Ok(0) => {}
            Ok(records) => log::debug!("{records} old log records were dropped"),
            Err(error) => log::warn!("old log records stay: {error}"),
        }
    }
}

#[cfg(test)]
mod tests;
