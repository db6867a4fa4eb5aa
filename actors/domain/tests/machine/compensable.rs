//! Definitions of compensations: refused ones, and those without any.

use greenroom_domain::definition::{
    Body, Compensation, Mapping, StepDefinition, StepKind, WorkflowDefinition,
};
use greenroom_domain::plan::Plan;
use serde_json::json;

use crate::machine::build::{Adorned, body, child, compensation, map, run, sleep, when, workflow};

#[test]
fn definitions_that_cannot_compensate_are_refused() {
    let with = |step: StepDefinition| vec![step.undone()];
    let undo = |kind: StepKind| vec![run("a").compensated(Compensation::new(kind))];
    let mut never = compensation("undo", false, 0);
    never.retry.factor = 0.5;
    let rows: [(Vec<StepDefinition>, &[&str], &str); 8] = [
        (with(sleep("a", 1)), &["compensate"], "andSleep cannot be compensated"),
        (
            with(when("a", "true", vec![run("b")])),
            &["compensate"],
            "andWhen cannot be compensated; the steps in its blocks can be",
        ),
        (
            undo(StepKind::Sleep { duration_ms: 1 }),
            &["compensate"],
            "andSleep cannot compensate a step",
        ),
        (
            undo(map("x", "1").kind),
            &["compensate", "map"],
            "a compensation acts outside: run, http, command, tool, workflow",
        ),
        (
            vec![run("a").compensated(never.clone())],
            &["compensate", "retry", "attempts"],
            "must be at least 1",
        ),
        (
            vec![run("a").compensated(never)],
            &["compensate", "retry", "factor"],
            "must be at least 1",
        ),
        (
            undo(child("x").kind).into_iter().chain([run("a")]).collect(),
            &["id"],
            "step id `a` is used more than once",
        ),
        (
            vec![body("a", Body::Run { function: "f".to_owned(), version: None }).compensated(
                Compensation::new(StepKind::Then {
                    body: Body::Tool { tool: "t".to_owned(), args: Some(Mapping(json!("1 +"))) },
                }),
            )],
            &["compensate", "args"],
            "",
        ),
    ];
    for (steps, place, message) in rows {
        let problems = Plan::compile(workflow(steps)).expect_err(message);
        let place: Vec<_> = ["steps", "a"].iter().chain(place).map(|it| (*it).to_owned()).collect();
        let is_it = |problem: &&greenroom_domain::plan::Problem| {
            problem.place == place && problem.message.starts_with(message)
        };
        assert!(problems.iter().any(|problem| is_it(&problem)), "{message}: {problems:?}");
    }
    let mut idle = workflow(vec![run("a")]);
    idle.compensate_on_cancel = true;
    let problems = Plan::compile(idle).expect_err("nothing to compensate");
    assert_eq!(problems[0].place, ["compensate_on_cancel"]);
}

#[test]
fn a_definition_without_compensation_is_stored_as_before() {
    let text = serde_json::to_string(&workflow(vec![run("a")])).unwrap();
    assert!(!text.contains("compensate"), "{text}");
    let read: WorkflowDefinition = serde_json::from_str(&text).unwrap();
    assert_eq!(read, workflow(vec![run("a")]));
}
