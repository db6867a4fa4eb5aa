//! Where evaluations and checks go that cost more than a turn.
//!
//! They are worked off in lanes, one of each after the other: a lane is what is run for one user, so
//! that many of one do not hold up those of others. Each takes as long as `expression_time_max` at most and is
//! told so. What waits belongs to somebody in memory: to an execution, which has one decision here
//! at a time and one preparation for each attempt that begins, to a generation, or to a request;
//! of the checks for requests only so many wait. What its owner no longer wants is dropped at once.

pub(crate) mod lanes;
mod threads;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::domain::effort::{self, Budget, Stop, StopSign, within};
use crate::domain::schema::{Schema, SchemaViolation};
use crate::ports::workers::{Job, Lane, Workers};
use crate::requests::Unavailable;
use crate::shard::arbiters::Placement;

pub use self::threads::evaluation_threads;

use self::threads::EvaluationThreads;

/// Evaluations that may wait when another check for a request comes; beyond it the server is busy.
const WAITING_MAX: usize = 256;

/// Set by whoever no longer wants to know.
pub(crate) type Cancel = Arc<AtomicBool>;

pub(crate) struct Evaluations {
    /// None in paused time.
    time_max: Option<Duration>,
    workers: Arc<dyn Workers>,
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

/// Does jobs on this thread, each as soon as others had their turn.
struct Here;

impl Workers for Here {
    fn take(&self, _lane: Lane, job: Job) {
        actix::spawn(async move { job() });
    }
}

impl Evaluations {
    /// With these workers, or with threads of its own.
    pub(crate) fn start(
        placement: Placement,
        time_max: Duration,
        workers: Option<Arc<dyn Workers>>,
    ) -> io::Result<Self> {
        let time_max = match placement {
            Placement::Threads(_) => Some(time_max),
            Placement::Here => None,
        };
        let workers = match (workers, placement) {
            (Some(given), Placement::Threads(_) | Placement::Here) => given,
            (None, Placement::Threads(_)) => Arc::new(EvaluationThreads::start()?) as _,
            (None, Placement::Here) => Arc::new(Here) as _,
        };
        Ok(Self { time_max, workers, counts: Arc::default() })
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Does something elsewhere, within all that one evaluation may cost; a panic there is one
    /// here. Nothing when the workers have ended, or it was cancelled. Dropping the future cancels.
    pub(crate) async fn evaluate<T: Send + 'static>(
        &self,
        lane: Lane,
        cancel: Cancel,
        work: impl FnOnce(&Budget) -> T + Send + 'static,
    ) -> Option<T> {
        self.counts.moved.fetch_add(1, Ordering::Relaxed);
        let pending = PendingGuard::new(&self.counts);
        let (answer, reply) = oneshot::channel();
        let budget = stopped_in_time(&cancel, self.time_max);
        let is_unwanted = Arc::clone(&cancel);
        let job: Job = Box::new(move || {
            if is_unwanted.load(Ordering::Relaxed) {
                return;
            }
            let work = || pending.0.watching(|| work(&budget));
            let done = catch_unwind(AssertUnwindSafe(work));
            drop(pending);
            drop(answer.send(done));
        });
        let wanted = Wanted { job: Arc::new(Mutex::new(Some(job))), cancel };
        let taken = Arc::clone(&wanted.job);
        let begin: Job = Box::new(move || {
            if let Some(job) = taken_from(&taken) {
                job();
            }
        });
        self.workers.take(lane, begin);
        match reply.await.ok()? {
            Ok(done) => Some(done),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Drops elsewhere what takes long to drop.
    pub(crate) fn drop_aside(&self, lane: Lane, large: impl Send + 'static) {
        self.workers.take(lane, Box::new(move || drop(large)));
    }

    /// Checks a value against a schema, and gives it back when it is in order.
    pub(crate) async fn check(
        &self,
        lane: Lane,
        schema: &Schema,
        value: Value,
    ) -> Result<Value, SchemaViolation> {
        match check_at_once(schema, &value) {
            Some(checked) => checked.map(|()| value),
            None => self.check_elsewhere(lane, schema, value).await,
        }
    }

    /// The same for a request, which is refused when too much waits already.
    pub(crate) async fn check_for_request(
        &self,
        lane: Lane,
        schema: &Schema,
        value: Value,
    ) -> Result<Result<Value, SchemaViolation>, Unavailable> {
        if let Some(checked) = check_at_once(schema, &value) {
            return Ok(checked.map(|()| value));
        }
        if self.counts.pending.load(Ordering::Relaxed) >= WAITING_MAX {
            return Err(Unavailable::Busy { execution: None });
        }
        Ok(self.check_elsewhere(lane, schema, value).await)
    }

    async fn check_elsewhere(
        &self,
        lane: Lane,
        schema: &Schema,
        value: Value,
    ) -> Result<Value, SchemaViolation> {
        let schema = schema.clone();
        let checked = self.evaluate(lane, Cancel::default(), move |budget| {
            let (checked, _) = within(budget, || schema.check(&value));
            checked.map(|()| value)
        });
        checked.await.unwrap_or_else(|| Err(SchemaViolation::unchecked()))
    }
}

/// The outcome of a check that costs a turn at most.
fn check_at_once(schema: &Schema, value: &Value) -> Option<Result<(), SchemaViolation>> {
    let (checked, effort) = within(&Budget::turn(), || schema.check(value));
    (!effort.is_exceeded).then_some(checked)
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

/// The time of each evaluation counts from when it begins.
fn stopped_in_time(cancel: &Cancel, time_max: Option<Duration>) -> Budget {
    let cancel = Arc::clone(cancel);
    Budget::whole().stopped_by(Arc::new(move || -> StopSign {
        let (cancel, begun) = (Arc::clone(&cancel), Instant::now());
        Box::new(move || {
            if cancel.load(Ordering::Relaxed) {
                return Some(Stop::Cancelled);
            }
            time_max.filter(|max| begun.elapsed() >= *max).map(Stop::Time)
        })
    }))
}

/// A job that somebody waits for. Dropped, it is taken back, with all that it holds.
struct Wanted {
    job: Arc<Mutex<Option<Job>>>,
    cancel: Cancel,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        drop(taken_from(&self.job));
    }
}

fn taken_from(job: &Mutex<Option<Job>>) -> Option<Job> {
    job.lock().unwrap_or_else(PoisonError::into_inner).take()
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

    fn lane() -> Lane {
        Lane::of("workflow", None)
    }

    fn on_threads(time_max: Duration) -> Evaluations {
        Evaluations::start(Placement::Threads(1), time_max, None).unwrap()
    }

    /// Takes jobs and leaves them.
    #[derive(Default)]
    struct Idle(Mutex<Vec<Job>>);

    impl Workers for Idle {
        fn take(&self, _lane: Lane, job: Job) {
            self.0.lock().unwrap().push(job);
        }
    }

    #[actix::test]
    async fn what_takes_too_long_is_stopped_and_others_follow() {
        let evaluations = on_threads(Duration::from_millis(1));
        let endless = evaluations.evaluate(lane(), Cancel::default(), |budget| {
            let spin = || while effort::charge(1) {};
            within(budget, || (spin(), effort::excess())).0.1
        });
        let said = endless.await.flatten();
        assert_eq!(said.as_deref(), Some("took longer than 1ms"));
        let next = evaluations.evaluate(lane(), Cancel::default(), |_| 7).await;
        assert_eq!(next, Some(7));
        assert_eq!(evaluations.counts().pending.load(Ordering::Relaxed), 0);
    }

    #[actix::test]
    async fn a_panic_there_is_one_here_and_costs_no_thread() {
        let evaluations = on_threads(Duration::from_secs(1));
        let panics =
            evaluations.evaluate(lane(), Cancel::default(), |_| resume_unwind(Box::new(())));
        let caught = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(panics)).await;
        assert!(caught.is_err_and(|panic| panic.is::<()>()));
        assert_eq!(evaluations.evaluate(lane(), Cancel::default(), |_| 7).await, Some(7));
    }

    #[actix::test]
    async fn only_what_costs_more_than_a_turn_goes_elsewhere() {
        let evaluations = Evaluations::start(Placement::Here, Duration::ZERO, None).unwrap();
        let schema = Schema::compile(&json!({ "items": { "type": "integer" } })).unwrap();
        for (length, moved) in [(10, 0), (100_000, 1)] {
            let value = json!(vec![1; length]);
            assert!(evaluations.check(lane(), &schema, value).await.is_ok());
            assert_eq!(evaluations.counts().moved.load(Ordering::Relaxed), moved);
        }
        let long = evaluations.check(lane(), &schema, json!(vec!["1"; 100_000])).await.unwrap_err();
        assert_eq!(long.to_string(), "[0]: \"1\" is not of type \"integer\"");
    }

    /// Counts those of it that are alive.
    fn counted(alive: &Arc<()>) -> usize {
        Arc::strong_count(alive) - 1
    }

    #[actix::test]
    async fn what_nobody_waits_for_is_dropped_at_once_and_never_done() {
        let (idle, alive, done) = (Arc::new(Idle::default()), Arc::new(()), Cancel::default());
        let workers = Some(Arc::clone(&idle) as _);
        let evaluations = Evaluations::start(Placement::Here, Duration::ZERO, workers).unwrap();
        let (held, does) = (Arc::clone(&alive), Arc::clone(&done));
        let mut asked = Box::pin(evaluations.evaluate(lane(), Cancel::default(), move |_| {
            does.store(true, Ordering::Relaxed);
            drop(held);
        }));
        assert!(futures_util::poll!(&mut asked).is_pending());
        assert_eq!((counted(&alive), evaluations.counts().pending.load(Ordering::Relaxed)), (1, 1));
        drop(asked);
        assert_eq!((counted(&alive), evaluations.counts().pending.load(Ordering::Relaxed)), (0, 0));
        std::mem::take(&mut *idle.0.lock().unwrap()).into_iter().for_each(|job| job());
        assert!(!done.load(Ordering::Relaxed));
        assert_eq!(evaluations.counts().exceeded.load(Ordering::Relaxed), 0);
    }

    #[actix::test]
    async fn what_is_cancelled_at_work_stops_and_does_not_count_as_exceeded() {
        let evaluations = Evaluations::start(Placement::Here, Duration::ZERO, None).unwrap();
        let cancel = Cancel::default();
        let sign = Arc::clone(&cancel);
        let said = evaluations.evaluate(lane(), cancel, move |budget| {
            sign.store(true, Ordering::Relaxed);
            within(budget, || (while effort::charge(1) {}, effort::excess())).0.1
        });
        assert_eq!(said.await.flatten().as_deref(), Some("was cancelled"));
        assert_eq!(evaluations.counts().exceeded.load(Ordering::Relaxed), 0);
    }

    #[actix::test]
    async fn a_check_for_a_request_is_refused_where_too_much_waits() {
        let workers = Some(Arc::new(Idle::default()) as _);
        let evaluations = Evaluations::start(Placement::Here, Duration::ZERO, workers).unwrap();
        let schema = Schema::compile(&json!({ "items": { "type": "integer" } })).unwrap();
        let check = |length: usize| {
            Box::pin(evaluations.check_for_request(lane(), &schema, json!(vec![1; length])))
        };
        let mut waiting = Vec::new();
        for count in 0..WAITING_MAX {
            let mut one = check(100_000);
            assert!(futures_util::poll!(&mut one).is_pending(), "{count}");
            waiting.push(one);
        }
        assert_eq!(check(100_000).await, Err(Unavailable::Busy { execution: None }));
        assert!(matches!(check(10).await, Ok(Ok(_))), "a cheap one is checked at once");
        waiting.pop();
        let mut one = check(100_000);
        assert!(futures_util::poll!(&mut one).is_pending(), "there is room again");
    }
}
