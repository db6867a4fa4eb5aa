//! Rules of every record: numbers, times, and the order of facts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use greenroom_domain::event::events_of;
use greenroom_domain::fact::{AfterFailure, Fact, Recorded};
use greenroom_domain::ids::{ExecutionId, StepPath, compensated_path};
use greenroom_domain::time::Timestamp;

/// Returns every child that was ever recorded, with the path of its step.
pub(crate) fn children_of(facts: &[Recorded]) -> BTreeMap<ExecutionId, StepPath> {
    let mut children = BTreeMap::new();
    for recorded in facts {
        if let Fact::ChildStarted { path, child, .. } = &recorded.fact {
            let earlier = children.insert(child.clone(), Arc::clone(path));
            assert_eq!(earlier, None, "the id of child {child} was used twice");
        }
    }
    children
}

pub(crate) fn numbers_have_no_gaps(facts: &[Recorded]) {
    let mut next = 1;
    let mut at = Timestamp(i64::MIN);
    for recorded in facts {
        assert_eq!(recorded.seq, next, "the number of {:?}", recorded.fact);
        next += events_of(&recorded.fact).len() as u64;
        assert!(recorded.at >= at, "the record goes back in time");
        at = recorded.at;
    }
}

/// Facts that are allowed next.
#[derive(Default)]
struct Law {
    has_ended: bool,
    is_held: bool,
    is_suspended: bool,
    attempts: BTreeMap<StepPath, u32>,
    finished: BTreeSet<StepPath>,
    waiting: BTreeSet<StepPath>,
    /// Paths of the steps that have completed, in this order.
    completed: Vec<StepPath>,
    is_compensating: bool,
    /// Nodes were copied from another execution.
    has_copies: bool,
    /// Steps for which a replay supplied resume data.
    supplied: BTreeSet<StepPath>,
}

pub(crate) fn the_order_of_facts_is_valid(facts: &[Recorded]) {
    let mut law = Law::default();
    for recorded in facts {
        assert!(!law.has_ended, "a fact after the end: {:?}", recorded.fact);
        law.allow(&recorded.fact);
    }
}

impl Law {
    fn allow(&mut self, fact: &Fact) {
        match fact {
            Fact::WorkflowStarted(start) => {
                let replayed = start.replayed.as_ref().is_some_and(|it| !it.nodes.is_empty());
                self.has_copies = replayed || start.reversal.is_some();
                // A replay may supply resume data for its first step.
                let replayed = start.replayed.iter().filter(|replayed| replayed.answer.is_some());
                self.supplied.extend(replayed.map(|replayed| Arc::clone(&replayed.step_id)));
            }
            Fact::TimerFired { .. } | Fact::StepReleased { .. } => {}
            Fact::StepStarted { path, attempt, .. } => {
                assert!(!self.is_suspended, "{path} starts while the execution is suspended");
                self.starts(path, *attempt);
            }
            Fact::StepSlept { path, attempt, .. } => self.starts(path, *attempt),
            Fact::StepCompleted { path, .. } => {
                self.completed.push(Arc::clone(path));
                self.ends(path);
            }
            Fact::StepCancelled { path, .. } => self.ends(path),
            Fact::StepNoted { path, attempt, .. } => self.notes(path, *attempt),
            Fact::StepSkipped { path } => {
                assert!(!self.is_held, "{path} is skipped during a hold");
                self.ends(path);
            }
            Fact::StepFailed { path, next, .. } => {
                self.waiting.remove(path);
                let asks = *next == AfterFailure::Ask;
                assert_eq!(asks, asks && compensated_path(path).is_some(), "{path} asks");
                if !next.will_retry() && !asks {
                    self.ends(path);
                }
            }
            Fact::StepSuspended { path, .. } | Fact::ChildSuspended { path, .. } => {
                assert!(!self.finished.contains(path), "{path} waits after its end");
                self.waiting.insert(Arc::clone(path));
            }
            Fact::StepResumed { path, .. } | Fact::ChildResumed { path, .. } => {
                let is_waiting = self.waiting.remove(path) || self.supplied.remove(path);
                assert!(is_waiting, "{path} is resumed without a suspension");
            }
            Fact::ChildStarted { path, .. } => {
                assert!(!self.is_held, "{path} starts a child during a hold");
                assert!(self.attempts.contains_key(path), "{path} has not started");
                assert!(!self.finished.contains(path), "{path} starts a child after its end");
            }
            Fact::HoldPlaced { .. } => {
                assert!(!self.is_held && !self.is_suspended, "held twice");
                self.is_held = true;
            }
            Fact::HoldLifted { .. } => {
                assert!(self.is_held, "there is no hold to lift");
                self.is_held = false;
            }
            Fact::WorkflowSuspended { .. } => {
                assert!(!self.is_suspended, "suspended twice");
                self.is_suspended = true;
            }
            Fact::WorkflowResumed => {
                assert!(self.is_suspended && !self.is_held, "resumed without need");
                self.is_suspended = false;
            }
            Fact::CompensationStarted { .. } => {
                assert!(!self.is_compensating, "compensated twice");
                (self.is_compensating, self.is_held) = (true, false);
            }
            Fact::WorkflowCompleted { .. } | Fact::WorkflowFailed { .. } => {
                assert!(!self.is_held && !self.is_suspended, "ended while suspended");
                self.has_ended = true;
            }
            Fact::WorkflowCancelled { .. } => self.has_ended = true,
        }
    }

    fn notes(&self, path: &StepPath, attempt: u32) {
        assert_eq!(self.attempts.get(path), Some(&attempt), "{path} notes too late");
        assert!(!self.finished.contains(path), "{path} notes after its end");
    }

    fn starts(&mut self, path: &StepPath, attempt: u32) {
        assert!(!self.is_held, "{path} starts during a hold");
        let compensated = compensated_path(path);
        assert_eq!(compensated.is_some(), self.is_compensating, "{path} starts out of turn");
        if let Some(step) = compensated.filter(|_| attempt == 1) {
            let newest = self.completed.iter().rposition(|it| &**it == step);
            // What was copied ended before all that completed here.
            let at = newest.or_else(|| self.has_copies.then_some(0));
            let at = at.expect("only what completed is compensated");
            // What completed after it has been compensated, or needs no compensation.
            self.completed.truncate(at);
        }
        assert!(!self.finished.contains(path), "{path} starts after its end");
        assert!(!self.waiting.contains(path), "{path} starts while it waits");
        let before = self.attempts.insert(Arc::clone(path), attempt);
        assert_eq!(attempt, before.unwrap_or(0) + 1, "attempts of {path}");
    }

    fn ends(&mut self, path: &StepPath) {
        self.waiting.remove(path);
        assert!(self.finished.insert(Arc::clone(path)), "{path} ends twice");
    }
}
