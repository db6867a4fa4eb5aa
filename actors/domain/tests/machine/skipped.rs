//! Compensations that a person skips: shown as skipped, not as completed.

use std::sync::Arc;

use greenroom_domain::definition::StepDefinition;
use greenroom_domain::fact::Recorded;
use greenroom_domain::machine::{ChildStatus, ReplayFrom, ReplayRefusal, SKIPPED_MAX};
use greenroom_domain::step_state::StepStatus;
use serde_json::{Value, from_value, json, to_value};

use crate::machine::build::{Adorned, child, compensation, for_each, run};
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
    let replayed = |wanted| world.machine.replayed_from(wanted).map(|replayed| replayed.step_id);
    let (path, from) = (Arc::from("b"), vec![Arc::from("a")]);
    let refusal = ReplayRefusal::CompensationSkipped { path, from };
    assert_eq!(replayed(ReplayFrom::default()), Err(refusal));
    let named = ReplayFrom { step_id: Some("a".to_owned()), ..ReplayFrom::default() };
    assert_eq!(replayed(named).as_deref(), Ok("a"));
}

#[test]
fn a_replay_names_the_failed_step_if_the_skipped_one_is_inside_it() {
    let steps = vec![undone_once("r"), run("x")];
    let mut world = World::of(vec![for_each("each", "[1]", 1, steps)]);
    world.finish("each[0]/r", 1);
    world.fail("each[0]/x", "boom");
    skip(&mut world, "each[0]/r:compensate");
    let (path, from) = (Arc::from("each[0]/r"), vec![Arc::from("each")]);
    let refusal = ReplayRefusal::CompensationSkipped { path, from };
    let replayed = |wanted| world.machine.replayed_from(wanted).map(|replayed| replayed.step_id);
    assert_eq!(replayed(ReplayFrom::default()), Err(refusal));
    let named = ReplayFrom { step_id: Some("each".to_owned()), ..ReplayFrom::default() };
    assert_eq!(replayed(named).as_deref(), Ok("each"));
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
fn a_reversal_in_which_something_was_skipped_is_no_completion() {
    let completed = |compensable, skipped| {
        let result = Arc::new(Value::Null);
        ChildStatus::Completed { result, compensable, skipped }
    };
    for (is_asked, is_skipped) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut world = World::of(vec![child("part"), run("b")]);
        world.report("part", 9, completed(true, false));
        world.fail("b", "boom");
        if is_asked {
            let failed = ChildStatus::Failed { error: "stuck".into(), class: None };
            for attempt in 1..=3 {
                world.report("part:compensate", 5, failed.clone());
                (attempt < 3).then(|| world.due("part:compensate"));
            }
            world.resume(json!({ "action": "retry" }));
        }
        world.report("part:compensate", 9, completed(false, is_skipped));
        let status = if is_skipped { StepStatus::Skipped } else { StepStatus::Completed };
        assert_eq!(statuses(&world), [("part:compensate".to_owned(), status)]);
        let ending = world.machine.ending().expect("it has ended");
        assert_eq!(ending.skipped.len(), usize::from(is_skipped));
        assert!(ending.skipped.iter().all(|it| &*it.path == "part" && it.at.is_none()));
        let default = world.machine.replayed_from(ReplayFrom::default());
        assert_eq!(default.is_err(), is_skipped, "the step has to be named");
    }
}

#[test]
fn only_reversals_count_what_their_child_skipped() {
    let mut world = World::of(vec![child("part"), run("b")]);
    let result = Arc::new(json!(1));
    let lines = world.report(
        "part",
        9,
        ChildStatus::Completed { result, compensable: true, skipped: true },
    );
    assert_eq!(lines[0], "part gives 1, and can be reversed");
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
