//! Watching an execution: in a pipe, on a terminal, until Ctrl-C.

use std::fs::File;
use std::io::{BufReader, Read as _, Write};
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

use super::seat::{Ran, Seat};
use crate::program::exits_within;
use support::PATIENCE;

/// Reads lines of a command until one contains a text.
pub(super) fn until(reader: &mut impl std::io::BufRead, part: &str) -> String {
    let mut line = String::new();
    while !line.contains(part) {
        line.clear();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "it ends without {part:?}");
    }
    line
}

pub(super) fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
}

pub(super) fn ended(mut child: Child) -> Ran {
    assert!(exits_within(&mut child, PATIENCE), "it runs on");
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn an_input_that_never_ends_can_be_left() {
    let seat = Seat::new();
    let pipe = seat.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for input in ["-", "@pipe"] {
        let mut command = seat.command(&["workflows", "run", "add", "--input", input]);
        let mut child = seat.spawn(command.stdin(Stdio::piped()));
        let mut writer: Box<dyn Write> = match input {
            "-" => Box::new(child.stdin.take().unwrap()),
            _ => Box::new(File::options().write(true).open(&pipe).unwrap()),
        };
        // more than a pipe holds: it has been read in part
        writer.write_all(&[b' '; 200_000]).unwrap();
        signal(&child, "TERM");
        assert_ne!(ended(child).code, 0, "{input}");
    }
    assert_eq!(seat.json(&["executions", "list"]), serde_json::json!([]));
}

#[test]
fn events_are_lines_in_a_pipe() {
    let seat = Seat::new();
    let run = ["workflows", "run", "add", "--watch", "-i", "{\"n\":1}", "--execution-id", "a-1"];
    let ran = seat.run(&run);
    assert_eq!(ran.code, 0);
    let lines: Vec<_> = ran.stdout.lines().collect();
    let events: Vec<_> =
        lines.iter().filter_map(|line| line.strip_prefix("20")?.split_once("  ")).collect();
    let events: Vec<_> = events.into_iter().map(|(_, event)| event).collect();
    let expected = [
        "workflow-start",
        "step-start          one",
        "step-complete       one",
        "step-start          two",
        "step-complete       two",
        "workflow-complete",
        "workflow-result       completed",
    ];
    assert_eq!(events, expected);
    assert!(ran.stdout.ends_with("\n{\n  \"n\": 3\n}\n"), "{ran:?}");
    assert_eq!(seat.run(&["executions", "watch", "a-1"]).stdout, ran.stdout);

    let jsonl = seat.run(&["executions", "watch", "a-1", "-o", "jsonl"]);
    let events: Vec<Value> =
        jsonl.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), expected.len());
    assert_eq!((&events[6]["sequence"], &events[6]["result"]["n"]), (&7.into(), &3.into()));
    assert_eq!(seat.json(&["executions", "watch", "a-1"])["status"], "completed");
}

#[test]
fn watching_passes_what_was_answered_and_ends_where_it_waits() {
    let seat = Seat::new();
    let run = ["workflows", "run", "approval", "-i", "{\"who\":\"ann\"}", "--execution-id", "x-1"];
    assert_eq!(seat.run(&run).code, 5);
    let waits = seat.run(&["executions", "watch", "x-1"]);
    assert_eq!(waits.code, 5);
    assert!(waits.stdout.ends_with("  workflow-suspended    ann asks\n"), "{waits:?}");
    assert_eq!(seat.run(&["executions", "resume", "x-1", "-d", "{\"approved\":true}"]).code, 0);
    let watched = seat.run(&["executions", "watch", "x-1"]);
    assert_eq!(watched.code, 0);
    assert!(watched.stdout.contains("  workflow-resumed\n"), "{watched:?}");
}

#[test]
fn an_interrupt_leaves_the_execution_running() {
    let seat = Seat::new();
    let run = ["workflows", "run", "nap", "--execution-id", "n-1", "--watch"];
    for (id, arguments) in [("n-1", &run[..]), ("n-1", &["executions", "watch", "n-1"])] {
        let mut child = seat.spawn(&mut seat.command(arguments));
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        until(&mut stdout, "step-start");
        signal(&child, "INT");
        let ran = ended(child);
        assert_eq!(ran.code, 130);
        let expected = format!(
            "greenroom: interrupted; execution {id} continues at the server\n  come back: \
             greenroom executions watch {id}\n  end it: greenroom executions cancel {id}\n"
        );
        assert_eq!(ran.stderr, expected);
        assert_eq!(seat.server.state("nap", id)["status"], "running");
    }
}

