//! The process dies; another one reads the record and goes on.

use greenroom_domain::machine::{Machine, Misplaced};
use greenroom_domain::state::Phase;
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, all, map, run, workflow};
use crate::machine::world::{Setting, World};

const NOTHING: [&str; 0] = [];

#[test]
fn what_was_cut_off_begins_anew_with_the_next_attempt() {
    let mut world = World::of(vec![run("a"), run("b")]);
    world.finish("a", 1);
    world.crash();
    assert_eq!(world.at_work(), NOTHING, "not before it is recorded");
    assert_eq!(world.recover(), ["b starts #2 after a crash"]);
    assert_eq!(world.at_work(), ["b #2"]);
    assert_eq!(world.recover(), NOTHING, "once");
    assert_eq!(world.finish("b", 2).last().unwrap(), "completed 2");
}

#[test]
fn any_command_recovers_first() {
    let mut world =
        World::of(vec![all("both", [("x", vec![run("a")]), ("y", vec![run("q").asks()])])]);
    world.crash();
    assert_eq!(
        world.resume_at("q", 1),
        ["both/y/q is answered 1", "both/x/a starts #2 after a crash", "both/y/q starts #1",]
    );
}

#[test]
fn a_finished_step_never_runs_again() {
    let mut world = World::of(vec![all("both", [("x", vec![run("a")]), ("y", vec![run("b")])])]);
    world.finish("both/x/a", 1);
    world.crash();
    assert_eq!(world.recover(), ["both/y/b starts #2 after a crash"]);
}

#[test]
fn a_start_that_was_not_durable_never_happened() {
    let mut world = World::of(vec![run("a"), run("b")]);
    world.finish("a", 1);
    world.crash_losing(1);
    assert_eq!(world.recover(), ["a starts #2 after a crash"]);
}

#[test]
fn interruptions_use_up_no_attempts() {
    let mut world = World::of(vec![run("a").tries(2)]);
    world.crash();
    world.recover();
    assert_eq!(world.fail("a", "boom"), ["a fails: boom; again at 100"], "the first failure");
    assert_eq!(world.due("a")[1], "a starts #3");
    world.crash();
    assert_eq!(world.recover(), ["a starts #4 after a crash"]);
    assert_eq!(world.fail("a", "boom")[0], "a fails: boom", "the second");
}

#[test]
fn a_step_that_is_interrupted_too_often_fails() {
    let mut world = World::of(vec![run("a").tries(9)]);
    for attempt in [2, 3] {
        world.crash();
        assert_eq!(world.recover(), [format!("a starts #{attempt} after a crash")]);
    }
    world.crash();
    assert_eq!(
        world.recover(),
        ["a fails: interrupted 3 times", "failed at a: interrupted 3 times"]
    );

    let mut setting = Setting::default();
    setting.limits.crash_attempts = 1;
    let mut world = setting.start(workflow(vec![run("a").instead("7")]));
    world.crash();
    assert_eq!(world.recover()[0], "a fails: interrupted 1 times; goes on with 7");
}

#[test]
fn under_a_hold_it_waits() {
    let mut world = World::of(vec![run("a")]);
    world.hold();
    world.crash();
    assert_eq!(world.recover(), NOTHING);
    assert_eq!(world.at_work(), NOTHING);
    world.crash();
    assert_eq!(
        world.resume(Value::Null),
        ["lifted with null", "resumed", "a starts #2 after a crash"],
        "cut off once, however often the process died since"
    );
}

#[test]
fn waits_and_questions_are_as_they_were() {
    let mut world = World::of(vec![run("a")]);
    world.ask("a");
    world.crash();
    assert_eq!(world.recover(), NOTHING);
    assert!(matches!(world.phase("a"), Phase::Waiting(_)));
    assert_eq!(world.status(), Status::Suspended);
    assert_eq!(world.resume(1)[2], "a starts #2", "asking is no interruption");
}

#[test]
fn a_kept_state_and_later_facts_give_the_same() {
    let mut world = World::of(vec![run("a"), run("b").asks(), run("c").tries(2)]);
    world.finish("a", json!({ "n": 1 }));
    world.resume(Value::Null);
    world.finish("b", 2);
    world.fail("c", "boom");
    for batches in 1..=world.batches.len() {
        let live = world.machine.state().clone();
        world.restore_from(batches);
        assert_eq!(*world.machine.state(), live);
    }
}

#[test]
fn a_record_that_does_not_belong_to_the_definition_is_refused() {
    let world = World::of(vec![run("a"), run("b")]);
    let other = World::of(vec![map("x", "1")]);
    let id = world.machine.state().id.clone();
    let plan = other.machine.plan().clone();
    let refused = Machine::replay(plan.clone(), id.clone(), &world.facts());
    assert_eq!(refused.err(), Some(Misplaced { seq: 2, path: "a".to_owned() }));
    assert!(Machine::replay(plan.clone(), id.clone(), &[]).is_err());
    assert!(Machine::replay(plan, id, &world.facts()[1..]).is_err());
}
