//! Exit codes, and what failures say.

use std::process::Stdio;

use sha2::{Digest as _, Sha256};

use super::seat::{Ran, Seat};
use crate::program::Programs as _;
use support::server::Home;

/// Command lines, their exit codes, and what they say.
const FAILURES: &[(&[&str], i32, &[&str])] = &[
    (&["workflows", "run", "add", "-i", "{\"n\":1}"], 0, &["add ", " completed in "]),
    (
        &["workflows", "run", "failing"],
        1,
        &["greenroom: failing ", " failed at bad: ", "greenroom executions replay "],
    ),
    (&["workflows", "run", "add", "-i", "{n}"], 2, &["--input: not JSON", "@FILE"]),
    (&["workflows", "run", "add", "-i", "@no.json"], 2, &["--input: no.json: "]),
    (
        &["workflows", "run", "add", "-i", "{\"n\":\"x\"}"],
        2,
        &["n: \"x\" is not of type \"integer\"", "greenroom workflows show", "\n  request "],
    ),
    (
        &["workflows", "run", "trip", "-i", "{\"days\":\"x\"}"],
        2,
        &["Input validation failed: ", "days: \"x\" is not of type", "to: missing", "also "],
    ),
    (&["workflows", "list", "--server", "nonsense"], 2, &["must be a URL"]),
    (&["workflows", "list", "--port", "1"], 2, &["--port is for the server", "--server"]),
    (&["workflows", "list", "--config", "no.toml"], 2, &["--config is for the server", "--server"]),
    (&["workflows", "lst"], 2, &["similar subcommand exists: 'list'"]),
    (&["workflows", "show", "ad"], 3, &["Workflow ad not found\n  did you mean add?\n  request "]),
    (&["workflows", "run", "approvl"], 3, &["did you mean approval?", "\n  request "]),
    (&["executions", "show", "exp-2"], 3, &["did you mean exp-1?", "\n  request "]),
    (&["executions", "show", "zzz"], 3, &["`greenroom executions list` shows them"]),
    (&["executions", "list", "--workflow", "fork?"], 3, &["did you mean fork?"]),
    (
        &["workflows", "run", "approval", "-i", "{\"who\":\"bob\"}"],
        5,
        &[
            "waits: bob asks",
            "it shows {\"who\":\"bob\"}",
            "it takes {\"type\":\"object\"",
            "answer: greenroom inbox answer ask_",
            " --approve, or --refuse\n",
            "executions watch ",
        ],
    ),
    (
        &["workflows", "run", "nap", "--timeout", "1s", "--execution-id", "n-1"],
        124,
        &["time is over; execution n-1 continues", "greenroom executions watch n-1"],
    ),
    (&["executions", "watch", "n-1", "--timeout", "4s"], 124, &["executions cancel n-1"]),
    (
        &["executions", "resume", "n-1"],
        1,
        &["Execution n-1 is not suspended", "`greenroom executions why n-1` shows its state"],
    ),
    (
        &["agents", "run", "silent", "WAIT", "--timeout", "50ms"],
        124,
        &["time is over; the answer is stopped"],
    ),
    (&["logs", "--execution", "exp-2"], 3, &["did you mean exp-1?"]),
    (&["logs", "--execution", "n-1"], 0, &[]),
    (&["logs", "--workflow", "aprovl"], 3, &["did you mean approval?"]),
    (&["logs", "-n", "0", "--workflow", "aprovl"], 3, &["did you mean approval?"]),
    (&["executions", "list", "-n", "0"], 2, &["'--limit <LIMIT>'", "must be at least 1"]),
    (&["executions", "events", "exp-1", "-n", "0"], 2, &["must be at least 1"]),
    (&["inbox", "list", "--limit", "0"], 2, &["must be at least 1"]),
    (&["traces", "list", "-n", "0"], 2, &["must be at least 1"]),
    (&["top", "--interval", "99ms"], 2, &["'--interval <DURATION>'", "must be at least 100ms"]),
    (
        &["executions", "resume", "exp-1", "-d", "{\"approved\":1}"],
        2,
        &["approved: 1 is not of type \"boolean\""],
    ),
];

