//! Graphs, tools, the live table, completions and man pages.

use std::process::Command;

use serde_json::json;

use super::runs::keys;
use super::seat::Seat;
use super::watching::{ignores_hangup, on_terminal};
use support::not_tested;

#[test]
fn a_workflow_is_drawn() {
    let seat = Seat::new();
    let graph =
        |options: &[&str]| seat.run(&[&["workflows", "graph", "fork"], options].concat()).stdout;
    let expected = "fork\n├─ both  andAll\n│  ├─ left: l  andThen\n│  └─ right: r  andAgent assistant\n\
        └─ last  andThen\n";
    assert_eq!(graph(&[]), expected);
    assert!(graph(&["--format", "mermaid"]).starts_with("flowchart TD\n  n0([\"begin\"])\n"));
    let svg = graph(&["--format", "svg"]);
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!(seat.json(&["workflows", "graph", "fork"])["id"], "fork");
    assert_eq!(seat.run(&["workflows", "graph", "frok"]).code, 3);
}

#[test]
fn a_tool_is_called_without_a_model() {
    let seat = Seat::new();
    let listed = seat.run(&["tools", "list"]).stdout;
    assert!(listed.starts_with("NAME  AGENTS "), "{listed}");
    assert!(
        listed.lines().nth(1).unwrap().starts_with("add   assistant        Adds two "),
        "{listed}"
    );
    let called = seat.run(&["tools", "call", "add", "-i", "{\"n\":40}"]);
    assert_eq!((called.code, called.stdout.as_str()), (0, "{\n  \"n\": 42\n}\n"));
    assert!(called.stderr.starts_with("add took "), "{called:?}");
    let json = seat.json(&["tools", "call", "add", "-i", "{\"n\":40}"]);
    assert_eq!(keys(&json), "executionTime result timestamp toolName");
    let bad = seat.run(&["tools", "call", "add", "-i", "{\"n\":\"x\"}"]);
    assert_eq!(bad.code, 2);
    assert!(bad.stderr.contains("`greenroom tools list -o json` has the parameters"), "{bad:?}");
    let unknown = seat.run(&["tools", "call", "ad"]);
    assert_eq!(unknown.code, 3);
    assert!(unknown.stderr.contains("did you mean add?"), "{unknown:?}");
}

#[test]
fn top_is_a_table_once_in_a_pipe() {
    let seat = Seat::new();
    seat.run(&["workflows", "run", "nap", "--detach", "--execution-id", "n-1"]);
    seat.run(&["workflows", "run", "approval", "-i", "{\"who\":\"ann\"}"]);
    seat.run(&["workflows", "run", "failing"]);
    let top = seat.run(&["top"]);
    assert_eq!(top.code, 0);
    for part in [
        "\n1 running, 1 suspended, 0 completed, 1 error, 0 cancelled\nagents that work: none\n",
        "\nWORKFLOW  RUNNING  SUSPENDED  COMPLETED  ERROR  CANCELLED\napproval  0        1 ",
        "\nRUNNING  WORKFLOW  STARTED ",
        "\nn-1      nap       20",
        "\nWAITS FOR A PERSON ",
        "  ann asks\n",
    ] {
        assert!(top.stdout.contains(part), "no {part:?} in {top:?}");
    }
    assert!(!top.stdout.contains('\u{1b}'), "{top:?}");
    let json = seat.json(&["top"]);
    assert_eq!(keys(&json), "agentsWorking asks running total workflows");
    assert_eq!(json["total"]["running"], json!(1));
}

#[test]
fn top_draws_a_terminal_anew_until_it_is_interrupted() {
    let seat = Seat::new();
    // `nohup` of the tests is that of the command, too
    let names = if ignores_hangup() { &["INT", "TERM"][..] } else { &["INT", "TERM", "HUP"] };
    for name in names {
        let shown = on_terminal(&seat, &["top", "--interval", "100ms"], &[], |child, shown| {
            // the second drawing
            if shown.matches("Ctrl-C ends").count() >= 2 {
                super::watching::signal(child, name);
            }
        });
        assert!(shown.starts_with("\u{1b}[?1049h"), "{shown:?}");
        assert!(shown.ends_with("\u{1b}[?1049l"), "the terminal is as before: {shown:?}");
    }
}

