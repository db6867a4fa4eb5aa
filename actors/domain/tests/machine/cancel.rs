//! Cancel.

use greenroom_domain::event::{EventKind, events_of};
use greenroom_domain::machine::{Command, Refusal};
use greenroom_domain::status::Status;
use serde_json::json;

use crate::machine::build::{Adorned, all, child, run, sleep};
use crate::machine::world::World;

const NOTHING: [&str; 0] = [];

#[test]
fn live_steps_are_cancelled_innermost_first() {
    let mut world = World::of(vec![all(
        "both",
        [
            ("one", vec![all("in", [("x", vec![run("a").tries(3)]), ("y", vec![run("done")])])]),
            ("two", vec![sleep("s", 100)]),
            ("three", vec![run("q").asks_for(50)]),
            ("four", vec![child("p")]),
        ],
    )]);
    world.finish("both/one/in/y/done", 1);
    world.fail("both/one/in/x/a", "boom");
    assert_eq!(
        world.cancel(),
        [
            "both/one/in/x/a is cancelled",
            "both/one/in is cancelled",
            "both/two/s is cancelled",
            "both/three/q is cancelled",
            "both/four/p is cancelled",
            "both is cancelled",
            "cancelled: enough",
        ]
    );
    assert!(world.timers.is_empty());
    assert_eq!(world.abandoned.len(), 1);
    let last = world.facts().pop().unwrap();
    assert_eq!(
        events_of(&last.fact),
        [EventKind::WorkflowCancelled, EventKind::WorkflowResult],
        "the result is the last event"
    );
}

#[test]
fn results_that_come_later_are_not_recorded() {
    let mut world = World::of(vec![run("a").tries(3), run("b")]);
    assert_eq!(world.cancel(), ["a is cancelled", "cancelled: enough"]);
    assert_eq!(world.running(), NOTHING);
    assert_eq!(world.finish("a", json!(1)), NOTHING);
    assert_eq!(world.fail("a", "boom"), NOTHING);
    assert_eq!(world.ask("a"), NOTHING);
    assert_eq!(world.recover(), NOTHING);
}

#[test]
fn a_suspended_execution_is_cancelled_without_being_resumed() {
    let mut world = World::of(vec![run("q").asks()]);
    assert_eq!(world.cancel(), ["q is cancelled", "cancelled: enough"]);
    let mut world = World::of(vec![run("a")]);
    world.hold();
    world.finish("a", 1);
    assert_eq!(world.cancel(), ["cancelled: enough"]);
    assert_eq!(world.status(), Status::Cancelled);
}

#[test]
fn an_ended_execution_cannot_be_cancelled() {
    let cancel = || Command::Cancel { reason: "x".into(), by: None, compensate: false };
    for mut world in World::ended() {
        let status = world.status();
        assert_eq!(world.try_send(cancel()), Err(Refusal::Already(status)));
    }
}

#[test]
fn it_stays_cancelled_after_a_crash() {
    let mut world = World::of(vec![run("a")]);
    world.cancel();
    world.crash();
    assert_eq!(world.recover(), NOTHING);
    assert_eq!(world.running(), NOTHING);
}
