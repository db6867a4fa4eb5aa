//! Executions that begin in the middle of another one.

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
fn what_came_before_is_taken_and_not_done_again() {
    let mut first = World::of(vec![run("a"), map("b", json!(["data", "steps.a"])), run("c")]);
    first.finish("a", 5);
    first.fail("c", "no luck");
    assert_eq!(first.status(), Status::Error);
    let mut second = first.replay("c", None).unwrap();
    assert_eq!(second.started(), ["start", "c starts #1"], "nothing is told of earlier steps");
    assert_eq!(second.machine.node("c").unwrap().1.input, json!([5, 5]).into());
    assert_eq!(second.machine.node("a").unwrap().1, first.machine.node("a").unwrap().1);
    assert_eq!(second.finish("c", 9), ["c gives 9", "completed 9"]);
    // the original is as it was
    assert_eq!(first.status(), Status::Error);
}

#[test]
fn it_survives_a_crash_and_a_kept_state_like_any_other() {
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
fn outputs_inside_blocks_come_along() {
    let inner = all("both", [("l", vec![run("x")]), ("r", vec![map("y", json!(2))])]);
    let mut first = World::of(vec![inner, map("sum", "[data, steps.x, steps.y]")]);
    first.finish("both/l/x", 1);
    let second = first.replay("sum", None).unwrap();
    assert_eq!(second.started()[2..], ["sum gives [[1,2],1,2]", "completed [[1,2],1,2]"]);
}

#[test]
fn whatever_let_the_flow_pass_has_passed() {
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
    first.hear("part", 2, ChildStatus::Completed { result: json!(7).into() });
    let second = first.replay("z", None).unwrap();
    assert_eq!(second.started(), ["start", "z starts #1"]);
    assert!(second.effects().iter().all(|effect| &*effect.path == "z"), "the child is not asked");
}

#[test]
fn a_step_is_refused_that_was_not_reached_or_is_none_of_the_workflow_itself() {
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
    assert_eq!(refusal("both/l/x"), ReplayRefusal::UnknownStep("both/l/x".to_owned()));
    for step in ["x", "nap", "b", "c"] {
        assert_eq!(refusal(step), not_replayable(step, &["both"]));
    }
    assert!(first.replay("both", None).is_ok(), "it may still be at work");
    let mut failed = World::of(vec![run("a"), run("b")]);
    failed.fail("a", "no luck");
    assert_eq!(failed.replay("b", None).err(), Some(not_replayable("b", &["a"])));
    assert_eq!(failed.replay("a", None).unwrap().started(), ["start", "a starts #1"]);
}

#[test]
fn an_answer_is_given_before_the_question() {
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
    // it answers that question alone
    assert_eq!(second.ask("b").len(), 2);
    assert_eq!(second.status(), Status::Suspended);
}

#[test]
fn null_is_an_answer_too() {
    let mut first = World::of(vec![run("a").asks()]);
    let mut second = first.replay("a", Some(json!(null))).unwrap();
    assert_eq!(second.started(), ["start", "a is answered null", "a starts #1"]);
    second.restore_from(1);
    assert_eq!(second.machine.function_call("a").unwrap().resume, Some(json!(null).into()));
    first.cancel();
    assert!(first.replay("a", None).is_ok(), "whatever became of the original");
}

#[test]
fn an_answer_without_a_question_is_refused_unless_the_body_may_ask() {
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
fn a_condition_that_does_not_hold_lets_the_answer_lie() {
    let first = World::of(vec![map("a", "resume is none").asks_when("data > 1")]);
    let second = first.replay("a", Some(json!(5))).unwrap();
    assert_eq!(second.started(), ["start", "a starts #1", "a gives true", "completed true"]);
}

#[test]
fn what_is_missing_is_waited_for_here_too() {
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
fn without_a_step_it_begins_with_the_one_that_failed() {
    let from = ReplayFrom::default;
    let mut failed = World::of(vec![run("a"), all("both", [("l", vec![run("x")])]), run("z")]);
    failed.finish("a", 5);
    let none = ReplayRefusal::NoStepFailed { from: vec![Arc::from("a"), Arc::from("both")] };
    assert_eq!(failed.replay_from(from()).err(), Some(none.clone()), "it is at work");
    failed.fail("both/l/x", "no luck");
    let again = failed.replay_from(from()).unwrap();
    assert_eq!(again.started(), ["start", "both starts #1", "both/l/x starts #1"]);
    let mut cancelled = World::of(vec![run("a"), run("both"), run("z")]);
    cancelled.finish("a", 5);
    cancelled.cancel();
    assert_eq!(cancelled.replay_from(from()).err(), Some(none), "no step of it failed");
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
    assert_eq!(lines[..2], ["start", "b starts #1"], "what was recorded is not done again");
    assert_eq!(lines.last().unwrap(), "completed 12");
    // A step that follows what was recorded need not have been there.
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
fn what_was_recorded_has_to_fit_the_current_definition() {
    let block = |steps| all("both", [("l", steps)]);
    let mut first = World::of(vec![run("a"), block(vec![run("x")]), run("c")]);
    first.finish("a", 5);
    first.finish("both/l/x", 6);
    first.fail("c", "no luck");
    let rows = [
        (
            vec![run("b"), block(vec![run("x")]), run("c")],
            "step 1 was a (andThen) and is b (andThen) now",
        ),
        (
            vec![tap("a"), block(vec![run("x")]), run("c")],
            "step 1 was a (andThen) and is a (andTap) now",
        ),
        (
            vec![run("a"), all("both", [("r", vec![run("x")])]), run("c")],
            "the blocks of both were l and are r now",
        ),
        (
            vec![run("a"), block(vec![run("y")]), run("c")],
            "in both/l, step 1 was x (andThen) and is y (andThen) now",
        ),
        (
            vec![run("a"), block(vec![run("x"), run("y")]), run("c")],
            "in both/l, step 2 is y (andThen) now, and there was none",
        ),
        (
            vec![run("a"), block(vec![run("x")]), run("b"), run("c")],
            "step 3 was c (andThen) and is b (andThen) now",
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
fn who_replayed_is_in_the_record_and_gave_the_answer() {
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

/// What the steps before it were given and passed on stays what it was.
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
