//! Definitions from Rust beside the same ones from a file.

use std::time::Duration;

use greenroom_actors::domain::definition::{OnError, Projection};
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::ports::model::ModelOptions;
use serde_json::json;

use super::{Block, Retry, Step, Suspend, Workflow, map, run};
use crate::config::{AgentOptions, Config};

const MODEL: &str = "[models.offline]\nprovider = \"rehearsal\"\n[agents.assistant]\nmodel = \
                     \"offline\"\n[workflows.other]\nsteps = [{ id = \"a\", map = 1 }]\n";

/// The workflow of the same id in a file.
#[track_caller]
fn assert_same(workflow: Workflow, text: &str) {
    let built = workflow.compile().unwrap();
    let config = Config::parse(&format!("{MODEL}{text}"), "c.toml").unwrap();
    let read = &config.workflows[&built.definition.id];
    assert_eq!(built.definition, read.definition);
    assert_eq!(built.hash, read.hash);
}

#[test]
fn the_shipped_approval_can_be_built() {
    let resume_schema = json!({
        "type": "object",
        "required": ["approved"],
        "properties": { "approved": { "type": "boolean" }, "by": { "type": "string" } },
    });
    let suspend = Suspend::when("data.large")
        .reason("{{ input.employee }} asks for {{ input.amount }}")
        .payload(json!({ "amount": "input.amount" }))
        .deadline(Duration::from_secs(48 * 3600))
        .on_timeout_resume(json!({ "approved": "false", "by": "'nobody'" }));
    let retry = Retry::attempts(5)
        .delay(Duration::from_millis(200))
        .factor(2.0)
        .max_delay(Duration::from_secs(10))
        .jitter();
    let booked = json!({ "booked": true, "employee": "input.employee", "amount": "input.amount" });
    let entry = Block::new("entry")
        .step(Step::map("book", booked).retry(retry).timeout(Duration::from_secs(3)));
    let prompt = "Write one friendly sentence to {{ input.employee }}: the expense of \
                  {{ input.amount }} was {{ 'approved' if data.approved else 'refused' }}.";
    let built = Workflow::new("expense-approval")
        .name("Expense approval")
        .purpose("Pays small expenses at once and asks a manager about large ones")
        .input_schema(json!({
            "type": "object",
            "required": ["employee", "amount"],
            "properties": {
                "employee": { "type": "string" },
                "amount": { "type": "number", "minimum": 0 },
            },
        }))
        .result(json!({
            "status": "'paid' if steps.manager.approved else 'refused'",
            "amount": "input.amount",
            "by": "steps.manager.by",
        }))
        .then("classify", map(json!({ "large": "input.amount > 500" })))
        .step(
            Step::map(
                "manager",
                json!({
                    "approved": "resume.approved if resume is not none else true",
                    "by": "resume.by | default('manager') if resume is not none else 'policy'",
                }),
            )
            .suspend(suspend)
            .resume_schema(resume_schema),
        )
        .step(Step::all(
            "checks",
            [
                Block::new("ledger").step(Step::when("post", "steps.manager.approved", entry)),
                Block::new("letter").step(Step::agent("write", "assistant").prompt(prompt)),
            ],
        ))
        .compile()
        .unwrap();
    let config = Config::parse(include_str!("../../config.toml"), "config.toml").unwrap();
    let read = &config.workflows["expense-approval"];
    assert_eq!(built.definition, read.definition);
    assert_eq!(built.hash, read.hash);
}

