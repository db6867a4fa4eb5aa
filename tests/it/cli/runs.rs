//! Workflows and executions: lists, runs and commands, in every form of the output.

use serde_json::{Value, json};

use super::seat::Seat;

/// Returns the sorted keys of an object.
pub(super) fn keys(value: &Value) -> String {
    let mut keys: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys.join(" ")
}

#[test]
fn workflows_are_listed_and_shown() {
    let seat = Seat::new();
    let listed = seat.run(&["workflows", "list"]);
    assert_eq!(listed.code, 0);
    let lines: Vec<_> = listed.stdout.lines().collect();
    assert_eq!(lines[0], "ID        STEPS  STATUS  PURPOSE");
    assert_eq!(lines[1], "add       2      idle    Adds two");
    assert_eq!(lines.len(), 8);

    let json = seat.json(&["workflows", "list"]);
    assert_eq!(keys(&json[0]), "id name purpose status stepsCount");
    let jsonl = seat.run(&["workflows", "list", "-o", "jsonl"]);
    let rows: Vec<Value> =
        jsonl.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(json, Value::from(rows));

    let shown = seat.run(&["workflows", "show", "fork"]).stdout;
    assert!(
        shown.ends_with(
            "steps\n  both  andAll\n    left: l  andThen\n    right: r  andAgent assistant\n  \
         last  andThen\n"
        ),
        "{shown}"
    );
    let json = seat.json(&["workflows", "show", "add"]);
    let expected = "definitionHash id inputSchema name purpose resumeSchema status steps stepsCount \
        suspendSchema";
    assert_eq!(keys(&json), expected);
}

#[test]
fn a_run_prints_its_result() {
    let seat = Seat::new();
    std::fs::write(seat.path("in.json"), "{\"n\": 40}").unwrap();
    for (input, stdin) in [("{\"n\":40}", ""), ("@in.json", ""), ("-", "{\"n\":40}")] {
        let ran = seat.run_with(&["workflows", "run", "add", "--input", input], stdin);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "{\n  \"n\": 42\n}\n"), "{input}");
    }
    let options = ["--execution-id", "a-1", "--user", "ann", "--context", "{\"k\":1}"];
    let run = ["workflows", "run", "add", "-i", "{\"n\":1}"];
    let state = seat.json(&[&run[..], &options].concat());
    assert_eq!(state["result"], json!({ "n": 3 }));
    assert_eq!((&state["executionId"], &state["userId"]), (&json!("a-1"), &json!("ann")));
    assert_eq!(state["context"]["k"], 1);
    let again = seat.run(&[&run[..], &options].concat());
    assert!(again.stderr.contains("a-1"), "{again:?}");
    assert_eq!(again.code, 1);

    let key = ["--idempotency-key", "k", "--detach"];
    let first = seat.run(&[&run[..], &key].concat());
    assert_eq!(first.code, 0);
    assert_eq!(first.stdout, seat.run(&[&run[..], &key].concat()).stdout);
    let id = first.stdout.trim();
    assert_eq!(first.stderr, format!("it runs: greenroom executions watch {id}\n"));
}

#[test]
fn failures_and_waits_print_their_state_as_json() {
    let seat = Seat::new();
    let run = |workflow: &str| {
        let ran =
            seat.run(&["workflows", "run", workflow, "-i", "{\"who\":\"ann\"}", "-o", "json"]);
        (ran.code, serde_json::from_str::<Value>(&ran.stdout).unwrap())
    };
    let (code, state) = run("failing");
    assert_eq!(
        (code, &state["status"], &state["error"]["stepId"]),
        (1, &json!("error"), &json!("bad"))
    );
    let (code, state) = run("approval");
    assert_eq!((code, &state["suspensions"][0]["stepId"]), (5, &json!("ask")));
}

