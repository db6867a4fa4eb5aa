//! Nesting of values.

use std::sync::Arc;

use greenroom_domain::definition::{Mapping, StepDefinition, SuspendRule};
use greenroom_domain::machine::{ChildStatus, Machine, StepResult};
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{
    Adorned, all, child, child_with, for_each, map, repeat, run, workflow,
};
use crate::machine::world::{Setting, World};

const DEPTH_MAX: usize = 10;

/// Returns a value with this number of levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

/// Starts an execution whose input has the maximum number of levels.
fn started(steps: Vec<StepDefinition>) -> World {
    let mut setting = Setting { input: nested(DEPTH_MAX), ..Setting::default() };
    setting.limits.value_depth_max = DEPTH_MAX;
    setting.start(workflow(steps))
}

fn last(world: &World) -> String {
    world.all_lines().last().cloned().unwrap()
}

const PLACE: &str = "nested deeper than 10 levels, at [0][0][0][0][0][0][0][0][0][0]";

#[test]
fn a_value_that_is_too_deep_fails_its_step_with_the_place() {
    let payload = |payload: &str| {
        let payload = Some(Mapping(json!(payload)));
        run("a").asking(SuspendRule { payload, ..SuspendRule::default() })
    };
    let bad = || map("a", "data.nothing");
    for (steps, ends) in [
        (vec![map("a", "[data]")], format!("the output is {PLACE}")),
        (vec![map("a", json!(["data"]))], format!("the output is {PLACE}")),
        (vec![payload("[data]")], format!("the suspend payload is {PLACE}")),
        (vec![for_each("a", "[data]", 1, vec![map("b", "1")])], format!("items: {PLACE}")),
        (vec![child_with("a", "[data]")], format!("input: {PLACE}")),
        (vec![bad().instead("[data]")], format!("; on_error: {PLACE}")),
        (
            vec![for_each("a", "data", 1, vec![map("b", "[[item]]")])],
            format!("the output is {PLACE}"),
        ),
        (vec![all("a", [("x", vec![map("b", "input")])])], format!("the output is {PLACE}")),
    ] {
        let world = started(steps.clone());
        assert_eq!(world.status(), Status::Error, "{steps:?}: {:?}", world.all_lines());
        assert!(last(&world).ends_with(&ends), "{steps:?}: {:?}", world.all_lines());
    }
}

#[test]
fn values_of_maximum_depth_pass() {
    for steps in [
        vec![map("a", "data")],
        vec![map("a", "data[0]"), map("b", "[data]")],
        vec![for_each("a", "data", 1, vec![map("b", "item")])],
        vec![repeat("a", true, "true", 3, vec![map("b", "data")])],
    ] {
        let world = started(steps.clone());
        assert_eq!(world.status(), Status::Completed, "{steps:?}: {:?}", world.all_lines());
    }
}

#[test]
fn values_from_outside_are_limited_too() {
    let mut world = started(vec![run("a")]);
    let lines = world.finish("a", nested(DEPTH_MAX + 1));
    assert_eq!(lines[0], format!("a fails: the output is {PLACE}"));
    assert_eq!(started(vec![run("a")]).finish("a", nested(DEPTH_MAX)).len(), 2);

    let mut world = started(vec![run("a")]);
    let payload = Some(Arc::new(nested(DEPTH_MAX + 1)));
    let lines = world.end_step("a", StepResult::Suspended { reason: None, payload });
    assert_eq!(lines[0], format!("a fails: the suspend payload is {PLACE}"));

    let mut world = started(vec![child("a")]);
    let result = Arc::new(nested(DEPTH_MAX + 1));
    let lines =
        world.report("a", 3, ChildStatus::Completed { result, compensable: false, skipped: false });
    assert_eq!(lines[0], format!("a fails: the output is {PLACE}"));

    let mut world = started(vec![map("a", "resume").asks_until(500, "[data]")]);
    assert_eq!(world.due("a")[1], format!("a fails: deadline passed; on_timeout: {PLACE}"));
}

#[test]
fn the_result_is_limited_too() {
    let mut definition = workflow(vec![map("a", "data")]);
    definition.result = Some(Mapping(json!({ "r": "data" })));
    let mut setting = Setting { input: nested(DEPTH_MAX), ..Setting::default() };
    setting.limits.value_depth_max = DEPTH_MAX;
    let world = setting.start(definition);
    let place = PLACE.replacen("at [0]", "at r", 1);
    assert_eq!(last(&world), format!("failed: result: {place}"));
}

#[test]
fn a_loop_that_nests_its_output_fails_at_the_limit() {
    let round = map("b", json!({ "n": "index + 1", "last": "data" }));
    let steps = vec![repeat("a", false, "true", 500, vec![round])];
    let world = Setting { input: json!(0), ..Setting::default() }.start(workflow(steps));
    assert_eq!(world.status(), Status::Error);
    let lines = world.all_lines();
    let failed = lines.iter().find(|line| line.contains("nested deeper than 100 levels"));
    let failed = failed.unwrap_or_else(|| panic!("{lines:?}"));
    assert!(failed.starts_with("a[100]/b fails: the output is nested deeper"), "{failed}");
    assert!(failed.contains("at last.last.last"), "{failed}");
}

/// The input was accepted by an earlier version.
#[test]
fn a_deeper_input_of_an_earlier_version_is_accepted() {
    let steps = || vec![run("a"), map("b", "input"), map("c", "[input]").instead("'too deep'")];
    let deep = nested(DEPTH_MAX + 20);
    let world = Setting { input: deep.clone(), ..Setting::default() }.start(workflow(steps()));
    let (plan, id) = (Arc::clone(world.machine.plan()), world.machine.state().id.clone());
    let mut restored = world;
    restored.limits.value_depth_max = DEPTH_MAX;
    restored.machine = Machine::replay(plan, id, &restored.facts()).unwrap();
    restored.send(greenroom_domain::machine::Command::Recover);
    restored.finish("a", 1);
    assert_eq!(restored.status(), Status::Completed);
    let (_, node) = restored.machine.node("b").unwrap();
    assert_eq!(node.output().as_deref(), Some(&deep));
    let (_, node) = restored.machine.node("c").unwrap();
    assert_eq!(node.output().as_deref(), Some(&json!("too deep")));
}
