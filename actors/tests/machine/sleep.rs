//! andSleep.

use greenroom_actors::domain::machine::Command;
use greenroom_actors::ports::store::Status;

use crate::machine::build::{map, sleep};
use crate::machine::world::World;

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
fn a_timer_is_heard_when_its_time_has_come_and_once() {
    let mut world = World::of(vec![sleep("s", 250), sleep("t", 250)]);
    let fired = Command::TimerFired { path: "s".into() };
    assert_eq!(world.tell(fired.clone()), Vec::<String>::new(), "too early");
    world.due("s");
    assert_eq!(world.tell(fired), Vec::<String>::new(), "once");
    let unknown = Command::TimerFired { path: "nowhere".into() };
    assert_eq!(world.tell(unknown), Vec::<String>::new());
}

#[test]
fn it_keeps_its_end_over_a_crash() {
    let mut world = World::of(vec![sleep("s", 250)]);
    world.now = world.now.plus_ms(100);
    world.crash();
    assert_eq!(world.recover(), Vec::<String>::new());
    assert_eq!(world.due("s").last().unwrap(), "completed 1");
    assert_eq!(world.now.ms_since(crate::machine::world::ZERO), 250);
}

#[test]
fn a_clock_that_is_set_back_does_not_turn_the_record_back() {
    let mut world = World::of(vec![sleep("s", 250), sleep("t", 100)]);
    world.due("s");
    world.now = crate::machine::world::ZERO;
    world.hold();
    assert_eq!(world.status(), Status::Suspended);
}
