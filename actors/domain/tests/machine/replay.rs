//! Replays.

use std::sync::Arc;

use greenroom_domain::definition::StepDefinition;
use greenroom_domain::machine::{ChildStatus, ReplayFrom, ReplayRefusal};
use greenroom_domain::plan::Plan;
use greenroom_domain::principal::Principal;
use greenroom_domain::status::Status;
use serde_json::json;

use crate::machine::build::{Adorned, all, child, map, run, sleep, tap, when, workflow};
use crate::machine::world::{Setting, World};

#[test]
fn earlier_steps_are_copied_and_not_repeated() {
    let mut first = World::of(vec![run("a"), map("b", json!(["data", "steps.a"])), run("c")]);
    first.finish("a", 5);
    first.fail("c", "no luck");
    assert_eq!(first.status(), Status::Error);
    let mut second = first.replay("c", None).unwrap();
    assert_eq!(second.started(), ["start", "c starts #1"], "earlier steps have no events");
    assert_eq!(second.machine.node("c").unwrap().1.input, json!([5, 5]).into());
    assert_eq!(second.machine.node("a").unwrap().1, first.machine.node("a").unwrap().1);
    assert_eq!(second.finish("c", 9), ["c gives 9", "completed 9"]);
    // the original is unchanged
    assert_eq!(first.status(), Status::Error);
}

#[test]
fn a_replay_survives_a_crash_and_a_snapshot() {
    let mut first = World::of(vec![run("a"), run("b"), map("c", "[steps.a, steps.b]")]);
    first.finish("a", 1);
    let mut second = first.replay("b", None).unwrap();
    let before = second.machine.state().clone();
    second.crash();
    assert_eq!(*second.machine.state(), before);
    second.restore_from(1);
    assert_eq!(*second.machine.state(), before);
    assert_eq!(second.recover(), ["b starts #2 after a crash"]);
    assert_eq!(second.finish("b", 2)[1..], ["c starts #1", "c gives [1,2]", "completed [1,2]"]);
    // and can be replayed itself
    let third = second.replay("c", None).unwrap();
    assert_eq!(third.started(), ["start", "c starts #1", "c gives [1,2]", "completed [1,2]"]);
}

#[test]
fn outputs_inside_blocks_are_copied() {
    let inner = all("both", [("l", vec![run("x")]), ("r", vec![map("y", json!(2))])]);
    let mut first = World::of(vec![inner, map("sum", "[data, steps.x, steps.y]")]);
    first.finish("both/l/x", 1);
    let second = first.replay("sum", None).unwrap();
    assert_eq!(second.started()[2..], ["sum gives [[1,2],1,2]", "completed [[1,2],1,2]"]);
}

#[test]
fn skipped_and_ignored_steps_count_as_ended() {
    let steps = vec![
        when("w", "false", vec![run("never")]),
        tap("t"),
        run("i").ignoring(),
        child("part"),
        run("z"),
    ];
    let mut first = World::of(steps);
    first.fail("t", "no matter");
    first.fail("i", "no matter either");
    first.report(
        "part",
        2,
        ChildStatus::Completed { result: json!(7).into(), compensable: false, skipped: false },
    );
    let second = first.replay("z", None).unwrap();
    assert_eq!(second.started(), ["start", "z starts #1"]);
    assert!(second.effects().iter().all(|effect| &*effect.path == "z"), "the child is not asked");
}

#[test]
fn steps_that_were_not_reached_or_are_inside_blocks_are_refused() {
    let steps = vec![
        all("both", [("l", vec![run("x")]), ("r", vec![sleep("nap", 5)])]),
        run("b"),
        run("c"),
    ];
    let first = World::of(steps);
    let refusal = |step: &str| first.replay(step, None).err().unwrap();
    let not_replayable = |step: &str, from: &[&str]| ReplayRefusal::NotReplayable {
        step: step.to_owned(),
        from: from.iter().map(|step| Arc::from(*step)).collect(),
    };
    assert_eq!(refusal("no"), ReplayRefusal::UnknownStep("no".to_owned()));
    for step in ["x", "both/l/x", "nap", "b", "c"] {
        assert_eq!(refusal(step), not_replayable(step, &["both"]));
    }
    assert!(first.replay("both", None).is_ok(), "it may still be running");
    let mut failed = World::of(vec![run("a"), run("b")]);
    failed.fail("a", "no luck");
    assert_eq!(failed.replay("b", None).err(), Some(not_replayable("b", &["a"])));
    assert_eq!(failed.replay("a", None).unwrap().started(), ["start", "a starts #1"]);
}

