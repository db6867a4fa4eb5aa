//! Runs the commands of the README, of the tour, of the pages about people and the command line, of
//! recipes and of the pages for those who come from another tool, in the order in which they are
//! printed, and compares what they print with the answers in the document.
//!
//! A block of `sh` is run; a block of `json` or `text` directly after it is the expected output.
//! Ids and times may differ, `…` stands for omitted text, and white space is ignored. Other blocks
//! are skipped.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Time limit of a document, in seconds.
const PATIENCE: &str = "300";

/// Marks the beginning of a block's output.
const MARK: &str = "@@block ";

/// Commands and their expected output.
#[derive(Debug, Default, PartialEq, Eq)]
struct Block {
    line: usize,
    commands: String,
    answer: Option<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut fence, mut body) = (None, String::new());
    // true while only the block of the output may follow
    let mut is_asked = false;
    for (number, line) in text.lines().enumerate() {
        match (fence, line.strip_prefix("```")) {
            (None, Some(language)) => fence = Some((language, number + 1)),
            (None, None) => is_asked &= line.is_empty(),
            (Some(_), None) => {
                body.push_str(line);
                body.push('\n');
            }
            (Some((language, line)), Some(_)) => {
                let body = std::mem::take(&mut body);
                match (language, blocks.last_mut()) {
                    ("json" | "text", Some(block)) if is_asked => block.answer = Some(body),
                    ("sh", _) => blocks.push(Block { line, commands: body, answer: None }),
                    _ => {}
                }
                is_asked = language == "sh";
                fence = None;
            }
        }
    }
    blocks
}

/// Returns a text without white space, ids and times.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '_') {
            word.push(c);
            continue;
        }
        plain.push_str(kind(&word).unwrap_or(&word));
        word.clear();
        if !c.is_whitespace() {
            plain.push(c);
        }
    }
    plain
}

/// Replacement of a word that is an id or a time.
fn kind(word: &str) -> Option<&'static str> {
    let is_hex = |word: &str| word.chars().all(|c| c.is_ascii_hexdigit());
    let digits = |word: &str| word.chars().filter(char::is_ascii_digit).count();
    let dashes = word.matches('-').count();
    let is_time = digits(word) >= 14 && word.contains('T') && word.ends_with('Z');
    let is_long = word.len() >= 16 && is_hex(word) && digits(word) > 0;
    match word {
        _ if is_time => Some("<time>"),
        _ if word.len() == 36 && dashes == 4 && is_hex(&word.replace('-', "")) => Some("<id>"),
        _ if is_long => Some("<hex>"),
        _ if word.strip_prefix("call_").is_some_and(is_hex) => Some("<call>"),
        _ => None,
    }
}

/// Returns the difference between an output and the expected one.
fn difference(expected: &str, output: &str) -> Option<String> {
    let output = plain(output);
    let mut rest = output.as_str();
    for piece in expected.split('…').map(plain).filter(|piece| !piece.is_empty()) {
        match rest.find(&piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => {
                return Some(format!("expected …{piece}…\nbehind what was found, in {rest}"));
            }
        }
    }
    None
}

