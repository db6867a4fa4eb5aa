//! Application of facts to the state.

use std::sync::Arc;

use serde_json::Value;

use crate::fact::{AfterFailure, Ended, Fact, Opening, Recorded, Start};
use crate::failure::{
    ATTEMPT_ERROR_BYTES_MAX, ATTEMPT_ERRORS_MAX, AttemptError, ErrorClass, ErrorKind, shortened,
};
use crate::footprint;
use crate::ids::{ExecutionId, compensated_path};
use crate::plan::{Plan, Step};
use crate::principal::Principal;
use crate::state::at_node::at_node;
use crate::state::bytes::{bytes_of, memory_of};
use crate::state::lanes::Lanes;
use crate::state::node::{Child, Node, Phase, Resumed, Sequence};
use crate::state::waiting::{fire, resume, set_child_resumed, set_child_seq, wait};
use crate::state::{Compensating, End, Hold, Outcome, State, hashed_suspension_id};
use crate::status::Status;
use crate::time::Timestamp;

/// Memory of a path of a step to compensate, beside its text, in bytes.
const PATH_BYTES: u64 = 48;

/// A fact names a node that the definition or the state does not have: the record does not match
/// the definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fact {seq} names `{path}`, which does not match the state of the execution")]
pub struct MisplacedFact {
    pub seq: u64,
    pub path: String,
}

impl State {
    /// Returns the state after the first fact.
    pub fn begin(id: ExecutionId, mut start: Box<Start>, at: Timestamp) -> Self {
        let memory = footprint::of_start(&start);
        let nodes = start.take_copied();
        let replayed_data = nodes.first().map(|first| Arc::clone(&first.input));
        let data = replayed_data.as_ref().unwrap_or(&start.input);
        let newest = nodes.iter().map(|node| node.ended_order).max().unwrap_or(0);
        let root = Sequence { data: Arc::clone(data), nodes };
        Self {
            id,
            start,
            created_at: at,
            updated_at: at,
            next_seq: 2,
            root,
            replayed_data,
            hold: None,
            hold_data: None,
            hold_lifted: None,
            holds: 0,
            announced: Status::Running,
            announced_suspension: None,
            compensating: None,
            end: None,
            bytes: 0,
            memory,
            // Copied nodes have ended before all others.
            facts_applied: newest.max(1),
            usage: None,
        }
    }

    /// Applies a fact.
    pub fn apply(&mut self, plan: &Plan, recorded: &Recorded) -> Result<(), MisplacedFact> {
        let Recorded { seq, at, fact, by: _ } = recorded;
        self.updated_at = *at;
        self.next_seq = recorded.next_seq();
        self.facts_applied += 1;
        self.add_usage(fact);
        self.bytes = self.bytes.saturating_add(bytes_of(fact));
        self.memory = self.memory.saturating_add(memory_of(fact));
        let Some(path) = fact.step_path() else {
            self.apply_to_workflow(plan, recorded);
            return Ok(());
        };
        let misplaced = || MisplacedFact { seq: *seq, path: path.to_string() };
        self.apply_to_node(plan, path, recorded).ok_or_else(misplaced)
    }

    fn add_usage(&mut self, fact: &Fact) {
        if let Fact::StepCompleted { usage: Some(used), .. }
        | Fact::StepFailed { usage: Some(used), .. } = fact
        {
            let sum = self.usage.get_or_insert_default();
            **sum = sum.plus(**used);
        }
    }

    fn apply_to_workflow(&mut self, plan: &Plan, recorded: &Recorded) {
        let (at, by) = (recorded.at, &recorded.by);
        match &recorded.fact {
            Fact::HoldPlaced { reason, id } => {
                let step_index = self.current_step(plan).map_or(0, |(index, _)| index);
                let (reason, seq) = (Arc::clone(reason), self.next_seq);
                self.holds += 1;
                let id =
                    id.clone().unwrap_or_else(|| hashed_suspension_id(&self.id, "", self.holds));
                self.hold = Some(Hold { id, by: by.clone(), reason, since: at, seq, step_index });
            }
            Fact::HoldLifted { data } => {
                self.hold = None;
                // Data of an earlier pause stays until a step takes it or other data replaces it.
                if !data.is_null() {
                    self.hold_data = Some(Arc::clone(data));
                    self.hold_lifted = Some(Box::new(Resumed {
                        at,
                        by: by.clone(),
                        by_deadline: false,
                        id: None,
                    }));
                }
            }
            Fact::WorkflowSuspended { suspension, .. } => {
                self.announced = Status::Suspended;
                let known = Some(&**suspension).filter(|it| it.id.is_some()).cloned();
                // Facts of older versions do not name the suspension; it is taken from the state.
                let shown = known.or_else(|| self.shown_suspension(plan));
                self.announced_suspension =
                    Some(Arc::new(shown.unwrap_or_else(|| (**suspension).clone())));
            }
            Fact::WorkflowResumed => {
                self.announced = Status::Running;
                self.announced_suspension = None;
            }
            Fact::CompensationStarted { outcome } => {
                // A pause by a caller ends with the work that it paused.
                (self.hold, self.hold_data, self.hold_lifted) = (None, None, None);
                let due = self.compensable(plan);
                let paths = due.iter().map(|path| path.len() as u64 + PATH_BYTES).sum::<u64>();
                self.memory = self.memory.saturating_add(paths);
                self.compensating = Some(Box::new(Compensating {
                    since: at,
                    outcome: Outcome::clone(outcome),
                    by: by.clone(),
                    due,
                    begun: Vec::new(),
                }));
            }
            Fact::WorkflowCompleted { .. } | Fact::WorkflowFailed { .. } => {
                self.finish(recorded, None, false);
            }
            Fact::WorkflowCancelled { compensates, .. } => {
                let compensates = *compensates || self.compensating.is_some();
                self.finish(recorded, by.clone(), compensates);
            }
            Fact::WorkflowStarted(_)
            | Fact::StepStarted { .. }
            | Fact::StepCompleted { .. }
            | Fact::StepFailed { .. }
            | Fact::StepReleased { .. }
            | Fact::StepNoted { .. }
            | Fact::StepSkipped { .. }
            | Fact::StepCancelled { .. }
            | Fact::StepSuspended { .. }
            | Fact::StepResumed { .. }
            | Fact::StepSlept { .. }
            | Fact::TimerFired { .. }
            | Fact::ChildStarted { .. }
            | Fact::ChildSuspended { .. }
            | Fact::ChildResumed { .. } => {}
        }
    }

