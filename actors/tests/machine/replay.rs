//! Executions that begin in the middle of another one.

use greenroom_actors::domain::machine::{ChildStatus, ReplayRefusal};
use greenroom_actors::ports::store::Status;
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
    let not_replayable = |step: &str| ReplayRefusal::NotReplayable(step.to_owned());
    assert_eq!(refusal("no"), ReplayRefusal::UnknownStep("no".to_owned()));
    assert_eq!(refusal("both/l/x"), ReplayRefusal::UnknownStep("both/l/x".to_owned()));
    for step in ["x", "nap", "b", "c"] {
        assert_eq!(refusal(step), not_replayable(step));
    }
    assert!(first.replay("both", None).is_ok(), "it may still be at work");
    let mut failed = World::of(vec![run("a"), run("b")]);
    failed.fail("a", "no luck");
    assert_eq!(failed.replay("b", None).err(), Some(not_replayable("b")));
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
    let wrong = first.replay("b", Some(json!("x"))).err().unwrap();
    assert!(matches!(wrong, ReplayRefusal::InvalidData(_)), "{wrong:?}");
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
