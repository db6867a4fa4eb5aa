//! A machine on which few threads can be started.
//!
//! Each thread is made to need a gibibyte of address space, which is limited for the process.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use serde_json::json;

use super::site::CONFIG;
use support::server::{Home, Server};

const GIBIBYTE: usize = 1 << 30;
/// More than a small server needs.
const THREADS_MAX: usize = 18;

const SMALL: &str = "server.workers = 1\nlimits.arbiters = 1\n";
const CALLS: &str =
    "[[workflows.calls.steps]]\nid = \"c\"\nhttp = { url = \"http://nobody.invalid/\" }\n";

/// Returns the command of a program that can have about so many threads.
fn program(home: &Home, threads: usize) -> Command {
    let mut shell = Command::new("sh");
    let kilobytes = (threads * GIBIBYTE + GIBIBYTE * 9 / 10) / 1024;
    let line = format!("ulimit -v {kilobytes}; exec {}", env!("CARGO_BIN_EXE_greenroom"));
    shell.args(["-c", &line]).current_dir(home.path(""));
    shell.env("RUST_MIN_STACK", GIBIBYTE.to_string()).env("MALLOC_ARENA_MAX", "1");
    shell.env_remove("RUST_BACKTRACE");
    shell
}

/// Starts the server; returns its output if it exits.
fn started(home: &Home, threads: usize) -> Result<Server, Vec<String>> {
    let mut child = program(home, threads)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        if line.contains("greenroom listens at ") {
            child.kill().unwrap();
            child.wait().unwrap();
            return Ok(Server::start(program(home, threads)));
        }
        said.push(line);
    }
    assert_eq!(child.wait().unwrap().code(), Some(1), "{threads} threads: {said:#?}");
    Err(said)
}

#[test]
fn a_server_starts_with_all_threads_or_fails_with_one_line() {
    let (mut refused, mut served) = (0, 0);
    for threads in 1..=THREADS_MAX {
        let home = Home::new(&format!("{SMALL}{CONFIG}{CALLS}"));
        match started(&home, threads) {
            Err(said) => {
                // beside earlier log lines
                let plain: Vec<_> = said.iter().filter(|line| !line.starts_with('[')).collect();
                let [line] = plain[..] else { panic!("{threads} threads: {said:#?}") };
                let is_told = line.starts_with("greenroom: only ") && line.contains(" threads can");
                assert!(is_told, "{threads} threads: {line}");
                refused += 1;
            }
            Ok(server) => {
                for path in ["/observability/traces", "/api/logs", "/metrics", "/doc"] {
                    assert_eq!(server.get(path).status, 200, "{threads} threads: {path}");
                }
                let called = server.post(
                    "/workflows/calls/execute",
                    &json!({
                        "input": {}, "options": { "executionId": "c1" }
                    }),
                );
                assert_eq!(called.status, 500);
                let message = &server.state("calls", "c1")["error"]["message"];
                let message = message.as_str().unwrap();
                assert!(message.ends_with("its name has no address"), "{threads}: {message}");
                served += 1;
            }
        }
    }
    assert!(refused > 2 && served > 2, "{refused} refused, {served} served");
}
