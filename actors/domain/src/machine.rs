//! The rules of execution: what a command leads to, given what has been recorded.
//!
//! A command is checked against the state, becomes facts, and the machine then runs ahead by
//! itself as far as it can without the outside (mappings, conditions, containers), so that a
//! run of pure steps is one batch of facts and one commit.

mod abort;
mod advance;
mod ahead;
mod call;
mod cancel;
mod child;
mod command;
mod container;
mod effect;
mod ending;
mod failure;
mod finish;
mod place;
mod recover;
mod release;
mod replay;
mod resume;
mod scope;
mod start;
mod suspend;
mod timer;
mod why;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::effort::Budget;
use crate::fact::{Fact, Recorded};
use crate::ids::{ExecutionId, PathHead, StepPath};
use crate::nesting::{VALUE_DEPTH_MAX, check_depth};
use crate::plan::{Plan, Step};
use crate::principal::Principal;
use crate::state::{Node, State};
use crate::status::Status;
use crate::time::Timestamp;

pub use crate::state::Misplaced;
pub use call::{Callee, DueCall, FunctionCall};
pub use child::{ChildReport, ChildStatus};
pub use command::{Command, Decision, Handled, Refusal};
pub use effect::{AgentCall, ChildCall, Effect, EffectKind};
pub use ending::{Ending, FailedStep};
pub use finish::StepResult;
pub use replay::{ReplayFrom, ReplayRefusal};
pub use resume::Resume;
pub use why::{AtDeadline, Awaited, Cause, ChildQuestion};

/// What a decision may know of the moment it is made in.
pub struct Moment<'a> {
    pub now: Timestamp,
    /// Gives ids to children.
    pub new_id: &'a dyn Fn() -> ExecutionId,
    /// Says what a step needs and this process does not have.
    pub missing: &'a dyn Fn(&Step) -> Option<String>,
    pub limits: &'a MachineLimits,
    /// What each evaluation may cost. What costs more than a turn is put off (see
    /// [`Handled::PutOff`]); with more than that, it fails.
    pub budget: &'a Budget,
}

/// Bounds of one execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineLimits {
    /// Interruptions by a crash after which a step fails.
    pub crash_attempts: u32,
    /// Largest value that an expression or a body may give, in bytes of JSON.
    pub value_bytes_max: usize,
    /// How deep a value may nest that an expression or a body gives.
    pub value_depth_max: usize,
    /// Events after which the execution fails.
    pub events_max: u64,
    /// Bytes of JSON of all values of the execution after which it fails.
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

/// What one command led to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    pub facts: Vec<Recorded>,
    /// Nodes whose wait for time began (with its end) or is over.
    pub timers: Vec<(StepPath, Option<Timestamp>)>,
    /// Children that nobody waits for any more.
    pub abandoned: Vec<ExecutionId>,
    /// Who asked for what is recorded now.
    pub by: Option<Arc<Principal>>,
}

/// An execution: its definition and its state.
#[derive(Debug, Clone)]
pub struct Machine {
    plan: Arc<Plan>,
    state: State,
    /// `user` in expressions.
    user: Option<Arc<Value>>,
    /// What was decided last stopped before all that follows by itself: others get their turn.
    goes_on: bool,
    /// It stopped before something that costs more than a turn.
    is_costly: bool,
    /// Bodies were in flight when the process ended and have not been begun anew.
    unrecovered: bool,
    /// How deep its input nests: what an earlier version let in, the execution may go on with.
    input_depth: usize,
    /// Newest event of each child that was heard of and changed nothing here. Not recorded: what
    /// a crash forgets is asked for again.
    heard: BTreeMap<ExecutionId, u64>,
}

impl Machine {
    /// Checks a value that was made for the execution. Says what is wrong with it and where.
    fn check_made(&self, value: &Value, moment: &Moment<'_>) -> Result<(), String> {
        let depth_max = moment.limits.value_depth_max.max(self.input_depth);
        check_depth(value, depth_max).map_err(|too_deep| too_deep.to_string())
    }

