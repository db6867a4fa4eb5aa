//! Asks of an execution: opened by the append that suspends a step, and closed by the one in which
//! the step no longer waits.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::fact::{Fact, Recorded, ResumedBy};
use crate::domain::failure::shortened;
use crate::domain::ids::StepPath;
use crate::domain::machine::Machine;
use crate::domain::state::Wait;
use crate::domain::time::Timestamp;
use crate::ports::store::{ASK_PREFIX, ASK_REASON_BYTES_MAX, AskChange, AskKind, AskState, NewAsk};

/// Ids of open asks, by the paths of their steps. A step that waits for a child has none: the
/// child has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct OpenAsks(HashMap<StepPath, Arc<str>>);

impl OpenAsks {
    /// Returns the asks of what waits for a person now.
    pub(super) fn of(machine: &Machine) -> Self {
        Self(asks_of(machine).into_iter().map(|ask| (ask.path, ask.id)).collect())
    }

    /// Returns the changes that follow from new facts, which the machine has applied.
    pub(super) fn follow(&mut self, facts: &[Recorded], machine: &Machine) -> Vec<AskChange> {
        let mut changes = Vec::new();
        for Recorded { at, fact, .. } in facts {
            if let Some(ask) = opened_by(fact, *at, machine) {
                self.0.insert(Arc::clone(&ask.path), Arc::clone(&ask.id));
                changes.push(AskChange::Open(ask));
            } else if fact.end().is_some() {
                let withdrawn = self.0.drain().map(|(_, id)| (id, AskState::Withdrawn));
                changes.extend(withdrawn.map(|(id, state)| AskChange::Close {
                    id,
                    state,
                    at: *at,
                }));
            } else if let Some((path, state)) = closed_by(fact)
                && let Some(id) = self.0.remove(path)
            {
                changes.push(AskChange::Close { id, state, at: *at });
            }
        }
        changes
    }
}

/// Returns the asks of what waits for a person now.
pub(crate) fn asks_of(machine: &Machine) -> Vec<NewAsk> {
    let mut found = Vec::new();
    let state = machine.state();
    if state.end.is_none() {
        state.each_live_node(machine.plan(), &mut |_, path, _, node| {
            if let Some(wait) = node.wait().filter(|wait| node.child.is_none() && !wait.fired) {
                found.push(ask_of(Arc::from(path), wait, kind_of(node.attempt)));
            }
        });
    }
    found
}

fn ask_of(path: StepPath, wait: &Wait, kind: AskKind) -> NewAsk {
    NewAsk {
        id: ask_id(&wait.id),
        kind,
        path,
        reason: shown(&wait.reason),
        opened_at: wait.since,
        deadline: wait.deadline,
    }
}

/// Returns the id of the ask of a suspension.
fn ask_id(suspension: &str) -> Arc<str> {
    Arc::from(format!("{ASK_PREFIX}{suspension}"))
}

fn shown(reason: &str) -> Arc<str> {
    Arc::from(shortened(reason, ASK_REASON_BYTES_MAX))
}

/// A step suspends before its first attempt; after that, only its function does.
fn kind_of(attempts: u32) -> AskKind {
    if attempts == 0 { AskKind::Step } else { AskKind::Function }
}

fn opened_by(fact: &Fact, at: Timestamp, machine: &Machine) -> Option<NewAsk> {
    let Fact::StepSuspended { path, reason, deadline, id: Some(id), .. } = fact else {
        return None;
    };
    let attempts = machine.node(path).map_or(0, |(_, node)| node.attempt);
    Some(NewAsk {
        id: ask_id(id),
        kind: kind_of(attempts),
        path: Arc::clone(path),
        reason: shown(reason),
        opened_at: at,
        deadline: *deadline,
    })
}

/// Returns the step whose ask a fact closes, if it is open.
fn closed_by(fact: &Fact) -> Option<(&StepPath, AskState)> {
    match fact {
        Fact::StepResumed { path, by: ResumedBy::Caller, .. } => Some((path, AskState::Answered)),
        Fact::StepResumed { path, by: ResumedBy::Deadline, .. }
        | Fact::TimerFired { path }
        | Fact::StepFailed { path, .. } => Some((path, AskState::Expired)),
        Fact::StepCancelled { path, .. } => Some((path, AskState::Withdrawn)),
        _ => None,
    }
}