#[test]
fn executions_are_found_by_their_id_alone() {
    let seat = Seat::new();
    let run = |workflow: &str, id: &str| {
        seat.run(&["workflows", "run", workflow, "-i", "{\"who\":\"ann\"}", "--execution-id", id])
            .code
    };
    assert_eq!(run("approval", "exp-1"), 5);
    assert_eq!(run("approval", "exp-10"), 5);
    assert_eq!(run("echo", "e-1"), 0);

    let listed = seat.run(&["executions", "list", "--status", "suspended"]);
    let lines: Vec<_> = listed.stdout.lines().collect();
    assert!(lines[0].starts_with("ID      WORKFLOW  STATUS     STARTED"), "{listed:?}");
    assert!(lines[1].starts_with("exp-10  approval  suspended  20"), "{listed:?}");
    assert!(lines[1].ends_with("  -      ann asks"), "{listed:?}");
    assert_eq!(lines.len(), 3);
    assert_eq!(seat.json(&["executions", "list", "-n", "2"]).as_array().unwrap().len(), 2);
    let of_echo = seat.json(&["executions", "list", "--workflow", "echo"]);
    assert_eq!(of_echo[0]["executionId"], "e-1");
    let none = seat.run(&["executions", "list", "--status", "error"]);
    assert_eq!(none.stderr, "no executions\n");

    let shown = seat.run(&["executions", "show", "exp-1"]).stdout;
    for part in [
        "execution  exp-1\n",
        "workflow   approval\n",
        "waits for  ann asks\n",
        "input      {\"who\":\"ann\"}\n",
        "\nSTEP  STATUS     ATTEMPTS  TOOK  OUTPUT\nask   suspended  0         -\n",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    assert_eq!(seat.json(&["executions", "show", "exp-10"])["executionId"], "exp-10");

    let resumed = seat.run(&["executions", "resume", "exp-1", "-d", "{\"approved\":true}"]);
    assert_eq!((resumed.code, resumed.stdout.as_str()), (0, "{\n  \"approved\": true\n}\n"));
    let cancelled =
        seat.run(&["executions", "cancel", "exp-10", "--reason", "late", "--user", "ann"]);
    assert_eq!((cancelled.code, cancelled.stdout.as_str()), (0, "approval exp-10 is cancelled\n"));
    let state = seat.json(&["executions", "show", "exp-10"]);
    assert_eq!(
        (&state["status"], &state["cancelledBy"]["id"]),
        (&json!("cancelled"), &json!("ann"))
    );
}

#[test]
fn a_pause_is_lifted() {
    let seat = Seat::new();
    let detached = ["workflows", "run", "nap", "--detach", "--execution-id", "n-1"];
    assert_eq!(seat.run(&detached).stdout, "n-1\n");
    let paused = seat.run(&["executions", "suspend", "n-1", "--reason", "not now"]);
    assert_eq!(paused.stdout, "nap n-1 pauses; running steps finish\n");
    let state =
        seat.server.state_when("nap", "n-1", |state| state["suspensions"][0]["pause"] == true);
    assert_eq!(state["suspensions"][0]["reason"], "not now");
}

#[test]
fn control_characters_of_a_server_do_not_reach_the_terminal() {
    let seat = Seat::new();
    let evil = "{\"who\":\"\\u001b]0;owned\\u0007\\u009b31m\\u202e\"}";
    let mut command = seat.command(&["workflows", "run", "approval", "-i", evil]);
    command.env("CLICOLOR_FORCE", "1");
    let ran = seat.end(command);
    assert_eq!(ran.code, 5);
    for arguments in [
        &["executions", "list"][..],
        &["executions", "list", "-o", "json"],
        &["workflows", "run", "echo", "-i", evil],
        &["workflows", "run", "echo", "--watch", "-o", "jsonl", "-i", evil],
    ] {
        let ran = seat.run(arguments);
        let shown = [ran.stdout, ran.stderr].concat();
        assert!(shown.contains("owned"), "{arguments:?}: {shown}");
        let harmful = ['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}'];
        assert!(!shown.contains(harmful), "{arguments:?}: {shown:?}");
    }
    assert!(!ran.stderr.contains("\u{1b}]"), "{ran:?}");
}

#[test]
fn colours_are_for_terminals_or_forced() {
    let seat = Seat::new();
    let run = |variables: &[(&str, &str)]| {
        let mut command = seat.command(&["workflows", "run", "add", "-w", "-i", "{\"n\":1}"]);
        command.envs(variables.iter().copied());
        seat.end(command).stdout.contains("\u{1b}[32m")
    };
    assert!(!run(&[]));
    assert!(run(&[("CLICOLOR_FORCE", "1")]));
}

/// A workflow that fails after a step whose compensation then runs.
const ORDERED: &str = r#"
[workflows.ordered]
steps = [
    { id = "sort", map = 1 },
    { id = "hold", map = 2, compensate = { workflow = "freed", input = 2 } },
    { id = "close", map = "data.missing.thing" },
]

[workflows.freed]
steps = [{ id = "free", map = "data" }]
"#;

#[test]
fn a_replay_names_its_execution_at_once_and_can_be_left() {
    let seat = Seat::new();
    seat.run(&["workflows", "run", "nap", "--detach", "--execution-id", "n"]);
    let replay = |id, more: &[&str]| {
        let named = ["executions", "replay", "n", "--step", "nap", "--execution-id", id];
        seat.run(&[&named, more].concat())
    };
    let left = replay("m", &["--detach"]);
    let says = "m begins at nap\nit runs: greenroom executions watch m\n";
    assert_eq!((left.code, &*left.stdout, &*left.stderr), (0, "m\n", says));
    let late = replay("o", &["--timeout", "1s"]);
    assert_eq!(late.code, 124, "{late:?}");
    assert!(late.stderr.starts_with("o begins at nap\n"), "{late:?}");
    assert!(late.stderr.contains("execution o continues at the server"), "{late:?}");
}

#[test]
fn the_advised_replay_begins_before_what_was_undone() {
    let seat = Seat::with(ORDERED);
    let failed = seat.run(&["workflows", "run", "ordered", "--execution-id", "o"]);
    let advice = "again from the first step that was undone: greenroom executions replay o\n";
    assert!(failed.stderr.contains(advice), "{failed:?}");
    let again = seat.run(&["executions", "replay", "o", "--execution-id", "p"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.starts_with("p begins at hold\n"), "{again:?}");
    let many = seat.run(&["executions", "bulk", "replay", "--id", "p", "--yes"]);
    assert_eq!(many.code, 0, "{many:?}");
}
