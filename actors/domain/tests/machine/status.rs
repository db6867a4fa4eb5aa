//! The status follows from the nodes, and every change of it is published.

use greenroom_domain::failure::ErrorKind;
use greenroom_domain::machine::Command;
use greenroom_domain::status::Status;

use crate::machine::build::{Adorned, all, race, run, sleep, workflow};
use crate::machine::world::{Setting, World};

const NOTHING: [&str; 0] = [];

#[test]
fn a_running_step_makes_it_running() {
    let mut world =
        World::of(vec![all("both", [("x", vec![run("q").asks()]), ("y", vec![run("a")])])]);
    assert_eq!(world.status(), Status::Running);
    assert_eq!(
        world.finish("both/y/a", 1),
        ["both/y/a gives 1", "suspended at both/x/q: Suspended at step q"]
    );
}

#[test]
fn a_sleep_parallel_to_a_suspension_is_suspended() {
    let mut world = World::of(vec![all(
        "both",
        [("x", vec![run("q").asks()]), ("y", vec![sleep("s", 100), sleep("t", 100), run("a")])],
    )]);
    assert_eq!(world.status(), Status::Suspended);
    assert_eq!(
        world.due("both/y/s"),
        ["both/y/s is due", "both/y/s gives 1", "both/y/t sleeps until 200"],
        "one sleep after the other changes nothing"
    );
    assert_eq!(
        world.due("both/y/t"),
        ["both/y/t is due", "both/y/t gives 1", "resumed", "both/y/a starts #1"],
        "a timer may continue it"
    );
    assert_eq!(world.status(), Status::Running);
}

#[test]
fn a_delay_before_a_retry_counts_as_sleep() {
    let mut world = World::of(vec![all(
        "both",
        [("x", vec![run("q").asks()]), ("y", vec![run("a").tries(2)])],
    )]);
    assert_eq!(
        world.fail("both/y/a", "boom"),
        ["both/y/a fails: boom; again at 100", "suspended at both/x/q: Suspended at step q"]
    );
    assert_eq!(world.due("both/y/a"), ["both/y/a is due", "resumed", "both/y/a starts #2"]);
}

#[test]
fn only_sleeping_is_running() {
    let world =
        World::of(vec![race("r", [("x", vec![sleep("s", 9)]), ("y", vec![sleep("t", 8)])])]);
    assert_eq!(world.status(), Status::Running);
    assert_eq!(world.all_lines().last().unwrap(), "r/y/t sleeps until 8");
}

#[test]
fn only_a_sleep_left_after_the_last_suspension_is_running() {
    let mut world = World::of(vec![all(
        "both",
        [("x", vec![run("q").asks_for(50).ignoring()]), ("y", vec![sleep("s", 100)])],
    )]);
    assert_eq!(
        world.due("both/x/q"),
        ["both/x/q is due", "both/x/q fails: deadline passed; continues with 1", "resumed"]
    );
}

#[test]
fn a_sleep_after_the_last_suspension_is_running() {
    let mut world = World::of(vec![run("q").asks_for(50).ignoring(), sleep("s", 100)]);
    assert_eq!(
        world.due("q"),
        ["q is due", "q fails: deadline passed; continues with 1", "resumed", "s sleeps until 150"]
    );
}

#[test]
fn every_suspension_is_listed_with_its_path() {
    let world = World::of(vec![all(
        "both",
        [("x", vec![run("q").asks()]), ("y", vec![run("r").asks_for(50)])],
    )]);
    let waiting = world.machine.state().waiting(world.machine.plan());
    let paths: Vec<_> = waiting.iter().map(|w| (&*w.path, w.deadline.is_some())).collect();
    assert_eq!(paths, [("both/x/q", false), ("both/y/r", true)]);
}

#[test]
fn a_missing_function_blocks_and_does_not_fail() {
    let mut setting = Setting::default();
    setting.missing.insert("a".to_owned());
    let mut world = setting.start(workflow(vec![run("a"), run("b")]));
    assert_eq!(world.started(), ["start"]);
    assert_eq!((world.status(), world.running().len()), (Status::Running, 0));
    assert_eq!(world.recover(), NOTHING);
    world.missing.clear();
    assert_eq!(world.recover(), ["a starts #1"], "the next process has it");
}

#[test]
fn a_missing_function_blocks_retries_and_resumes() {
    let mut world = World::of(vec![run("a").tries(2)]);
    world.fail("a", "boom");
    world.missing.insert("a".to_owned());
    assert_eq!(world.due("a"), ["a is due"]);
    world.missing.clear();
    assert_eq!(world.recover(), ["a starts #2"]);

    let mut world = World::of(vec![run("q").asks()]);
    world.missing.insert("q".to_owned());
    assert_eq!(world.resume(1), ["resumed", "q is answered 1"]);
    assert_eq!(world.status(), Status::Running);
    world.missing.clear();
    assert_eq!(world.recover(), ["q starts #1"]);
}

#[test]
fn a_blocked_branch_does_not_stop_its_siblings() {
    let mut setting = Setting::default();
    setting.missing.insert("a".to_owned());
    let mut world =
        setting.start(workflow(vec![all("both", [("x", vec![run("a")]), ("y", vec![run("b")])])]));
    assert_eq!(world.running(), ["both/y/b #1"]);
    world.finish("both/y/b", 2);
    world.missing.clear();
    assert_eq!(world.recover(), ["both/x/a starts #1"]);
}

/// A restart loads running executions, but not suspended ones.
#[test]
fn a_blocked_step_keeps_the_execution_running() {
    let question = || vec![run("q").asks()];
    let mut world =
        World::of(vec![all("both", [("x", question()), ("y", vec![run("a"), run("b")])])]);
    world.missing.insert("b".to_owned());
    assert_eq!(world.finish("both/y/a", 1), ["both/y/a gives 1"], "no suspension is published");
    assert_eq!(world.status(), Status::Running);
    world.missing.clear();
    assert_eq!(world.recover(), ["both/y/b starts #1"]);

    world.missing.insert("b".to_owned());
    assert_eq!(world.send(Command::Release), ["both/y/b is released"]);
    let interrupted = world.machine.node("both/y/b").unwrap().1.errors.clone();
    let kinds: Vec<_> = interrupted.iter().map(|it| (it.attempt, it.class.unwrap().kind)).collect();
    assert_eq!(kinds, [(1, ErrorKind::Interrupted)], "the attempt is listed, as after a crash");
    assert_eq!(world.status(), Status::Running);
    world.crash();
    world.missing.clear();
    assert_eq!(world.recover(), ["both/y/b starts #2"]);
    assert_eq!(
        world.finish("both/y/b", 2).last().unwrap(),
        "suspended at both/x/q: Suspended at step q"
    );
}
