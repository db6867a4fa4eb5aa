//! The inbox, and executions that wait, fail and run again.

use serde_json::{Value, json};

use super::runs::keys;
use super::seat::Seat;

const ANN: &str = "{\"who\":\"ann\"}";

/// Starts an execution that waits, and returns the id of its ask.
fn asked(seat: &Seat, id: &str) -> String {
    let run = ["workflows", "run", "approval", "-i", ANN, "--execution-id", id];
    assert_eq!(seat.run(&run).code, 5);
    let asks = seat.json(&["inbox", "list", "--workflow", "approval"]);
    let of = |ask: &&Value| ask["of"]["executionId"] == id;
    let ask = asks.as_array().unwrap().iter().find(of).unwrap();
    ask["askId"].as_str().unwrap().to_owned()
}

#[test]
fn asks_are_listed_claimed_and_answered() {
    let seat = Seat::new();
    let none = seat.run(&["inbox", "list"]);
    assert_eq!((none.code, none.stderr.as_str()), (0, "nothing waits for a person\n"));
    let ask = asked(&seat, "x-1");
    let listed = seat.run(&["inbox", "list"]).stdout;
    let line = listed.lines().nth(1).unwrap();
    assert!(line.starts_with(&format!("{ask}  step  open   20")), "since when: {listed}");
    assert!(line.ends_with("x-1 ask  ann asks"), "{listed}");

    let shown = seat.run(&["inbox", "show", &ask]).stdout;
    assert!(shown.contains("shows          {\"who\":\"ann\"}\n"), "{shown}");
    let how = format!("to answer: greenroom inbox answer {ask} --approve, or --refuse\n");
    assert!(shown.ends_with(&how), "{shown}");
    let expected = "askId claimedBy claimedUntil closedAt deadline form kind of openedAt payload \
        reason revision schema state to userId";
    assert_eq!(keys(&seat.json(&["inbox", "show", &ask])), expected);

    let claimed = seat.run(&["inbox", "claim", &ask, "--for", "5m", "--user", "lea"]);
    assert!(claimed.stdout.contains("claimed by     lea\n"), "{claimed:?}");
    for (filter, found) in [
        (&["--kind", "step"][..], 1),
        (&["--kind", "compensation"], 0),
        (&["--claimed"], 1),
        (&["--claimed", "false"], 0),
        // it has no deadline
        (&["--due", "2999-01-01"], 0),
    ] {
        let listed = seat.json(&[&["inbox", "list"], filter].concat());
        assert_eq!(listed.as_array().unwrap().len(), found, "{filter:?}");
    }
    let refused = seat.run(&["inbox", "list", "--due", "soon"]);
    assert!(refused.code != 0 && refused.stderr.contains("due"), "{refused:?}");
    let late = seat.run(&["inbox", "answer", &ask, "--approve", "--user", "bob"]);
    assert_eq!(late.code, 1);
    assert!(late.stderr.contains("lea is about to answer"), "{late:?}");
    assert_eq!(seat.run(&["inbox", "release", &ask, "--user", "lea"]).code, 0);
    let answered = seat.json(&["inbox", "answer", &ask, "--approve", "--user", "bob"]);
    assert_eq!(answered["data"], json!({ "approved": true }));
    assert_eq!(answered["answeredBy"]["id"], "bob");
    assert_eq!(seat.run(&["executions", "watch", "x-1"]).code, 0);
    let closed = seat.json(&["inbox", "list", "--state", "closed"]);
    assert_eq!(closed[0]["state"], "answered");
    let all = seat.run(&["inbox", "list", "--state", "all"]).stdout;
    let head: Vec<&str> = all.lines().next().unwrap().split_whitespace().collect();
    let expected = "ASK KIND STATE SINCE DEADLINE CLOSED ASKS OF REASON";
    assert_eq!(head.join(" "), expected, "{all}");
    assert!(all.lines().nth(1).unwrap().contains("  -         20"), "closed, no deadline: {all}");
}

#[test]
fn an_answer_says_what_came_of_it() {
    let seat = Seat::new();
    let ask = asked(&seat, "x-1");
    let answered = seat.run(&["inbox", "answer", &ask, "--approve"]);
    let expected = "approval x-1 is completed: greenroom executions show x-1\n";
    assert_eq!((answered.code, answered.stderr.as_str()), (0, expected));
}

#[test]
fn a_resume_shows_what_follows() {
    let seat = Seat::new();
    asked(&seat, "x-1");
    let resume = ["executions", "resume", "x-1", "--watch", "-d"];
    let refused = seat.run(&[&resume[..], &["{\"approved\":1}"]].concat());
    assert_eq!(refused.code, 2);
    let resumed = seat.run(&[&resume[..], &["{\"approved\":true}"]].concat());
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(!resumed.stdout.contains("workflow-start\n"), "what was before: {resumed:?}");
    assert!(resumed.stdout.contains("  step-complete       after\n"), "{resumed:?}");
    assert!(resumed.stdout.ends_with("{\n  \"approved\": true\n}\n"), "{resumed:?}");
}

