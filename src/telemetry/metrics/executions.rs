//! Metrics of executions, counted from their facts. Each workflow and step caches its series:
//! counting looks up two names and formats nothing.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use greenroom_actors::domain::fact::{AfterFailure, Ended, Fact, HowEnded, Recorded};
use greenroom_actors::domain::ids::{compensation_path, step_name_of};
use greenroom_actors::domain::plan::{Plan, Step};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::Header;
use greenroom_actors::registry::Registry;
use greenroom_actors::runtime::BULK_WORKFLOW;
use prometheus::{Error, Histogram, IntCounter};

use super::buckets;
use super::family::{Counters, Histograms, Maker, OTHER};

/// End of an execution or of an attempt of a step; indexes the arrays of series.
#[derive(Clone, Copy)]
enum End {
    Completed,
    Error,
    Cancelled,
}

impl End {
    const ALL: [Self; 3] = [Self::Completed, Self::Error, Self::Cancelled];

    /// Returns the value of the label `status`.
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Metrics of all executions.
pub(super) struct Executions {
    families: Families,
    workflows: RwLock<HashMap<Arc<str>, Arc<WorkflowSeries>>>,
    /// Series of workflows that are no longer configured.
    other: Arc<WorkflowSeries>,
    /// Series of operations on many executions, from the first on.
    bulk: OnceLock<Arc<WorkflowSeries>>,
}

struct Families {
    started: Counters,
    ended: Counters,
    suspended: Counters,
    resumed: Counters,
    facts: Counters,
    retries: Counters,
    blocked: Counters,
    durations: Histograms,
    waits: Histograms,
    steps: Histograms,
}

/// Series of one workflow. Counters exist from the start, so that Prometheus sees their first
/// increase; histograms are created with their first observation.
struct WorkflowSeries {
    name: Arc<str>,
    started: IntCounter,
    ended: [IntCounter; 3],
    suspended: IntCounter,
    resumed: IntCounter,
    facts: IntCounter,
    durations: [OnceLock<Histogram>; 3],
    wait: OnceLock<Histogram>,
    steps: HashMap<Arc<str>, StepSeries>,
    /// Series of steps that only an older definition has.
    other: StepSeries,
}

struct StepSeries {
    name: Arc<str>,
    durations: [OnceLock<Histogram>; 3],
    retries: OnceLock<IntCounter>,
    blocked: OnceLock<IntCounter>,
}

impl Executions {
    pub(super) fn new(maker: &Maker<'_>, registry: &Registry) -> Result<Self, Error> {
        let families = Families::new(maker)?;
        let other = Arc::new(WorkflowSeries::new(&families, Arc::from(OTHER), None));
        let executions =
            Self { families, workflows: RwLock::default(), other, bulk: OnceLock::new() };
        executions.follow(registry);
        Ok(executions)
    }

    /// Adds the workflows of a registry. Steps of older definitions keep their series.
    pub(super) fn follow(&self, registry: &Registry) {
        let mut workflows = self.workflows.write().unwrap_or_else(PoisonError::into_inner);
        for (id, plan) in &registry.workflows {
            let name: Arc<str> = Arc::from(id.as_str());
            let mut series = WorkflowSeries::new(&self.families, Arc::clone(&name), Some(plan));
            for step in workflows.get(&name).iter().flat_map(|before| before.steps.keys()) {
                let step = Arc::clone(step);
                series.steps.entry(Arc::clone(&step)).or_insert_with(|| StepSeries::new(step));
            }
            workflows.insert(name, Arc::new(series));
        }
    }

    pub(super) fn recorded(&self, header: &Header, facts: &[Recorded]) {
        let workflow = self.of(header);
        workflow.facts.inc_by(facts.len() as u64);
        facts.iter().for_each(|recorded| workflow.count(&self.families, recorded));
    }

    pub(super) fn waited(&self, header: &Header, wait: Duration) {
        let workflow = self.of(header);
        let series = workflow.wait.get_or_init(|| self.families.waits.of(&[&workflow.name]));
        series.observe(wait.as_secs_f64());
    }

    pub(super) fn blocked(&self, header: &Header, path: &str) {
        let workflow = self.of(header);
        let step = workflow.step(path);
        let labels = || [&*workflow.name, &*step.name];
        step.blocked.get_or_init(|| self.families.blocked.of(&labels())).inc();
    }

