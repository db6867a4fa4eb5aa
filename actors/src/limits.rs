//! Bounds of a runtime.

use std::collections::HashMap;
use std::time::Duration;

use crate::domain::machine::MachineLimits;
use crate::shard::arbiters::Placement;

/// Bounds of the runtime; see `[limits]` and `[store]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeLimits {
    /// Where executions run.
    pub placement: Placement,
    /// Bounds of one execution; its values are bounded in depth wherever they come from.
    pub machine: MachineLimits,
    /// A waiting execution that nobody reads leaves memory after this.
    pub passivate_after: Duration,
    /// Processes that end while an execution is evaluated at the same point, after which it fails;
    /// zero: it never does.
    pub quarantine_after: u32,
    /// Executions in memory at once; above it, new ones are refused as busy.
    pub executions_live_max: usize,
    /// Bytes of memory that the values of executions in memory may take together, by an estimate:
    /// when they are used up, new executions, and resumes of those that are not in memory, are
    /// refused.
    pub executions_memory_max: u64,
    /// How long a subscriber may take nothing before its connection is cut.
    pub subscriber_stall_timeout: Duration,
    /// Times that an execution's actor is rebuilt after a panic of its own within a minute.
    pub actor_restarts_max: u32,
    /// How long an idempotency key is kept.
    pub idempotency_ttl: Duration,
    /// Executions and agents above one another, from the first to the last sub-workflow.
    pub child_depth_max: u32,
    /// Generations at once; above it, new ones are refused as busy.
    pub generations_live_max: usize,
    /// Times that a model is asked again for an object that does not meet its schema.
    pub object_repairs: u32,
    /// How long an attempt of a step that calls a server or runs a program may take, when the step
    /// has no time limit of its own.
    pub call_timeout: Duration,
    /// How long a call of a tool without a time limit of its own may take.
    pub tool_timeout: Duration,
    /// Largest result of a tool, in bytes of JSON.
    pub tool_result_bytes_max: usize,
    /// Turns of one generation, whatever its caller or its agent says.
    pub generation_steps_max: u32,
    /// All that the model of one generation may say, and all that its tools may give, in bytes
    /// each.
    pub generation_bytes_max: usize,
    /// Facts of executions and turns of generations that one trace shows, and that are read for
    /// one page of traces.
    pub trace_spans_max: usize,
    /// For how long what is over is kept.
    pub retention: RetentionRules,
    /// How often running executions are looked after; zero: never.
    pub watchdog_every: Duration,
    /// How long the evaluation of one expression, template or schema may take.
    pub expression_time_max: Duration,
}

impl Default for RuntimeLimits {
    fn default() -> Self {
        let arbiters = std::thread::available_parallelism().map_or(1, |n| (n.get() / 2).max(1));
        Self {
            placement: Placement::Threads(arbiters),
            machine: MachineLimits::default(),
            passivate_after: Duration::from_secs(10),
            quarantine_after: 2,
            executions_live_max: 100_000,
            executions_memory_max: 1024 * 1024 * 1024,
            subscriber_stall_timeout: Duration::from_secs(10),
            actor_restarts_max: 3,
            idempotency_ttl: Duration::from_secs(24 * 3600),
            child_depth_max: 16,
            generations_live_max: 10_000,
            object_repairs: 1,
            call_timeout: Duration::from_secs(60),
            tool_timeout: Duration::from_secs(60),
            tool_result_bytes_max: 256 * 1024,
            generation_steps_max: 50,
            generation_bytes_max: 4 * 1024 * 1024,
            trace_spans_max: 10_000,
            retention: RetentionRules::default(),
            watchdog_every: Duration::from_secs(60),
            expression_time_max: Duration::from_secs(1),
        }
    }
}

/// For how long what is over is kept; see `[retention]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRules {
    /// Executions of workflows without a rule of their own; `None`: for ever. None goes before its
    /// idempotency keys have expired.
    pub executions: Option<Duration>,
    /// By workflow, in place of the rule for all.
    pub workflows: HashMap<String, Option<Duration>>,
    /// The history of agents' generations; `None`: for ever.
    pub generations: Option<Duration>,
    /// How often it is looked for what is older.
    pub every: Duration,
    /// What is looked at, and dropped, at once.
    pub batch: usize,
}

impl Default for RetentionRules {
    fn default() -> Self {
        Self {
            executions: None,
            workflows: HashMap::new(),
            generations: None,
            every: Duration::from_secs(60),
            batch: 200,
        }
    }
}

impl RetentionRules {
    pub(crate) fn of_workflow(&self, id: &str) -> Option<Duration> {
        self.workflows.get(id).copied().unwrap_or(self.executions)
    }

    pub(crate) fn keeps_every_execution(&self) -> bool {
        self.executions.is_none() && self.workflows.values().all(Option::is_none)
    }
}
