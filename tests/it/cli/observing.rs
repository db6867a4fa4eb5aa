//! Agents, the log and traces.

use std::io::{BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::json;

use super::runs::keys;
use super::seat::{Ran, Seat};
use super::watching::{ended, pty, signal, until};
use support::eventually;

#[test]
fn agents_are_listed_and_shown() {
    let seat = Seat::new();
    let listed = seat.run(&["agents", "list"]).stdout;
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!(lines[0], "ID         STATUS  MODEL    TOOLS  DESCRIPTION");
    assert_eq!(lines[1], "assistant  idle    offline  2      Answers");
    let shown = seat.run(&["agents", "show", "assistant"]).stdout;
    assert!(shown.contains("memory       yes\n"), "{shown}");
    assert!(shown.ends_with("tools\n  add  Adds two\n  pay  Pays\n"), "{shown}");
    let unknown = seat.run(&["agents", "show", "asistant"]);
    assert_eq!(unknown.code, 3);
    assert!(unknown.stderr.contains("did you mean assistant?"), "{unknown:?}");
}

#[test]
fn an_agent_answers_once() {
    let seat = Seat::new();
    let text =
        |input: &str, stdin: &str| seat.run_with(&["agents", "run", "silent", input], stdin).stdout;
    assert_eq!(text("say hello", ""), text("-", "say hello"));
    let answer = seat.json(&["agents", "run", "silent", "say hello"]);
    assert_eq!(keys(&answer), "finishReason text toolCalls toolResults usage");
    assert_eq!(format!("{}\n", answer["text"].as_str().unwrap()), text("say hello", ""));
    let tool = seat.run(&["agents", "run", "assistant", "ADD"]);
    assert!(tool.stderr.starts_with("[add {\"n\":"), "{tool:?}");
    let jsonl = seat.run(&["agents", "run", "silent", "hello", "-o", "jsonl"]).stdout;
    assert!(jsonl.starts_with("{\"type\":\"start\","), "{jsonl}");

    let waits = seat.run(&["agents", "run", "payer", "PAY"]);
    assert_eq!(waits.code, 5);
    assert!(waits.stderr.contains("the agent waits: Pay "), "{waits:?}");
    assert!(waits.stderr.contains("--approve, or --refuse"), "{waits:?}");
    let ran = seat.run(&["agents", "run", "payer", "PAY", "-o", "json"]);
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("come back: greenroom agents watch payer "), "{ran:?}");
}

#[test]
fn an_answer_that_waited_is_read_later() {
    let seat = Seat::new();
    let waits = seat.run(&["agents", "run", "payer", "PAY"]);
    let word_after = |part: &str| {
        let rest = waits.stderr.split(part).nth(1).unwrap();
        rest.split_whitespace().next().unwrap().to_owned()
    };
    let (ask, id) = (word_after("inbox answer "), word_after("agents watch payer "));
    let watch = ["agents", "watch", "payer", &id];
    let still = seat.run(&watch);
    assert_eq!(still.code, 5);
    assert_eq!(
        still.stderr,
        waits
            .stderr
            .split_once("greenroom: ")
            .map(|(_, rest)| format!("greenroom: {rest}"))
            .unwrap()
    );
    let answered = seat.run(&["inbox", "answer", &ask, "--approve"]);
    let expected = format!("it continues: greenroom agents watch payer {id}\n");
    assert_eq!((answered.code, answered.stderr), (0, expected));
    let read = seat.run(&watch);
    assert_eq!(read.code, 0, "{read:?}");
    assert!(!read.stdout.is_empty());
    assert_eq!(seat.json(&watch)["status"], "completed");
    assert_eq!(seat.run(&["agents", "watch", "payer", "none"]).code, 3);

    let chat = ["agents", "chat", "payer"];
    let piped = seat.run_with(&chat, "PAY\n");
    assert_eq!(piped.code, 5);
    assert!(piped.stderr.contains("with --conversation ID the server keeps"), "{piped:?}");
}

