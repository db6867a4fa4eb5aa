//! A console that is not read.

use std::io::{BufRead as _, BufReader};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use super::site::CONFIG;
use crate::program::Programs;
use crate::test_server::OWN_LOGGER;
use support::client::Wire;
use support::server::{Home, Server};
use support::{PATIENCE, eventually};

/// Failing executions, each with a line on the console: more than any pipe holds.
const FAILURES_MAX: usize = 20_000;

/// A step that outlasts every grace period.
const SLEEPS: &str =
    "[[workflows.sleeps.steps]]\nid = \"s\"\ncommand = { argv = [\"sleep\", \"1000\"] }\n";

fn dropped(server: &Server) -> u64 {
    let name = "greenroom_log_lines_dropped_total ";
    let metrics = server.get("/metrics").text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().parse().unwrap()
}

/// Starts a server whose console is read until it listens, and no further; returns the output.
fn started(mut command: Command) -> (Server, BufReader<ChildStderr>, String) {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    let address = loop {
        let before = said.len();
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "the program has ended");
        if let Some((_, address)) = said[before..].split_once("greenroom listens at http://") {
            break address;
        }
    };
    let address = address.split('"').next().unwrap_or_default().trim().parse().unwrap();
    (Server { child, address, log: Mutex::new(channel().1) }, stderr, said)
}

/// Starts a server whose console is not read until lines have been dropped.
fn unread(format: &str) -> (Home, Server, BufReader<ChildStderr>) {
    let logs = format!("[logs]\nformat = \"{format}\"\nconsole_queue = 20\n");
    let home = Home::new(&format!("{logs}{CONFIG}{SLEEPS}"));
    let (server, stderr, _) = started(home.greenroom(&[]));
    let told = (0..FAILURES_MAX).any(|number| {
        let failed = server.post("/workflows/failing/execute", &json!({ "input": {} }));
        assert_eq!(failed.status, 500);
        number % 50 == 0 && dropped(&server) > 0
    });
    assert!(told, "the console takes everything");
    (home, server, stderr)
}

#[test]
fn an_unread_console_blocks_nothing() {
    let (_home, mut server, _stderr) = unread("text");
    assert_eq!(server.post("/workflows/add/execute", &json!({ "input": { "n": 1 } })).status, 200);
    server.signal("TERM");
    assert!(server.ended().success());
}

#[test]
fn a_second_signal_ends_the_process_with_an_unread_console() {
    let (_home, mut server, _stderr) = unread("text");
    let mut wire = Wire::open(server.address).unwrap();
    let body = json!({ "input": {} }).to_string();
    wire.send("POST", "/workflows/sleeps/stream", &[], Some(body.as_bytes())).unwrap();
    assert_eq!(wire.head().unwrap().status, 200);
    server.signal("TERM");
    eventually("the first signal", || (server.get("/readyz").status == 503).then_some(()));
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(1));
}

#[test]
fn a_console_that_is_read_again_shows_the_number_of_missed_lines() {
    for format in ["text", "json"] {
        let (_home, server, mut stderr) = unread(format);
        let mut line = String::new();
        while !line.contains("log lines were dropped") {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the program has ended");
        }
        let words = line.split([' ', '"']).collect::<Vec<_>>();
        let place = words.windows(2).position(|pair| pair == ["log", "lines"]).unwrap();
        let told: u64 = words[place - 1].parse().unwrap();
        assert!((1..=dropped(&server)).contains(&told), "{line}");
    }
}

#[test]
fn a_panic_is_logged_as_one_line() {
    let home = Home::new("[logs]\nformat = \"json\"\n");
    let mut program = home.test_server();
    program.env("RUST_BACKTRACE", "1");
    let server = Server::start(program);
    let body = json!({ "input": {}, "options": { "executionId": "p1" } });
    assert_eq!(server.post("/workflows/panicking/execute", &body).status, 500);
    let line: Value = serde_json::from_str(&server.says("panicked")).unwrap();
    let about = [&line["level"], &line["target"], &line["executionId"]];
    assert_eq!(about, ["error", "panic", "p1"], "{line}");
    let message = line["message"].as_str().unwrap();
    assert!(message.ends_with(": a step that panics"), "{message}");
    assert!(line["attributes"]["backtrace"].as_str().unwrap().contains("panic"), "{line}");
    // also for later panics
    let body = json!({ "input": {}, "options": { "executionId": "p2" } });
    assert_eq!(server.post("/workflows/panicking/execute", &body).status, 500);
    let log = server.log.lock().unwrap();
    loop {
        let line = log.recv_timeout(PATIENCE).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        if line["target"] == "panic" && line["executionId"] == "p2" {
            break;
        }
    }
}

#[test]
fn the_logger_of_a_program_is_kept_with_a_warning() {
    for (has_own, expected) in [(false, 0), (true, 1)] {
        let home = Home::new("");
        let mut program = home.test_server();
        if has_own {
            program.env(OWN_LOGGER, "1");
        }
        let (server, _stderr, said) = started(program);
        let told = said.matches("the program installed another logger").count();
        let own = said.lines().filter(|line| line.starts_with("own: ")).count();
        assert_eq!((told, own > 0), (expected, has_own), "{said}");
        let kept = || server.get("/api/logs").json()["total"].as_u64();
        if has_own {
            assert_eq!(kept(), Some(0));
        } else {
            eventually("kept records", || kept().filter(|total| *total > 0));
        }
    }
}
