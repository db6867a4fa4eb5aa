//! andAll.

use greenroom_domain::status::Status;
use serde_json::json;

use crate::machine::build::{Adorned, all, child, map, run, sleep};
use crate::machine::world::World;

fn both() -> World {
    World::of(vec![
        all("both", [("left", vec![run("a")]), ("right", vec![run("b"), run("c")])]),
        map("after", "data"),
    ])
}

#[test]
fn every_branch_starts_at_once() {
    let world = both();
    assert_eq!(
        world.started(),
        ["start", "both starts #1", "both/left/a starts #1", "both/right/b starts #1"]
    );
    assert_eq!(world.running(), ["both/left/a #1", "both/right/b #1"]);
}

#[test]
fn the_output_has_the_order_of_the_branches() {
    let mut world = both();
    world.finish("both/right/b", "b");
    assert_eq!(world.finish("both/right/c", "c"), ["both/right/c gives \"c\""]);
    assert_eq!(
        world.finish("both/left/a", "a"),
        [
            "both/left/a gives \"a\"",
            "both gives [\"a\",\"c\"]",
            "after starts #1",
            "after gives [\"a\",\"c\"]",
            "completed [\"a\",\"c\"]",
        ]
    );
}

#[test]
fn the_first_failure_cancels_the_others() {
    let mut world = World::of(vec![all(
        "both",
        [
            ("left", vec![run("a")]),
            (
                "right",
                vec![all("inner", [("deep", vec![run("b")]), ("nap", vec![sleep("s", 50)])])],
            ),
            ("asks", vec![run("q").asks_for(80)]),
            ("part", vec![child("p")]),
        ],
    )]);
    assert_eq!(world.timers.len(), 2);
    assert_eq!(
        world.fail("both/left/a", "boom"),
        [
            "both/left/a fails: boom",
            "both/right/inner/deep/b is cancelled",
            "both/right/inner/nap/s is cancelled",
            "both/right/inner is cancelled",
            "both/asks/q is cancelled",
            "both/part/p is cancelled",
            "both fails: boom",
            "failed at a: boom",
        ]
    );
    assert_eq!(world.abandoned.len(), 1, "the child is cancelled");
    assert!(world.timers.is_empty(), "no timer is left");
    assert_eq!(world.finish("both/right/inner/deep/b", 1), Vec::<String>::new());
}

#[test]
fn cancelled_steps_have_no_retry_and_no_on_error() {
    let mut world = World::of(vec![all(
        "both",
        [("left", vec![run("a")]), ("right", vec![run("b").tries(3).instead("'other'")])],
    )]);
    world.fail("both/left/a", "boom");
    assert_eq!(world.status(), Status::Error);
    assert!(world.all_lines().contains(&"both/right/b is cancelled".to_owned()));
}

#[test]
fn an_ignored_failure_does_not_fail_it() {
    let mut world = World::of(vec![all(
        "both",
        [("left", vec![run("a").ignoring()]), ("right", vec![run("b")])],
    )]);
    assert_eq!(world.fail("both/left/a", "boom"), ["both/left/a fails: boom; continues with 1"]);
    assert_eq!(world.finish("both/right/b", 2).last().unwrap(), "completed [1,2]");
}

#[test]
fn a_branch_waiting_for_a_retry_does_not_fail_it() {
    let mut world = World::of(vec![all(
        "both",
        [("left", vec![run("a").tries(2)]), ("right", vec![run("b")])],
    )]);
    assert_eq!(world.fail("both/left/a", "boom"), ["both/left/a fails: boom; again at 100"]);
    world.finish("both/right/b", 2);
    world.due("both/left/a");
    assert_eq!(world.finish("both/left/a", 1).last().unwrap(), "completed [1,2]");
}

#[test]
fn pure_branches_run_at_once() {
    let world = World::of(vec![all(
        "both",
        [("left", vec![map("a", "data + 1")]), ("right", vec![map("b", json!({ "n": "data" }))])],
    )]);
    assert_eq!(world.started().last().unwrap(), "completed [2,{\"n\":1}]");
}

#[test]
fn an_invalid_output_fails_the_container_itself() {
    let step = all("both", [("left", vec![map("a", "1")])]).gives(json!({ "maxItems": 0 }));
    let world = World::of(vec![step]);
    let last = world.started().pop().unwrap();
    assert!(last.starts_with("failed at both: output validation failed: "), "{last}");
}
