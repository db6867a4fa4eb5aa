//! Where evaluations and checks go that cost more than a turn: threads of their own, fewer than
//! there are cores, so that whoever waits for an arbiter does not wait for them.
//!
//! They are worked off in their order. One takes as long as `expression_time_max` at most and is
//! told so. What waits is bounded by what is in memory: each execution, generation and request
//! has one here at a time.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

use crate::arbiters::Placement;
use crate::domain::effort::{self, Budget, within};
use crate::domain::schema::{Schema, SchemaViolation};

/// Set by whoever no longer wants to know.
pub(crate) type Cancel = Arc<AtomicBool>;

type Job = Box<dyn FnOnce() + Send>;

pub(crate) struct Evaluations {
    time_max: Duration,
    /// None where everything runs on one thread, in paused time.
    pool: Option<Arc<Pool>>,
    counts: Arc<Counts>,
}

/// What is counted, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// All that cost more than a turn.
    pub(crate) moved: AtomicU64,
    /// Of these, those that cost more than they may.
    pub(crate) exceeded: AtomicU64,
    /// Those that wait or are at work.
    pub(crate) pending: AtomicUsize,
}

#[derive(Default)]
struct Pool {
    jobs: Mutex<VecDeque<Job>>,
    more: Condvar,
    is_ending: AtomicBool,
}

impl Evaluations {
    pub(crate) fn start(placement: Placement, time_max: Duration) -> Self {
        let counts = Arc::default();
        let pool = match placement {
            Placement::Threads(_) => Pool::start(),
            Placement::Here => None,
        };
        Self { time_max, pool, counts }
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Does something elsewhere, within all that one evaluation may cost; a panic there is one
    /// here. Nothing when the threads have ended.
    pub(crate) async fn evaluate<T: Send + 'static>(
        &self,
        cancel: Cancel,
        work: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Option<T> {
        self.counts.moved.fetch_add(1, Ordering::Relaxed);
        let pending = PendingGuard::new(&self.counts);
        let Some(pool) = &self.pool else {
            tokio::task::yield_now().await;
            let done = pending.0.watching(|| work(&Budget::whole()));
            drop(pending);
            return Some(done);
        };
        let (answer, heard) = oneshot::channel();
        let time_max = self.time_max;
        pool.push(Box::new(move || {
            let budget = stopped_in_time(cancel, time_max);
            let work = || pending.0.watching(|| work(&budget));
            let done = catch_unwind(AssertUnwindSafe(work));
            drop(pending);
            drop(answer.send(done));
        }));
        match heard.await.ok()? {
            Ok(done) => Some(done),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Checks a value against a schema, and gives it back when it is in order.
    pub(crate) async fn check(
        &self,
        schema: &Schema,
        value: Value,
    ) -> Result<Value, SchemaViolation> {
        let (checked, effort) = within(&Budget::turn(), || schema.check(&value));
        if !effort.is_exceeded {
            return checked.map(|()| value);
        }
        let schema = schema.clone();
        let checked = self.evaluate(Cancel::default(), move |budget| {
            let (checked, _) = within(budget, || schema.check(&value));
            checked.map(|()| value)
        });
        checked.await.unwrap_or_else(|| Err(SchemaViolation::unchecked()))
    }
}

impl Drop for Evaluations {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.is_ending.store(true, Ordering::Release);
            pool.lock().clear();
            pool.more.notify_all();
        }
    }
}

impl Counts {
    /// Does something, and counts whether any of it cost more than it may.
    fn watching<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = effort::excesses();
        let done = work();
        if effort::excesses() != before {
            self.exceeded.fetch_add(1, Ordering::Relaxed);
        }
        done
    }
}

/// The time counts from when the work begins.
fn stopped_in_time(cancel: Cancel, time_max: Duration) -> Budget {
    let begun = std::time::Instant::now();
    let sign = move || cancel.load(Ordering::Relaxed) || begun.elapsed() >= time_max;
    Budget::whole().stopped_by(Arc::new(sign), time_max)
}

impl Pool {
    /// As many threads as leave a core to others.
    fn start() -> Option<Arc<Self>> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let pool = Arc::new(Self::default());
        let mut count = 0;
        for index in 0..cores.saturating_sub(1).max(1) {
            let working = Arc::clone(&pool);
            let thread = std::thread::Builder::new().name(format!("evaluation-{index}"));
            match thread.spawn(move || working.work()) {
                Ok(_) => count += 1,
                Err(error) => log::error!("no thread for expressions that cost much: {error}"),
            }
        }
        (count > 0).then_some(pool)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Job) {
        self.lock().push_back(job);
        self.more.notify_one();
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&self) -> Option<Job> {
        let mut jobs = self.lock();
        loop {
            if self.is_ending.load(Ordering::Acquire) {
                return None;
            }
            if let Some(job) = jobs.pop_front() {
                return Some(job);
            }
            jobs = self.more.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct PendingGuard(Arc<Counts>);

impl PendingGuard {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.pending.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counts))
    }
}

impl Drop for PendingGuard {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[actix::test]
    async fn what_takes_too_long_is_stopped_and_others_follow() {
        let evaluations = Evaluations::start(Placement::Threads(1), Duration::from_millis(1));
        let endless = evaluations.evaluate(Cancel::default(), |budget| {
            let spin = || while effort::charge(1) {};
            within(budget, || (spin(), effort::excess())).0.1
        });
        let said = endless.await.flatten();
        assert_eq!(said.as_deref(), Some("took longer than 1ms"));
        let next = evaluations.evaluate(Cancel::default(), |_| 7).await;
        assert_eq!(next, Some(7));
        assert_eq!(evaluations.counts().pending.load(Ordering::Relaxed), 0);
    }

    #[actix::test]
    async fn a_panic_there_is_one_here_and_costs_no_thread() {
        let evaluations = Evaluations::start(Placement::Threads(1), Duration::from_secs(1));
        let panics = evaluations.evaluate(Cancel::default(), |_| resume_unwind(Box::new(())));
        let caught = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(panics)).await;
        assert!(caught.is_err_and(|panic| panic.is::<()>()));
        assert_eq!(evaluations.evaluate(Cancel::default(), |_| 7).await, Some(7));
    }

    #[actix::test]
    async fn only_what_costs_more_than_a_turn_goes_elsewhere() {
        let evaluations = Evaluations::start(Placement::Here, Duration::from_secs(1));
        let schema = Schema::compile(&json!({ "items": { "type": "integer" } })).unwrap();
        for (length, moved) in [(10, 0), (100_000, 1)] {
            let value = json!(vec![1; length]);
            assert!(evaluations.check(&schema, value).await.is_ok());
            assert_eq!(evaluations.counts().moved.load(Ordering::Relaxed), moved);
        }
        let long = evaluations.check(&schema, json!(vec!["1"; 100_000])).await.unwrap_err();
        assert_eq!(long.to_string(), "[0]: \"1\" is not of type \"integer\"");
    }
}