/// Returns true if this process, and so the commands that it starts, ignore SIGHUP.
pub(super) fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // the lowest bit is that of SIGHUP
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 1 == 1)
}

#[test]
fn a_hangup_that_is_ignored_from_the_start_does_not_end_it() {
    let seat = Seat::new();
    seat.run(&["workflows", "run", "nap", "--detach", "--execution-id", "n-1"]);
    let watch = seat.command(&["executions", "watch", "n-1"]);
    let mut ignoring = Command::new("sh");
    ignoring.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]);
    ignoring.arg(watch.get_program()).args(watch.get_args()).stdin(Stdio::null());
    ignoring.envs(watch.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut child = seat.spawn(&mut ignoring);
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    until(&mut stdout, "step-start");
    signal(&child, "HUP");
    assert_eq!(seat.run(&["executions", "cancel", "n-1"]).code, 0);
    let ran = ended(child);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("nap n-1 was cancelled"), "{ran:?}");
}

#[test]
fn a_closed_pipe_ends_it_silently() {
    let seat = Seat::new();
    let run = ["workflows", "run", "nap", "--execution-id", "n-1", "--watch"];
    let mut child = seat.spawn(&mut seat.command(&run));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    until(&mut stdout, "step-start");
    drop(stdout);
    // the next event finds the pipe closed
    assert_eq!(seat.run(&["executions", "cancel", "n-1"]).code, 0);
    let ran = ended(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (141, ""));

    // a table of many lines, of which one is read
    for _ in 0..3 {
        let command = seat.command(&["workflows", "list"]);
        let shell = format!("{} workflows list | head -n 1", command.get_program().display());
        let mut piped = Command::new("sh");
        piped.args(["-c", &shell]).env("GREENROOM_SERVER", seat.url());
        let ran = seat.end(piped);
        assert_eq!((ran.stdout.lines().count(), ran.stderr.as_str()), (1, ""));
    }
}

#[test]
fn the_server_may_restart_meanwhile() {
    let mut seat = Seat::new();
    let run = ["workflows", "run", "nap", "--execution-id", "n-1", "--watch"];
    let mut child = seat.spawn(&mut seat.command(&run));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    until(&mut stdout, "step-start");
    seat.restart();
    assert_eq!(seat.run(&["executions", "cancel", "n-1", "--reason", "tea"]).code, 0);
    until(&mut stdout, "workflow-cancelled    tea");
    let ran = ended(child);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.starts_with("the stream has ended early; connecting again\n"), "{ran:?}");
}

/// Returns the two ends of a terminal: that of the person, and that of a program.
pub(super) fn pty() -> (File, File) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&person).unwrap();
    unlockpt(&person).unwrap();
    let name = ptsname(&person, Vec::new()).unwrap();
    let program = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    (File::from(person), program)
}

/// Runs a command with a terminal as its stdout, and returns the text that it writes there. `look`
/// sees the text whenever it grows.
pub(super) fn on_terminal(
    seat: &Seat,
    arguments: &[&str],
    variables: &[(&str, &str)],
    look: impl Fn(&Child, &str),
) -> String {
    let (mut screen, terminal) = pty();
    let mut command = seat.command(arguments);
    command.env("TERM", "xterm").envs(variables.iter().copied());
    command.stdout(Stdio::from(terminal)).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    // the command has the terminal's other end, which closes with it
    drop(command);
    let mut shown = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = screen.read(&mut piece) {
        shown.extend_from_slice(&piece[..length]);
        look(&child, &String::from_utf8_lossy(&shown));
    }
    assert!(exits_within(&mut child, PATIENCE));
    String::from_utf8(shown).unwrap()
}

#[test]
fn a_terminal_shows_steps_as_they_end() {
    let seat = Seat::new();
    let run = ["workflows", "run", "fork", "--watch"];
    let shown = on_terminal(&seat, &run, &[], |_, _| {});
    for part in [
        "\u{1b}[32m✓\u{1b}[0m both/left/l  ",
        "\u{1b}[32m✓\u{1b}[0m both/right/r  ",
        " ms\u{1b}[0m",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown:?}");
    }
    assert!(!shown.contains("step-start"), "{shown:?}");
    assert!(shown.trim_end().ends_with('1'), "the result is the last line: {shown:?}");

    let plain = on_terminal(&seat, &run, &[("NO_COLOR", "1")], |_, _| {});
    assert!(plain.contains("✓ both/left/l  ") && !plain.contains("\u{1b}[32m"), "{plain:?}");
    let dumb = on_terminal(&seat, &run, &[("TERM", "dumb"), ("CI", "true")], |_, _| {});
    assert!(dumb.contains("step-start") && !dumb.contains('\u{1b}'), "{dumb:?}");
}