    /// Whether more follows by itself: to be asked for with [`Command::Recover`] when what was
    /// decided is durable.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Whether what goes on costs more than a turn: it is to be asked for where nothing else
    /// waits.
    pub fn is_costly(&self) -> bool {
        self.goes_on && self.is_costly
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan
    }

    /// Strikes a user who is to be forgotten, as the store does from the facts; says whether
    /// there was anything to strike.
    pub fn forget(&mut self, user: &str) -> bool {
        self.state.forget(user)
    }

    /// The node at a path, with its step.
    pub fn node(&self, path: &str) -> Option<(&Step, &Node)> {
        let mut steps = self.plan.steps.as_slice();
        let mut sequence = &self.state.root;
        let mut path = path;
        loop {
            let PathHead { step_id, inner } = PathHead::of(path)?;
            let index = steps.iter().position(|step| &*step.id == step_id)?;
            let (step, node) = (steps.get(index)?, sequence.nodes.get(index)?);
            let Some((lane, rest)) = inner else { return Some((step, node)) };
            let lane = step.work.lane_index(lane)?;
            steps = &step.work.branch_of(lane)?.steps;
            sequence = node.branches.get(lane)?;
            path = rest;
        }
    }

    /// Numbers a fact, takes it in, and notes what it means for timers and children.
    fn record(&mut self, fact: Fact, moment: &Moment<'_>, batch: &mut Batch) {
        let is_suspended = self.state.announced == Status::Suspended && self.state.hold.is_none();
        if is_suspended && self.moves_on(&fact) {
            self.record_one(Fact::WorkflowResumed, moment, batch);
        }
        self.record_one(fact, moment, batch);
    }

    fn record_one(&mut self, fact: Fact, moment: &Moment<'_>, batch: &mut Batch) {
        self.note_what_ends(&fact, batch);
        // A clock that jumps back must not make the record go back.
        let at = moment.now.max(self.state.updated_at);
        let by = batch.by.clone();
        let recorded = Recorded { seq: self.state.next_seq, at, fact, by };
        let taken = self.state.apply(&self.plan, &recorded);
        debug_assert!(taken.is_ok(), "the machine made a fact that it cannot take: {taken:?}");
        let path = recorded.fact.step_path();
        if let Some((path, until)) = path.zip(recorded.fact.arms_timer()) {
            batch.timers.push((Arc::clone(path), Some(until)));
        }
        batch.facts.push(recorded);
    }

    /// Timers and children of the node that a fact is about, before it is taken in.
    fn note_what_ends(&self, fact: &Fact, batch: &mut Batch) {
        let drops_child = matches!(fact, Fact::StepCancelled { .. } | Fact::StepFailed { .. });
        let ends_wait = matches!(fact, Fact::StepResumed { .. } | Fact::TimerFired { .. });
        let Some(path) = fact.step_path().filter(|_| drops_child || ends_wait) else { return };
        let Some((_, node)) = self.node(path) else { return };
        if node.armed_timer().is_some() {
            batch.timers.push((Arc::clone(path), None));
        }
        if let Some(child) = node.child.as_ref().filter(|_| drops_child) {
            // A child begins when the fact of its beginning is durable: this one never did.
            let never_began = batch.facts.iter().any(|recorded| {
                matches!(&recorded.fact, Fact::ChildStarted { child: begun, .. } if *begun == child.id)
            });
            if !never_began {
                batch.abandoned.push(child.id.clone());
            }
        }
    }

    /// Returns whether only a running execution can have the fact.
    fn moves_on(&self, fact: &Fact) -> bool {
        if matches!(fact, Fact::StepSlept { .. }) {
            // A sleep beside a wait does not move anything.
            return self.state.derived_status() == Status::Running;
        }
        matches!(
            fact,
            Fact::StepStarted { .. }
                | Fact::StepResumed { .. }
                | Fact::ChildResumed { .. }
                | Fact::WorkflowCompleted { .. }
                | Fact::WorkflowFailed { .. }
        )
    }
}
