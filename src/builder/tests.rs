//! Definitions from Rust, compared with the same ones from a file.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom_actors::domain::definition::StepDefinition;
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::ports::model::ModelOptions;
use serde_json::json;

use super::{
    Block, Command, Http, HttpMethod, Mapping, OnError, Retry, Step, Suspend, Workflow, command,
    http, map, run, tool,
};
use crate::config::workflows::kind;
use crate::config::{AgentOptions, Config};

const ONE_SECOND: Duration = Duration::from_secs(1);

const MODEL: &str = "[models.offline]\nprovider = \"rehearsal\"\n[agents.assistant]\nmodel = \
                     \"offline\"\n[workflows.other]\nsteps = [{ id = \"a\", map = 1 }]\n";

/// Asserts that a workflow equals the one with its id in a file.
#[track_caller]
fn assert_same(workflow: Workflow, text: &str) {
    let built = workflow.compile().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    std::fs::write(&path, format!("{MODEL}{text}")).unwrap();
    // functions are registered later
    let config = Config::load_open(&path).unwrap();
    let read = &config.workflows[&built.definition.id];
    assert_eq!(built.definition, read.definition);
    assert_eq!(built.hash, read.hash);
}

fn approval() -> Workflow {
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
    let book = Step::then("book", map(booked)).retry(retry).timeout(Duration::from_secs(3));
    let entry = Block::new("entry").step(book);
    let prompt = "Write one friendly sentence to {{ input.employee }}: the expense of \
                  {{ input.amount }} was {{ 'approved' if data.approved else 'refused' }}.";
    Workflow::new("expense-approval")
        .name("Expense approval")
        .purpose("Pays small expenses at once and asks a manager about large ones")
        .input_schema(json!({
            "type": "object",
            "required": ["employee", "amount"],
            "properties": {
                "employee": { "type": "string" },
                "amount": { "type": "number", "minimum": 0 },
            },
            "examples": [{ "employee": "Ada", "amount": 900 }],
        }))
        .result(json!({
            "status": "'paid' if steps.manager.approved else 'refused'",
            "amount": "input.amount",
            "by": "steps.manager.by",
        }))
        .then("classify", map(json!({ "large": "input.amount > 500" })))
        .step(
            Step::then(
                "manager",
                map(json!({
                    "approved": "resume.approved if resume is not none else true",
                    "by": "resume.by | default('manager') if resume is not none else 'policy'",
                })),
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
}

#[test]
fn the_shipped_approval_can_be_built() {
    let built = approval().compile().unwrap();
    let config = Config::parse(include_str!("../../config.toml"), "config.toml").unwrap();
    let read = &config.workflows["expense-approval"];
    assert_eq!(built.definition, read.definition);
    assert_eq!(built.hash, read.hash);
}

fn spine() -> Workflow {
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
    Workflow::new("w")
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
            .on_error(OnError::Value(Mapping(json!({ "x": "data" })))),
        )
        .step(
            Step::workflow("child", "other")
                .input(json!({ "n": "data" }))
                .suspend(
                    Suspend::always()
                        .deadline(Duration::from_secs(1))
                        .to(["role:manager", "user:{{ data }}", "!self"])
                        .remind([Duration::from_millis(200), Duration::from_millis(400)])
                        .escalate(Duration::from_millis(300), ["role:director"]),
                )
                .retry(Retry::attempts(2)),
        )
        .step(
            Step::agent("ask", "assistant")
                .schema(schema.clone())
                .options(options)
                .input_schema(schema.clone())
                .output_schema(schema.clone())
                .suspend_schema(schema),
        )
}

#[test]
fn every_key_can_be_built() {
    assert_same(
        spine(),
        r#"
        [workflows.w]
        suspend_schema = { type = "object" }
        resume_schema = { type = "object" }
        steps = [
          { id = "log", name = "Log", purpose = "Keeps a trace", type = "andTap", map = ["data", 1], on_error = "ignore" },
          { id = "first", type = "andRace", blocks = ["slow", "fast"], on_error = { value = { x = "data" } } },
          { id = "child", type = "andWorkflow", workflow = "other", input = { n = "data" }, suspend = { deadline = "1s", to = ["role:manager", "user:{{ data }}", "!self"], remind = ["200ms", "400ms"], escalate = { after = "300ms", to = ["role:director"] } }, retry = { attempts = 2 } },
          { id = "ask", type = "andAgent", agent = "assistant", schema = { type = "object" }, options = { seed = 1, temperature = 0, stop_sequences = ["END"], max_steps = 3, context_limit = 0 }, input_schema = { type = "object" }, output_schema = { type = "object" }, suspend_schema = { type = "object" } },
        ]
        blocks.slow = [{ id = "nap", type = "andSleep", duration = "1.5s" }]
        blocks.fast = [{ id = "now", map = "1" }]
        "#,
    );
}

/// Returns a workflow with the kinds and bodies that the others lack, with all their keys.
fn rest() -> Workflow {
    let tell = Step::tap("tell", tool("note")).args(json!({ "text": "item" }));
    let charge = Block::new("charge").then("pay", run("pay")).step(tell);
    let small =
        Block::new("small").step(Step::map("at-once", json!({ "n": "data[0].n", "ok": true })));
    let large = Block::new("large").then("note-it", tool("note"));
    let round = Block::new("round").step(Step::map("more", json!("data + 1")).timeout(ONE_SECOND));
    let poll = Block::new("poll").step(Step::sleep_until("pause", "input.at"));
    let call = Http::new(HttpMethod::Put, "https://ledger.example/{{ input.id }}")
        .header("x-kind", "{{ input.kind }}")
        .query("tag", json!(["input.kind", 1]))
        .body(json!({ "amount": "input.amount" }));
    let program = Command::new("sort")
        .args(["-n", "--key={{ input.key }}"])
        .input(json!({ "all": "data" }))
        .env("LC_ALL", "C")
        .cwd("/tmp")
        .memory_bytes_max(1 << 24)
        .output_bytes_max(1000);
    Workflow::new("w")
        .name("All of them")
        .step(Step::for_each("each", json!("input.orders"), charge).concurrency(4))
        .step(Step::branch("size", [("data[0].n < 10", small)]).otherwise(large))
        .step(Step::do_while("again", round, "data < 3", 5))
        .step(Step::do_until("done", poll, "data == 3", 7))
        .step(
            Step::map("answer", json!("resume"))
                .suspend(Suspend::when("data > 1"))
                .suspend_schema(json!({ "type": "null" }))
                .resume_schema(json!({ "type": "number" }))
                .retry(Retry::attempts(2)),
        )
        .then("book", http(call))
        .then("look", http(Http::get("https://ledger.example/")))
        .step(Step::then("sort", command(program)).on_error(OnError::Ignore))
}

#[test]
fn every_container_and_body_can_be_built() {
    assert_same(
        rest(),
        r#"
        [tools.note]
        kind = "http"
        method = "POST"
        description = "Keeps a note"
        parameters = { type = "object" }
        url = "https://notes.example/"
        [workflows.w]
        name = "All of them"
        steps = [
          { id = "each", type = "andForEach", items = "input.orders", block = "charge", concurrency = 4 },
          { id = "size", type = "andBranch", cases = [{ when = "data[0].n < 10", block = "small" }], default = "large" },
          { id = "again", type = "andDoWhile", block = "round", when = "data < 3", max_iterations = 5 },
          { id = "done", type = "andDoUntil", block = "poll", when = "data == 3", max_iterations = 7 },
          { id = "answer", type = "andMap", map = "resume", suspend = { when = "data > 1" }, suspend_schema = { type = "null" }, resume_schema = { type = "number" }, retry = { attempts = 2 } },
          { id = "book", http = { method = "PUT", url = "https://ledger.example/{{ input.id }}", headers = { x-kind = "{{ input.kind }}" }, query = { tag = ["input.kind", 1] }, body = { amount = "input.amount" } } },
          { id = "look", http = { url = "https://ledger.example/" } },
          { id = "sort", command = { argv = ["sort", "-n", "--key={{ input.key }}"], input = { all = "data" }, env = { LC_ALL = "C" }, cwd = "/tmp", memory_bytes_max = 16777216, output_bytes_max = 1000 }, on_error = "ignore" },
        ]
        blocks.charge = [{ id = "pay", run = "pay" }, { id = "tell", type = "andTap", tool = "note", args = { text = "item" } }]
        blocks.small = [{ id = "at-once", type = "andMap", map = { n = "data[0].n", ok = true } }]
        blocks.large = [{ id = "note-it", tool = "note" }]
        blocks.round = [{ id = "more", type = "andMap", map = "data + 1", timeout = "1s" }]
        blocks.poll = [{ id = "pause", type = "andSleepUntil", until = "input.at" }]
        "#,
    );
}

#[test]
fn every_kind_is_built() {
    fn collect(steps: &[StepDefinition], found: &mut BTreeSet<&'static str>) {
        for step in steps {
            found.insert(step.kind.name());
            step.kind.blocks().iter().for_each(|block| collect(&block.steps, found));
        }
    }
    let mut found = BTreeSet::new();
    for workflow in [approval(), spine(), rest()] {
        collect(&workflow.build().unwrap().steps, &mut found);
    }
    assert_eq!(found, kind::names().collect());
}

#[test]
fn modifiers_that_do_not_fit_are_refused() {
    let nap = Step::sleep("nap", Duration::from_secs(1)).retry(Retry::attempts(2));
    let workflow = Workflow::new("w")
        .step(Step::all("all", [Block::new("b").step(nap)]).suspend(Suspend::always()))
        .step(Step::tap("tap", run("f")).prompt("x"))
        .step(Step::then("then", run("f")).args(json!(1)))
        .retention(Duration::ZERO);
    let problems = workflow.clone().build().unwrap_err();
    let said: Vec<_> =
        problems.iter().map(|it| format!("{}: {}", it.place.join("."), it.message)).collect();
    assert_eq!(
        said,
        [
            "steps.nap.retry: key `retry` does not belong to andSleep",
            "steps.all.suspend: key `suspend` does not belong to andAll",
            "steps.tap.prompt: key `prompt` does not belong to andTap",
            "steps.then.args: is only valid beside `tool`",
            "retention: must be longer than 0ms",
        ]
    );
    assert_eq!(workflow.compile().unwrap_err(), problems);
}

#[test]
fn a_builder_refuses_undefined_names() {
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
            "steps.first.map: `dta` is not in scope; in scope: data, input, steps, resume, \
             resumed_by, context, user, \
             execution; did you mean data?",
            "steps.in.map: `item` is none here: this is not inside an andForEach",
            "result.x: there is no step frist; did you mean first?",
        ]
    );
    // a stored definition still compiles
    assert!(Plan::compile(workflow.build().unwrap()).is_ok());
}
