//! Ends of executions, as shown to callers.

use greenroom_domain::failure::{AttemptFailure, ErrorClass, ErrorKind};
use greenroom_domain::machine::Ending;
use greenroom_domain::state::Outcome;
use serde_json::json;

use crate::machine::build::{Adorned, all, for_each, map, race, run};
use crate::machine::world::World;

fn ending(world: &World) -> Ending {
    world.machine.ending().expect("it has ended")
}

/// Returns the place, the attempts and the errors of the failed step.
fn failed(world: &World) -> (String, u32, Vec<String>) {
    let failed = ending(world).failed.expect("a step failed");
    let errors = failed.errors.iter().map(|it| format!("#{} {}", it.attempt, it.message));
    (failed.path.to_string(), failed.attempts, errors.collect())
}

fn replayable(world: &World) -> Vec<String> {
    ending(world).replayable.iter().map(ToString::to_string).collect()
}

#[test]
fn a_failure_has_its_place_its_attempts_and_steps_to_replay() {
    let mut world = World::of(vec![map("a", 1), run("b").tries(2), run("c")]);
    assert_eq!(world.machine.ending(), None, "it runs");
    world.fail("b", "one");
    world.due("b");
    world.fail_with("b", AttemptFailure::http(404, "two"));
    world.restore_from(1);
    assert_eq!(failed(&world), ("b".to_owned(), 2, vec!["#1 one".into(), "#2 two".into()]));
    assert_eq!(replayable(&world), ["a", "b"]);
    let Outcome::Failed { error, step_id, path, class } = ending(&world).end.outcome else {
        panic!("it failed")
    };
    assert_eq!((&*error, step_id.as_deref(), path.as_deref()), ("two", Some("b"), Some("b")));
    assert_eq!(class, Some(ErrorClass::http(404)));
}

#[test]
fn a_failure_inside_containers_is_found_where_it_happened() {
    let blocks = [("l", vec![run("x")]), ("r", vec![race("z", [("q", vec![run("y")])])])];
    let mut world = World::of(vec![all("c", blocks)]);
    world.fail("c/r/z/q/y", "boom");
    assert_eq!(failed(&world).0, "c/r/z/q/y");
    assert_eq!(replayable(&world), ["c"]);

    let mut world = World::of(vec![for_each("e", json!([1, 2]), 2, vec![run("x")])]);
    world.fail("e[1]/x", "boom");
    assert_eq!(failed(&world).0, "e[1]/x");
}

#[test]
fn a_container_that_fails_by_itself_is_its_own_place() {
    let blocks = [("l", vec![run("x")])];
    let mut world = World::of(vec![all("c", blocks).gives(json!({ "type": "string" }))]);
    world.finish("c/l/x", 1);
    assert_eq!(failed(&world).0, "c");
    let class = Some(ErrorClass::of(ErrorKind::Schema));
    assert!(matches!(ending(&world).end.outcome, Outcome::Failed { class: it, .. } if it == class));
}

#[test]
fn other_ends_have_no_failure_and_can_be_replayed() {
    let mut world = World::of(vec![map("a", 1), run("b")]);
    world.cancel();
    assert_eq!((ending(&world).failed, replayable(&world)), (None, vec!["a".into(), "b".into()]));
    let world = World::of(vec![map("a", 1), map("b", 2)]);
    assert_eq!((ending(&world).failed, replayable(&world)), (None, vec!["a".into(), "b".into()]));
}
