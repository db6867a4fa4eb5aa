//! Crashes: another process reads the record and continues.

use std::sync::Arc;

use greenroom_domain::machine::{Command, Machine, MisplacedFact};
use greenroom_domain::state::Phase;
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, all, map, run, workflow};
use crate::machine::world::{Setting, World};

const NOTHING: [&str; 0] = [];

#[test]
fn an_interrupted_body_starts_again_with_the_next_attempt() {
    let mut world = World::of(vec![run("a"), run("b")]);
    world.finish("a", 1);
    world.crash();
    assert_eq!(world.running(), NOTHING, "not before it is recorded");
    assert_eq!(world.recover(), ["b starts #2 after a crash"]);
    assert_eq!(world.running(), ["b #2"]);
    assert_eq!(world.recover(), NOTHING, "once");
    assert_eq!(world.finish("b", 2).last().unwrap(), "completed 2");
}

fn note(world: &mut World, path: &str, attempt: u32, memo: &str) -> Vec<String> {
    let memo = Arc::new(json!(memo));
    world.send(Command::NoteStep { path: Arc::from(path), attempt, memo })
}

fn noted(world: &World, path: &str) -> Option<Value> {
    world.node(path).noted.as_deref().cloned()
}

#[test]
fn what_a_body_has_noted_outlives_interruptions_but_no_end_of_an_attempt() {
    let mut world = World::of(vec![run("a").tries(2), run("b")]);
    assert_eq!(note(&mut world, "a", 1, "here"), [r#"a notes "here""#]);
    assert_eq!(note(&mut world, "a", 2, "late"), NOTHING, "another attempt");
    assert_eq!(note(&mut world, "b", 1, "early"), NOTHING, "a step that has not begun");
    world.crash();
    assert_eq!(world.recover(), ["a starts #2 after a crash"]);
    assert_eq!(noted(&world, "a"), Some(json!("here")));
    note(&mut world, "a", 2, "there");
    assert_eq!(world.send(Command::Release), ["a is released", "a starts #3"]);
    assert_eq!(noted(&world, "a"), Some(json!("there")));
    world.fail("a", "boom");
    assert_eq!(noted(&world, "a"), None, "another attempt is another call");
    world.due("a");
    note(&mut world, "a", 4, "again");
    world.ask("a");
    assert_eq!(noted(&world, "a"), None, "it has asked");
    world.resume(1);
    note(&mut world, "a", 5, "last");
    world.finish("a", 1);
    assert_eq!(noted(&world, "a"), None, "it has ended");
    assert_eq!(note(&mut world, "a", 5, "late"), NOTHING, "it has ended");
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
    assert_eq!(world.recover()[0], "a fails: interrupted 1 times; continues with 7");
}

#[test]
fn crashes_of_a_long_attempt_that_has_noted_where_it_continues_do_not_count() {
    let mut world = World::of(vec![run("a")]);
    note(&mut world, "a", 1, "task");
    for attempt in 2..10 {
        world.now.0 += 60_000;
        world.crash();
        assert_eq!(world.recover(), [format!("a starts #{attempt} after a crash")]);
    }
    for attempt in [10, 11] {
        world.now.0 += 59_999;
        world.crash();
        assert_eq!(world.recover(), [format!("a starts #{attempt} after a crash")]);
    }
    world.crash();
    assert_eq!(world.recover()[0], "a fails: interrupted 3 times");
}

#[test]
fn a_note_that_is_withdrawn_is_none() {
    let mut world = World::of(vec![run("a")]);
    note(&mut world, "a", 1, "waits");
    let command = |memo| Command::NoteStep { path: Arc::from("a"), attempt: 1, memo };
    world.send(command(Arc::new(Value::Null)));
    assert_eq!(noted(&world, "a"), None);
    world.now.0 += 60_000;
    for attempt in [2, 3] {
        world.crash();
        assert_eq!(world.recover(), [format!("a starts #{attempt} after a crash")]);
    }
    world.crash();
    assert_eq!(world.recover()[0], "a fails: interrupted 3 times");
}

#[test]
fn recovery_waits_while_paused() {
    let mut world = World::of(vec![run("a")]);
    world.hold();
    world.crash();
    assert_eq!(world.recover(), NOTHING);
    assert_eq!(world.running(), NOTHING);
    world.crash();
    assert_eq!(
        world.resume(Value::Null),
        ["lifted with null", "resumed", "a starts #2 after a crash"],
        "interrupted once, in spite of later crashes"
    );
}

#[test]
fn timers_and_suspensions_survive_a_crash() {
    let mut world = World::of(vec![run("a")]);
    world.ask("a");
    world.crash();
    assert_eq!(world.recover(), NOTHING);
    assert!(matches!(world.phase("a"), Phase::Waiting(_)));
    assert_eq!(world.status(), Status::Suspended);
    assert_eq!(world.resume(1)[2], "a starts #2", "a suspension is not an interruption");
}

#[test]
fn a_snapshot_and_later_facts_give_the_same_state() {
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
    assert_eq!(refused.err(), Some(MisplacedFact { seq: 2, path: "a".to_owned() }));
    assert!(Machine::replay(plan.clone(), id.clone(), &[]).is_err());
    assert!(Machine::replay(plan, id, &world.facts()[1..]).is_err());
}
