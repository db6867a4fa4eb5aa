//! andBranch.

use serde_json::json;

use crate::machine::build::{Adorned, branch, map, run};
use crate::machine::world::World;

#[test]
fn the_first_case_that_holds_is_taken() {
    for (cases, has_default, expected) in [
        (["true", "true"], true, "completed \"first\""),
        (["false", "true"], true, "completed \"second\""),
        (["false", "false"], true, "completed \"other\""),
        (["false", "false"], false, "completed 1"),
        (["input == 1", "data.no.such"], false, "completed \"first\""),
    ] {
        let [first, second] = cases;
        let cases = vec![(first, vec![map("a", "'first'")]), (second, vec![map("b", "'second'")])];
        let default = has_default.then(|| vec![map("c", "'other'")]);
        let world = World::of(vec![branch("way", cases, default)]);
        assert_eq!(world.started().last().unwrap(), expected, "for {first}, {second}");
    }
}

#[test]
fn the_choice_is_made_once() {
    let mut world = World::of(vec![
        branch("way", vec![("input == 2", vec![run("a")])], Some(vec![run("b"), run("c")])),
        map("after", "[data, steps.a is defined, steps.b]"),
    ]);
    assert_eq!(world.started(), ["start", "way starts #1 with block 1", "way/default/b starts #1"]);
    world.finish("way/default/b", "b");
    world.crash();
    assert_eq!(world.recover(), ["way/default/c starts #2 after a crash"]);
    assert_eq!(world.finish("way/default/c", "c").last().unwrap(), "completed [\"c\",false,\"b\"]");
}

#[test]
fn the_choice_is_part_of_the_snapshot() {
    let mut world = World::of(vec![branch(
        "way",
        vec![("false", vec![run("a")]), ("true", vec![run("b").asks()])],
        Some(vec![run("c")]),
    )]);
    world.restore_from(1);
    world.resume("go");
    assert_eq!(world.finish("way/case2/b", "b").last().unwrap(), "completed \"b\"");
}

#[test]
fn without_a_case_it_is_skipped() {
    let world = World::of(vec![branch("way", vec![("false", vec![run("a")])], None)]);
    assert_eq!(world.started(), ["start", "way is skipped", "completed 1"]);
}

#[test]
fn a_condition_that_cannot_be_evaluated_fails_it() {
    let cases = || vec![("false", vec![run("a")]), ("data.no.such", vec![run("b")])];
    let last = World::of(vec![branch("way", cases(), None)]).started().pop().unwrap();
    assert!(last.starts_with("failed at way: case 2: when: "), "{last}");

    let world = World::of(vec![branch("way", cases(), None).instead("'saved'")]);
    assert_eq!(world.started().last().unwrap(), "completed \"saved\"");
}

#[test]
fn a_failure_inside_is_the_steps() {
    let mut world = World::of(vec![branch("way", vec![("true", vec![run("a")])], None)]);
    assert_eq!(
        world.fail("way/case1/a", "boom"),
        ["way/case1/a fails: boom", "way fails: boom", "failed at a: boom"]
    );
}

#[test]
fn its_output_is_checked() {
    let step = branch("way", vec![("true", vec![map("a", "'text'")])], None);
    let world = World::of(vec![step.gives(json!({ "type": "number" }))]);
    let last = world.started().pop().unwrap();
    assert!(last.starts_with("failed at way: output validation failed: "), "{last}");
}