    fn of(&self, header: &Header) -> Arc<WorkflowSeries> {
        let workflows = self.workflows.read().unwrap_or_else(PoisonError::into_inner);
        let series = match workflows.get(&header.workflow_id) {
            Some(series) => series,
            None if *header.workflow_id == *BULK_WORKFLOW => self.bulk.get_or_init(|| {
                Arc::new(WorkflowSeries::new(&self.families, Arc::from(BULK_WORKFLOW), None))
            }),
            None => &self.other,
        };
        Arc::clone(series)
    }
}

impl Families {
    fn new(maker: &Maker<'_>) -> Result<Self, Error> {
        let counters = |name, help| maker.counters(name, help, &["workflow"]);
        let step = ["workflow", "step"];
        Ok(Self {
            started: counters("greenroom_executions_started_total", "Executions started")?,
            ended: maker.counters(
                "greenroom_executions_finished_total",
                "Executions finished",
                &["workflow", "status"],
            )?,
            suspended: counters(
                "greenroom_executions_suspended_total",
                "Suspensions of executions",
            )?,
            resumed: counters(
                "greenroom_executions_resumed_total",
                "Resumes of suspended executions",
            )?,
            facts: counters(
                "greenroom_execution_facts_total",
                "Facts recorded; constant while no execution makes progress",
            )?,
            retries: maker.counters(
                "greenroom_step_retries_total",
                "Failed attempts of steps that are retried",
                &step,
            )?,
            blocked: maker.counters(
                "greenroom_step_blocked_total",
                "Times that a step blocked its thread for 100 ms or more",
                &step,
            )?,
            durations: maker.histograms(
                "gen_ai_invoke_workflow_duration_seconds",
                "Duration of executions, including suspensions",
                &["workflow", "status"],
                buckets::WORKFLOW,
            )?,
            waits: maker.histograms(
                "greenroom_wait_duration_seconds",
                "Duration of suspensions, observed when the execution resumes or ends",
                &["workflow"],
                buckets::WAIT,
            )?,
            steps: maker.histograms(
                "greenroom_step_duration_seconds",
                "Duration of attempts of steps and of compensations (STEP:compensate), without those that \
                 a person skipped",
                &["workflow", "step", "status"],
                buckets::STEP,
            )?,
        })
    }
}

impl WorkflowSeries {
    fn new(families: &Families, name: Arc<str>, plan: Option<&Arc<Plan>>) -> Self {
        let mut steps = HashMap::new();
        each_step(plan.map(|plan| plan.steps.as_slice()).unwrap_or_default(), &mut |step| {
            let compensation = step.compensate.as_ref().map(|_| compensation_path(&step.id));
            for name in [Some(Arc::clone(&step.id)), compensation].into_iter().flatten() {
                steps.insert(Arc::clone(&name), StepSeries::new(name));
            }
        });
        let labels = [&*name];
        Self {
            started: families.started.of(&labels),
            ended: End::ALL.map(|end| families.ended.of(&[&name, end.as_str()])),
            suspended: families.suspended.of(&labels),
            resumed: families.resumed.of(&labels),
            facts: families.facts.of(&labels),
            durations: Default::default(),
            wait: OnceLock::new(),
            steps,
            other: StepSeries::new(Arc::from(OTHER)),
            name,
        }
    }

    fn count(&self, families: &Families, recorded: &Recorded) {
        let Recorded { at, fact, .. } = recorded;
        if let Some(path) = fact.step_path() {
            self.count_step(families, path, fact, *at);
        } else if let Some(Ended { since, how }) = fact.end() {
            let end = match how {
                HowEnded::Completed { .. } => End::Completed,
                HowEnded::Failed { .. } => End::Error,
                HowEnded::Cancelled { .. } => End::Cancelled,
            };
            self.ended[end as usize].inc();
            let labels = || [&*self.name, end.as_str()];
            let series =
                self.durations[end as usize].get_or_init(|| families.durations.of(&labels()));
            series.observe(seconds_between(since, *at));
        } else if matches!(fact, Fact::WorkflowStarted(_)) {
            self.started.inc();
        } else if matches!(fact, Fact::WorkflowSuspended { .. }) {
            self.suspended.inc();
        } else if matches!(fact, Fact::WorkflowResumed) {
            self.resumed.inc();
        }
    }

    fn count_step(&self, families: &Families, path: &str, fact: &Fact, at: Timestamp) {
        // what a person skipped has not run
        let (end, since) = if let Fact::StepCompleted { since, skipped: false, .. } = fact {
            (End::Completed, *since)
        } else if let Fact::StepFailed { since, .. } = fact {
            (End::Error, *since)
        } else if let Fact::StepCancelled { since, .. } = fact {
            (End::Cancelled, *since)
        } else {
            return;
        };
        let step = self.step(path);
        let labels = || [&*self.name, &*step.name, end.as_str()];
        let series = step.durations[end as usize].get_or_init(|| families.steps.of(&labels()));
        series.observe(seconds_between(since, at));
        if matches!(fact, Fact::StepFailed { next: AfterFailure::Retry { .. }, .. }) {
            step.retries.get_or_init(|| families.retries.of(&[&self.name, &step.name])).inc();
        }
    }

    fn step(&self, path: &str) -> &StepSeries {
        self.steps.get(step_name_of(path)).unwrap_or(&self.other)
    }
}

impl StepSeries {
    fn new(name: Arc<str>) -> Self {
        Self {
            name,
            durations: Default::default(),
            retries: OnceLock::new(),
            blocked: OnceLock::new(),
        }
    }
}

fn each_step(steps: &[Step], visit: &mut impl FnMut(&Step)) {
    for step in steps {
        visit(step);
        step.work.branches().iter().for_each(|branch| each_step(&branch.steps, visit));
    }
}

fn seconds_between(since: Timestamp, at: Timestamp) -> f64 {
    Duration::from_millis(at.ms_since(since)).as_secs_f64()
}
