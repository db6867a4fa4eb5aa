//! Asks of an execution: opened by the append that suspends a step, and closed by the one in which
//! the step no longer waits.

use std::collections::HashMap;
use std::sync::Arc;

use crate::agent::tool::WithdrawnQuestion;
use crate::domain::assignment::AskRules;
use crate::domain::fact::{Fact, Recorded, ResumedBy};
use crate::domain::failure::shortened;
use crate::domain::ids::StepPath;
use crate::domain::machine::Machine;
use crate::domain::plan::Step;
use crate::domain::state::Node;
use crate::domain::time::Timestamp;
use crate::ports::store::{ASK_PREFIX, ASK_REASON_BYTES_MAX, AskChange, AskKind, AskState, NewAsk};

/// Open asks, by the paths of their steps. A step that waits for a child has none: the child has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OpenAsks(HashMap<StepPath, OpenAsk>);

#[derive(Debug, PartialEq)]
struct OpenAsk {
    id: Arc<str>,
    /// The question of the step's tool, if it has a memo.
    question: Option<WithdrawnQuestion>,
}

/// Changes of asks.
#[derive(Debug, Default)]
pub(super) struct AskChanges {
    pub(super) asks: Vec<AskChange>,
    /// Questions of tools that are withdrawn.
    pub(super) withdrawn: Vec<WithdrawnQuestion>,
}

impl OpenAsk {
    fn of(ask: &NewAsk, machine: &Machine) -> Self {
        Self { id: Arc::clone(&ask.id), question: question_at(machine, &ask.place) }
    }
}

impl OpenAsks {
    /// Returns the asks of what waits for a person now.
    pub(super) fn of(machine: &Machine) -> Self {
        let asks = asks_of(machine).into_iter();
        Self(asks.map(|ask| (Arc::clone(&ask.place), OpenAsk::of(&ask, machine))).collect())
    }

    /// Returns the changes that follow from new facts, which the machine has applied.
    pub(super) fn follow(&mut self, facts: &[Recorded], machine: &Machine) -> AskChanges {
        let mut changes = AskChanges::default();
        for Recorded { at, fact, .. } in facts {
            if let Some(ask) = opened_by(fact, *at, machine) {
                self.0.insert(Arc::clone(&ask.place), OpenAsk::of(&ask, machine));
                changes.asks.push(AskChange::Open(ask));
            } else if fact.end().is_some() {
                for (_, open) in self.0.drain() {
                    changes.close(open, AskState::Withdrawn, *at);
                }
            } else if let Some((path, state)) = closed_by(fact)
                && let Some(open) = self.0.remove(path)
            {
                changes.close(open, state, *at);
            }
        }
        changes
    }
}

impl AskChanges {
    fn close(&mut self, OpenAsk { id, question }: OpenAsk, state: AskState, at: Timestamp) {
        self.asks.push(AskChange::Close { id, state, at, answer: None });
        if state == AskState::Withdrawn {
            self.withdrawn.extend(question);
        }
    }
}

/// Returns the open question of the tool of a step, if it has a memo.
fn question_at(machine: &Machine, path: &str) -> Option<WithdrawnQuestion> {
    let (step, node) = machine.node(path)?;
    let memo = Arc::clone(node.question()?.memo.as_ref()?);
    Some(WithdrawnQuestion { tool: Arc::clone(step.work.tool()?), memo })
}

/// Returns the asks of what waits for a person now.
pub(crate) fn asks_of(machine: &Machine) -> Vec<NewAsk> {
    let mut found = Vec::new();
    let state = machine.state();
    if state.end.is_none() {
        state.each_live_node(machine.plan(), &mut |_, path, step, node| {
            found.extend(ask_of(path, step, node));
        });
    }
    found
}

/// Returns the ask of the step at a path, if it waits for a person now.
pub(super) fn ask_at(machine: &Machine, path: &str) -> Option<NewAsk> {
    let (step, node) = machine.node(path)?;
    ask_of(path, step, node)
}

fn ask_of(path: &str, step: &Step, node: &Node) -> Option<NewAsk> {
    let wait = node.wait().filter(|wait| node.child.is_none() && !wait.fired)?;
    let kind = kind_of(step, node.attempt)?;
    let times = (wait.since, wait.deadline);
    Some(new_ask(&wait.id, kind, Arc::from(path), &wait.reason, times, wait.ask.as_deref()))
}

fn new_ask(
    suspension: &str,
    kind: AskKind,
    place: StepPath,
    reason: &str,
    (opened_at, deadline): (Timestamp, Option<Timestamp>),
    rules: Option<&AskRules>,
) -> NewAsk {
    let rules = rules.cloned().unwrap_or_default();
    NewAsk {
        id: Arc::from(format!("{ASK_PREFIX}{suspension}")),
        kind,
        place,
        tool_name: None,
        reason: Arc::from(shortened(reason, ASK_REASON_BYTES_MAX)),
        opened_at,
        deadline,
        next_due: rules.next_due(opened_at, Timestamp(i64::MIN)),
        rules,
        details: None,
    }
}

/// Returns the kind of an ask: a step suspends before its first attempt, and after that only its
/// function does; a compensation asks after its last attempt. `None` if the step waits for calls of
/// its generation, which have separate asks.
fn kind_of(step: &Step, attempts: u32) -> Option<AskKind> {
    if step.waits_for_generation(attempts) {
        return None;
    }
    Some(match attempts {
        _ if step.is_compensation() => AskKind::Compensation,
        0 => AskKind::Step,
        _ => AskKind::Function,
    })
}

fn opened_by(fact: &Fact, at: Timestamp, machine: &Machine) -> Option<NewAsk> {
    let Fact::StepSuspended { path, reason, deadline, id: Some(id), ask, .. } = fact else {
        return None;
    };
    let kind = match machine.node(path) {
        Some((step, node)) => kind_of(step, node.attempt)?,
        None => AskKind::Step,
    };
    Some(new_ask(id, kind, Arc::clone(path), reason, (at, *deadline), ask.as_deref()))
}

/// Returns the step whose ask a fact closes, if it is open.
fn closed_by(fact: &Fact) -> Option<(&StepPath, AskState)> {
    match fact {
        Fact::StepResumed { path, by: ResumedBy::Caller, .. } => Some((path, AskState::Answered)),
        Fact::StepResumed { path, by: ResumedBy::Deadline, .. }
        | Fact::TimerFired { path }
        | Fact::StepFailed { path, .. } => Some((path, AskState::Expired)),
        Fact::StepCancelled { path, .. } => Some((path, AskState::Withdrawn)),
        // the end of an execution withdraws what is open, see `update`
        Fact::WorkflowCompleted { .. }
        | Fact::WorkflowFailed { .. }
        | Fact::WorkflowCancelled { .. } => None,
        Fact::WorkflowStarted(_)
        | Fact::WorkflowSuspended { .. }
        | Fact::WorkflowResumed
        | Fact::CompensationStarted { .. }
        | Fact::StepStarted { .. }
        | Fact::StepCompleted { .. }
        | Fact::StepReleased { .. }
        | Fact::StepNoted { .. }
        | Fact::StepSkipped { .. }
        | Fact::StepSuspended { .. }
        | Fact::StepSlept { .. }
        | Fact::ChildStarted { .. }
        | Fact::ChildSuspended { .. }
        | Fact::ChildResumed { .. }
        | Fact::HoldPlaced { .. }
        | Fact::HoldLifted { .. } => None,
    }
}
