//! Queues of the lanes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::Lane;
use super::executions::Executions;
use super::fold::Job;
use super::outage::{OutageOfOne, Outages};
use super::register::{GENERATIONS, lanes};
use super::session::LaneKey;
use super::work::Work;
use crate::generations::{GenerationJob, Generations};
use crate::pool::Failure;
use crate::shared::Shared;

/// Maximum wait for the lanes when the store is closed.
const CLOSE_MAX: Duration = Duration::from_secs(5);
/// The same during an outage, for which the server has already waited.
const CLOSE_IN_OUTAGE_MAX: Duration = Duration::from_secs(1);

/// The lanes, as those who write use them.
pub(crate) struct Lanes {
    /// `None` once closed; the end of its queue ends a lane.
    queues: RwLock<Option<Queues>>,
    queued: Arc<AtomicUsize>,
    /// Disconnects when the last lane has ended.
    running: Mutex<Receiver<()>>,
}

struct Queues {
    executions: Vec<UnboundedSender<Job>>,
    generations: UnboundedSender<GenerationJob>,
}

/// Starts lanes of one process.
struct Starter<'s> {
    shared: &'s Arc<Shared>,
    driver: &'s Handle,
    queued: Arc<AtomicUsize>,
    ended: Sender<()>,
}

/// Waits until marks are reached.
pub(crate) async fn reached(
    marks: Vec<oneshot::Receiver<()>>,
    patience: Duration,
) -> Result<(), Failure> {
    // closes without a value
    timeout(patience, join_all(marks)).await.map(drop).map_err(|_| Failure::Behind)
}

impl Starter<'_> {
    /// Starts a lane on the store's thread; returns its queue.
    fn start<W: Work>(&self, lane: i16) -> UnboundedSender<W::Job> {
        let (queue, jobs) = unbounded_channel();
        let lane: Lane<W> = Lane {
            shared: Arc::clone(self.shared),
            key: LaneKey { node: self.shared.node, lane },
            jobs,
            queued: Arc::clone(&self.queued),
            session: None,
            sessions: 0,
            was_connected: false,
            batch: 0,
            is_unconfirmed: false,
            is_outcome_unknown: false,
            outage: OutageOfOne::default(),
        };
        let ended = self.ended.clone();
        self.driver.spawn(async move {
            lane.run().await;
            drop(ended);
        });
        queue
    }
}

impl Lanes {
    /// Starts the lanes of a process on the store's thread.
    pub(crate) fn start(shared: &Arc<Shared>, driver: &Handle) -> Self {
        let queued = Arc::new(AtomicUsize::new(0));
        let (ended, running) = channel();
        let starter = Starter { shared, driver, queued: Arc::clone(&queued), ended };
        let executions = lanes(shared.settings.writers);
        let queues = Queues {
            executions: executions.map(|lane| starter.start::<Executions>(lane)).collect(),
            generations: starter.start::<Generations>(GENERATIONS),
        };
        Self { queues: RwLock::new(Some(queues)), queued, running: Mutex::new(running) }
    }

    /// Queues a request of a shard. Returns it if the lane has ended.
    pub(crate) fn queue(&self, shard: usize, job: Job) -> Result<(), Job> {
        self.send(job, |queues| &queues.executions[shard % queues.executions.len()])
    }

    /// Queues the record of a generation. Returns it if the lane has ended.
    pub(crate) fn queue_generation(&self, job: GenerationJob) -> Result<(), GenerationJob> {
        self.send(job, |queues| &queues.generations)
    }

    fn send<J>(&self, job: J, queue: impl FnOnce(&Queues) -> &UnboundedSender<J>) -> Result<(), J> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let Some(queues) = queues.as_ref() else { return Err(job) };
        self.queued.fetch_add(1, Ordering::Relaxed);
        queue(queues).send(job).map_err(|unsent| {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            unsent.0
        })
    }

    /// Returns channels that close when the requests to executions that are queued now are answered.
    pub(crate) fn marks(&self) -> Vec<oneshot::Receiver<()>> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        let lanes = queues.iter().flat_map(|queues| &queues.executions);
        let marks = lanes.map(|lane| {
            let (done, mark) = oneshot::channel();
            self.queued.fetch_add(1, Ordering::Relaxed);
            if lane.send(Job::Mark(done)).is_err() {
                self.queued.fetch_sub(1, Ordering::Relaxed);
            }
            mark
        });
        marks.collect()
    }

    /// Returns the number of requests that have no outcome yet.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Waits until what is queued is committed, for a limited time; later requests are refused.
    pub(crate) fn close(&self, outages: &Outages) {
        self.queues.write().unwrap_or_else(PoisonError::into_inner).take();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = if outages.is_writable() { CLOSE_MAX } else { CLOSE_IN_OUTAGE_MAX };
        if running.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            let queued = self.queued();
            log::error!(
                "closed the store while writes wait for the database ({queued}): none of them was \
                 acknowledged, and after the next start executions continue from what it has"
            );
        }
    }
}
