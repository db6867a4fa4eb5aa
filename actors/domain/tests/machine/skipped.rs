//! Compensations that a person skips: shown as skipped, not as completed.

use std::sync::Arc;

use greenroom_domain::definition::StepDefinition;
use greenroom_domain::fact::Recorded;
use greenroom_domain::machine::{ReplayFrom, ReplayRefusal, SKIPPED_MAX};
use greenroom_domain::step_state::StepStatus;
use serde_json::{Value, from_value, json, to_value};

use crate::machine::build::{Adorned, compensation, for_each, run};
use crate::machine::world::World;

fn undone_once(id: &str) -> StepDefinition {
    run(id).compensated(compensation("undo", false, 1))
}

/// Returns a world in which two steps have completed and the third has failed.
fn failed() -> World {
    let mut world = World::of(vec![undone_once("a"), undone_once("b"), run("c")]);
    world.finish("a", 1);
    world.finish("b", 2);
    world.fail("c", "boom");
    world
}

fn skip(world: &mut World, path: &str) {
    world.fail(path, "no");
    world.resume(json!({ "action": "skip" }));
}

/// Returns the compensations with their statuses.
fn statuses(world: &World) -> Vec<(String, StepStatus)> {
    let steps = world.machine.state().steps(world.machine.plan());
    let undoing = steps.iter().filter(|step| step.path.ends_with(":compensate"));
    undoing.map(|step| (step.path.to_string(), step.status)).collect()
}

/// Returns the steps whose compensations were skipped, as the end shows them.
fn skipped(world: &World) -> Vec<String> {
    let ending = world.machine.ending().expect("it has ended");
    ending.skipped.iter().map(|skipped| skipped.path.to_string()).collect()
}

fn expected() -> Vec<(String, StepStatus)> {
    let row = |path: &str, status| (path.to_owned(), status);
    vec![row("b:compensate", StepStatus::Skipped), row("a:compensate", StepStatus::Completed)]
}

#[test]
fn a_replay_over_a_skipped_compensation_names_its_step() {
    let mut world = failed();
    skip(&mut world, "b:compensate");
    world.finish("a:compensate", 7);
    let refusal = ReplayRefusal::NotReplayable { step: "c".to_owned(), from: vec![Arc::from("a")] };
    let replayed = |wanted| world.machine.replayed_from(wanted).map(|replayed| replayed.step_id);
    assert_eq!(replayed(ReplayFrom::default()), Err(refusal));
    let named = ReplayFrom { step_id: Some("a".to_owned()), ..ReplayFrom::default() };
    assert_eq!(replayed(named).as_deref(), Ok("a"));
}

#[test]
fn a_skip_is_no_completion() {
    let mut world = failed();
    skip(&mut world, "b:compensate");
    assert_eq!(world.finish("a:compensate", 7).last().unwrap(), "failed at c: boom");
    assert_eq!(statuses(&world), expected());
    assert_eq!(skipped(&world), ["b"]);
    let ending = world.machine.ending().unwrap();
    assert!(ending.skipped[0].at.is_some(), "{ending:?}");
    for batches in 0..world.batches.len() {
        world.restore_from(batches);
        assert_eq!(statuses(&world), expected(), "after a snapshot of {batches} batches");
        assert_eq!(skipped(&world), ["b"], "after a snapshot of {batches} batches");
    }
}

#[test]
fn a_retry_that_succeeds_is_no_skip() {
    let mut world = failed();
    world.fail("b:compensate", "no");
    world.resume(json!({ "action": "retry" }));
    world.finish("b:compensate", 1);
    world.finish("a:compensate", 2);
    assert_eq!(skipped(&world), Vec::<String>::new());
    assert!(statuses(&world).iter().all(|(_, status)| *status == StepStatus::Completed));
}

/// Changes every recorded fact, and reads all of them anew.
fn rewrite(world: &mut World, change: impl Fn(&mut Value)) {
    for batch in &mut world.batches {
        for recorded in batch {
            let mut stored = to_value(&*recorded).unwrap();
            change(&mut stored);
            *recorded = from_value::<Recorded>(stored).unwrap();
        }
    }
    world.crash();
}

#[test]
fn facts_without_the_mark_are_skips_if_the_answer_was() {
    let mut world = failed();
    skip(&mut world, "b:compensate");
    world.finish("a:compensate", 7);
    rewrite(&mut world, |stored| {
        if let Some(Value::Object(completed)) = stored.pointer_mut("/f/StepCompleted") {
            completed.remove("skipped");
        }
    });
    assert!(!format!("{:?}", world.facts()).contains("skipped: true"), "the marks are gone");
    assert_eq!(statuses(&world), expected());
    assert_eq!(skipped(&world), ["b"]);
}

#[test]
fn the_mark_outlives_the_answer() {
    let mut world = failed();
    skip(&mut world, "b:compensate");
    world.finish("a:compensate", 7);
    // as after the user who answered was forgotten
    rewrite(&mut world, |stored| {
        if let Some(data) = stored.pointer_mut("/f/StepResumed/data") {
            *data = Value::Null;
        }
    });
    assert!(format!("{:?}", world.facts()).contains("data: Null"), "the answer is gone");
    assert_eq!(statuses(&world), expected());
}

#[test]
fn the_newest_skips_are_shown_and_the_others_counted() {
    let count = SKIPPED_MAX + 2;
    let items: Vec<usize> = (0..count).collect();
    let each = for_each("each", json!(items), 1, vec![undone_once("a")]);
    let mut world = World::of(vec![each, run("b")]);
    (0..count).for_each(|item| drop(world.finish(&format!("each[{item}]/a"), 1)));
    world.fail("b", "boom");
    (0..count).rev().for_each(|item| skip(&mut world, &format!("each[{item}]/a:compensate")));
    let ending = world.machine.ending().unwrap();
    assert_eq!((ending.skipped.len(), ending.skipped_before), (SKIPPED_MAX, 2));
    assert_eq!(skipped(&world).last().unwrap(), "each[0]/a");
}