#[test]
fn shells_complete_commands_and_ids_of_the_server() {
    let seat = Seat::new();
    for (shell, says) in
        [("bash", "complete -o"), ("zsh", "#compdef greenroom"), ("fish", "complete ")]
    {
        let script = seat.run(&["completions", shell]);
        assert_eq!(script.code, 0);
        assert!(script.stdout.contains(says), "{script:?}");
    }
    assert_eq!(seat.run(&["completions", "csh"]).code, 2);
    seat.run(&["workflows", "run", "echo", "--execution-id", "exp-77"]);

    // as the script for bash asks
    let completed = |words: &[&str]| {
        let mut command = seat.command(&[&["--", "greenroom"], words].concat());
        command.env("GREENROOM_COMPLETE", "bash").env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
        let ran = seat.end(command);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{words:?}");
        ran.stdout.lines().map(|word| word.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(completed(&["workf"]), ["workflows"]);
    assert_eq!(completed(&["workflows", "run", "a"]), ["add", "approval"]);
    assert_eq!(completed(&["executions", "show", "exp"]), ["exp-77"]);
    assert_eq!(completed(&["agents", "chat", "sil"]), ["silent"]);
    assert_eq!(completed(&["tools", "call", "p"]), ["pay"]);
    assert!(completed(&["executions", "list", "--status", "s"]).contains(&"suspended".to_owned()));
    seat.run(&["workflows", "run", "echo", "--execution-id", "orders:7"]);
    assert_eq!(completed(&["executions", "show", "orders:"]), ["orders:7"]);
    assert_eq!(completed(&["executions", "replay", "orders:7", "--step", "s"]), ["same"]);
    assert_eq!(seat.run(&["profile", "add", "home", "--server", &seat.url()]).code, 0);
    assert_eq!(completed(&["profile", "use", "h"]), ["home"]);
    assert_eq!(completed(&["workflows", "list", "--profile", "h"]), ["home"]);
    std::fs::write(seat.path("in.json"), "{}").unwrap();
    assert_eq!(completed(&["workflows", "run", "add", "--input", "@in"]), ["@in.json"]);
    // a server that is not there costs no message
    let nowhere = ["workflows", "--server", "http://127.0.0.1:1", "run", "a"];
    assert!(completed(&nowhere).is_empty());
}

/// Runs a line of a shell that finds the program; `None` if the shell is not installed.
fn shell(seat: &Seat, shell: &[&str], line: &str) -> Option<String> {
    let (name, options) = shell.split_first().unwrap();
    if Command::new(name).arg("--version").output().is_err() {
        not_tested("completions", &format!("{name} is not installed"));
        return None;
    }
    let program = seat.command(&[]).get_program().to_owned();
    let folder = std::path::Path::new(&program).parent().unwrap().to_owned();
    let mut command = Command::new(name);
    command.args(options).args(["-c", line]);
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.display()));
    command.env("GREENROOM_SERVER", seat.url());
    let ran = seat.end(command);
    assert_eq!(ran.code, 0, "{ran:?}");
    Some(ran.stdout)
}

#[test]
fn bash_reads_its_script() {
    let seat = Seat::new();
    let line = "source <(greenroom completions bash); [[ $COMP_WORDBREAKS != *[:@]* ]] || exit 1; COMP_WORDS=(greenroom workflows run ech); \
        COMP_CWORD=3; COMP_TYPE=9; $(complete -p greenroom | sed 's/.*-F \\([^ ]*\\).*/\\1/') greenroom ech run; \
        echo \"${COMPREPLY[@]}\"";
    let Some(completed) = shell(&seat, &["bash", "--noprofile", "--norc"], line) else { return };
    assert_eq!(completed.trim(), "echo");
}

#[test]
fn zsh_completes_with_the_script_in_its_path_at_the_first_request() {
    let seat = Seat::new();
    let folder = tempfile::tempdir().unwrap();
    let line = "greenroom completions zsh > _greenroom; fpath=($PWD); \
        autoload -Uz _greenroom; compdef() { :; }; _describe() { print -l -- ${(P)@[-1]}; }; \
        words=(greenroom workflows run ech); CURRENT=4; _greenroom";
    let line = format!("cd {}; {line}", folder.path().display());
    let Some(completed) = shell(&seat, &["zsh", "-f"], &line) else { return };
    assert_eq!(completed.trim(), "echo");
}

#[test]
fn fish_reads_its_script() {
    let seat = Seat::new();
    let line = "greenroom completions fish | source; complete -C 'greenroom workflows run ech'";
    let Some(completed) = shell(&seat, &["fish", "--no-config"], line) else { return };
    assert_eq!(completed.trim(), "echo");
}

#[test]
fn man_pages_are_printed_and_written() {
    let seat = Seat::new();
    let page = seat.run(&["man"]).stdout;
    assert!(page.contains(".TH greenroom 1"), "{page}");
    let page = seat.run(&["man", "executions", "watch"]).stdout;
    assert!(page.contains("Shows its events from the first one on"), "{page}");
    let wrong = seat.run(&["man", "executons"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean executions?"), "{wrong:?}");
    assert_eq!(seat.run(&["man", "--dir", "pages"]).code, 0);
    for name in ["greenroom.1", "greenroom-workflows-run.1", "greenroom-top.1"] {
        assert!(seat.path("pages").join(name).exists(), "{name}");
    }
}
