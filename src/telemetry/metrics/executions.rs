//! Counts facts of executions. Each workflow and each step has its series at hand: counting looks
//! up two names and formats nothing.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use greenroom_actors::domain::fact::{AfterFailure, Ended, Fact, HowEnded, Recorded};
use greenroom_actors::domain::ids::step_id_of;
use greenroom_actors::domain::plan::{Plan, Step};
use greenroom_actors::domain::status::Status;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::Header;
use greenroom_actors::registry::Registry;
use prometheus::{Error, Histogram, IntCounter};

use super::buckets;
use super::family::{Counters, Histograms, Maker, OTHER};

/// How executions end, as their metrics name it.
const ENDS: [Status; 3] = [Status::Completed, Status::Error, Status::Cancelled];

/// How attempts of steps end.
#[derive(Clone, Copy)]
enum StepEnd {
    Completed,
    Error,
    Cancelled,
}

impl StepEnd {
    fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What is counted of all executions.
pub(super) struct Executions {
    families: Families,
    workflows: RwLock<HashMap<Arc<str>, Arc<WorkflowSeries>>>,
    /// Of executions whose workflow is not configured any more.
    other: Arc<WorkflowSeries>,
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

/// Counters are there from the start, so that their first rise is seen; histograms are made when
/// they have something to show.
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
    /// Of steps that an older definition had.
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
        let executions = Self { families, workflows: RwLock::default(), other };
        executions.follow(registry);
        Ok(executions)
    }

    /// Takes in the workflows of a registry. Steps of older definitions are counted as before.
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
        Arc::clone(workflows.get(&header.workflow_id).unwrap_or(&self.other))
    }
}

impl Families {
    fn new(maker: &Maker<'_>) -> Result<Self, Error> {
        let counters = |name, help| maker.counters(name, help, &["workflow"]);
        let step = ["workflow", "step"];
        Ok(Self {
            started: counters("greenroom_executions_started_total", "Executions that began")?,
            ended: maker.counters(
                "greenroom_executions_total",
                "Executions that ended",
                &["workflow", "status"],
            )?,
            suspended: counters(
                "greenroom_executions_suspended_total",
                "Times that an execution came to wait for a resume",
            )?,
            resumed: counters(
                "greenroom_executions_resumed_total",
                "Times that a suspended execution went on",
            )?,
            facts: counters(
                "greenroom_execution_facts_total",
                "Facts recorded; stands still while nothing happens",
            )?,
            retries: maker.counters(
                "greenroom_step_retries_total",
                "Attempts of a step that failed and are followed by another",
                &step,
            )?,
            blocked: maker.counters(
                "greenroom_step_blocked_total",
                "Times that a step kept its thread from all others for 100 ms and more",
                &step,
            )?,
            durations: maker.histograms(
                "gen_ai_invoke_workflow_duration_seconds",
                "Executions from their start to their end, waits included",
                &["workflow", "status"],
                buckets::WORKFLOW,
            )?,
            waits: maker.histograms(
                "greenroom_wait_duration_seconds",
                "How long executions were suspended, once they go on or end",
                &["workflow"],
                buckets::WAIT,
            )?,
            steps: maker.histograms(
                "greenroom_step_duration_seconds",
                "Attempts of steps from their start to their end",
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
            steps.insert(Arc::clone(&step.id), StepSeries::new(Arc::clone(&step.id)));
        });
        let labels = [&*name];
        Self {
            started: families.started.of(&labels),
            ended: ENDS.map(|status| families.ended.of(&[&name, status.as_str()])),
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
                HowEnded::Completed { .. } => 0,
                HowEnded::Failed { .. } => 1,
                HowEnded::Cancelled { .. } => 2,
            };
            self.ended(families, end, since, *at);
        } else if matches!(fact, Fact::WorkflowStarted(_)) {
            self.started.inc();
        } else if matches!(fact, Fact::WorkflowSuspended { .. }) {
            self.suspended.inc();
        } else if matches!(fact, Fact::WorkflowResumed) {
            self.resumed.inc();
        }
    }

    fn count_step(&self, families: &Families, path: &str, fact: &Fact, at: Timestamp) {
        let (end, since) = if let Fact::StepCompleted { since, .. } = fact {
            (StepEnd::Completed, since)
        } else if let Fact::StepFailed { since, .. } = fact {
            (StepEnd::Error, since)
        } else if let Fact::StepCancelled { since, .. } = fact {
            (StepEnd::Cancelled, since)
        } else {
            return;
        };
        self.step_ended(families, path, end, *since, at);
        if matches!(fact, Fact::StepFailed { next: AfterFailure::Retry { .. }, .. }) {
            self.retried(families, path);
        }
    }

    /// `end`: its place in [`ENDS`].
    fn ended(&self, families: &Families, end: usize, since: Timestamp, at: Timestamp) {
        self.ended[end].inc();
        let labels = || [&*self.name, ENDS[end].as_str()];
        let series = self.durations[end].get_or_init(|| families.durations.of(&labels()));
        series.observe(seconds_between(since, at));
    }

    fn step_ended(
        &self,
        families: &Families,
        path: &str,
        end: StepEnd,
        since: Timestamp,
        at: Timestamp,
    ) {
        let step = self.step(path);
        let labels = || [&*self.name, &*step.name, end.as_str()];
        let series = step.durations[end as usize].get_or_init(|| families.steps.of(&labels()));
        series.observe(seconds_between(since, at));
    }

    fn retried(&self, families: &Families, path: &str) {
        let step = self.step(path);
        step.retries.get_or_init(|| families.retries.of(&[&self.name, &step.name])).inc();
    }

    fn step(&self, path: &str) -> &StepSeries {
        self.steps.get(step_id_of(path)).unwrap_or(&self.other)
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