    fn finish(&mut self, recorded: &Recorded, by: Option<Arc<Principal>>, compensates: bool) {
        let Some(Ended { how, .. }) = recorded.fact.end() else { return };
        self.hold = None;
        self.hold_data = None;
        self.hold_lifted = None;
        self.announced_suspension = None;
        self.end = Some(End { at: recorded.at, outcome: how.into(), by, compensates });
        self.announced = self.derived_status();
    }

    fn apply_to_node(&mut self, plan: &Plan, path: &str, recorded: &Recorded) -> Option<()> {
        let order = self.facts_applied;
        if compensated_path(path).is_some() {
            let compensating = self.compensating.as_mut()?;
            let begun = compensating.begun_mut((plan, &self.root), path, recorded.at)?;
            apply_fact(plan.step_at(path)?, &mut begun.node, recorded, order);
            begun.follow(&recorded.fact);
            begun.node.phase_since = recorded.at;
            return Some(());
        }
        let id = &self.id;
        let (hold_data, hold_lifted) = (&mut self.hold_data, &mut self.hold_lifted);
        let act = &mut |step: &Step, node: &mut Node| {
            let begins = node.attempt == 0 && node.resume.is_none();
            let phase = std::mem::discriminant(&node.phase);
            let taken = apply_fact(step, node, recorded, order);
            if let Phase::Waiting(wait) = &mut node.phase
                && wait.id.is_empty()
            {
                wait.id = hashed_suspension_id(id, path, node.asked);
            }
            // Another attempt starts a new phase of the same kind.
            let is_new_attempt = matches!(recorded.fact, Fact::StepStarted { .. });
            if is_new_attempt || phase != std::mem::discriminant(&node.phase) {
                node.phase_since = recorded.at;
            }
            if begins && taken == TakesHoldData::Yes {
                let (data, lifted) = (hold_data.take(), hold_lifted.take());
                // Data of a resume that ended a pause never resumes a suspended step.
                if data.is_some() && step.suspend.is_none() {
                    (node.resume, node.resumed) = (data, lifted);
                }
            }
        };
        at_node(&plan.steps, &mut self.root, path, recorded.at, act).map(drop)
    }
}

#[derive(PartialEq)]
enum TakesHoldData {
    Yes,
    No,
}

