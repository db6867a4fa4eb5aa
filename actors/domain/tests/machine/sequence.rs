//! Consecutive steps, and their scopes.

use std::sync::Arc;

use greenroom_domain::definition::Mapping;
use greenroom_domain::plan::Plan;
use greenroom_domain::status::Status;
use serde_json::{Value, json};

use crate::machine::build::{Adorned, all, map, race, run, tap, when, workflow};
use crate::machine::world::{Setting, World};

#[test]
fn pure_steps_run_to_the_end_in_one_batch() {
    let world = World::of(vec![map("a", "data + 1"), map("b", "data + 1"), map("c", "data + 1")]);
    assert_eq!(
        world.started(),
        [
            "start",
            "a starts #1",
            "a gives 2",
            "b starts #1",
            "b gives 3",
            "c starts #1",
            "c gives 4",
            "completed 4",
        ]
    );
    assert_eq!(world.status(), Status::Completed);
    assert_eq!(world.facts().last().unwrap().next_seq(), 10);
}

#[test]
fn each_output_is_the_next_data() {
    let mut world = World::of(vec![run("a"), run("b")]);
    assert_eq!(world.started(), ["start", "a starts #1"]);
    assert_eq!(world.running(), ["a #1"]);
    assert_eq!(world.finish("a", "one"), ["a gives \"one\"", "b starts #1"]);
    assert_eq!(*world.machine.function_call("b").unwrap().data, json!("one"));
    assert_eq!(world.finish("b", "two"), ["b gives \"two\"", "completed \"two\""]);
    assert_eq!(world.running(), Vec::<String>::new());
}

#[test]
fn the_result_is_a_mapping_over_everything() {
    let mut definition = workflow(vec![map("a", "data + 1"), map("b", "data * 10")]);
    definition.result = Some(Mapping(json!({
        "a": "steps.a", "last": "data", "in": "input", "who": "user.id",
        "workflow": "execution.workflowId", "id": "execution.id", "resume": "resume", "n": 7,
    })));
    let world = Setting::default().start(definition);
    assert_eq!(
        world.started().last().unwrap(),
        "completed {\"a\":2,\"last\":20,\"in\":1,\"who\":\"ann\",\"workflow\":\"order\",\
         \"id\":\"e1\",\"resume\":null,\"n\":7}"
    );
}

#[test]
fn a_result_that_cannot_be_made_fails_the_execution() {
    let mut definition = workflow(vec![map("a", "data")]);
    definition.result = Some(Mapping(json!("steps.nowhere")));
    let world = Setting::default().start(definition);
    assert_eq!(world.status(), Status::Error);
    assert!(world.started().last().unwrap().starts_with("failed: result: "));
}

#[test]
fn a_second_end_of_a_body_is_ignored() {
    let mut world = World::of(vec![run("a"), run("b")]);
    world.finish("a", 1);
    assert_eq!(world.finish("a", 2), Vec::<String>::new());
    assert_eq!(world.fail("a", "late"), Vec::<String>::new());
}

#[test]
fn a_stale_attempt_is_ignored() {
    let mut world = World::of(vec![run("a").tries(2)]);
    world.fail("a", "boom");
    assert_eq!(world.finish("a", 1), Vec::<String>::new(), "during the pause");
    world.due("a");
    let stale = greenroom_domain::machine::Command::StepFinished {
        path: "a".into(),
        attempt: 1,
        result: greenroom_domain::machine::StepResult::Completed(Arc::new(json!(1))),
        spent: greenroom_domain::machine::Spent::default(),
    };
    assert_eq!(world.send(stale), Vec::<String>::new(), "the attempt before");
    assert_eq!(world.finish("a", 2), ["a gives 2", "completed 2"]);
}

#[test]
fn pure_steps_and_containers_have_no_body_to_end() {
    let mut world = World::of(vec![all("both", [("left", vec![run("a")])])]);
    assert_eq!(world.finish("both", 5), Vec::<String>::new());
    assert_eq!(
        world.finish("both/left/a", 5),
        ["both/left/a gives 5", "both gives [5]", "completed [5]"]
    );
}