#[test]
fn every_kind_and_key_can_be_built() {
    let options = AgentOptions {
        model: ModelOptions {
            temperature: Some(0.0),
            seed: Some(1),
            stop_sequences: Some(vec!["END".to_owned()]),
            ..ModelOptions::default()
        },
        max_steps: Some(3),
        context_limit: Some(0),
    };
    let schema = json!({ "type": "object" });
    let built = Workflow::new("w")
        .suspend_schema(schema.clone())
        .resume_schema(schema.clone())
        .step(
            Step::tap("log", map(json!(["data", 1])))
                .name("Log")
                .purpose("Keeps a trace")
                .on_error(OnError::Ignore),
        )
        .step(
            Step::race(
                "first",
                [
                    Block::new("slow").step(Step::sleep("nap", Duration::from_millis(1500))),
                    Block::new("fast").then("now", map(json!("1"))),
                ],
            )
            .on_error(OnError::Value(Projection(json!({ "x": "data" })))),
        )
        .step(
            Step::workflow("child", "other")
                .input(json!({ "n": "data" }))
                .suspend(Suspend::always().deadline(Duration::from_secs(1)))
                .retry(Retry::attempts(2)),
        )
        .step(
            Step::agent("ask", "assistant")
                .schema(schema.clone())
                .options(options)
                .input_schema(schema.clone())
                .output_schema(schema.clone())
                .suspend_schema(schema),
        );
    assert_same(
        built,
        r#"
        [workflows.w]
        suspend_schema = { type = "object" }
        resume_schema = { type = "object" }
        steps = [
          { id = "log", name = "Log", purpose = "Keeps a trace", type = "andTap", map = ["data", 1], on_error = "ignore" },
          { id = "first", type = "andRace", blocks = ["slow", "fast"], on_error = { value = { x = "data" } } },
          { id = "child", type = "andWorkflow", workflow = "other", input = { n = "data" }, suspend = { deadline = "1s" }, retry = { attempts = 2 } },
          { id = "ask", type = "andAgent", agent = "assistant", schema = { type = "object" }, options = { seed = 1, temperature = 0, stop_sequences = ["END"], max_steps = 3, context_limit = 0 }, input_schema = { type = "object" }, output_schema = { type = "object" }, suspend_schema = { type = "object" } },
        ]
        blocks.slow = [{ id = "nap", type = "andSleep", duration = "1.5s" }]
        blocks.fast = [{ id = "now", map = "1" }]
        "#,
    );
}

#[test]
fn modifiers_that_do_not_fit_are_refused() {
    let nap = Step::sleep("nap", Duration::from_secs(1)).retry(Retry::attempts(2));
    let workflow = Workflow::new("w")
        .step(Step::all("all", [Block::new("b").step(nap)]).suspend(Suspend::always()))
        .step(Step::tap("tap", run("f")).prompt("x"));
    let problems = workflow.clone().build().unwrap_err();
    let said: Vec<_> =
        problems.iter().map(|it| format!("{}: {}", it.place.join("."), it.message)).collect();
    assert_eq!(
        said,
        [
            "steps.nap.retry: key `retry` does not belong to andSleep",
            "steps.all.suspend: key `suspend` does not belong to andAll",
            "steps.tap.prompt: key `prompt` does not belong to andTap",
        ]
    );
    assert_eq!(workflow.compile().unwrap_err(), problems);
}

#[test]
fn a_builder_refuses_names_that_cannot_be_there() {
    let workflow = Workflow::new("w")
        .result(json!({ "x": "steps.frist" }))
        .step(Step::map("first", json!("dta.x")))
        .step(Step::when("w", "steps.first", Block::new("b").step(Step::map("in", json!("item")))));
    let problems = workflow.clone().compile().unwrap_err();
    let said: Vec<_> =
        problems.iter().map(|it| format!("{}: {}", it.place.join("."), it.message)).collect();
    assert_eq!(
        said,
        [
            "steps.first.map: `dta` is not in scope; data, input, steps, resume, context, user, \
             item, index, execution are; did you mean data?",
            "steps.in.map: `item` is none here: no andForEach is around this",
            "result.x: there is no step frist; did you mean first?",
        ]
    );
    // a stored definition goes on nevertheless
    assert!(Plan::compile(workflow.build().unwrap()).is_ok());
}