#[test]
fn every_failure_has_its_code_and_says_what_to_do() {
    let seat = Seat::new();
    seat.run(&[
        "workflows",
        "run",
        "approval",
        "-i",
        "{\"who\":\"ann\"}",
        "--execution-id",
        "exp-1",
    ]);
    for (arguments, code, says) in FAILURES {
        let ran = seat.run(arguments);
        assert_eq!(ran.code, *code, "{arguments:?}: {ran:?}");
        for part in *says {
            assert!(ran.stderr.contains(part), "{arguments:?} does not say {part:?}: {ran:?}");
        }
    }
}

#[test]
fn failures_are_json_for_programs() {
    let seat = Seat::new();
    let mut refused = seat.run(&["workflows", "show", "ad", "-o", "json"]);
    let id = refused.stderr.split("\"requestId\":\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(!id.is_empty());
    refused.stderr = refused.stderr.replace(id, "ID");
    let expected = "{\"error\":{\"message\":\"Workflow ad not found\",\
        \"code\":\"workflow_not_found\",\"status\":404,\"requestId\":\"ID\",\
        \"advice\":[\"did you mean add?\"],\"exitCode\":3}}\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (3, expected));
    let usage = seat.run(&["-o", "jsonl", "workflows", "run", "add", "-i", "{n}"]);
    assert!(usage.stderr.starts_with("{\"error\":{\"message\":\"--input: not JSON: "), "{usage:?}");
    assert!(usage.stderr.ends_with(",\"exitCode\":2}}\n"), "{usage:?}");
}

#[test]
fn advised_commands_call_the_same_server() {
    let seat = Seat::new();
    let url = seat.url();
    let away = |arguments: &[&str]| {
        let mut command = seat.command(arguments);
        command.env("GREENROOM_SERVER", "http://127.0.0.1:1");
        seat.end(command)
    };
    let run = ["workflows", "run", "approval", "-i", "{\"who\":\"bob\"}", "--execution-id", "e-1"];
    let waits = away(&[&run[..], &["--server", &url]].concat());
    let advised = format!("answer: greenroom --server {url} inbox answer ask_");
    assert!(waits.stderr.contains(&advised), "{waits:?}");
    assert!(waits.stderr.contains(&format!("greenroom --server {url} executions watch e-1")));
    let why = away(&["executions", "why", "e-1", "--server", &url]);
    assert!(why.stdout.contains(&format!("greenroom --server {url} inbox show ask_")), "{why:?}");
    let command = advised.split_once("greenroom ").unwrap().1;
    let ask = waits.stderr.split_once("inbox answer ").unwrap().1;
    let ask = ask.split_whitespace().next().unwrap();
    let advised: Vec<_> = command.split(' ').filter(|word| !word.starts_with("ask_")).collect();
    let answered = away(&[&advised[..], &[ask, "--approve"]].concat());
    assert_eq!(answered.code, 0, "{answered:?}");
}

#[test]
fn a_wrong_command_line_is_json_for_programs_as_well() {
    let seat = Seat::new();
    for arguments in [
        &["executions", "list", "--status", "foo", "-o", "json"][..],
        &["executions", "list", "--output=jsonl", "--sttus", "foo"],
        &["workflows", "run", "add", "--timeout", "abc", "-ojson"],
        &["workflows", "run", "add", "--timeout", "abc", "-o=json"],
    ] {
        let ran = seat.run(arguments);
        let said: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
        assert_eq!((ran.code, &said["error"]["exitCode"]), (2, &2.into()), "{ran:?}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(!message.starts_with("error: ") && !message.is_empty(), "{ran:?}");
    }
}

#[test]
fn an_output_that_cannot_be_written_is_a_failure() {
    let home = Home::new("");
    for arguments in
        [&["schema"][..], &["openapi"], &["config", "show"], &["check"], &["check", "-o", "json"]]
    {
        let into = |stdout: Stdio| {
            let mut command = home.greenroom(arguments);
            let child = command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
            Ran::of(child.wait_with_output().unwrap())
        };
        let ran = into(std::fs::File::create("/dev/full").unwrap().into());
        assert_eq!(ran.code, 1, "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("the output cannot be written: "), "{arguments:?}: {ran:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = into(writer.into());
        assert_eq!((ran.code, ran.stderr.as_str()), (141, ""), "{arguments:?}");
    }
}

#[test]
fn options_may_come_before_the_command() {
    let seat = Seat::new();
    let url = seat.url();
    let with = |arguments: &[&str]| {
        let mut command = seat.command(arguments);
        command.env("GREENROOM_SERVER", "http://127.0.0.1:1");
        seat.end(command)
    };
    assert_eq!(with(&["workflows", "list"]).code, 1);
    let listed = with(&["--server", &url, "-o", "json", "workflows", "list"]);
    assert!(listed.stdout.starts_with('['), "{listed:?}");
    let nowhere = ["--server", "http://127.0.0.1:2", "workflows", "list", "--server", &url];
    assert_eq!(with(&nowhere).code, 0, "the one behind the command wins");
    for command in [&["check"][..], &["serve"], &[]] {
        let refused = with(&[&["--server", &url], command].concat());
        assert_eq!(refused.code, 2, "{refused:?}");
        let expected = "greenroom: --server is for commands that call a server\n";
        assert!(refused.stderr.starts_with(expected), "{refused:?}");
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let home = Home::new("");
    let mut command = home.greenroom(&["workflows", "list"]);
    command.env("GREENROOM_SERVER", "http://127.0.0.1:1").env("XDG_CONFIG_HOME", home.path(""));
    let ran = Ran::of(home.run(command));
    assert_eq!(ran.code, 1);
    let expected = "greenroom: cannot reach http://127.0.0.1:1/: Connection refused (os error 111)\n  \
        start a server with `greenroom serve`, or name another one with --server or GREENROOM_SERVER\n";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn the_time_of_a_command_counts_while_the_server_says_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let home = Home::new("");
    let ask = ["agents", "run", "a", "hi", "--timeout", "300ms", "--server", &url];
    let mut command = home.greenroom(&ask);
    command.env("XDG_CONFIG_HOME", home.path(""));
    assert_eq!(Ran::of(home.run(command)).code, 124);
}

#[test]
fn a_server_of_another_kind_is_recognized() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\n<html>";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let home = Home::new("");
    let mut command = home.greenroom(&["workflows", "list", "--server", &url]);
    command.env("XDG_CONFIG_HOME", home.path(""));
    let ran = Ran::of(home.run(command));
    answering.join().unwrap();
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("answered 200, and not as greenroom does"), "{ran:?}");
}

#[test]
fn tokens_open_a_private_server() {
    let hash: String = Sha256::digest("k-1").iter().map(|byte| format!("{byte:02x}")).collect();
    let seat = Seat::with(&format!(
        "[auth]\ndefault = \"private\"\nrules = [{{ route = \"POST /workflows/add/execute\", \
         roles = [\"boss\"] }}]\n[[auth.api_keys]]\nid = \"job\"\nhash = \"sha256:{hash}\"\n"
    ));
    let with = |token: &str, arguments: &[&str]| {
        let mut command = seat.command(arguments);
        command.env("GREENROOM_TOKEN", token);
        seat.end(command)
    };
    let without = seat.run(&["workflows", "list"]);
    assert_eq!(without.code, 4);
    assert!(without.stderr.contains("Authentication required\n  set GREENROOM_TOKEN, or add"));
    assert!(without.stderr.contains("\n  request "), "{without:?}");
    assert_eq!(with("k-2", &["workflows", "list"]).code, 4);
    assert_eq!(with("k-1", &["workflows", "list"]).code, 0);
    let forbidden = with("k-1", &["workflows", "run", "add", "-i", "{\"n\":1}"]);
    assert_eq!(forbidden.code, 4, "{forbidden:?}");

    let added = ["profile", "add", "home", "--server", &seat.url(), "--token", "-"];
    assert_eq!(seat.run_with(&added, "k-1\n").code, 0);
    assert_eq!(seat.run(&["workflows", "list"]).code, 0);
    let mut command = seat.command(&["workflows", "list", "--profile", "home"]);
    command.env_remove("GREENROOM_SERVER");
    assert_eq!(seat.end(command).code, 0);
}
