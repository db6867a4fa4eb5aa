//! Failed attempts: retries and `on_error`.

use std::collections::BTreeSet;

use greenroom_domain::definition::{Mapping, OnError, RetryPolicy};
use greenroom_domain::machine::{Command, Resume};
use greenroom_domain::plan::{ERROR_KEYS, EXECUTION_KEYS, PRINCIPAL_KEYS};
use greenroom_domain::principal::Principal;
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, all, map, run};
use crate::machine::world::World;

#[test]
fn without_a_policy_the_first_failure_is_the_last() {
    let mut world = World::of(vec![run("a"), run("b")]);
    assert_eq!(world.fail("a", "boom"), ["a fails: boom", "failed at a: boom"]);
    assert_eq!(world.status(), Status::Error);
}

#[test]
fn attempts_include_the_first_and_delays_grow() {
    let mut world = World::of(vec![run("a").tries(3)]);
    assert_eq!(world.fail("a", "one"), ["a fails: one; again at 100"]);
    assert_eq!(world.running(), Vec::<String>::new());
    assert_eq!(world.status(), Status::Running, "only sleeping is running");
    assert_eq!(world.due("a"), ["a is due", "a starts #2"]);
    assert_eq!(world.fail("a", "two"), ["a fails: two; again at 300"], "200 later");
    assert_eq!(world.due("a"), ["a is due", "a starts #3"]);
    assert_eq!(world.fail("a", "three"), ["a fails: three", "failed at a: three"]);
}

#[test]
fn one_attempt_means_no_retry() {
    let mut world = World::of(vec![run("a").tries(1)]);
    assert_eq!(world.fail("a", "boom").last().unwrap(), "failed at a: boom");
}

#[test]
fn the_delay_has_a_limit() {
    let policy = RetryPolicy {
        attempts: 5,
        delay_ms: 100,
        factor: 10.0,
        max_delay_ms: Some(150),
        ..RetryPolicy::default()
    };
    let mut world = World::of(vec![run("a").retrying(policy)]);
    world.fail("a", "boom");
    world.due("a");
    assert_eq!(world.fail("a", "boom"), ["a fails: boom; again at 250"]);
}

#[test]
fn a_pure_step_is_repeated_too() {
    let mut world = World::of(vec![map("a", "data.no").tries(2)]);
    assert!(world.started()[2].ends_with("; again at 100"), "{:?}", world.started());
    assert_eq!(world.due("a")[1], "a starts #2");
    assert_eq!(world.status(), Status::Error);
}

#[test]
fn on_error_applies_after_the_last_attempt() {
    let mut world = World::of(vec![run("a").tries(2).ignoring(), map("b", "data")]);
    world.fail("a", "boom");
    world.due("a");
    assert_eq!(world.fail("a", "boom")[0], "a fails: boom; continues with 1");
    assert_eq!(world.all_lines().last().unwrap(), "completed 1");
    let steps = world.machine.state().steps(world.machine.plan());
    assert_eq!(steps[0].error.as_deref(), Some("boom"), "the node keeps its error");
    assert_eq!(steps[0].attempts, 2);
}

#[test]
fn the_value_is_evaluated_over_the_steps_scope() {
    let value = OnError::Value(Mapping(json!({ "was": "data", "first": "steps.first" })));
    let mut world = World::of(vec![map("first", "data + 1"), run("a").on_error(value)]);
    assert_eq!(world.fail("a", "boom")[0], "a fails: boom; continues with {\"was\":2,\"first\":2}");
}

#[test]
fn a_value_that_cannot_be_made_fails_the_step_with_both_errors() {
    let mut world = World::of(vec![run("a").instead("data.no.such")]);
    let line = world.fail("a", "boom").remove(0);
    assert!(line.starts_with("a fails: boom; on_error: "), "{line}");
    assert_eq!(world.status(), Status::Error);
}

#[test]
fn an_ignored_failure_passes_null_also_from_a_snapshot() {
    let mut world = World::of(vec![map("n", "none"), run("a").ignoring(), run("b")]);
    world.fail("a", "boom");
    world.restore_from(usize::MAX);
    world.recover();
    assert_eq!(world.finish("b", 1), ["b gives 1", "completed 1"]);
}

#[test]
fn errors_have_a_limit() {
    let mut world = World::of(vec![run("a")]);
    let line = world.fail("a", &"é".repeat(5000)).remove(0);
    assert_eq!(line.len(), "a fails: ".len() + 4096);
}

#[test]
fn the_error_names_the_innermost_step_that_failed_first() {
    let mut world = World::of(vec![all(
        "out",
        [("x", vec![all("in", [("y", vec![run("a")]), ("z", vec![run("b")])])])],
    )]);
    world.hold();
    world.fail("out/x/in/z/b", "first");
    world.fail("out/x/in/y/a", "second");
    assert_eq!(world.resume(json!(null)).last().unwrap(), "failed at b: first");
}

#[test]
fn the_delay_keeps_its_end_after_a_crash() {
    let mut world = World::of(vec![run("a").tries(2)]);
    world.fail("a", "boom");
    world.now = world.now.plus_ms(60);
    world.crash();
    assert_eq!(world.recover(), Vec::<String>::new());
    assert_eq!(world.due("a"), ["a is due", "a starts #2"]);
    assert_eq!(world.now.ms_since(crate::machine::world::ZERO), 100);
}

/// The keys that lints know are those at run time.
#[test]
fn names_in_scope_have_the_keys_that_lints_know() {
    let mut world = World::of(vec![
        map("of_error", "input.nope").instead("error"),
        map("asked", "resumed_by").asks(),
        map("all", "[steps.of_error, steps.asked, execution]"),
    ]);
    let by = Some(Principal::verified("lea").into());
    world.send(Command::Resume(Resume { by, ..Resume::default() }));
    let given = world.machine.node("all").unwrap().1.output().unwrap();
    let expected = [&ERROR_KEYS[..], &PRINCIPAL_KEYS, &EXECUTION_KEYS];
    for (given, expected) in given.as_array().unwrap().iter().zip(expected) {
        let keys: BTreeSet<&str> = given.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, expected.iter().copied().collect(), "{given}");
    }
    assert_eq!(given.as_array().map(Vec::len), Some(3), "{}", Value::clone(&given));
}
