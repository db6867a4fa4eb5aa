//! Bounds of a runtime.

use std::collections::HashMap;
use std::time::Duration;

use crate::domain::machine::MachineLimits;
use crate::shard::arbiters::Placement;

/// Bounds of the runtime; see `[limits]` and `[store]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeLimits {
    /// Threads that executions run on.
    pub placement: Placement,
    /// Bounds of one execution. The depth limit applies to values from every source.
    pub machine: MachineLimits,
    /// Idle time after which a waiting execution without subscribers leaves memory.
    pub passivate_after: Duration,
    /// Process deaths while an execution is evaluated at the same point, after which it fails; zero
    /// disables this.
    pub quarantine_after: u32,
    /// Executions in memory at once; above it, new ones are refused as busy.
    pub executions_live_max: usize,
    /// Estimated bytes that the values of all executions in memory may hold. When they are used up,
    /// new executions and resumes of executions not in memory are refused.
    pub executions_memory_max: u64,
    /// Time without reading after which a subscriber is disconnected.
    pub subscriber_stall_timeout: Duration,
    /// Times that an execution's actor is rebuilt after a panic within a minute.
    pub actor_restarts_max: u32,
    /// Time for which callers wait while the store accepts no writes.
    pub store_patience: Duration,
    /// Lifetime of an idempotency key.
    pub idempotency_ttl: Duration,
    /// Nesting depth of executions and agents.
    pub child_depth_max: u32,
    /// Generations at once; above it, new ones are refused as busy.
    pub generations_live_max: usize,
    /// Answers that the program's own check looks at at once; further ones are refused as busy.
    pub answer_checks_max: usize,
    /// Times that a model is asked again for an object that does not match its schema.
    pub object_repairs: u32,
    /// Timeout of one attempt of a step that calls a server or runs a program, when the step sets
    /// none.
    pub call_timeout: Duration,
    /// Timeout of a tool call, when the tool sets none.
    pub tool_timeout: Duration,
    /// Largest result of a tool, in bytes of JSON.
    pub tool_result_bytes_max: usize,
    /// Turns of one generation; a caller or an agent can only set fewer.
    pub generation_steps_max: u32,
    /// Asks for which one generation waits at once, those of its sub-agents included; further calls
    /// fail.
    pub generation_asks_max: usize,
    /// Bytes that the model of one generation may produce, and bytes that its tools may return.
    pub generation_bytes_max: usize,
    /// Facts and turns that one trace shows, and that are read for one page of traces.
    pub trace_spans_max: usize,
    /// Estimated memory of the facts and turns of one trace, in bytes.
    pub trace_bytes_max: u64,
    /// Bytes of the records of one page of the history of agents, of conversations and of messages.
    pub page_bytes_max: usize,
    /// Retention of ended executions and generations.
    pub retention: RetentionRules,
    /// Interval between checks of running executions; zero disables them.
    pub watchdog_every: Duration,
    /// Time limit of the evaluation of one expression, template or schema.
    pub expression_time_max: Duration,
    /// Least interval of regular work, such as putting executions away and reminding of asks. Zero,
    /// the default, except where virtual time passes days in a moment.
    pub housekeeping_every: Duration,
}

impl RuntimeLimits {
    /// Returns the interval of regular work that usually has this one.
    pub(crate) fn every(&self, usual: Duration) -> Duration {
        usual.max(self.housekeeping_every)
    }
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
            store_patience: Duration::from_secs(10),
            idempotency_ttl: Duration::from_secs(24 * 3600),
            child_depth_max: 16,
            generations_live_max: 10_000,
            answer_checks_max: 100,
            object_repairs: 1,
            call_timeout: Duration::from_secs(60),
            tool_timeout: Duration::from_secs(60),
            tool_result_bytes_max: 256 * 1024,
            generation_steps_max: 50,
            generation_asks_max: 100,
            generation_bytes_max: 4 * 1024 * 1024,
            trace_spans_max: 10_000,
            trace_bytes_max: 64 * 1024 * 1024,
            page_bytes_max: 4 * 1024 * 1024,
            retention: RetentionRules::default(),
            watchdog_every: Duration::from_secs(60),
            expression_time_max: Duration::from_secs(1),
            housekeeping_every: Duration::ZERO,
        }
    }
}

/// Retention of ended executions and generations; see `[retention]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRules {
    /// Executions of workflows without their own rule; `None`: for ever. An execution is kept until
    /// its idempotency keys have expired.
    pub executions: Option<Duration>,
    /// By workflow, in place of the rule for all.
    pub workflows: HashMap<String, Option<Duration>>,
    /// History of agents' generations; `None`: for ever.
    pub generations: Option<Duration>,
    /// Interval between sweeps.
    pub every: Duration,
    /// Rows examined, and deleted, at once.
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