#[test]
fn a_person_at_a_terminal_is_asked_in_the_chat() {
    let seat = Seat::new();
    let (mut keyboard, terminal) = pty();
    let mut command = seat.command(&["agents", "chat", "payer"]);
    let child = seat.spawn(command.stdin(Stdio::from(terminal)));
    keyboard.write_all(b"PAY\nwhat?\ny\nhello\n\x04").unwrap();
    let Ran { code, stdout, stderr } = ended(child);
    drop(keyboard);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout.matches("approve? y, n, or n REASON: ").count(), 2, "{stdout}");
    assert!(stderr.contains("the agent waits: Pay 4\n  pay {"), "{stderr}");
    // both messages have an answer, and the second one belongs to the same conversation
    let history = seat.server.get("/agents/payer/history?limit=2").data();
    let entries = history["entries"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["status"] == "completed"), "{history}");
    assert_eq!(entries[0]["input"].as_array().map(Vec::len), Some(3), "{history}");
}

#[test]
fn an_agent_makes_an_object() {
    let seat = Seat::new();
    let schema = "{\"type\":\"object\",\"required\":[\"age\"],\"properties\":{\"age\":{\"type\":\"integer\"}}}";
    let object = seat.json(&["agents", "object", "silent", "Ada is 36", "--schema", schema]);
    assert!(object["age"].is_i64(), "{object}");
    let bad = seat.run(&["agents", "object", "silent", "x", "--schema", "{\"type\":7}"]);
    assert_eq!(bad.code, 2);
    assert!(bad.stderr.contains("\n  request "), "{bad:?}");
}

#[test]
fn a_conversation_is_a_line_after_the_other() {
    let seat = Seat::new();
    let lines = "my name is Ada\n\nADD\n";
    let chat = seat.run_with(&["agents", "chat", "assistant"], lines);
    assert_eq!(chat.code, 0, "{chat:?}");
    assert_eq!(chat.stdout.lines().count(), 2);
    let stored = ["agents", "chat", "assistant", "--conversation", "c-1", "--user", "ada"];
    assert_eq!(seat.run_with(&stored, lines).code, 0);
    let path = "/api/memory/conversations/c-1/messages?agentId=assistant&userId=ada";
    assert_eq!(seat.server.get(path).data()["messages"].as_array().unwrap().len(), 4);
    assert_eq!(seat.run_with(&["agents", "chat", "nobody"], "hello\n").code, 3);
    let latin = seat.run_with(&["agents", "chat", "assistant"], b"hello\nf\xfcr Ada\nhello\n");
    assert_eq!((latin.code, latin.stdout.lines().count()), (2, 1), "{latin:?}");
    assert_eq!(latin.stderr, "greenroom: stdin: a line is not UTF-8\n");
}

