//! The AI SDK's own clients and OpenAI's, in Node.js and in a browser, against the real program. They are in
//! `tests/clients`; `npm ci` there installs what they need.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Programs as _, browser};
use support::server::{Home, Server};

const CONFIG: &str = include_str!("../clients/server.toml");
const OPENAI_CONFIG: &str = include_str!("../clients/openai/server.toml");
/// The oldest Node.js that the packages run on.
const NODE_MAJOR_MIN: u32 = 20;

#[test]
fn the_ai_sdks_clients_work_unchanged() {
    run("the AI SDK's clients", "", CONFIG, &[]);
}

#[test]
fn clients_of_openai_work_unchanged() {
    run("clients of OpenAI", "openai", OPENAI_CONFIG, &[]);
}

#[test]
fn chats_and_links_work_in_a_browser() {
    let subject = "chats and links in a browser";
    let Some(program) = browser(subject) else { return };
    run(subject, "browser", CONFIG, &[("GREENROOM_BROWSER", &path_of(program))]);
}

/// Runs the tests of a folder in `tests/clients` against a server.
pub(crate) fn run(subject: &str, folder: &str, config: &str, variables: &[(&str, &Path)]) {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    if let Some(missing) = missing(&clients) {
        support::not_tested(subject, &missing);
        return;
    }
    let home = Home::new(config);
    let mut command = home.greenroom(&[]);
    for name in ["TEST_INBOX_KEY", "TEST_MCP_KEY"] {
        command.env(name, "0123456789abcdef0123456789abcdef");
    }
    let server = Server::start(command);
    let run = Command::new("node")
        .args(["--test", "--test-concurrency=1", "--test-timeout=120000"])
        .args(tests_in(&clients.join(folder)))
        .current_dir(&clients)
        .env("GREENROOM_URL", format!("http://{}", server.address))
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}\n{}", text(&run.stdout), text(&run.stderr));
}

/// Finds a program as a shell does.
pub(crate) fn path_of(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|folder| folder.join(program));
    places.find(|place| place.is_file()).unwrap()
}

/// Describes the first missing prerequisite.
pub(crate) fn missing(folder: &Path) -> Option<String> {
    let version = Command::new("node").arg("--version").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let Ok(version) = version else {
        return Some(format!("Node.js {NODE_MAJOR_MIN} or newer is missing."));
    };
    let major = version.trim().trim_start_matches('v').split('.').next();
    if major.and_then(|major| major.parse().ok()).is_none_or(|major: u32| major < NODE_MAJOR_MIN) {
        return Some(format!("Node.js is {}, not {NODE_MAJOR_MIN} or newer.", version.trim()));
    }
    let is_installed = folder.join("node_modules").is_dir();
    (!is_installed).then(|| format!("Run `npm ci` in {}.", folder.display()))
}

fn tests_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut tests: Vec<_> =
        entries.filter(|path| path.to_string_lossy().ends_with(".test.mjs")).collect();
    tests.sort();
    assert!(!tests.is_empty(), "no tests in {}", folder.display());
    tests
}
