//! Queues of the lanes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::Lane;
use super::fold::Job;
use super::register::lanes;
use super::session::LaneKey;
use crate::store::Shared;

/// Maximum wait for the lanes when the store is closed.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// The lanes, as those who write use them.
pub(crate) struct Lanes {
    /// Empty once closed; the end of its queue ends a lane.
    queues: RwLock<Vec<UnboundedSender<Job>>>,
    queued: Arc<AtomicUsize>,
    /// Disconnects when the last lane has ended.
    running: Mutex<Receiver<()>>,
}

impl Lanes {
    /// Starts the lanes of a process on the store's thread.
    pub(crate) fn start(shared: &Arc<Shared>, driver: &Handle) -> Self {
        let queued = Arc::new(AtomicUsize::new(0));
        let (ended, running) = channel();
        let start = |lane| {
            let (queue, jobs) = unbounded_channel();
            let lane = Lane {
                shared: Arc::clone(shared),
                key: LaneKey { node: shared.node, lane },
                jobs,
                queued: Arc::clone(&queued),
                session: None,
                sessions: 0,
                batch: 0,
                is_out: false,
            };
            let ended: Sender<()> = ended.clone();
            driver.spawn(async move {
                lane.run().await;
                drop(ended);
            });
            queue
        };
        let queues = lanes(shared.settings.writers).map(start).collect();
        Self { queues: RwLock::new(queues), queued, running: Mutex::new(running) }
    }

    /// Queues a request of a shard. Returns it if the lane has ended.
    pub(crate) fn queue(&self, shard: usize, job: Job) -> Result<(), Job> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        if queues.is_empty() {
            return Err(job);
        }
        self.queued.fetch_add(1, Ordering::Relaxed);
        queues[shard % queues.len()].send(job).map_err(|unsent| {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            unsent.0
        })
    }

    /// Returns the number of requests that no lane has taken yet.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    /// Waits until what is queued is committed, for a limited time; later requests are refused.
    pub(crate) fn close(&self) {
        self.queues.write().unwrap_or_else(PoisonError::into_inner).clear();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.recv_timeout(CLOSE_MAX) == Err(RecvTimeoutError::Timeout) {
            let queued = self.queued();
            log::error!("closed the store without the end of its writes; {queued} were not begun");
        }
    }
}
