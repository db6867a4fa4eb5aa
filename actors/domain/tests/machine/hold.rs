//! A pause by a caller: running bodies finish, nothing else happens.

use std::sync::Arc;

use greenroom_domain::machine::{Command, Refusal, Resume};
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, agent, all, child, map, race, run, sleep, when};
use crate::machine::world::World;

const NOTHING: [&str; 0] = [];

#[test]
fn running_bodies_finish_and_nothing_starts() {
    let mut world = World::of(vec![run("a"), run("b")]);
    assert_eq!(world.hold(), ["held: stop", "suspended at a: stop"]);
    assert_eq!(world.status(), Status::Suspended);
    assert_eq!(world.running(), ["a #1"]);
    assert_eq!(world.finish("a", 5), ["a gives 5"]);
    assert_eq!(world.running(), NOTHING);
    assert_eq!(world.resume(Value::Null), ["lifted with null", "resumed", "b starts #1"]);
}

#[test]
fn the_last_step_does_not_complete_the_execution() {
    let mut world = World::of(vec![run("a")]);
    world.hold();
    assert_eq!(world.finish("a", 5), ["a gives 5"]);
    assert_eq!(world.status(), Status::Suspended);
    assert_eq!(world.resume(Value::Null), ["lifted with null", "resumed", "completed 5"]);
}

#[test]
fn a_failure_does_not_fail_the_execution() {
    let mut world =
        World::of(vec![all("both", [("one", vec![run("a")]), ("two", vec![run("b")])])]);
    world.hold();
    assert_eq!(world.fail("both/one/a", "boom"), ["both/one/a fails: boom"]);
    assert_eq!(world.running(), ["both/two/b #1"], "its sibling continues");
    assert_eq!(
        world.resume(Value::Null),
        [
            "lifted with null",
            "resumed",
            "both/two/b is cancelled",
            "both fails: boom",
            "failed at a: boom"
        ]
    );
}

#[test]
fn no_retry_starts() {
    let mut world = World::of(vec![run("a").tries(2)]);
    world.hold();
    assert_eq!(world.fail("a", "boom"), ["a fails: boom; again at 100"]);
    assert_eq!(world.due("a"), ["a is due"]);
    assert_eq!(world.resume(Value::Null), ["lifted with null", "resumed", "a starts #2"]);
}

#[test]
fn timers_that_come_due_are_recorded() {
    let mut world = World::of(vec![sleep("s", 100), map("b", "data")]);
    world.hold();
    assert_eq!(world.due("s"), ["s is due"]);
    assert!(world.timers.is_empty());
    world.crash();
    assert_eq!(world.recover(), NOTHING);
    assert_eq!(world.resume(Value::Null)[2], "s gives 1");
}

#[test]
fn a_timer_outlasts_the_pause() {
    let mut world = World::of(vec![sleep("s", 100)]);
    world.hold();
    assert_eq!(world.resume(Value::Null), ["lifted with null", "resumed"]);
    assert_eq!(world.due("s").last().unwrap(), "completed 1");
}

#[test]
fn a_step_may_suspend_itself_during_a_pause() {
    let mut world = World::of(vec![run("a")]);
    world.hold();
    assert_eq!(world.ask("a"), ["a asks: Suspended at step a"]);
    assert_eq!(
        world.resume("x"),
        ["lifted with \"x\"", "resumed", "suspended at a: Suspended at step a"],
        "the hold is the suspension shown"
    );
    assert_eq!(world.resume("y")[1], "a is answered \"y\"");
}

#[test]
fn it_outlasts_the_wait_for_the_asks_of_a_generation() {
    let asks = vec![agent("helper", None)];
    let mut world = World::of(vec![all("both", [("one", asks), ("two", vec![run("a")])])]);
    world.ask("both/one/helper");
    world.hold();
    let hold = |world: &World| world.machine.state().hold.as_ref().map(|hold| Arc::clone(&hold.id));
    let before = hold(&world);
    let step_id = Some("helper".to_owned());
    let answered = Resume { step_id, is_of_generation: true, ..Resume::default() };
    assert_eq!(world.send(Command::Resume(answered)), ["both/one/helper is answered null"]);
    assert_eq!((world.status(), hold(&world)), (Status::Suspended, before));
    assert_eq!(world.finish("both/two/a", 5), ["both/two/a gives 5"]);
    assert_eq!(
        world.resume(Value::Null),
        ["lifted with null", "resumed", "both/one/helper starts #2"]
    );
}

#[test]
fn only_running_executions_can_be_paused() {
    let suspend = || Command::Suspend { reason: "again".into(), by: None };
    let mut world = World::of(vec![run("a")]);
    world.hold();
    assert_eq!(world.try_send(suspend()), Err(Refusal::Already(Status::Suspended)));
    let mut world = World::of(vec![run("a").asks()]);
    assert_eq!(world.try_send(suspend()), Err(Refusal::Already(Status::Suspended)));
    for mut world in World::ended() {
        let status = world.status();
        assert_eq!(world.try_send(suspend()), Err(Refusal::Already(status)));
    }
}

