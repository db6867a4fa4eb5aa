//! Limits of one execution.

use greenroom_domain::status::Status;
use serde_json::Value;

use crate::machine::build::{Adorned, all, child, map, run, workflow};
use crate::machine::world::{Setting, World};

fn of_events(events_max: u64) -> Setting {
    let mut setting = Setting::default();
    setting.limits.events_max = events_max;
    setting
}

#[test]
fn an_execution_with_too_many_events_fails() {
    let steps = || (0..9).map(|n| map(&format!("s{n}"), "data")).collect();
    let world = of_events(10).start(workflow(steps()));
    assert_eq!(world.status(), Status::Error);
    assert_eq!(world.started().last().unwrap(), "failed: more than 10 events");
    let world = of_events(100).start(workflow(steps()));
    assert_eq!(world.status(), Status::Completed);
}

#[test]
fn live_steps_are_cancelled_first() {
    let mut world = of_events(6).start(workflow(vec![all(
        "both",
        [
            ("x", vec![run("a"), run("b")]),
            ("y", vec![child("p")]),
            ("z", vec![run("q").asks_for(9)]),
        ],
    )]));
    assert_eq!(
        world.finish("both/x/a", 1),
        [
            "both/x/a gives 1",
            "both/y/p is cancelled",
            "both/z/q is cancelled",
            "both is cancelled",
            "failed: more than 6 events",
        ]
    );
    assert!(world.timers.is_empty());
    assert_eq!(world.abandoned.len(), 1);
}

#[test]
fn a_paused_execution_does_not_fail_yet() {
    let mut world = of_events(3).start(workflow(vec![run("a").tries(2)]));
    world.hold();
    assert_eq!(world.fail("a", "boom"), ["a fails: boom; again at 100"]);
    assert_eq!(
        world.resume(Value::Null),
        ["lifted with null", "resumed", "a is cancelled", "failed: more than 3 events"]
    );
}

#[test]
fn numbers_count_events_and_start_at_one() {
    let mut world = World::of(vec![run("a")]);
    let numbers = |world: &World| world.facts().iter().map(|fact| fact.seq).collect::<Vec<_>>();
    assert_eq!(numbers(&world), [1, 2]);
    world.hold();
    assert_eq!(numbers(&world), [1, 2, 3, 3], "a hold gives no event, the suspension does");
    world.finish("a", 1);
    world.resume(Value::Null);
    assert_eq!(numbers(&world), [1, 2, 3, 3, 4, 5, 5, 6]);
    assert_eq!(world.machine.state().last_seq(), 7, "the end gives two");
}
