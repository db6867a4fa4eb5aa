//! andWhen.

use greenroom_domain::status::Status;

use crate::machine::build::{Adorned, map, run, when};
use crate::machine::world::World;

#[test]
fn the_block_runs_if_the_condition_is_true() {
    let mut world = World::of(vec![when("w", "data > 0", vec![run("a"), map("b", "data + 1")])]);
    assert_eq!(world.started(), ["start", "w starts #1", "w/then/a starts #1"]);
    assert_eq!(
        world.finish("w/then/a", 5),
        ["w/then/a gives 5", "w/then/b starts #1", "w/then/b gives 6", "w gives 6", "completed 6"]
    );
}

#[test]
fn data_passes_through_if_the_condition_is_false() {
    let world = World::of(vec![when("w", "data > 1", vec![run("a")]), map("b", "data")]);
    assert_eq!(
        world.started(),
        ["start", "w is skipped", "b starts #1", "b gives 1", "completed 1"]
    );
}

#[test]
fn a_condition_that_cannot_be_evaluated_fails_the_step() {
    let world = World::of(vec![when("w", "data.no.such", vec![run("a")])]);
    assert!(world.started()[1].starts_with("w fails: when: "), "{:?}", world.started());
    assert_eq!(world.status(), Status::Error);

    let world = World::of(vec![when("w", "data.no.such", vec![run("a")]).ignoring()]);
    assert_eq!(world.started().last().unwrap(), "completed 1");
}

#[test]
fn an_inner_failure_names_the_inner_step() {
    let mut world = World::of(vec![when("w", "true", vec![run("a")])]);
    assert_eq!(
        world.fail("w/then/a", "boom"),
        ["w/then/a fails: boom", "w fails: boom", "failed at a: boom"]
    );
}

#[test]
fn an_inner_failure_may_be_replaced_by_the_container() {
    let mut world = World::of(vec![when("w", "true", vec![run("a")]).instead("'other'")]);
    assert_eq!(
        world.fail("w/then/a", "boom"),
        ["w/then/a fails: boom", "w fails: boom; continues with \"other\"", "completed \"other\""]
    );
}
