//! andTap.

use crate::machine::build::{Adorned, map, run, tap, tap_map};
use crate::machine::world::World;

#[test]
fn data_passes_through() {
    let mut world = World::of(vec![tap("t"), tap_map("u", "data + 5"), map("b", "data")]);
    assert_eq!(
        world.finish("t", "noted"),
        ["t gives 1", "u starts #1", "u gives 1", "b starts #1", "b gives 1", "completed 1"]
    );
}

#[test]
fn a_failing_tap_is_recorded_and_the_flow_continues() {
    let mut world = World::of(vec![tap("t").tries(2), run("a")]);
    assert_eq!(world.fail("t", "boom"), ["t fails: boom; again at 100"]);
    world.due("t");
    assert_eq!(world.fail("t", "boom"), ["t fails: boom; continues with 1", "a starts #1"]);
}

#[test]
fn a_tap_cannot_suspend() {
    let mut world = World::of(vec![tap("t")]);
    assert_eq!(world.ask("t"), ["t fails: andTap cannot suspend; continues with 1", "completed 1"]);
}