#[test]
fn the_log_is_listed_and_followed() {
    let seat = Seat::new();
    let listed = eventually("two lines of the log", || {
        let listed = seat.json(&["logs", "-n", "2"]);
        (listed.as_array().unwrap().len() == 2).then_some(listed)
    });
    assert_eq!(keys(&listed[0]), "component level msg timestamp");
    let too_many = seat.run(&["logs", "-n", "1001"]);
    assert_eq!(too_many.code, 2);
    assert!(too_many.stderr.contains("1001 is not in 0..=1000"), "{}", too_many.stderr);
    let mut child = seat.spawn(&mut seat.command(&["logs", "--follow", "--agent", "payer"]));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(seat.run(&["agents", "run", "payer", "PAY"]).code, 5);
    let line = until(&mut stdout, "waits for people");
    assert!(line.contains("  info   agent payer: generation "), "{line}");
    assert!(line.ends_with("  agentId=payer\n"), "{line}");
    signal(&child, "INT");
    let Ran { code, stderr, .. } = ended(child);
    assert_eq!((code, stderr.as_str()), (130, "greenroom: interrupted\n"));
    let refused = seat.run(&["logs", "-f", "--since", "yesterday"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("\n  request "), "{refused:?}");
}

#[test]
fn the_log_is_shown_without_its_history() {
    let seat = Seat::new();
    let of_payer = ["logs", "--agent", "payer"];
    assert_eq!(seat.run(&["agents", "run", "payer", "PAY"]).code, 5);
    eventually("a record", || {
        let listed = seat.json(&of_payer);
        (listed != json!([])).then_some(())
    });
    let none = [&of_payer[..], &["-n", "0"]].concat();
    assert_eq!(seat.json(&none), json!([]));
    let table = seat.run(&none);
    assert_eq!((table.code, table.stdout.as_str()), (0, ""), "{table:?}");

    let before = seat.run(&of_payer).stdout;
    let mut child = seat.spawn(&mut seat.command(&[&none[..], &["-f"]].concat()));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        sender.send(until(&mut stdout, "\n")).unwrap();
        stdout
    });
    // what is recorded before the connection is history, and not shown
    let first = eventually("a new record", || {
        assert_eq!(seat.run(&["agents", "run", "payer", "PAY"]).code, 5);
        receiver.try_recv().ok()
    });
    // a pipe without a reader would end the command
    let _stdout = reading.join().unwrap();
    assert!(!before.contains(&first), "{first} is one of {before}");
    signal(&child, "INT");
    assert_eq!(ended(child).code, 130);
}

#[test]
fn the_log_is_followed_over_a_restart() {
    let mut seat = Seat::new();
    let mut child = seat.spawn(&mut seat.command(&["logs", "-f", "--agent", "payer"]));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(seat.run(&["agents", "run", "payer", "PAY"]).code, 5);
    let first = until(&mut stdout, "waits for people");
    seat.restart();
    assert_eq!(seat.run(&["agents", "run", "payer", "PAY"]).code, 5);
    let second = until(&mut stdout, "waits for people");
    assert_ne!(first, second, "nothing is repeated");
    signal(&child, "INT");
    let Ran { code, stderr, .. } = ended(child);
    let expected = "the stream has ended early; connecting again\ngreenroom: interrupted\n";
    assert_eq!((code, stderr.as_str()), (130, expected));
}

#[test]
fn a_trace_is_a_tree() {
    let seat = Seat::new();
    assert_eq!(seat.run(&["workflows", "run", "fork", "--execution-id", "k-1"]).code, 0);
    let listed = seat.json(&["traces", "list", "--of", "workflow", "--entity", "fork"]);
    assert_eq!(listed[0]["name"], "invoke_workflow fork");
    let id = listed[0]["traceId"].as_str().unwrap();
    assert_eq!(seat.json(&["executions", "show", "k-1"])["traceId"], json!(id));
    let shown = seat.run(&["traces", "show", id]).stdout;
    let names: Vec<_> =
        shown.lines().map(|line| line.split("  OK").next().unwrap().trim_end()).collect();
    assert_eq!(names[1], "invoke_workflow fork");
    assert!(names.contains(&"    step r"), "{shown}");
    let unknown = seat.run(&["traces", "show", "0"]);
    assert_eq!(unknown.code, 3);
    assert!(unknown.stderr.contains("`greenroom traces list` shows them"), "{unknown:?}");
}

/// Interrupts an answer, which is then cancelled at the server.
#[test]
fn an_interrupt_stops_an_answer() {
    let seat = Seat::new();
    let mut command: Command =
        seat.command(&["agents", "run", "silent", "WAIT for it", "-o", "jsonl"]);
    let mut child = seat.spawn(&mut command);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    until(&mut stdout, "\"type\":\"start\"");
    signal(&child, "INT");
    assert_eq!(ended(child).code, 130);
    let history = seat.server.get("/agents/silent/history?limit=1").data();
    assert_eq!(history["entries"][0]["status"], "cancelled");
}
