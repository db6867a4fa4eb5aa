//! The machine: a pure function from a state and a command to further facts.
//!
//! A command is checked against the state and becomes facts. The machine then runs ahead as far as
//! it can without outside work (mappings, conditions, containers), so that consecutive pure steps
//! are one batch of facts and one commit.

mod abort;
mod advance;
mod ahead;
mod call;
mod cancel;
mod child;
mod command;
mod compensation;
mod container;
mod effect;
mod ending;
mod failure;
mod finish;
mod note;
mod place;
mod recover;
mod release;
mod replay;
mod resume;
mod reversal;
mod scope;
mod start;
mod suspend;
mod timer;
mod touched;
mod why;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::effort::Budget;
use crate::expression::Closures;
use crate::fact::{Fact, Recorded};
use crate::ids::{ExecutionId, StepPath};
use crate::nesting::{VALUE_DEPTH_MAX, check_depth};
use crate::plan::{Plan, Step};
use crate::principal::Principal;
use crate::state::{Node, State};
use crate::status::Status;
use crate::time::Timestamp;

pub use crate::state::MisplacedFact;
pub use call::{Callee, DueCall, FunctionCall};
pub use child::{ChildReport, ChildStatus};
pub use command::{Command, Decision, Handled, Refusal};
pub use effect::{AgentCall, ChildCall, Effect, EffectKind};
pub use ending::{Ending, FailedStep, SKIPPED_MAX, SkippedCompensation};
pub use finish::{Spent, StepResult, ToolQuestion};
pub use replay::{ReplayFrom, ReplayRefusal};
pub use resume::{OwnCheck, Resume};
pub use reversal::Reversed;
pub use scope::Outputs;
pub use touched::Touched;
pub use why::{AtDeadline, Awaited, Cause, ChildQuestion};

/// Inputs of a decision other than the state and the command.
pub struct Moment<'a> {
    pub now: Timestamp,
    /// Generates ids of children.
    pub new_id: &'a dyn Fn() -> ExecutionId,
    /// Returns what a step needs and this process does not have, in words.
    pub missing: &'a dyn Fn(&Step) -> Option<String>,
    pub limits: &'a MachineLimits,
    /// Budget of each evaluation. An evaluation that exceeds the budget of a turn is put off (see
    /// [`Handled::PutOff`]); one that exceeds the whole budget fails.
    pub budget: &'a Budget,
    /// Returns the closures of this process.
    pub closures: &'a dyn Fn() -> Closures,
}

/// Limits of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLimits {
    /// Number of interruptions by a crash after which a step fails.
    pub crash_attempts: u32,
    /// Maximum size of a value from an expression or a body, in bytes of JSON.
    pub value_bytes_max: usize,
    /// Maximum nesting of a value from an expression or a body.
    pub value_depth_max: usize,
    /// Number of events after which the execution fails.
    pub events_max: u64,
    /// Total size of all values, in bytes of JSON, after which the execution fails.
    pub execution_bytes_max: u64,
}

impl Default for MachineLimits {
    fn default() -> Self {
        Self {
            crash_attempts: 3,
            value_bytes_max: 1024 * 1024,
            value_depth_max: VALUE_DEPTH_MAX,
            events_max: 100_000,
            execution_bytes_max: 64 * 1024 * 1024,
        }
    }
}

/// Facts of a command, and their consequences outside the machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    pub facts: Vec<Recorded>,
    /// Timers to set, with their time, and timers to clear (`None`).
    pub timers: Vec<(StepPath, Option<Timestamp>)>,
    /// Children whose parent step no longer waits for them.
    pub abandoned: Vec<ExecutionId>,
    /// Principal of the facts being recorded.
    pub by: Option<Arc<Principal>>,
}

/// An execution: its plan and its state.
#[derive(Debug, Clone)]
pub struct Machine {
    plan: Arc<Plan>,
    state: State,
    /// `user` in expressions.
    user: Option<Arc<Value>>,
    /// The last decision stopped before all that follows from it, to let other executions run.
    has_more: bool,
    /// It stopped before an evaluation that costs more than a turn.
    is_costly: bool,
    /// Bodies were running when the process ended, and have not been started again.
    unrecovered: bool,
    /// Nesting of the input. An input that an earlier version accepted stays valid.
    input_depth: usize,
    /// Newest reported event of each child, where it changed nothing here. Not recorded: after a
    /// crash, children report again.
    last_reported: BTreeMap<ExecutionId, u64>,
}

