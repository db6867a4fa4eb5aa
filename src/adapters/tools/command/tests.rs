//! Real programs: scripts in the tests.

use std::env::VarError;
use std::time::Duration;

use greenroom_actors::domain::call::{UnresolvedPart, UnresolvedText};
use greenroom_actors::domain::ids::ExecutionId;
use serde_json::json;

use super::*;

const OUTPUT_BYTES_MAX: u64 = 1000;
const MEMORY_BYTES_MAX: u64 = 64 << 20;
const CANARY: &str = "canary-5e1f\"7";

fn commands() -> Commands {
    Commands {
        secrets: SecretLookup::new(|name| match name {
            "CANARY" => Ok(CANARY.to_owned()),
            _ => Err(VarError::NotPresent),
        }),
        memory_bytes_max: MEMORY_BYTES_MAX,
        output_bytes_max: OUTPUT_BYTES_MAX,
        permits: Arc::new(Semaphore::new(1)),
    }
}

fn origin() -> CallOrigin {
    CallOrigin {
        name: "step s".into(),
        idempotency_key: "e1/s".to_owned(),
        attempt: Some((ExecutionId::trusted("e1"), 2)),
        trace: None,
    }
}

fn program(argv: &[&str]) -> CommandRun {
    let (program, arguments) = argv.split_first().unwrap();
    CommandRun {
        program: Arc::from(*program),
        arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
        input: Arc::new(json!({ "n": 1 })),
        env: Vec::new(),
        cwd: None,
        memory_bytes_max: None,
        output_bytes_max: None,
    }
}

fn script(text: &str) -> CommandRun {
    program(&["/bin/sh", "-c", text])
}

async fn outcome(run: CommandRun) -> Result<Value, String> {
    commands().run(run, &origin()).await.map_err(|failure| failure.message)
}

#[tokio::test]
async fn json_goes_in_and_comes_out() {
    assert_eq!(outcome(program(&["cat"])).await, Ok(json!({ "n": 1 })));
    assert_eq!(outcome(script("cat >/dev/null; echo ' [1] '")).await, Ok(json!([1])));
    assert_eq!(outcome(script("cat >/dev/null")).await, Ok(json!(null)));
    let arguments = script("printf '[\"%s\",\"%s\",%s]' \"$0\" \"$1\" $#");
    let arguments = CommandRun {
        arguments: [arguments.arguments, vec!["a b; $(x)".to_owned(), "*".to_owned()]].concat(),
        ..arguments
    };
    assert_eq!(outcome(arguments).await, Ok(json!(["a b; $(x)", "*", 1])));
}

#[tokio::test]
async fn every_kind_of_failure_has_a_text() {
    let flood = "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done";
    let long = format!("{}>&2; exit 1", "printf %s $(seq 1 9000) ");
    for (run, expected) in [
        (program(&["/nowhere/at-all"]), "the program at-all does not exist"),
        (program(&["/etc"]), "the program etc is not executable"),
        (
            CommandRun { cwd: Some("/nowhere".into()), ..program(&["cat"]) },
            "the folder in which cat should run (`cwd`) does not exist",
        ),
        (script("exit 3"), "the program exited with code 3"),
        (script("echo 'not \n today' >&2; exit 1"), "the program exited with code 1: not today"),
        (
            script("echo 'no way to https://bob:hunter2@db password=hunter2' >&2; exit 1"),
            "the program exited with code 1: no way to https://[redacted]@db password=[redacted]",
        ),
        (script("kill -9 $$"), "the program was ended by signal 9"),
        (script("kill -15 $$"), "the program was ended by signal 15"),
        (script("echo yes"), "the program's output is not JSON: expected value at line 1 column 1"),
        (
            script("echo '1 2'"),
            "the program's output is not JSON: trailing characters at line 1 column 3",
        ),
        (script("printf '\\377'"), "the program's output is not UTF-8"),
        (script(flood), "printed more than 1000 bytes"),
        (program(&["cat", &"x".repeat(200_000)]), "the arguments of cat are too long"),
    ] {
        let failure = outcome(run.clone()).await.unwrap_err();
        assert!(failure.starts_with(expected), "{run:?}: {failure}");
    }
    let failure = outcome(script(&long)).await.unwrap_err();
    let shown = failure.strip_prefix("the program exited with code 1: ").unwrap();
    // a leading space is removed
    let count = shown.chars().count();
    assert!((STDERR_CHARS_MAX - 1..=STDERR_CHARS_MAX).contains(&count), "{count}");
    assert!(shown.ends_with("9000"), "{shown}");
}

#[tokio::test]
async fn output_is_accepted_up_to_its_limit() {
    let quoted = |bytes: usize| format!("printf '\"%s\"' {}", "x".repeat(bytes - 2));
    let fits = outcome(script(&quoted(1000))).await;
    assert_eq!(fits, Ok(json!("x".repeat(998))));
    let run = CommandRun { output_bytes_max: Some(999), ..script(&quoted(1000)) };
    assert_eq!(outcome(run).await, Err("printed more than 999 bytes".to_owned()));
    // standard error does not count, and is read to its end
    let noisy = script(
        "i=0; while [ $i -lt 4000 ]; do echo xxxxxxxxxxxxxxxxxxxx >&2; i=$((i+1)); done; echo 1",
    );
    assert_eq!(outcome(noisy).await, Ok(json!(1)));
}

