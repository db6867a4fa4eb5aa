//! andRace.

use greenroom_domain::status::Status;
use serde_json::json;

use crate::machine::build::{Adorned, all, child, map, race, run, sleep};
use crate::machine::world::World;

#[test]
fn the_first_to_complete_wins_and_the_losers_are_cancelled_with_it() {
    let mut world = World::of(vec![race(
        "r",
        [("one", vec![run("a"), run("b")]), ("two", vec![run("c")]), ("three", vec![child("p")])],
    )]);
    world.finish("r/one/a", 1);
    assert_eq!(
        world.finish("r/two/c", 2),
        [
            "r/two/c gives 2",
            "r/one/b is cancelled",
            "r/three/p is cancelled",
            "r gives 2",
            "completed 2",
        ]
    );
    assert_eq!(world.abandoned.len(), 1);
    assert_eq!(world.running(), Vec::<String>::new());
}

#[test]
fn a_branch_that_fails_does_not_end_it() {
    let mut world = World::of(vec![race("r", [("one", vec![run("a")]), ("two", vec![run("b")])])]);
    assert_eq!(world.fail("r/one/a", "boom"), ["r/one/a fails: boom"]);
    assert_eq!(world.finish("r/two/b", 2).last().unwrap(), "completed 2");
}

#[test]
fn it_fails_with_the_first_error_if_every_branch_fails() {
    let mut world = World::of(vec![race("r", [("one", vec![run("a")]), ("two", vec![run("b")])])]);
    world.fail("r/two/b", "first");
    assert_eq!(
        world.fail("r/one/a", "second"),
        ["r/one/a fails: second", "r fails: first", "failed at b: first"]
    );
}

#[test]
fn a_suspended_branch_does_not_end_it() {
    let mut world =
        World::of(vec![race("r", [("ask", vec![run("q").asks()]), ("work", vec![run("a")])])]);
    assert_eq!(world.status(), Status::Running);
    assert_eq!(
        world.finish("r/work/a", 1),
        ["r/work/a gives 1", "r/ask/q is cancelled", "r gives 1", "completed 1"]
    );
}

#[test]
fn an_approval_races_against_a_sleep() {
    let steps = || {
        vec![
            race("r", [("ask", vec![map("q", "resume").asks()]), ("time", vec![sleep("s", 500)])]),
            map("after", json!(["data"])),
        ]
    };
    let mut world = World::of(steps());
    assert_eq!(world.status(), Status::Suspended, "nothing works: it waits");
    assert_eq!(
        world.due("r/time/s"),
        [
            "r/time/s is due",
            "r/time/s gives 1",
            "r/ask/q is cancelled",
            "r gives 1",
            "resumed",
            "after starts #1",
            "after gives [1]",
            "completed [1]",
        ]
    );

    let mut world = World::of(steps());
    let lines = world.resume("yes");
    assert_eq!(lines[..2], ["resumed", "r/ask/q is answered \"yes\""]);
    assert!(lines.contains(&"r/time/s is cancelled".to_owned()));
    assert!(world.timers.is_empty());
}

#[test]
fn a_replaced_failure_completes_its_branch() {
    let mut world = World::of(vec![race(
        "r",
        [("one", vec![run("a").instead("'other'")]), ("two", vec![run("b")])],
    )]);
    assert_eq!(world.fail("r/one/a", "boom").last().unwrap(), "completed \"other\"");
}

#[test]
fn the_first_to_complete_during_a_pause_wins() {
    let mut world = World::of(vec![race("r", [("one", vec![run("a")]), ("two", vec![run("b")])])]);
    world.hold();
    assert_eq!(world.finish("r/two/b", 2), ["r/two/b gives 2"]);
    assert_eq!(world.finish("r/one/a", 1), ["r/one/a gives 1"]);
    assert_eq!(
        world.resume(json!(null)),
        ["lifted with null", "resumed", "r gives 2", "completed 2"]
    );
}

#[test]
fn a_race_with_an_invalid_output_fails() {
    let step = race("r", [("one", vec![run("a")]), ("two", vec![run("b")])])
        .gives(json!({ "type": "number" }));
    let mut world = World::of(vec![step]);
    world.fail("r/one/a", "boom");
    let last = world.finish("r/two/b", "text").pop().unwrap();
    assert!(last.starts_with("failed at r: output validation failed: "), "{last}");
}

#[test]
fn a_lost_race_cancels_nested_steps() {
    let mut world = World::of(vec![race(
        "r",
        [
            ("one", vec![all("both", [("x", vec![run("a")]), ("y", vec![run("b").tries(2)])])]),
            ("two", vec![run("c")]),
        ],
    )]);
    world.fail("r/one/both/y/b", "boom");
    let lines = world.finish("r/two/c", 1);
    assert_eq!(
        lines[1..4],
        ["r/one/both/x/a is cancelled", "r/one/both/y/b is cancelled", "r/one/both is cancelled"]
    );
    assert!(world.timers.is_empty(), "the timer of the retry is cleared");
}
