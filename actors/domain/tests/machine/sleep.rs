//! andSleep.

use greenroom_domain::machine::Command;
use greenroom_domain::status::Status;

use crate::machine::build::{map, sleep, sleep_until};
use crate::machine::world::{World, ZERO};

#[test]
fn it_waits_and_lets_data_pass() {
    let mut world = World::of(vec![sleep("s", 250), map("b", "data + 1")]);
    assert_eq!(world.started(), ["start", "s sleeps until 250"]);
    assert_eq!(world.status(), Status::Running, "only sleeping is running");
    assert_eq!(
        world.due("s"),
        ["s is due", "s gives 1", "b starts #1", "b gives 2", "completed 2"]
    );
}

#[test]
fn a_timer_fires_once_and_not_early() {
    let mut world = World::of(vec![sleep("s", 250), sleep("t", 250)]);
    let fired = Command::TimerFired { path: "s".into() };
    assert_eq!(world.send(fired.clone()), Vec::<String>::new(), "too early");
    world.due("s");
    assert_eq!(world.send(fired), Vec::<String>::new(), "once");
    let unknown = Command::TimerFired { path: "nowhere".into() };
    assert_eq!(world.send(unknown), Vec::<String>::new());
}

#[test]
fn it_keeps_its_end_after_a_crash() {
    let mut world = World::of(vec![sleep("s", 250)]);
    world.now = world.now.plus_ms(100);
    world.crash();
    assert_eq!(world.recover(), Vec::<String>::new());
    assert_eq!(world.due("s").last().unwrap(), "completed 1");
    assert_eq!(world.now.ms_since(crate::machine::world::ZERO), 250);
}

#[test]
fn times_of_facts_do_not_go_back_with_the_clock() {
    let mut world = World::of(vec![sleep("s", 250), sleep("t", 100)]);
    world.due("s");
    world.now = crate::machine::world::ZERO;
    world.hold();
    assert_eq!(world.status(), Status::Suspended);
}

#[test]
fn until_a_point_in_time() {
    for (until, due) in [
        ("'2023-11-14T22:13:20.100Z'", Some(100)),
        ("'2023-11-14T23:13:20.100+01:00'", Some(100)),
        ("1700000000250", Some(250)),
        // A time in the past is due at once.
        ("'2001-01-01T00:00:00Z'", Some(0)),
        ("'tomorrow'", None),
        ("'2023-11-14'", None),
        ("true", None),
        ("99999999999999999", None),
    ] {
        let mut world = World::of(vec![sleep_until("nap", until), map("after", "[data, 'woke']")]);
        let Some(due) = due else {
            let last = world.started().pop().unwrap();
            assert!(last.starts_with("failed at nap: until: must be an ISO 8601 time"), "{last}");
            continue;
        };
        assert_eq!(world.status(), Status::Running);
        assert_eq!(world.due("nap").last().unwrap(), "completed [1,\"woke\"]", "for {until}");
        assert_eq!(world.now.ms_since(ZERO), due, "for {until}");
    }
}
