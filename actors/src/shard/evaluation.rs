//! Evaluations and checks that cost more than a turn, run on separate threads.
//!
//! They run in lanes, one job of each lane in turn. A lane belongs to one workflow, agent or tool
//! and one user, so that many jobs of one user do not delay those of others. Each job takes
//! `expression_time_max` at most. The queue is bounded by its owners in memory: an execution has
//! one decision and one preparation per starting attempt in it, a generation or a request one
//! check. Checks for requests are limited as well. Jobs whose owner is gone are dropped at once.

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
use crate::domain::schema::{Schema, SchemaError, SchemaViolation};
use crate::ports::workers::{Job, Lane, Workers};
use crate::requests::Unavailable;
use crate::shard::arbiters::Placement;

pub use self::threads::evaluation_threads;

use self::threads::EvaluationThreads;

/// Waiting evaluations above which further checks for requests are refused as busy.
const WAITING_MAX: usize = 256;

/// Set when the result is no longer needed.
pub(crate) type Cancel = Arc<AtomicBool>;

pub(crate) struct Evaluations {
    /// `None` in paused time.
    time_max: Option<Duration>,
    workers: Arc<dyn Workers>,
    counts: Arc<Counts>,
}

/// Counters for metrics.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Evaluations that cost more than a turn, and compiled schemas of questions.
    pub(crate) moved: AtomicU64,
    /// Of these, evaluations stopped at a limit.
    pub(crate) exceeded: AtomicU64,
    /// Of these, evaluations that wait or run.
    pub(crate) pending: AtomicUsize,
}

/// Runs jobs on this thread, each after other tasks had their turn.
struct Here;

impl Workers for Here {
    fn take(&self, _lane: Lane, job: Job) {
        actix::spawn(async move { job() });
    }
}

impl Evaluations {
    /// Starts with these workers, or with a thread pool.
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

    /// Runs `work` on another thread, within the budget of one evaluation. A panic there is resumed
    /// here. Returns `None` if the workers have ended or it was cancelled. Dropping the future
    /// cancels.
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
        let is_cancelled = Arc::clone(&cancel);
        let job: Job = Box::new(move || {
            if is_cancelled.load(Ordering::Relaxed) {
                return;
            }
            let work = || pending.0.watching(|| work(&budget));
            let done = catch_unwind(AssertUnwindSafe(work));
            drop(pending);
            drop(answer.send(done));
        });
        let queued = Queued { job: Arc::new(Mutex::new(Some(job))), cancel };
        let taken = Arc::clone(&queued.job);
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

    /// Drops a large value on another thread.
    pub(crate) fn drop_elsewhere(&self, lane: Lane, large: impl Send + 'static) {
        self.workers.take(lane, Box::new(move || drop(large)));
    }

    /// Checks a value against a schema and returns the value if it is valid.
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

    /// Checks a value for a request; refused while too many evaluations wait.
    pub(crate) async fn check_for_request(
        &self,
        lane: Lane,
        schema: &Schema,
        value: Value,
    ) -> Result<Result<Value, SchemaViolation>, Unavailable> {
        if let Some(checked) = check_at_once(schema, &value) {
            return Ok(checked.map(|()| value));
        }
        self.accepts_requests()?;
        Ok(self.check_elsewhere(lane, schema, value).await)
    }

    /// Compiles a schema that a model or a tool has made. Compiling is bounded, but neither charged
    /// nor stopped, so it is always moved. Returns `None` if the workers have ended.
    pub(crate) async fn compile(
        &self,
        lane: Lane,
        source: Value,
    ) -> Option<Result<Schema, SchemaError>> {
        self.evaluate(lane, Cancel::default(), move |_| Schema::compile(&source)).await
    }

    /// Compiles a schema for a request; refused while too many evaluations wait.
    pub(crate) async fn compile_for_request(
        &self,
        lane: Lane,
        source: Value,
    ) -> Result<Result<Schema, SchemaError>, Unavailable> {
        self.accepts_requests()?;
        let compiled = self.compile(lane, source).await;
        compiled.ok_or(Unavailable::Draining { execution: None })
    }

    fn accepts_requests(&self) -> Result<(), Unavailable> {
        if self.counts.pending.load(Ordering::Relaxed) >= WAITING_MAX {
            return Err(Unavailable::Busy { execution: None });
        }
        Ok(())
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

/// Returns the result of a check that costs a turn at most.
fn check_at_once(schema: &Schema, value: &Value) -> Option<Result<(), SchemaViolation>> {
    let (checked, effort) = within(&Budget::turn(), || schema.check(value));
    (!effort.is_exceeded).then_some(checked)
}

impl Counts {
    /// Runs `work` and counts whether any of it exceeded a limit.
    fn watching<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = effort::excesses();
        let done = work();
        if effort::excesses() != before {
            self.exceeded.fetch_add(1, Ordering::Relaxed);
        }
        done
    }
}

/// Returns a budget that is limited in time; each evaluation starts its own clock.
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

/// A queued job whose result is awaited. Dropping this cancels the job and frees what it holds.
struct Queued {
    job: Arc<Mutex<Option<Job>>>,
    cancel: Cancel,
}

impl Drop for Queued {
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

