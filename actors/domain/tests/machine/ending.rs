//! Ends of executions, as shown to callers.

use std::sync::Arc;

use greenroom_domain::failure::{AttemptFailure, ErrorClass, ErrorKind};
use greenroom_domain::machine::{Command, Ending};
use greenroom_domain::principal::Principal;
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

#[test]
fn an_execution_that_compensates_tells_the_end_that_follows() {
    let cancelled = Outcome::Cancelled { reason: "no stock".into() };
    for (is_cancelled, place) in [(false, Some("b")), (true, None)] {
        let mut world = World::of(vec![run("a").undone(), run("b")]);
        world.finish("a", 1);
        assert_eq!(world.machine.pending_ending(), None, "it runs");
        if is_cancelled {
            let by = Some(Arc::new(Principal::claimed("eve")));
            world.send(Command::Cancel { reason: "no stock".into(), by, compensate: true });
        } else {
            world.fail("b", "boom");
        }
        let pending = world.machine.pending_ending().expect("it compensates");
        assert_eq!(world.machine.ending(), None);
        assert!(pending.replayable.is_empty());
        let end = &pending.end;
        assert_eq!(end.outcome == cancelled, is_cancelled);
        assert_eq!(end.by.as_ref().map(|by| &*by.id), is_cancelled.then_some("eve"));
        assert_eq!(pending.failed.as_ref().map(|failed| &*failed.path), place);
        world.finish("a:compensate", 0);
        assert_eq!(world.machine.pending_ending(), None, "it has ended");
        assert_eq!(ending(&world).end.outcome, pending.end.outcome);
    }
}