#[test]
fn a_resume_that_is_repeated_with_its_key_ends_where_the_execution_waits() {
    let seat = Seat::with(
        "[workflows.twice]
steps = [
    { id = \"one\", map = 1, suspend = { reason = \"first\" } },
    { id = \"two\", map = 2, suspend = { reason = \"second\" } },
]
",
    );
    assert_eq!(seat.run(&["workflows", "run", "twice", "--execution-id", "t-1"]).code, 5);
    let resume = ["executions", "resume", "t-1", "--watch", "--idempotency-key", "k"];
    let first = seat.run(&resume);
    assert_eq!(first.code, 5, "{first:?}");
    assert!(first.stdout.contains("  step-complete       one\n"), "{first:?}");
    let again = seat.run(&resume);
    assert_eq!((again.code, again.stdout.as_str()), (5, ""), "{again:?}");
    assert!(again.stderr.contains("waits: second"), "{again:?}");
    assert_eq!(seat.run(&["executions", "resume", "t-1", "--watch"]).code, 0);
    let ended = seat.run(&resume);
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "2\n"), "{ended:?}");
}

#[test]
fn a_start_that_is_repeated_with_its_key_follows_what_runs_again() {
    let seat = Seat::with(
        "[workflows.slow]
steps = [
    { id = \"one\", map = 1, suspend = { reason = \"first\" } },
    { id = \"two\", type = \"andSleep\", duration = \"1h\" },
]
",
    );
    let run =
        ["workflows", "run", "slow", "--idempotency-key", "k", "--timeout", "4s", "-o", "json"];
    let first: Value = serde_json::from_str(&seat.run(&run).stdout).unwrap();
    let id = first["executionId"].as_str().unwrap();
    assert_eq!(first["status"], "suspended");
    let resumed = seat.run(&["executions", "resume", id, "--timeout", "4s"]);
    assert_eq!(resumed.code, 124, "{resumed:?}");
    let again = seat.run(&run);
    assert_eq!(again.code, 124, "it runs, whatever it waited for before: {again:?}");
}

#[test]
fn one_command_changes_many_executions() {
    let seat = Seat::new();
    for id in ["x-1", "x-2"] {
        asked(&seat, id);
    }
    let bulk = |options: &[&str]| seat.run(&[&["executions", "bulk"], options].concat());
    let select = ["cancel", "--workflow", "approval"];
    let refused = bulk(&select);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("only after a question or with --yes"), "{refused:?}");
    let all = bulk(&["cancel", "--yes"]);
    assert_eq!(all.code, 2);
    assert!(all.stderr.contains("name the executions either with filters"), "{all:?}");
    let dry = bulk(&[&select[..], &["--dry-run"]].concat());
    assert_eq!((dry.code, dry.stdout.lines().next()), (0, Some("2 would be cancelled")));
    assert_eq!(seat.json(&["executions", "show", "x-1"])["status"], "suspended");

    let key = ["--yes", "--idempotency-key", "k", "--by", "ann", "-o", "json"];
    let done = [&select[..], &key].concat();
    let first: Value = serde_json::from_str(&bulk(&done).stdout).unwrap();
    assert_eq!((&first["result"]["done"], &first["status"]), (&json!(2), &json!("completed")));
    let again: Value = serde_json::from_str(&bulk(&done).stdout).unwrap();
    assert_eq!(again["executionId"], first["executionId"]);
    assert_eq!(seat.json(&["executions", "show", "x-2"])["cancelledBy"]["id"], "ann");
    let nothing = bulk(&["cancel", "--yes", "--status", "suspended"]);
    assert_eq!(nothing.code, 1);
    assert!(nothing.stderr.contains("the filters select no execution"), "{nothing:?}");
    let partly = bulk(&["cancel", "--yes", "--id", "x-1", "--id", "none"]);
    assert_eq!(partly.code, 1);
    assert!(partly.stderr.contains("\n  none: execution not found\n"), "{partly:?}");
    let detached = bulk(&[&select[..], &["--yes", "--detach"]].concat());
    assert_eq!(seat.run(&["executions", "watch", detached.stdout.trim()]).code, 0);
}

#[test]
fn answers_that_do_not_fit_change_nothing() {
    let seat = Seat::new();
    let ask = asked(&seat, "x-1");
    let rows: &[(&[&str], i32, &str)] = &[
        (
            &["answer", &ask, "-d", "{\"approved\":1}"],
            2,
            &format!("`greenroom inbox show {ask}` has the schema"),
        ),
        (&["answer", &ask, "-d", "{"], 2, "--data: not JSON"),
        (&["answer", &ask], 2, "--data <JSON>|--approve|--refuse"),
        (&["answer", &ask, "--approve", "--refuse"], 2, "cannot be used with"),
        (&["answer", "ask_0", "--approve"], 3, "`greenroom inbox list --state all` shows them"),
        (&["show", "ask_0"], 3, "Ask ask_0 not found"),
    ];
    for (arguments, code, says) in rows {
        let ran = seat.run(&[&["inbox"], *arguments].concat());
        assert_eq!(ran.code, *code, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(says), "{arguments:?}: {ran:?}");
    }
    assert_eq!(seat.json(&["inbox", "show", &ask])["state"], "open");
}

#[test]
fn an_execution_says_why_it_waits_and_how_it_ended() {
    let seat = Seat::new();
    let ask = asked(&seat, "x-1");
    let why = seat.run(&["executions", "why", "x-1"]).stdout;
    let lines: Vec<_> = why.lines().collect();
    assert_eq!(lines[..3], ["approval x-1 is suspended", "", "waits for a resume: ann asks"]);
    assert!(why.contains(&format!("\n  ask     greenroom inbox show {ask}\n")), "{why}");
    assert!(why.contains("\n  needs   resume: a resume with the requested data\n"), "{why}");

    let run = ["workflows", "run", "failing", "--execution-id", "f-1"];
    assert_eq!(seat.run(&run).code, 1);
    let why = seat.run(&["executions", "why", "f-1"]).stdout;
    assert!(why.contains("  failed at bad: "), "{why}");
    assert!(why.ends_with("  greenroom executions replay f-1 --step bad\n"), "{why}");
    let json = seat.json(&["executions", "why", "f-1"]);
    assert_eq!(json["ended"]["replayFrom"], json!(["fine", "bad"]));
}

#[test]
fn what_children_wait_for_is_said_of_their_parent() {
    let seat = Seat::with(
        "[workflows.outer]
steps = [{ id = \"o\", type = \"andWorkflow\", workflow = \"middle\" }]
[workflows.middle]
steps = [{ id = \"m\", type = \"andWorkflow\", workflow = \"approval\" }]
",
    );
    let run = ["workflows", "run", "outer", "-i", ANN, "--execution-id", "o-1"];
    assert_eq!(seat.run(&run).code, 5);
    let why = seat.run(&["executions", "why", "o-1"]).stdout;
    let children: Vec<_> = why.lines().filter(|line| line.starts_with("  child ")).collect();
    let [middle, inner] = children[..] else { panic!("{why}") };
    assert!(middle.starts_with("  child   middle ") && middle.contains(" at m: "), "{why}");
    assert!(inner.starts_with("  child   approval "), "{why}");
    assert!(inner.ends_with(" at ask: waits for a resume: ann asks"), "{why}");
    let id =
        seat.json(&["executions", "why", "o-1"])["waitsFor"][0]["child"]["executionId"].clone();
    let resume = format!("  greenroom executions resume {} --data JSON\n", id.as_str().unwrap());
    assert!(why.contains(&resume), "{why}");
}

#[test]
fn events_are_listed_from_any_number_on() {
    let seat = Seat::new();
    let run = ["workflows", "run", "add", "-i", "{\"n\":1}", "--execution-id", "a-1"];
    assert_eq!(seat.run(&run).code, 0);
    let events = seat.json(&["executions", "events", "a-1"]);
    let types: Vec<_> = events.as_array().unwrap().iter().map(|it| it["type"].as_str()).collect();
    assert_eq!(types.len(), 7);
    assert_eq!((types[0], types[6]), (Some("workflow-start"), Some("workflow-result")));
    let some = seat.json(&["executions", "events", "a-1", "--after", "2", "-n", "3"]);
    assert_eq!(some.as_array().unwrap()[..], events.as_array().unwrap()[2..5]);
    let table = seat.run(&["executions", "events", "a-1", "-n", "2"]).stdout;
    assert!(table.starts_with("NUMBER  TIME "), "{table}");
    assert!(table.ends_with("  step-start      one\n"), "{table}");
}

#[test]
fn an_execution_runs_again_from_the_middle() {
    let seat = Seat::new();
    asked(&seat, "x-1");
    assert_eq!(seat.run(&["executions", "resume", "x-1", "-d", "{\"approved\":true}"]).code, 0);
    let again = ["executions", "replay", "x-1", "--step", "ask", "--execution-id", "x-2"];
    let replayed = seat.run(&[&again[..], &["-d", "{\"approved\":false}"]].concat());
    assert_eq!((replayed.code, replayed.stdout.as_str()), (0, "{\n  \"approved\": false\n}\n"));
    let state = seat.json(&["executions", "show", "x-2"]);
    assert_eq!(state["replayedFrom"]["executionId"], "x-1");
    assert_eq!(
        seat.json(&["executions", "list", "--replay-of", "x-1"]).as_array().unwrap().len(),
        1
    );
    assert_eq!(seat.json(&["executions", "list", "--via", "mcp:desk"]), json!([]));
    let refused = seat.run(&["executions", "list", "--via", "rest"]);
    assert!(refused.stderr.contains("via: must be openai, mcp, or mcp: and"), "{refused:?}");

    let run = ["workflows", "run", "failing", "--execution-id", "f-1"];
    assert_eq!(seat.run(&run).code, 1);
    let failed = seat.run(&["executions", "replay", "f-1", "--execution-id", "f-2"]);
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("greenroom: failing f-2 failed at bad: "), "{failed:?}");
    let unknown = seat.run(&["executions", "replay", "f-1", "--step", "nope"]);
    assert_eq!(unknown.code, 2);
    assert!(
        unknown.stderr.contains("`greenroom executions show f-1` has its steps"),
        "{unknown:?}"
    );
}