    /// Accepts jobs without running them.
    #[derive(Default)]
    struct Idle(Mutex<Vec<Job>>);

    impl Workers for Idle {
        fn take(&self, _lane: Lane, job: Job) {
            self.0.lock().unwrap().push(job);
        }
    }

    #[actix::test]
    async fn an_evaluation_over_its_time_is_stopped_and_the_next_one_runs() {
        let evaluations = on_threads(Duration::from_millis(1));
        let endless = evaluations.evaluate(lane(), Cancel::default(), |budget| {
            let spin = || while effort::charge(1) {};
            within(budget, || (spin(), effort::excess())).0.1
        });
        let excess = endless.await.flatten();
        assert_eq!(excess.as_deref(), Some("took longer than 1ms"));
        let next = evaluations.evaluate(lane(), Cancel::default(), |_| 7).await;
        assert_eq!(next, Some(7));
        assert_eq!(evaluations.counts().pending.load(Ordering::Relaxed), 0);
    }

    #[actix::test]
    async fn a_panic_of_a_job_reaches_its_caller_and_keeps_the_thread() {
        let evaluations = on_threads(Duration::from_secs(1));
        let panics =
            evaluations.evaluate(lane(), Cancel::default(), |_| resume_unwind(Box::new(())));
        let caught = futures_util::FutureExt::catch_unwind(AssertUnwindSafe(panics)).await;
        assert!(caught.is_err_and(|panic| panic.is::<()>()));
        assert_eq!(evaluations.evaluate(lane(), Cancel::default(), |_| 7).await, Some(7));
    }

    #[actix::test]
    async fn only_evaluations_above_a_turn_are_moved() {
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

    /// Returns the number of clones that are alive.
    fn counted(alive: &Arc<()>) -> usize {
        Arc::strong_count(alive) - 1
    }

    #[actix::test]
    async fn a_job_whose_caller_is_gone_is_dropped_and_never_run() {
        let (idle, alive, done) = (Arc::new(Idle::default()), Arc::new(()), Cancel::default());
        let workers = Some(Arc::clone(&idle) as _);
        let evaluations = Evaluations::start(Placement::Here, Duration::ZERO, workers).unwrap();
        let (held, does) = (Arc::clone(&alive), Arc::clone(&done));
        let mut call = Box::pin(evaluations.evaluate(lane(), Cancel::default(), move |_| {
            does.store(true, Ordering::Relaxed);
            drop(held);
        }));
        assert!(futures_util::poll!(&mut call).is_pending());
        assert_eq!((counted(&alive), evaluations.counts().pending.load(Ordering::Relaxed)), (1, 1));
        drop(call);
        assert_eq!((counted(&alive), evaluations.counts().pending.load(Ordering::Relaxed)), (0, 0));
        std::mem::take(&mut *idle.0.lock().unwrap()).into_iter().for_each(|job| job());
        assert!(!done.load(Ordering::Relaxed));
        assert_eq!(evaluations.counts().exceeded.load(Ordering::Relaxed), 0);
    }

    #[actix::test]
    async fn a_cancelled_job_stops_and_does_not_count_as_exceeded() {
        let evaluations = Evaluations::start(Placement::Here, Duration::ZERO, None).unwrap();
        let cancel = Cancel::default();
        let sign = Arc::clone(&cancel);
        let excess = evaluations.evaluate(lane(), cancel, move |budget| {
            sign.store(true, Ordering::Relaxed);
            within(budget, || (while effort::charge(1) {}, effort::excess())).0.1
        });
        assert_eq!(excess.await.flatten().as_deref(), Some("was cancelled"));
        assert_eq!(evaluations.counts().exceeded.load(Ordering::Relaxed), 0);
    }

    #[actix::test]
    async fn a_check_for_a_request_is_refused_when_too_many_wait() {
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
        let compiled = evaluations.compile_for_request(lane(), json!({})).await;
        assert_eq!(compiled.unwrap_err(), Unavailable::Busy { execution: None });
        waiting.pop();
        let mut one = check(100_000);
        assert!(futures_util::poll!(&mut one).is_pending(), "there is room again");
    }
}
