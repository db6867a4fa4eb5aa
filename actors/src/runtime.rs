//! The only door to executions and generations.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::fact::Recorded;
use crate::domain::ids::ExecutionId;
use crate::generation::{GenerateError, Generation, GenerationRequest};
use crate::ports::clock::Clock;
use crate::ports::store::{Cursor, ExecutionFilter, Projection, Store};
use crate::registry::Registry;
use crate::requests::{
    CancelError, Cancelled, DescribeError, ExecutionState, Rest, ResumeError, ResumeExecution,
    StartError, StartExecution, Subscriber, SuspendError, Suspended, Target, Unavailable,
};
use crate::span::{Observer, ObserverId};

/// Bounds of the runtime; see `[limits]` and `[store]` of the configuration.
#[derive(Debug, Clone)]
pub struct RuntimeLimits {
    /// Threads that run executions.
    pub arbiters: usize,
    /// A waiting execution that nobody reads leaves memory after this.
    pub passivate_after: Duration,
    /// Interruptions by a crash after which a step fails.
    pub crash_attempts: u32,
    /// Executions in memory at once; above it, new ones are refused as busy.
    pub executions_live_max: usize,
    /// Largest value that an expression or a function may give, in bytes of JSON.
    pub value_bytes_max: usize,
    /// Events of one execution; beyond it the execution fails.
    pub events_max: u64,
    /// How long a subscriber may take nothing before its connection is cut.
    pub subscriber_stall: Duration,
    /// Times that an execution's actor is rebuilt after a panic of its own within a minute.
    pub actor_restarts_max: u32,
    /// How long an idempotency key is kept.
    pub idempotency_ttl: Duration,
}

impl Default for RuntimeLimits {
    fn default() -> Self {
        Self {
            arbiters: std::thread::available_parallelism().map_or(1, |n| (n.get() / 2).max(1)),
            passivate_after: Duration::from_secs(10),
            crash_attempts: 3,
            executions_live_max: 100_000,
            value_bytes_max: 1024 * 1024,
            events_max: 100_000,
            subscriber_stall: Duration::from_secs(10),
            actor_restarts_max: 3,
            idempotency_ttl: Duration::from_secs(24 * 3600),
        }
    }
}

/// Cheap to clone; all clones are the same runtime.
#[derive(Clone)]
pub struct Runtime {
    _todo: Arc<()>,
}

impl Runtime {
    /// Starts arbiters, supervisors, scheduler and feed, stores the definitions, and continues
    /// what was running when the process last ended. Call from within an actix system.
    pub async fn launch(
        _registry: Registry,
        _store: Arc<dyn Store>,
        _clock: Arc<dyn Clock>,
        _limits: RuntimeLimits,
    ) -> Result<Self, Unavailable> {
        unimplemented!()
    }

    pub fn registry(&self) -> &Registry {
        unimplemented!()
    }

    /// Executions of a workflow that are in memory and running now.
    pub fn is_workflow_running(&self, _workflow_id: &str) -> bool {
        unimplemented!()
    }

    /// Whether a generation of the agent runs now.
    pub fn is_agent_working(&self, _agent_id: &str) -> bool {
        unimplemented!()
    }

    /// Starts an execution and waits until it leaves `running`.
    pub async fn execute(&self, _request: StartExecution) -> Result<Rest, StartError> {
        unimplemented!()
    }

    /// Starts an execution whose events, from the first on, go to the subscriber. Resolves when
    /// the start is durable.
    pub async fn stream(
        &self,
        _request: StartExecution,
        _subscriber: Subscriber,
    ) -> Result<ExecutionId, StartError> {
        unimplemented!()
    }

    /// Adds a reader. Gives the number of the last durable event: everything above it will reach
    /// the subscriber, everything up to it is in [`Runtime::facts`]. An execution that has ended
    /// takes no subscriber: `ended` is set, the facts are all there is.
    pub async fn subscribe(
        &self,
        _target: &Target,
        _subscriber: Subscriber,
    ) -> Result<Subscription, DescribeError> {
        unimplemented!()
    }

    /// Durable facts above a number, oldest first, at most `limit`.
    pub async fn facts(
        &self,
        _id: &ExecutionId,
        _after: u64,
        _limit: usize,
    ) -> Result<Vec<Recorded>, Unavailable> {
        unimplemented!()
    }

    pub async fn suspend(
        &self,
        _target: &Target,
        _reason: Option<String>,
    ) -> Result<Suspended, SuspendError> {
        unimplemented!()
    }

    /// Resumes and waits until the execution leaves `running` again.
    pub async fn resume(
        &self,
        _target: &Target,
        _request: ResumeExecution,
    ) -> Result<Rest, ResumeError> {
        unimplemented!()
    }

    pub async fn cancel(
        &self,
        _target: &Target,
        _reason: Option<String>,
    ) -> Result<Cancelled, CancelError> {
        unimplemented!()
    }

    pub async fn describe(&self, _target: &Target) -> Result<ExecutionState, DescribeError> {
        unimplemented!()
    }

    pub async fn list(
        &self,
        _filter: &ExecutionFilter,
        _after: Option<Cursor>,
        _limit: usize,
    ) -> Result<(Vec<Projection>, Option<Cursor>), Unavailable> {
        unimplemented!()
    }

    /// Registers a listener of spans.
    pub async fn observe(&self, _observer: Observer) -> ObserverId {
        unimplemented!()
    }

    pub fn forget(&self, _observer: ObserverId) {
        unimplemented!()
    }

    /// Runs an agent to its answer.
    pub async fn generate(&self, _request: GenerationRequest) -> Result<Generation, GenerateError> {
        unimplemented!()
    }

    /// Whether writes succeed and the runtime takes new work.
    pub fn is_ready(&self) -> bool {
        unimplemented!()
    }

    /// Refuses new work, gives running steps `grace`, answers those who wait with
    /// [`Unavailable::Draining`], and returns when everything acknowledged is durable.
    pub async fn drain(&self, _grace: Duration) {
        unimplemented!()
    }
}

/// See [`Runtime::subscribe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription {
    pub durable_seq: u64,
    pub ended: bool,
}
