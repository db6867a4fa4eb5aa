//! The queue of the writer.

use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_actors::ports::store::Written;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::changes::Change;
use super::job::Job;
use super::session::Verdict;
use super::writer::Shared;
use super::writer_is_gone;

/// Maximum number of queued changes of conversations, of which each may be as large as a request.
/// Executions and generations have limits elsewhere.
pub(super) const CHANGES_MAX: usize = 32;

/// Jobs for the writer, in their order.
pub(super) struct Queue {
    /// `None` once closed; the end of the queue ends the writer.
    jobs: Mutex<Option<Sender<Job>>>,
    shared: Arc<Shared>,
    room_for_changes: Arc<Semaphore>,
}

impl Queue {
    pub(super) fn new(jobs: Sender<Job>, shared: Arc<Shared>) -> Self {
        let room_for_changes = Arc::new(Semaphore::new(CHANGES_MAX));
        Self { jobs: Mutex::new(Some(jobs)), shared, room_for_changes }
    }

    /// Queues a job. Returns it if the writer has ended.
    pub(super) fn put(&self, job: Job) -> Result<(), Job> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(jobs) = &*jobs else { return Err(job) };
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        jobs.send(job).map_err(|unsent| {
            self.shared.queued.fetch_sub(1, Ordering::Relaxed);
            self.shared.writable.store(false, Ordering::SeqCst);
            unsent.0
        })
    }

    /// Queues a job and waits for its answer.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Verdict<T>>) -> Job,
    ) -> Written<T> {
        let (done, answer) = oneshot::channel();
        // a job that cannot be queued drops its sender, which the receiver reports
        let _ = self.put(job(done));
        Box::pin(async move { answer.await.unwrap_or_else(|_| Err(writer_is_gone())) })
    }

    /// Queues a change as soon as there is room; resolves with the number of changed or deleted
    /// rows. A caller that leaves before that leaves nothing in memory.
    pub(super) fn change(self: &Arc<Self>, change: Change) -> Written<u64> {
        let room = Arc::clone(&self.room_for_changes);
        match Arc::clone(&room).try_acquire_owned() {
            Ok(room) => self.change_in(room, change),
            Err(_) => {
                let queue = Arc::clone(self);
                Box::pin(async move {
                    // an error: the semaphore is never closed
                    let room = room.acquire_owned().await.map_err(|_| writer_is_gone())?;
                    queue.change_in(room, change).await
                })
            }
        }
    }

    fn change_in(&self, room: OwnedSemaphorePermit, change: Change) -> Written<u64> {
        self.ask(|done| Job::Change { change, changed: 0, done, room })
    }

    /// Ends the queue after the jobs in it.
    pub(super) fn close(&self) {
        *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