impl Machine {
    /// Checks the depth of a value made for the execution; an error names the place.
    fn check_made(&self, value: &Value, moment: &Moment<'_>) -> Result<(), String> {
        let depth_max = moment.limits.value_depth_max.max(self.input_depth);
        check_depth(value, depth_max).map_err(|too_deep| too_deep.to_string())
    }

    /// Returns true if further facts follow. The caller sends [`Command::Recover`] once the facts
    /// so far are durable.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    /// Returns true if the next decision costs more than a turn and belongs on a worker thread.
    pub fn is_costly(&self) -> bool {
        self.has_more && self.is_costly
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Removes a deleted user, as the store does from the facts; returns true if anything changed.
    pub fn forget(&mut self, user: &str) -> bool {
        self.state.forget(user)
    }

    /// Returns the node at a path, with its step.
    pub fn node(&self, path: &str) -> Option<(&Step, &Node)> {
        self.state.node_at(&self.plan, path)
    }

    /// Records a fact; if it moves a suspended execution, records the resumed status first.
    fn record(&mut self, fact: Fact, moment: &Moment<'_>, batch: &mut Batch) {
        let is_suspended = self.state.announced == Status::Suspended && self.state.hold.is_none();
        if is_suspended && self.moves_on(&fact) {
            self.record_one(Fact::WorkflowResumed, moment, batch);
        }
        self.record_one(fact, moment, batch);
    }

    /// Numbers a fact, applies it, and adds its effects on timers and children to the batch.
    fn record_one(&mut self, fact: Fact, moment: &Moment<'_>, batch: &mut Batch) {
        self.note_what_ends(&fact, batch);
        // Times of facts stay in order even if the clock jumps back.
        let at = moment.now.max(self.state.updated_at);
        let by = batch.by.clone();
        let recorded = Recorded { seq: self.state.next_seq, at, fact, by };
        let taken = self.state.apply(&self.plan, &recorded);
        debug_assert!(taken.is_ok(), "the machine made a fact that does not apply: {taken:?}");
        let path = recorded.fact.step_path();
        if let Some((path, until)) = path.zip(recorded.fact.arms_timer()) {
            batch.timers.push((Arc::clone(path), Some(until)));
        }
        batch.facts.push(recorded);
    }

    /// Adds the timer and the child that a fact ends; called before the fact is applied.
    fn note_what_ends(&self, fact: &Fact, batch: &mut Batch) {
        let drops_child = matches!(fact, Fact::StepCancelled { .. } | Fact::StepFailed { .. });
        let ends_wait = matches!(fact, Fact::StepResumed { .. } | Fact::TimerFired { .. });
        let Some(path) = fact.step_path().filter(|_| drops_child || ends_wait) else { return };
        let Some((_, node)) = self.node(path) else { return };
        if node.armed_timer().is_some() {
            batch.timers.push((Arc::clone(path), None));
        }
        if let Some(child) = node.child.as_ref().filter(|_| drops_child) {
            // A child starts when its fact is durable, so a child of this batch never did.
            let never_began = batch.facts.iter().any(|recorded| {
                matches!(&recorded.fact, Fact::ChildStarted { child: begun, .. } if *begun == child.id)
            });
            if !never_began {
                batch.abandoned.push(child.id.clone());
            }
        }
    }

    /// Returns true if the fact implies the status `running`.
    fn moves_on(&self, fact: &Fact) -> bool {
        if matches!(fact, Fact::StepSlept { .. }) {
            // A sleep parallel to a suspended step changes nothing.
            return self.state.derived_status() == Status::Running;
        }
        matches!(
            fact,
            Fact::StepStarted { .. }
                | Fact::StepResumed { .. }
                | Fact::ChildResumed { .. }
                | Fact::CompensationStarted { .. }
                | Fact::WorkflowCompleted { .. }
                | Fact::WorkflowFailed { .. }
        )
    }
}