fn apply_fact(step: &Step, node: &mut Node, recorded: &Recorded, order: u64) -> TakesHoldData {
    let at = recorded.at;
    match &recorded.fact {
        Fact::StepStarted { attempt, interrupted, opening, .. } => {
            if *interrupted {
                remember_interrupted(node, node.attempt, at);
                node.interruptions = node.interruptions_with(at);
            }
            begin_attempt(node, *attempt, at);
            node.since_seq = recorded.next_seq() - 1;
            if step.work.container().is_none() {
                return TakesHoldData::Yes;
            }
            open(step, node, opening.as_deref());
        }
        Fact::StepSlept { attempt, until, .. } => {
            begin_attempt(node, *attempt, at);
            node.phase = Phase::Sleeping { until: *until, fired: false, retry: false };
        }
        Fact::StepCompleted { output, compensable, .. } => {
            complete(node, output, *compensable, (at, order));
        }
        Fact::StepFailed { attempt, error, class, next, .. } => {
            node.attempt = *attempt;
            node.started_at.get_or_insert(at);
            node.failures += 1;
            fail(node, (error, *class), next, at, order);
        }
        Fact::StepReleased { attempt, .. } => {
            remember_interrupted(node, *attempt, at);
            node.phase = Phase::Ready;
        }
        Fact::StepNoted { memo, .. } => note(node, memo),
        Fact::StepSkipped { .. } => end(node, Phase::Skipped, at, order),
        Fact::StepCancelled { .. } => end(node, Phase::Cancelled, at, order),
        Fact::StepSuspended { reason, payload, deadline, id, ask, question, .. } => {
            wait(node, (id, reason, payload), (*deadline, ask, question), recorded);
            return TakesHoldData::Yes;
        }
        Fact::StepResumed { data, by, .. } => resume(node, data, *by, recorded),
        Fact::TimerFired { .. } => fire(node),
        Fact::ChildStarted { child, workflow, input, .. } => {
            node.since_seq = recorded.next_seq() - 1;
            node.child = Some(Child {
                id: child.clone(),
                workflow: Arc::clone(workflow),
                input: Arc::clone(input),
                seq: 0,
                resumed: None,
                compensable: false,
            });
        }
        Fact::ChildSuspended { child_seq, reason, payload, id, deadline, .. } => {
            wait(node, (id, reason, payload), (*deadline, &None, &None), recorded);
            set_child_seq(node, *child_seq);
        }
        Fact::ChildResumed { child_seq, .. } => {
            set_child_resumed(node, recorded);
            set_child_seq(node, *child_seq);
        }
        Fact::WorkflowStarted(_)
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. }
        | Fact::WorkflowSuspended { .. }
        | Fact::WorkflowResumed
        | Fact::CompensationStarted { .. }
        | Fact::WorkflowCompleted { .. }
        | Fact::WorkflowFailed { .. }
        | Fact::WorkflowCancelled { .. } => {}
    }
    TakesHoldData::No
}

/// Keeps a note, or takes it back: null is none.
fn note(node: &mut Node, memo: &Arc<Value>) {
    node.noted = (!memo.is_null()).then(|| Arc::clone(memo));
}

fn begin_attempt(node: &mut Node, attempt: u32, at: Timestamp) {
    node.phase = Phase::Running;
    node.attempt = attempt;
    node.attempt_started_at = at;
    node.started_at.get_or_insert(at);
    node.child = None;
}

/// Creates the lanes of a container that begins; those of iterations are added one by one.
fn open(step: &Step, node: &mut Node, opening: Option<&Opening>) {
    let blocks = step.work.branches().len();
    let (count, lanes) = match opening {
        Some(Opening::Items(items)) => {
            node.items.clone_from(items);
            (0, Lanes::default())
        }
        Some(Opening::Block(chosen)) => {
            node.chosen = Some(*chosen);
            (blocks, Lanes::one(*chosen))
        }
        None if step.work.is_iterated() => (0, Lanes::default()),
        None => (blocks, Lanes::all(blocks)),
    };
    node.branches = (0..count).map(|_| Sequence::new(Arc::clone(&node.input))).collect();
    node.lanes = Some(Box::new(lanes));
}

fn complete(
    node: &mut Node,
    output: &Arc<Value>,
    is_compensable: bool,
    (at, order): (Timestamp, u64),
) {
    if let Some(child) = &mut node.child {
        child.compensable = is_compensable;
    }
    end(node, Phase::Completed { output: Arc::clone(output) }, at, order);
}

fn end(node: &mut Node, phase: Phase, at: Timestamp, order: u64) {
    node.phase = phase;
    node.ended_at = Some(at);
    node.ended_order = order;
    (node.questions, node.noted) = (None, None);
    if node.branches.is_empty() {
        // No lane ever began.
        node.lanes = None;
    }
}

fn fail(
    node: &mut Node,
    (error, class): (&Arc<str>, Option<ErrorClass>),
    next: &AfterFailure,
    at: Timestamp,
    order: u64,
) {
    // another attempt is another call
    node.noted = None;
    let output = match next {
        AfterFailure::Retry { until } => {
            node.phase = Phase::Sleeping { until: *until, fired: false, retry: true };
            remember(node, node.attempt, error, class, at);
            // Another attempt starts another child.
            node.child = None;
            return;
        }
        AfterFailure::Ask => {
            remember(node, node.attempt, error, class, at);
            node.phase = Phase::Failed { error: Arc::clone(error), class, output: None };
            node.child = None;
            return;
        }
        AfterFailure::Fail => None,
        AfterFailure::Continue { output } => Some(Arc::clone(output)),
    };
    end(node, Phase::Failed { error: Arc::clone(error), class, output }, at, order);
}

/// Error text of an interrupted attempt.
const INTERRUPTED: &str = "the attempt was interrupted before its end was recorded";

fn remember_interrupted(node: &mut Node, attempt: u32, at: Timestamp) {
    remember(node, attempt, INTERRUPTED, Some(ErrorClass::of(ErrorKind::Interrupted)), at);
}

/// Keeps the error of an attempt that another one follows; drops the oldest if there are too many.
fn remember(node: &mut Node, attempt: u32, error: &str, class: Option<ErrorClass>, at: Timestamp) {
    if node.errors.len() == ATTEMPT_ERRORS_MAX {
        node.errors.remove(0);
    }
    let message = Arc::from(shortened(error, ATTEMPT_ERROR_BYTES_MAX));
    node.errors.push(AttemptError { attempt, at, message, class });
}