#[test]
fn it_names_the_running_top_level_step() {
    let mut world =
        World::of(vec![map("first", "data"), all("both", [("one", vec![run("a")])]), run("b")]);
    world.hold();
    let shown = world.machine.state().announced_suspension.clone().unwrap();
    assert_eq!((&*shown.step_id, &*shown.path, shown.step_index), ("both", "both", 1));
    world.finish("both/one/a", 5);
    assert_eq!(world.shown().unwrap(), "both", "the published suspension stays valid");
    assert_eq!(world.refused(Some("b"), 1), Refusal::StepNotSuspended("b".to_owned()));
    assert_eq!(
        world.resume_at("both", Value::Null)[..2],
        ["lifted with null", "resumed"],
        "and can be resumed by that name"
    );
}

#[test]
fn it_names_the_next_step_if_none_is_running() {
    let mut world = World::of(vec![run("a"), run("b")]);
    world.missing.insert("b".to_owned());
    world.finish("a", 1);
    world.hold();
    assert_eq!(world.shown().unwrap(), "b");
}

#[test]
fn its_data_is_the_resume_of_the_next_step() {
    let mut world = World::of(vec![run("a"), run("b"), map("c", "resume")]);
    world.hold();
    world.resume(json!({ "note": 1 }));
    assert_eq!(world.machine.function_call("a").unwrap().resume, None, "it runs already");
    world.finish("a", 1);
    assert_eq!(*world.machine.function_call("b").unwrap().resume.unwrap(), json!({ "note": 1 }));
    assert_eq!(world.finish("b", 2).last().unwrap(), "completed null", "the next step alone");
}

#[test]
fn its_data_never_resumes_a_suspended_step() {
    let mut world = World::of(vec![run("a"), map("b", "resume").asks(), map("c", "resume")]);
    world.hold();
    world.finish("a", 1);
    assert_eq!(
        world.resume("held"),
        [
            "lifted with \"held\"",
            "resumed",
            "b asks: Suspended at step b",
            "suspended at b: Suspended at step b"
        ]
    );
    assert_eq!(world.resume("own").last().unwrap(), "completed null", "nor that of the one after");

    let mut world = World::of(vec![run("a"), map("b", "resume").asks_when("false")]);
    world.hold();
    world.finish("a", 1);
    assert_eq!(world.resume("held").last().unwrap(), "completed null", "asked or not");
}

#[test]
fn its_data_skips_steps_that_cannot_take_it() {
    let mut world = World::of(vec![
        run("a"),
        when("w", "resume is none", vec![all("both", [("one", vec![map("b", "resume")])])]),
    ]);
    world.hold();
    world.finish("a", 1);
    assert_eq!(world.resume("held").last().unwrap(), "completed [\"held\"]");
}

#[test]
fn its_data_is_kept_until_taken_or_replaced() {
    let twice = |second: Value| {
        let mut world = World::of(vec![run("a"), map("b", "resume")]);
        world.hold();
        world.resume("first");
        world.hold();
        world.resume(second);
        world.crash();
        world.recover();
        world.finish("a", 1).pop().unwrap()
    };
    assert_eq!(twice(Value::Null), "completed \"first\"");
    assert_eq!(twice(json!("second")), "completed \"second\"");
}

#[test]
fn resuming_a_step_ends_the_pause() {
    let mut world = World::of(vec![all(
        "both",
        [("one", vec![map("q", "resume").asks()]), ("two", vec![run("a")])],
    )]);
    world.hold();
    assert_eq!(
        world.resume_at("q", "yes"),
        [
            "lifted with null",
            "resumed",
            "both/one/q is answered \"yes\"",
            "both/one/q starts #1",
            "both/one/q gives \"yes\"",
        ]
    );
}

#[test]
fn ending_the_pause_may_suspend_again_at_once() {
    let mut world =
        World::of(vec![all("both", [("one", vec![run("q").asks()]), ("two", vec![run("a")])])]);
    world.hold();
    world.finish("both/two/a", 1);
    assert_eq!(
        world.resume(Value::Null),
        ["lifted with null", "resumed", "suspended at both/one/q: Suspended at step q"]
    );
}

#[test]
fn no_kind_of_step_starts_during_a_pause() {
    let mut world = World::of(vec![all(
        "both",
        [
            ("one", vec![run("a"), all("in", [("x", vec![run("a2")])])]),
            ("two", vec![run("b"), sleep("s", 5)]),
            ("three", vec![run("c"), child("p")]),
            ("four", vec![run("d"), race("r", [("x", vec![agent("e", None)])])]),
            ("five", vec![run("f"), run("q").asks()]),
            ("six", vec![run("g"), when("w", "false", vec![map("m", "1")])]),
        ],
    )]);
    world.hold();
    for path in ["one/a", "two/b", "three/c", "four/d", "five/f", "six/g"] {
        let path = format!("both/{path}");
        assert_eq!(world.finish(&path, 1), [format!("{path} gives 1")]);
    }
    assert_eq!(world.resume(Value::Null).len(), 2 + 9);
}