#[test]
fn resume_data_is_supplied_before_the_suspension() {
    let schema = json!({ "type": "integer" });
    let mut first = World::of(vec![run("a"), run("b").asks_when("data > 1").wants(schema)]);
    first.finish("a", 5);
    let second = first.replay("b", None).unwrap();
    assert_eq!(second.status(), Status::Suspended, "without an answer it asks again");
    let mut second = first.replay("b", Some(json!(3))).unwrap();
    assert_eq!(second.started(), ["start", "b is answered 3", "b starts #1"]);
    assert_eq!(second.machine.function_call("b").unwrap().resume, Some(json!(3).into()));
    second.crash();
    assert_eq!(second.recover(), ["b starts #2 after a crash"]);
    // it resumes that step only
    assert_eq!(second.ask("b").len(), 2);
    assert_eq!(second.status(), Status::Suspended);
}

#[test]
fn null_is_resume_data_too() {
    let mut first = World::of(vec![run("a").asks()]);
    let mut second = first.replay("a", Some(json!(null))).unwrap();
    assert_eq!(second.started(), ["start", "a is answered null", "a starts #1"]);
    second.restore_from(1);
    assert_eq!(second.machine.function_call("a").unwrap().resume, Some(json!(null).into()));
    first.cancel();
    assert!(first.replay("a", None).is_ok(), "whatever became of the original");
}

#[test]
fn resume_data_is_refused_unless_the_step_may_suspend() {
    let asking = all("both", [("l", vec![run("x").asks()])]);
    let first = World::of(vec![asking]);
    let refusal = |world: &World, step: &str| world.replay(step, Some(json!(1))).err();
    let does_not = |step: &str| Some(ReplayRefusal::DoesNotSuspend(step.to_owned()));
    assert_eq!(refusal(&first, "both"), does_not("both"));
    for step in [map("s", json!(1)), tap("s"), child("s"), sleep("s", 5)] {
        assert_eq!(refusal(&World::of(vec![step]), "s"), does_not("s"));
    }
    let first = World::of(vec![run("s")]);
    let second = first.replay("s", Some(json!(1))).unwrap();
    assert_eq!(second.started(), ["start", "s is answered 1", "s starts #1"]);
}

#[test]
fn resume_data_is_ignored_if_the_step_does_not_suspend() {
    let first = World::of(vec![map("a", "resume is none").asks_when("data > 1")]);
    let second = first.replay("a", Some(json!(5))).unwrap();
    assert_eq!(second.started(), ["start", "a starts #1", "a gives true", "completed true"]);
}

#[test]
fn a_missing_function_blocks_a_replay_too() {
    let mut setting = Setting::default();
    setting.missing.insert("b".to_owned());
    let mut first = setting.start(workflow(vec![run("a"), run("b")]));
    first.finish("a", 1);
    let mut second = first.replay("b", None).unwrap();
    assert_eq!(second.started(), ["start"]);
    second.missing.clear();
    assert_eq!(second.recover(), ["b starts #1"]);
}

fn plan(steps: Vec<StepDefinition>) -> Option<Arc<Plan>> {
    Some(Arc::new(Plan::compile(workflow(steps)).unwrap()))
}

#[test]
fn a_replay_begins_at_the_failed_step_by_default() {
    let from = ReplayFrom::default;
    let mut failed = World::of(vec![run("a"), all("both", [("l", vec![run("x")])]), run("z")]);
    failed.finish("a", 5);
    let none = ReplayRefusal::NoStepFailed { from: vec![Arc::from("a"), Arc::from("both")] };
    assert_eq!(failed.replay_from(from()).err(), Some(none.clone()), "it is running");
    failed.fail("both/l/x", "no luck");
    let again = failed.replay_from(from()).unwrap();
    assert_eq!(again.started(), ["start", "both starts #1", "both/l/x starts #1"]);
    let mut cancelled = World::of(vec![run("a"), run("both"), run("z")]);
    cancelled.finish("a", 5);
    cancelled.cancel();
    assert_eq!(cancelled.replay_from(from()).err(), Some(none), "no step of it failed");
}

#[test]
fn a_replay_begins_at_the_first_step_that_was_undone_before_the_failed_one() {
    let block = || all("both", [("l", vec![run("x").undone()]), ("r", vec![run("y")])]);
    for (steps, expected) in [
        (vec![run("a"), run("z")], "z"),
        (vec![run("a").undone(), run("z")], "a"),
        (vec![map("a", "1"), run("b").undone(), run("c").undone(), run("z")], "b"),
        (vec![map("a", "1"), block(), run("z")], "both"),
    ] {
        let mut world = World::of(steps);
        while world.status() == Status::Running {
            for effect in world.effects() {
                match &*effect.path {
                    "z" => world.fail("z", "boom"),
                    path => world.finish(path, 1),
                };
            }
        }
        let wanted = ReplayFrom::default();
        let replayed = world.machine.replayed_from(wanted).unwrap();
        assert_eq!(&*replayed.step_id, expected);
        assert_eq!(world.machine.ending().unwrap().replayable.last(), Some(&replayed.step_id));
    }
}