/// Returns all commands as one script, with a line before each block's output. Documents name port 3141
/// for the server, and 3199 for a service beside it.
fn script(blocks: &[Block], port: u16, service: u16) -> String {
    // the program is already built; nothing may outlive the script
    let mut script = "cargo() { :; }\ntrap 'kill -9 $(jobs -p) 2>/dev/null' EXIT\n".to_owned();
    for (index, block) in blocks.iter().enumerate() {
        let commands = block
            .commands
            .replace("127.0.0.1:3141", &format!("127.0.0.1:{port}"))
            .replace("port = 3141", &format!("port = {port}"))
            .replace("127.0.0.1:3199", &format!("127.0.0.1:{service}"));
        let _ = write!(script, "printf '\\n{MARK}{index}\\n'\n{commands}");
    }
    script
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Creates a folder like that of a new user, and finds a free port.
fn folder() -> (tempfile::TempDir, u16) {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = std::fs::read_to_string(root.join("config.toml")).unwrap();
    let moved = config.replace("port = 3141", &format!("port = {port}"));
    assert_ne!(config, moved, "the shipped configuration has another port");
    std::fs::write(folder.path().join("config.toml"), moved).unwrap();
    let release = folder.path().join("target/release");
    std::fs::create_dir_all(&release).unwrap();
    symlink(env!("CARGO_BIN_EXE_greenroom"), release.join("greenroom")).unwrap();
    (folder, port)
}

/// Returns true if the programs that the documents use are installed.
fn has_programs() -> bool {
    let missing = ["bash", "curl", "openssl", "python3"].into_iter().find(|program| {
        let version = if *program == "openssl" { "version" } else { "--version" };
        let found = Command::new(program).arg(version).stdout(Stdio::null()).status();
        !found.is_ok_and(|status| status.success())
    });
    let Some(program) = missing else { return true };
    support::not_tested("README, tour and recipes", &format!("{program} is not installed"));
    false
}

/// Runs the commands of a document in one shell and compares every output.
///
/// # Panics
///
/// If an answer differs, or if the document has fewer than `answers_min` of them.
fn prints_what_it_shows(document: &str, answers_min: usize) {
    if !has_programs() {
        return;
    }
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document));
    let blocks = blocks(&text.unwrap());
    let answers = blocks.iter().filter(|block| block.answer.is_some()).count();
    assert!(answers >= answers_min, "{document} has changed its form: {answers} answers");
    let (folder, port) = folder();
    let commands = script(&blocks, port, free_port());
    std::fs::write(folder.path().join("commands.sh"), commands).unwrap();
    let output = Command::new("timeout")
        .args(["-s", "KILL", PATIENCE, "bash", "-c", "exec 2>&1; . ./commands.sh"])
        .current_dir(folder.path())
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .process_group(0)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut wrong = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let Some(answer) = &block.answer else { continue };
        let behind = said.split_once(&format!("{MARK}{index}\n")).map(|(_, behind)| behind);
        let printed = behind.map(|behind| behind.split(MARK).next().unwrap_or_default());
        let difference = difference(answer, printed.unwrap_or_default());
        wrong.extend(difference.map(|it| format!("{document}:{}: {it}", block.line)));
    }
    let log = std::fs::read_to_string(folder.path().join("greenroom.log")).unwrap_or_default();
    assert!(wrong.is_empty(), "{}\n\n{log}", wrong.join("\n\n"));
}

#[test]
fn the_readme_prints_what_its_commands_print() {
    prints_what_it_shows("README.md", 5);
}

#[test]
fn the_tour_prints_what_its_commands_print() {
    prints_what_it_shows("docs/tour.md", 25);
}

#[test]
fn the_page_about_people_prints_what_its_commands_print() {
    prints_what_it_shows("docs/people.md", 9);
}

#[test]
fn recipes_print_what_their_commands_print() {
    for (page, answers_min) in [
        ("approval", 6),
        ("nginx", 1),
        ("opentelemetry", 3),
        ("rag-tool", 4),
        ("scheduled-run", 4),
        ("use-chat", 1),
        ("webhook", 6),
    ] {
        prints_what_it_shows(&format!("docs/recipes/{page}.md"), answers_min);
    }
}

#[test]
fn pages_about_other_tools_print_what_their_commands_print() {
    for page in ["langgraph", "mastra", "restate", "temporal", "voltagent"] {
        prints_what_it_shows(&format!("docs/migrate/{page}.md"), 3);
    }
}

#[test]
fn the_page_about_the_command_line_prints_what_its_commands_print() {
    prints_what_it_shows("docs/cli.md", 12);
}

#[test]
fn answers_differ_only_in_ids_and_times() {
    let time = "2026-11-20T11:49:15.923Z";
    let uuid = "01a1f8ca-1613-765c-8757-0675b0114d1f";
    let other = "01a1f8ca-18a1-73ae-b7f4-31cb8a7030a3";
    for (expected, output, is_same) in [
        (format!("{{\"id\":\"{uuid}\"}}"), format!("{{\"id\": \"{other}\"}}\n"), true),
        ("{\"a\":1,…}".to_owned(), "{\"a\":1,\"b\":2}".to_owned(), true),
        ("{\"a\":1,…,\"c\":3}".to_owned(), "{\"a\":1,\"c\":4}".to_owned(), false),
        (format!("at {time}"), "at 2027-01-01T00:00:00.000Z".to_owned(), true),
        ("call_a41ee96410a4208f".to_owned(), "call_8a348dbbd02dfb27".to_owned(), true),
        ("{\"id\":\"exp-1\"}".to_owned(), "{\"id\":\"exp-2\"}".to_owned(), false),
    ] {
        assert_eq!(difference(&expected, &output).is_none(), is_same, "{expected} {output}");
    }
}

#[test]
fn an_answer_belongs_to_the_commands_right_before_it() {
    let text = "```sh\na\n```\n```json\n{}\n```\n\nwords\n\n```text\nno\n```\n```sh\nb\n```\n\nwords\n\n```text\nno\n```\n";
    let blocks = blocks(text);
    let found: Vec<_> = blocks
        .iter()
        .map(|block| (block.line, block.commands.trim(), block.answer.as_deref()))
        .collect();
    assert_eq!(found, [(1, "a", Some("{}\n")), (13, "b", None)]);
}