#[test]
fn a_step_sees_earlier_outputs() {
    let seen = json!({
        "first": "steps.first | default('none')",
        "inner": "steps.inner | default('none')",
        "beside": "steps.beside | default('none')",
        "passed": "steps.passed | default('none')",
    });
    let world = World::of(vec![
        map("first", "1"),
        when("passed", "true", vec![map("inner", "2")]),
        all(
            "both",
            [
                ("left", vec![map("beside", "3"), map("see", seen.clone())]),
                ("right", vec![map("look", seen.clone())]),
            ],
        ),
        map("after", seen),
    ]);
    let lines = world.started();
    let output_of = |step: &str| -> Value {
        let start = format!("{step} gives ");
        let line = lines.iter().find_map(|line| line.strip_prefix(&start)).unwrap();
        serde_json::from_str(line).unwrap()
    };
    let with_beside = json!({ "first": 1, "inner": 2, "beside": 3, "passed": 2 });
    assert_eq!(output_of("both/left/see"), with_beside);
    assert_eq!(
        output_of("both/right/look"),
        json!({ "first": 1, "inner": 2, "beside": "none", "passed": 2 }),
        "a parallel branch is not on the way"
    );
    assert_eq!(output_of("after"), with_beside);
}

#[test]
fn a_skipped_step_is_undefined() {
    let world = World::of(vec![
        when("maybe", "false", vec![map("inner", "2")]),
        map("see", json!(["steps.maybe is defined", "steps.inner is defined", "data"])),
    ]);
    assert_eq!(world.started().last().unwrap(), "completed [false,false,1]");
}

#[test]
fn the_loser_of_a_race_did_not_run() {
    let mut world = World::of(vec![
        race("fast", [("one", vec![run("a")]), ("two", vec![run("b")])]),
        map("see", json!(["steps.a is defined", "steps.b is defined"])),
    ]);
    world.finish("fast/two/b", 2);
    assert_eq!(world.all_lines().last().unwrap(), "completed [false,true]");
}

#[test]
fn a_replaced_failure_has_the_replacement_as_output() {
    let mut world = World::of(vec![run("a").instead("'other'"), tap("t"), map("see", "steps")]);
    world.finish("a", 1);
    world.fail("t", "boom");
    assert_eq!(world.all_lines().last().unwrap(), "completed {\"a\":1,\"t\":1}");

    let mut world = World::of(vec![run("a").instead("'other'"), map("see", "steps")]);
    world.fail("a", "boom");
    assert_eq!(world.all_lines().last().unwrap(), "completed {\"a\":\"other\"}");
}

#[test]
fn input_and_output_are_checked() {
    let number = json!({ "type": "number" });
    let text = json!({ "type": "string" });
    let world = World::of(vec![map("a", "data").takes(text.clone())]);
    let lines = world.started();
    assert!(lines[1].starts_with("a fails: input validation failed: "), "{lines:?}");
    assert_eq!(world.status(), Status::Error);

    let mut world = World::of(vec![run("a").gives(number)]);
    assert!(world.finish("a", "x")[0].starts_with("a fails: output validation failed: "));

    let mut world = World::of(vec![run("a").gives(text).tries(2)]);
    let lines = world.finish("a", 1);
    assert!(lines[0].ends_with("; again at 100"), "an unfit output is a failed attempt: {lines:?}");
}

#[test]
fn a_value_that_is_too_large_fails_its_step() {
    let setting = || {
        let mut setting = Setting::default();
        setting.limits.value_bytes_max = 20;
        setting
    };
    let mut world = setting().start(workflow(vec![run("a")]));
    let lines = world.finish("a", "x".repeat(30));
    assert_eq!(lines[0], "a fails: the output is larger than 20 bytes");

    let mut world = setting().start(workflow(vec![run("a")]));
    let lines = world.end_step(
        "a",
        greenroom_domain::machine::StepResult::Suspended {
            reason: None,
            payload: Some(Arc::new(json!("x".repeat(30)))),
        },
    );
    assert_eq!(lines[0], "a fails: the suspend payload is larger than 20 bytes");
}

#[test]
fn the_hash_of_a_definition_is_stable() {
    let hash = |definition| Plan::compile(definition).unwrap().hash;
    let definition = || workflow(vec![map("a", "data + 1"), run("b").tries(2)]);
    assert_eq!(hash(definition()), hash(definition()));
    let mut renamed = definition();
    renamed.steps[0].id = "z".to_owned();
    assert_ne!(hash(definition()), hash(renamed));
    assert_eq!(
        &*hash(definition()),
        "045ae8650dfadc0e596683dfe6d1f6e95eeacb9c1a1a6f2cc53a6545129c1b80",
        "executions that are stored name their definition by this hash"
    );
}