#[tokio::test]
async fn a_program_need_not_read_its_input() {
    let large = Arc::new(json!("x".repeat(1 << 20)));
    let run = CommandRun { input: Arc::clone(&large), ..script("echo 1") };
    assert_eq!(outcome(run).await, Ok(json!(1)));
    let run = CommandRun { input: Arc::clone(&large), ..script("exec <&-; echo 1") };
    assert_eq!(outcome(run).await, Ok(json!(1)));
    let run = CommandRun { input: large, ..script("wc -c") };
    assert_eq!(outcome(run).await, Ok(json!((1 << 20) + 2)));
}

#[tokio::test]
async fn a_program_gets_few_variables_and_its_output_has_no_secrets() {
    let text = |parts| UnresolvedText(parts);
    let run = CommandRun {
        env: vec![
            ("TOKEN".into(), text(vec![UnresolvedPart::Secret("CANARY".into())])),
            ("PLAIN".into(), text(vec![UnresolvedPart::Text("a b".to_owned())])),
        ],
        ..script("env | sed 's/=.*//' | sort | tr '\\n' ' ' | sed 's/.*/\"&\"/'")
    };
    let seen = outcome(run.clone()).await.unwrap();
    let names: Vec<_> = seen.as_str().unwrap().split_whitespace().collect();
    let set = ["GREENROOM_ATTEMPT", "GREENROOM_EXECUTION_ID", "GREENROOM_IDEMPOTENCY_KEY"];
    let allowed = ["HOME", "LANG", "PATH", "PWD", "SHLVL", "_", "PLAIN", "TOKEN", "OLDPWD"];
    assert!(names.iter().all(|name| set.contains(name) || allowed.contains(name)), "{names:?}");
    assert!(set.iter().chain(&["PLAIN", "TOKEN"]).all(|name| names.contains(name)), "{names:?}");
    let values = script(
        "echo \"[\\\"$GREENROOM_EXECUTION_ID $GREENROOM_ATTEMPT $GREENROOM_IDEMPOTENCY_KEY\\\"]\"",
    );
    assert_eq!(outcome(values).await, Ok(json!(["e1 2 e1/s"])));
    for (script_text, expected) in [
        ("echo \"$TOKEN\" >&2; exit 1", Err("the program exited with code 1: [secret]".to_owned())),
        ("printf '[\"%s\"]' \"$TOKEN\"", Ok(json!(["[secret]"]))),
        // with its first letter, a c, escaped
        ("printf '{\"\\\\u0063%s\":1}' \"${TOKEN#?}\"", Ok(json!({ "[secret]": 1 }))),
    ] {
        let run = CommandRun { env: run.env.clone(), ..script(script_text) };
        assert_eq!(outcome(run).await, expected);
    }
    let missing = text(vec![UnresolvedPart::Secret("NONE".into())]);
    let run = CommandRun { env: vec![("X".into(), missing)], ..script("echo 1") };
    let refused = Err("the environment variable NONE is not set".to_owned());
    assert_eq!(outcome(run).await, refused);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn memory_is_limited() {
    // each round doubles the text
    let eats = "cat >/dev/null; x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done";
    let failure = outcome(script(eats)).await.unwrap_err();
    assert!(failure.starts_with("the program "), "{failure}");
    let modest = script("x=x; i=0; while [ $i -lt 20 ]; do x=$x$x; i=$((i+1)); done; echo ${#x}");
    assert_eq!(outcome(modest).await, Ok(json!(1 << 20)));
}

/// Waits until a process has ended or is a zombie.
async fn gone(pid: &str) {
    let runs = || {
        let state = std::process::Command::new("ps").args(["-o", "stat=", "-p", pid]).output();
        let state = String::from_utf8(state.unwrap().stdout).unwrap();
        !state.trim().is_empty() && !state.trim_start().starts_with('Z')
    };
    while runs() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn processes_that_a_program_leaves_behind_are_killed() {
    let run = script("sleep 1000 & echo $!");
    let child = outcome(run).await.unwrap();
    gone(&child.to_string()).await;
    // also if one holds the output open
    let run = script("sleep 1000 & echo $!; exit 1");
    assert_eq!(outcome(run).await, Err("the program exited with code 1".to_owned()));
}

#[tokio::test]
async fn dropping_a_run_kills_the_program_and_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pids");
    // the file appears when both ids are in it
    let text =
        format!("sleep 1000 & echo $$ $! > '{0}.new'; mv '{0}.new' '{0}'; wait", path.display());
    let commands = commands();
    let running = tokio::spawn({
        let commands = commands.clone();
        async move { commands.run(script(&text), &origin()).await }
    });
    let pids = loop {
        if let Ok(text) = std::fs::read_to_string(&path) {
            break text;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    // another program would have to wait
    assert_eq!(commands.permits.available_permits(), 0);
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    for pid in pids.split_whitespace() {
        gone(pid).await;
    }
    assert_eq!(commands.run(program(&["cat"]), &origin()).await, Ok(json!({ "n": 1 })));
}
