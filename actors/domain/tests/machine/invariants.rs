//! Invariants that are checked after every batch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use greenroom_domain::fact::{Fact, Recorded};
use greenroom_domain::ids::{ExecutionId, StepPath};
use greenroom_domain::machine::{Effect, EffectKind, Machine, Touched};
use greenroom_domain::plan::Work;
use greenroom_domain::state::{Phase, State};
use greenroom_domain::status::Status;
use greenroom_domain::time::Timestamp;
use greenroom_domain::usage::Usage;

pub(crate) use crate::machine::law::children_of;
use crate::machine::law::{numbers_have_no_gaps, the_order_of_facts_is_valid};
use crate::machine::world::World;

pub(crate) fn check(world: &World) {
    let facts = world.facts();
    numbers_have_no_gaps(&facts);
    facts_survive_writing(world.batches.last().map_or(&[], Vec::as_slice));
    replay_gives_the_live_state(world, &facts);
    the_order_of_facts_is_valid(&facts);
    the_status_was_published(world);
    effects_have_durable_starts(&world.machine);
    assert_eq!(world.timers, armed(&world.machine), "timers that are set and needed differ");
    every_child_is_accounted_for(world, &facts);
    usage_adds_up(world.machine.state(), &facts);
}

fn the_status_was_published(world: &World) {
    let state = world.machine.state();
    let (derived, announced) = (state.derived_status(), state.announced);
    // An execution that is blocked, or has more to do, is published as running.
    let is_blocked = announced == Status::Running && world.has_missed.get();
    assert!(derived == announced || is_blocked, "published {announced:?}, but is {derived:?}");
}

fn usage_adds_up(state: &State, facts: &[Recorded]) {
    let used = facts.iter().filter_map(|recorded| match &recorded.fact {
        Fact::StepCompleted { usage, .. } | Fact::StepFailed { usage, .. } => usage.as_deref(),
        _ => None,
    });
    let sum = used.copied().reduce(Usage::plus);
    assert_eq!(state.usage.as_deref(), sum.as_ref(), "the tokens do not add up");
}

/// Returns the timers that should be set.
pub(crate) fn armed(machine: &Machine) -> BTreeMap<StepPath, Timestamp> {
    let mut armed = BTreeMap::new();
    machine.state().each_node(machine.plan(), &mut |_, path, _, node| {
        if let Some(until) = node.armed_timer() {
            armed.insert(Arc::from(path), until);
        }
    });
    armed
}

/// Returns the children that live nodes wait for.
pub(crate) fn live_children(machine: &Machine) -> BTreeSet<ExecutionId> {
    let mut live = BTreeSet::new();
    machine.state().each_node(machine.plan(), &mut |_, _, _, node| {
        if node.is_live() {
            live.extend(node.child.iter().map(|child| child.id.clone()));
        }
    });
    live
}

fn facts_survive_writing(facts: &[Recorded]) {
    let text = serde_json::to_string(facts).unwrap();
    let read: Vec<Recorded> = serde_json::from_str(&text).unwrap();
    assert_eq!(read, facts, "facts were read as something else");
}

fn replay_gives_the_live_state(world: &World, facts: &[Recorded]) {
    let (plan, id) = (Arc::clone(world.machine.plan()), world.machine.state().id.clone());
    let replayed = Machine::replay(plan, id, facts).expect("the facts belong together");
    assert_eq!(replayed.state(), world.machine.state(), "replay gives another state");
    let text = serde_json::to_string(world.machine.state()).unwrap();
    let mut read: State = serde_json::from_str(&text).unwrap();
    read.index(world.machine.plan());
    assert_eq!(read, *world.machine.state(), "the state was read as something else");
}

fn effects_have_durable_starts(machine: &Machine) {
    let last = machine.state().last_seq();
    for effect in machine.effects(last) {
        let (step, node) = machine.node(&effect.path).expect("effects name nodes");
        assert_eq!(effect.attempt, node.attempt, "running attempt at {}", effect.path);
        let is_child_asking = matches!(node.phase, Phase::Waiting(_)) && node.child.is_some();
        assert!(node.phase == Phase::Running || is_child_asking, "{} does not run", effect.path);
        match (&step.work, effect.kind) {
            (Work::Call(_), EffectKind::Call)
            | (Work::Agent(_), EffectKind::Agent)
            | (Work::Workflow { .. } | Work::Reversal, EffectKind::Child) => {}
            (work, kind) => panic!("{kind:?} at {} for {work:?}", effect.path),
        }
        let too_early = machine.effects(node.since_seq - 1);
        assert!(too_early.iter().all(|early| early.path != effect.path), "started too early");
    }
}

/// Checks that the facts of a batch name what they begin and end: other work continues as before.
pub(crate) fn other_work_continues(before: &[Effect], facts: &[Recorded], machine: &Machine) {
    let touched = Touched::by(facts);
    let last = machine.state().last_seq();
    let (now, mut found) = (machine.effects(last), machine.effects_in(&touched, last));
    let inside = now.iter().filter(|effect| touched.includes(&effect.path));
    let mut inside: Vec<_> = inside.cloned().collect();
    // in the order of the facts, and in that of the definition
    for effects in [&mut found, &mut inside] {
        effects.sort_by(|one, other| one.path.cmp(&other.path));
    }
    assert_eq!(found, inside, "work that {facts:?} are about");
    let others = |effects: &[Effect]| {
        let others = effects.iter().filter(|effect| !touched.includes(&effect.path));
        others.cloned().collect::<Vec<_>>()
    };
    assert_eq!(others(&now), others(before), "work that {facts:?} are not about");
    for effect in before.iter().chain(&now) {
        let is_due = machine.has_effect(&effect.path, effect.attempt, last);
        let is_listed =
            now.iter().any(|it| (&it.path, it.attempt) == (&effect.path, effect.attempt));
        assert_eq!(is_due, is_listed, "{}", effect.path);
    }
}

/// Checks that every child is waited for, has ended, or was abandoned exactly once.
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
