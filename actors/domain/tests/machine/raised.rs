//! `fail(message)`: a definition fails on purpose, and what completed is compensated.

use greenroom_domain::definition::{Mapping, StepDefinition, WorkflowDefinition};
use greenroom_domain::failure::ErrorKind;
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{
    Adorned, branch, child_with, for_each, map, repeat, run, sleep_until, when, workflow,
};
use crate::machine::world::{Setting, World};

const REFUSED: &str = "The customer refused";
const FAIL: &str = "fail('The customer refused')";

/// Ends after a completed step that has a compensation; returns the last line.
fn ended(mut world: World) -> String {
    world.finish("a", 1);
    assert_eq!(world.status(), Status::Running, "it compensates first");
    let lines = world.finish("a:compensate", Value::Null);
    assert_eq!(world.status(), Status::Error);
    lines.last().cloned().unwrap_or_default()
}

fn after_a_completed_step(last: StepDefinition) -> String {
    ended(World::of(vec![run("a").undone(), last]))
}

#[test]
fn the_failure_has_exactly_this_message_and_is_not_retried() {
    let asks = map("no", "1").asks_when(FAIL);
    for last in [
        map("no", json!({ "x": [FAIL] })).tries(3),
        map("no", format!("'yes' if input.ok | default(false) else {FAIL}")),
        when("no", FAIL, vec![run("b")]),
        branch("no", vec![("false", vec![run("b")]), (FAIL, vec![run("c")])], None),
        for_each("no", FAIL, 1, vec![run("b")]),
        repeat("no", true, FAIL, 3, vec![map("b", "1")]),
        sleep_until("no", FAIL),
        child_with("no", FAIL).tries(3),
        map("no", "input.nope").instead(FAIL),
        asks,
    ] {
        assert_eq!(after_a_completed_step(last), format!("failed at no: {REFUSED}"));
    }
}

#[test]
fn the_result_fails_the_execution() {
    let result = Some(Mapping(json!({ "x": FAIL })));
    let definition = WorkflowDefinition { result, ..workflow(vec![run("a").undone()]) };
    assert_eq!(ended(Setting::default().start(definition)), format!("failed: {REFUSED}"));
}

#[test]
fn a_handled_failure_goes_on() {
    let kind = ErrorKind::Expression.as_str();
    let value = "error.kind ~ ': ' ~ error.message";
    let world = World::of(vec![map("a", FAIL).instead(value)]);
    assert_eq!(world.status(), Status::Completed);
    let last = world.all_lines().pop().unwrap_or_default();
    assert_eq!(last, format!("completed {:?}", format!("{kind}: {REFUSED}")));
}
