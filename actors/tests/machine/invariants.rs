//! What holds after every batch, whatever was asked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use greenroom_actors::domain::event::events_of;
use greenroom_actors::domain::fact::{Fact, Recorded};
use greenroom_actors::domain::ids::{ExecutionId, StepPath};
use greenroom_actors::domain::machine::{EffectKind, Machine};
use greenroom_actors::domain::plan::Work;
use greenroom_actors::domain::state::{Phase, State};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::usage::Usage;

use crate::machine::spans;
use crate::machine::world::World;

pub(crate) fn check(world: &World) {
    let facts = world.facts();
    numbers_have_no_gaps(&facts);
    facts_survive_writing(world.batches.last().map_or(&[], Vec::as_slice));
    folding_gives_the_live_state(world, &facts);
    the_history_is_lawful(&facts);
    assert_eq!(
        world.machine.state().derived_status(),
        world.machine.state().announced,
        "readers were not told the status"
    );
    effects_have_durable_starts(&world.machine);
    assert_eq!(world.timers, armed(&world.machine), "timers told and timers needed differ");
    every_child_is_accounted_for(world, &facts);
    what_is_used_up_adds_up(world.machine.state(), &facts);
    if world.machine.state().end.is_some() {
        spans::check(world);
    }
}

fn what_is_used_up_adds_up(state: &State, facts: &[Recorded]) {
    let used = facts.iter().filter_map(|recorded| match &recorded.fact {
        Fact::StepCompleted { usage, .. } | Fact::StepFailed { usage, .. } => usage.as_deref(),
        _ => None,
    });
    let sum = used.copied().reduce(Usage::plus);
    assert_eq!(state.usage.as_deref(), sum.as_ref(), "the tokens do not add up");
}

/// Every wait for time that is not over.
pub(crate) fn armed(machine: &Machine) -> BTreeMap<StepPath, Timestamp> {
    let mut armed = BTreeMap::new();
    machine.state().each_node(machine.plan(), &mut |_, path, _, node| {
        if let Some(until) = node.armed_timer() {
            armed.insert(Arc::from(path), until);
        }
    });
    armed
}

/// Every child that was ever started, with the path of its step.
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

/// Children that somebody waits for.
pub(crate) fn live_children(machine: &Machine) -> BTreeSet<ExecutionId> {
    let mut live = BTreeSet::new();
    machine.state().each_node(machine.plan(), &mut |_, _, _, node| {
        if node.is_live() {
            live.extend(node.child.iter().map(|child| child.id.clone()));
        }
    });
    live
}

fn numbers_have_no_gaps(facts: &[Recorded]) {
    let mut next = 1;
    let mut at = Timestamp(i64::MIN);
    for recorded in facts {
        assert_eq!(recorded.seq, next, "the number of {:?}", recorded.fact);
        next += events_of(&recorded.fact).len() as u64;
        assert!(recorded.at >= at, "the record goes back in time");
        at = recorded.at;
    }
}

fn facts_survive_writing(facts: &[Recorded]) {
    let text = serde_json::to_string(facts).unwrap();
    let read: Vec<Recorded> = serde_json::from_str(&text).unwrap();
    assert_eq!(read, facts, "facts were read as something else");
}

fn folding_gives_the_live_state(world: &World, facts: &[Recorded]) {
    let (plan, id) = (Arc::clone(world.machine.plan()), world.machine.state().id.clone());
    let folded = Machine::replay(plan, id, facts).expect("the facts belong together");
    assert_eq!(folded.state(), world.machine.state(), "folding gives another state");
    let text = serde_json::to_string(world.machine.state()).unwrap();
    let read: State = serde_json::from_str(&text).unwrap();
    assert_eq!(read, *world.machine.state(), "the state was read as something else");
}

/// What the story so far allows next.
#[derive(Default)]
struct Law {
    has_ended: bool,
    is_held: bool,
    is_suspended: bool,
    attempts: BTreeMap<StepPath, u32>,
    finished: BTreeSet<StepPath>,
    waiting: BTreeSet<StepPath>,
}

fn the_history_is_lawful(facts: &[Recorded]) {
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
                // A replay may bring the answer to what its first step would ask.
                let replayed = start.replayed.iter().filter(|replayed| replayed.answer.is_some());
                self.waiting.extend(replayed.map(|replayed| Arc::clone(&replayed.step_id)));
            }
            Fact::TimerFired { .. } => {}
            Fact::StepStarted { path, attempt, .. } => {
                assert!(!self.is_suspended, "{path} starts while the execution is suspended");
                self.starts(path, *attempt);
            }
            Fact::StepSlept { path, attempt, .. } => self.starts(path, *attempt),
            Fact::StepCompleted { path, .. } | Fact::StepCancelled { path, .. } => self.ends(path),
            Fact::StepReleased { .. } => {}
            Fact::StepSkipped { path } => {
                assert!(!self.is_held, "{path} is skipped during a hold");
                self.ends(path);
            }
            Fact::StepFailed { path, next, .. } => {
                self.waiting.remove(path);
                if !next.will_retry() {
                    self.ends(path);
                }
            }
            Fact::StepSuspended { path, .. } | Fact::ChildSuspended { path, .. } => {
                assert!(!self.finished.contains(path), "{path} waits after its end");
                self.waiting.insert(Arc::clone(path));
            }
            Fact::StepResumed { path, .. } | Fact::ChildResumed { path, .. } => {
                assert!(self.waiting.remove(path), "{path} is answered without a question");
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
            Fact::WorkflowCompleted { .. } | Fact::WorkflowFailed { .. } => {
                assert!(!self.is_held && !self.is_suspended, "ended while suspended");
                self.has_ended = true;
            }
            Fact::WorkflowCancelled { .. } => self.has_ended = true,
        }
    }

    fn starts(&mut self, path: &StepPath, attempt: u32) {
        assert!(!self.is_held, "{path} starts during a hold");
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

fn effects_have_durable_starts(machine: &Machine) {
    let last = machine.state().last_seq();
    for effect in machine.effects(last) {
        let (step, node) = machine.node(&effect.path).expect("effects name nodes");
        assert_eq!(effect.attempt, node.attempt, "attempt at work at {}", effect.path);
        let is_child_asking = matches!(node.phase, Phase::Waiting(_)) && node.child.is_some();
        assert!(node.phase == Phase::Running || is_child_asking, "{} does not run", effect.path);
        match (&step.work, effect.kind) {
            (Work::Call(_), EffectKind::Call)
            | (Work::Agent(_), EffectKind::Agent)
            | (Work::Workflow { .. }, EffectKind::Child) => {}
            (work, kind) => panic!("{kind:?} at {} for {work:?}", effect.path),
        }
        let too_early = machine.effects(node.since_seq - 1);
        assert!(too_early.iter().all(|early| early.path != effect.path), "started too early");
    }
}

/// A child is waited for, has ended, or was said to be abandoned, once.
fn every_child_is_accounted_for(world: &World, facts: &[Recorded]) {
    let live = live_children(&world.machine);
    let abandoned: BTreeSet<_> = world.abandoned.iter().cloned().collect();
    assert_eq!(abandoned.len(), world.abandoned.len(), "a child was abandoned twice");
    for (child, path) in children_of(facts) {
        let is_live = live.contains(&child);
        let is_abandoned = abandoned.contains(&child);
        assert!(!(is_live && is_abandoned), "{child} of {path} is abandoned and waited for");
        let is_known = is_live
            || is_abandoned
            || world.ended_children.contains(&child)
            || world.never_begun.contains(&child);
        assert!(is_known, "{child} of {path} is forgotten");
    }
}
