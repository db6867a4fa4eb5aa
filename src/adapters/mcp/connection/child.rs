//! Programs that are MCP servers: their environment, their process group and their end.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::adapters::process::{Group, OUTPUT_GRACE, Pipe, Tail, on_one_line};
use crate::adapters::tools::secrets::Known;
use crate::telemetry::redact::redact_unknown;

/// Variables that a program gets of the server's environment.
const VARIABLES: [&str; 2] = ["PATH", "HOME"];
/// Last bytes of standard error that are kept.
const STDERR_BYTES_MAX: usize = 4096;

/// A program to start.
pub(crate) struct Start<'s> {
    pub(crate) argv: &'s [String],
    /// Its variables, with their secrets.
    pub(crate) env: Vec<(Arc<str>, String)>,
    pub(crate) cwd: Option<&'s str>,
    /// Limit of each of its processes.
    pub(crate) memory_bytes_max: u64,
    /// Secrets that are removed from what it prints.
    pub(crate) secrets: Arc<Known>,
}

/// A running program. It is killed with everything that it started when this is dropped.
pub(crate) struct Program {
    // before the child: until that is reaped, no other process can have the id of its group
    group: Group,
    child: Child,
    stderr: Arc<Mutex<Tail>>,
    reading: JoinHandle<()>,
    secrets: Arc<Known>,
}

impl Start<'_> {
    /// Starts the program. The error is fit for operators.
    pub(crate) fn start(self) -> Result<(Program, ChildStdin, ChildStdout), String> {
        let Self { argv, env, cwd, memory_bytes_max, secrets } = self;
        let Some((program, arguments)) = argv.split_first() else {
            return Err("it names no program".to_owned());
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(passed_on())
            .envs(env.iter().map(|(name, value)| (&**name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(folder) = cwd {
            command.current_dir(folder);
        }
        let mut child = command.spawn().map_err(|error| not_started(&error, program, cwd))?;
        let group = Group::of(&child);
        group.limit_memory(memory_bytes_max);
        let stderr = Arc::new(Mutex::new(Tail::of(STDERR_BYTES_MAX)));
        let reading = tokio::spawn(read(Pipe::of(child.stderr.take()), Arc::clone(&stderr)));
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or("its output cannot be read")?;
        Ok((Program { group, child, stderr, reading, secrets }, stdin, stdout))
    }
}

impl Program {
    /// Waits until the program has ended by itself.
    pub(crate) async fn ended(&self) {
        if let Err(error) = self.group.ended().await {
            log::warn!("cannot wait for the program of an MCP server: {error}");
            std::future::pending::<()>().await;
        }
    }

    /// Gives the program some time to end by itself after its input was closed, then kills what is
    /// left of its group. Returns how it ended, with the end of its standard error.
    pub(crate) async fn end(mut self, grace: Duration) -> String {
        let is_killed = timeout(grace, self.ended()).await.is_err();
        self.group.kill();
        let status = self.child.wait().await;
        // another process may hold it open
        if timeout(OUTPUT_GRACE, &mut self.reading).await.is_err() {
            self.reading.abort();
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = last_words(&stderr, &self.secrets);
        let said = if stderr.is_empty() { String::new() } else { format!(": {stderr}") };
        match status {
            Ok(status) if !is_killed => format!("the program {}{said}", how(status)),
            _ if stderr.is_empty() => String::new(),
            _ => format!("the program printed{said}"),
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

fn passed_on() -> impl Iterator<Item = (&'static str, OsString)> {
    VARIABLES.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

async fn read(mut stderr: Pipe<tokio::process::ChildStderr>, tail: Arc<Mutex<Tail>>) {
    while stderr.is_open() {
        let bytes = stderr.read().await;
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

/// Returns what was printed last, on one line. A secret is also removed if its begin is missing.
fn last_words(stderr: &Tail, secrets: &Known) -> String {
    let text = stderr.text();
    let text = match stderr.is_full() {
        // the first character may have been cut as well
        true => secrets.removed_from_end(text.trim_start_matches('\u{fffd}')),
        false => secrets.removed_from(text),
    };
    // before its escapes are written out
    on_one_line(&redact_unknown(text))
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

fn not_started(error: &io::Error, program: &str, cwd: Option<&str>) -> String {
    match error.kind() {
        _ if cwd.is_some_and(|folder| !Path::new(folder).is_dir()) => {
            "its folder does not exist".to_owned()
        }
        io::ErrorKind::NotFound => format!("the program {program} does not exist"),
        io::ErrorKind::PermissionDenied => format!("the program {program} is not executable"),
        kind => format!("the program {program} cannot be started: {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> Program {
        let argv = ["sh", "-c", script].map(str::to_owned);
        let env = vec![("GREETING".into(), "hello".to_owned())];
        let secrets = Arc::default();
        let start = Start { argv: &argv, env, cwd: None, memory_bytes_max: 1 << 30, secrets };
        start.start().unwrap().0
    }

    #[tokio::test]
    async fn the_end_of_a_program_has_its_last_words() {
        for (script, expected) in [
            ("exit 3", "the program ended with exit code 3"),
            ("echo \"$GREETING\" >&2; exit 1", "the program ended with exit code 1: hello"),
            ("kill -9 $$", "the program was ended by signal 9"),
            // the environment has nothing else
            ("env | grep -c CARGO >&2", "the program ended with exit code 1: 0"),
        ] {
            assert_eq!(shell(script).end(GRACE).await, expected, "{script}");
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_program_that_stays_is_killed_with_its_children() {
        let program = shell("sleep 1000 & echo $! >&2; wait");
        while program.stderr.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let said = program.end(Duration::ZERO).await;
        let pid = said.strip_prefix("the program printed: ").unwrap();
        // a process that was killed can stay as a zombie until it is reaped
        let is_running = || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !(status.is_empty() || status.contains(") Z "))
        };
        let gone = async {
            while is_running() {
                tokio::task::yield_now().await;
            }
        };
        timeout(GRACE, gone).await.unwrap();
    }

    #[tokio::test]
    async fn a_program_that_cannot_be_started_is_named() {
        for (program, cwd, expected) in [
            ("/nowhere/program", None, "the program /nowhere/program does not exist"),
            ("/etc/passwd", None, "the program /etc/passwd is not executable"),
            ("true", Some("/nowhere"), "its folder does not exist"),
        ] {
            let argv = [program.to_owned()];
            let (env, secrets) = (Vec::new(), Arc::default());
            let start = Start { argv: &argv, env, cwd, memory_bytes_max: 1 << 30, secrets };
            assert_eq!(start.start().map(drop).unwrap_err(), expected);
        }
    }

    #[test]
    fn last_words_have_no_secrets() {
        let secrets = Known::of(["k3y-of-it"]);
        let rest = "x".repeat(STDERR_BYTES_MAX - 3);
        for (printed, shown) in [
            ("at k3y-of-it\nend\n".to_owned(), "at [secret]\\nend".to_owned()),
            (
                "\u{1b}[31mghp_0123456789\u{1b}[0m\npassword=x1\nend".to_owned(),
                "\\u{1b}[31m[redacted]\\u{1b}[0m\\npassword=[redacted]\\nend".to_owned(),
            ),
            (format!("k3y-of-it{rest}"), rest),
            (
                format!("\u{e4}\u{e4}{}", "x".repeat(STDERR_BYTES_MAX - 1)),
                "x".repeat(STDERR_BYTES_MAX - 1),
            ),
        ] {
            let mut tail = Tail::of(STDERR_BYTES_MAX);
            tail.push(printed.as_bytes());
            assert_eq!(last_words(&tail, &secrets), shown);
        }
    }
}