#[test]
fn the_current_definition_may_differ_from_the_step_on() {
    let mut first = World::of(vec![run("a"), map("b", "data.no"), run("c")]);
    first.finish("a", 5);
    assert_eq!(first.status(), Status::Error);
    let mended = plan(vec![run("a").tries(3), map("b", "data + 1"), map("new", "data * 2")]);
    let from = |plan| ReplayFrom { plan, ..ReplayFrom::default() };
    let second = first.replay_from(from(mended.clone())).unwrap();
    let lines = second.started();
    assert_eq!(lines[..2], ["start", "b starts #1"], "recorded steps are not repeated");
    assert_eq!(lines.last().unwrap(), "completed 12");
    // A step after the recorded ones may be new.
    let inserted = plan(vec![run("a"), map("fresh", "data"), map("b", "data + 1")]);
    let begin = |plan, step: &str| {
        first.replay_from(ReplayFrom { step_id: Some(step.to_owned()), plan, ..from(None) })
    };
    assert_eq!(begin(inserted, "fresh").unwrap().started().last().unwrap(), "completed 6");
    assert_eq!(
        begin(mended, "c").err(),
        Some(ReplayRefusal::UnknownStep("c".to_owned())),
        "it is gone"
    );
}

#[test]
fn the_record_must_match_the_current_definition() {
    let block = |steps| all("both", [("l", steps)]);
    let mut first = World::of(vec![run("a"), block(vec![run("x")]), run("c")]);
    first.finish("a", 5);
    first.finish("both/l/x", 6);
    first.fail("c", "no luck");
    let rows = [
        (
            vec![run("b"), block(vec![run("x")]), run("c")],
            "step 1 was a (andThen) and is now b (andThen)",
        ),
        (
            vec![tap("a"), block(vec![run("x")]), run("c")],
            "step 1 was a (andThen) and is now a (andTap)",
        ),
        (
            vec![run("a"), all("both", [("r", vec![run("x")])]), run("c")],
            "the blocks of both were l and are now r",
        ),
        (
            vec![run("a"), block(vec![run("y")]), run("c")],
            "in both/l, step 1 was x (andThen) and is now y (andThen)",
        ),
        (
            vec![run("a"), block(vec![run("x"), run("y")]), run("c")],
            "in both/l, step 2 is new: y (andThen)",
        ),
        (
            vec![run("a"), block(vec![run("x")]), run("b"), run("c")],
            "step 3 was c (andThen) and is now b (andThen)",
        ),
    ];
    for (steps, detail) in rows {
        let from = ReplayFrom { plan: plan(steps), ..ReplayFrom::default() };
        let refusal = first.replay_from(from).err();
        assert_eq!(refusal, Some(ReplayRefusal::DefinitionDiffers(detail.to_owned())));
    }
    let same = plan(vec![run("a"), block(vec![run("x").ignoring()]), map("c", "data")]);
    let from = ReplayFrom { plan: same, ..ReplayFrom::default() };
    assert_eq!(first.replay_from(from).unwrap().status(), Status::Completed);
}

#[test]
fn the_principal_of_a_replay_is_recorded() {
    let first = World::of(vec![map("q", "[resume, resumed_by]").asks()]);
    let lea = Arc::new(Principal::verified("lea"));
    let from = ReplayFrom {
        step_id: Some("q".to_owned()),
        answer: Some(json!(1).into()),
        by: Some(Arc::clone(&lea)),
        ..ReplayFrom::default()
    };
    let second = first.replay_from(from).unwrap();
    let by: Vec<_> = second.facts().iter().map(|recorded| recorded.by.clone()).collect();
    assert_eq!(by, [Some(Arc::clone(&lea)), Some(lea), None, None, None]);
    let result = "completed [1,{\"id\":\"lea\",\"verified\":true}]";
    assert_eq!(second.started().last().unwrap(), result);
}

/// Inputs and outputs of the earlier steps stay the same.
#[test]
fn another_input_changes_nothing_before_the_step() {
    let steps = vec![when("skipped", "false", vec![map("in", "1")]), map("a", "[data, input]")];
    let world = World::of(steps);
    assert_eq!(world.started().last().unwrap(), "completed [1,1]");
    let mut again = world
        .replay_with(
            json!(2),
            ReplayFrom { step_id: Some("a".to_owned()), ..ReplayFrom::default() },
        )
        .unwrap();
    assert_eq!(again.started().last().unwrap(), "completed [1,2]");
    again.crash();
    again.restore_from(1);
    let (_, node) = again.machine.node("skipped").unwrap();
    assert_eq!(*node.input, json!(1));
}
