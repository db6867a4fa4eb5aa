//! Programs, for steps and for tools: no shell, JSON in and out, an environment without the
//! server's secrets, limits on everything, and an end of all processes that they start.

mod tool;

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use greenroom_actors::domain::call::CommandRun;
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use greenroom_actors::domain::foreign;
use greenroom_actors::domain::trace::Trace;
use greenroom_actors::ports::external_calls::CallOrigin;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::Semaphore;

pub use self::tool::CommandTool;

use super::secrets::{Known, SecretLookup};
use crate::adapters::process::{Group, OUTPUT_GRACE, Pipe, Tail};
use crate::telemetry::redact::redact_unknown;

/// Variables that a program gets of the server's environment.
const VARIABLES: [&str; 3] = ["PATH", "HOME", "LANG"];
/// Last bytes of standard error that are stored. More than are shown, so that secrets are found
/// whole.
const STDERR_BYTES_MAX: usize = 16 << 10;
/// Last characters of standard error that are shown.
const STDERR_CHARS_MAX: usize = 500;

/// Runs programs. Clones share the limit of concurrent programs.
#[derive(Debug, Clone)]
pub struct Commands {
    pub secrets: SecretLookup,
    /// Default limit of each process.
    pub memory_bytes_max: u64,
    /// Default limit of the output.
    pub output_bytes_max: u64,
    /// Limit of concurrent programs; others wait.
    pub permits: Arc<Semaphore>,
}

/// Output of a program, within its limit.
struct Printed {
    output: Vec<u8>,
    bytes_max: usize,
    stderr: Tail,
}

/// The program has printed more than its limit.
struct TooMuch;

impl Commands {
    /// Runs a program to its end. Texts of failures are fit for models and callers. Dropping the
    /// future kills the program and everything that it started. There is no timeout: every caller
    /// has one.
    pub async fn run(&self, run: CommandRun, origin: &CallOrigin) -> Result<Value, AttemptFailure> {
        let not_made = |why: String| AttemptFailure::new(ErrorKind::Request, why);
        let resolved = self.secrets.resolve(run.env.iter().map(|(name, text)| (name, text)));
        let resolved = resolved.map_err(not_made)?;
        for (name, value) in &resolved.texts {
            if value.contains('\0') {
                let why = format!("env.{name}: contains a zero byte, which no variable can hold");
                return Err(not_made(why));
            }
        }
        let Ok(_permit) = self.permits.acquire().await else {
            return Err(not_made("the server no longer runs programs".to_owned()));
        };
        let mut command = command_for(&run, origin);
        command.envs(resolved.texts.iter().map(|(name, value)| (&**name, value)));
        let mut child = command.spawn().map_err(|error| not_started(&error, &run, origin))?;
        // Declared after the child, so that it is dropped first: until the child is reaped, no
        // other process can have the id of its group.
        let mut group = Group::of(&child);
        group.limit_memory(run.memory_bytes_max.unwrap_or(self.memory_bytes_max));
        let bytes_max = run.output_bytes_max.unwrap_or(self.output_bytes_max);
        let mut printed = Printed {
            output: Vec::new(),
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            stderr: Tail::of(STDERR_BYTES_MAX),
        };
        let input = run.input.to_string();
        let ended = run_to_end(&mut child, &mut group, input, &mut printed).await;
        // the processes that it has started end with it
        group.kill();
        let status = child.wait().await;
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(TooMuch)) => {
                let why = format!("printed more than {bytes_max} bytes");
                return Err(AttemptFailure::new(ErrorKind::Limit, why));
            }
            Err(error) => return Err(lost(&error, origin)),
        }
        outcome(status.map_err(|error| lost(&error, origin))?, printed, &resolved.secrets)
    }
}

fn command_for(run: &CommandRun, origin: &CallOrigin) -> Command {
    let mut command = Command::new(&*run.program);
    command
        .args(&run.arguments)
        .env_clear()
        .envs(passed_on(|name| std::env::var_os(name)))
        .env("GREENROOM_IDEMPOTENCY_KEY", origin.idempotency_key.replace('\0', "%00"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some((execution, attempt)) = &origin.attempt {
        command
            .env("GREENROOM_EXECUTION_ID", execution.as_str())
            .env("GREENROOM_ATTEMPT", attempt.to_string());
    }
    if let Some(trace) = origin.trace.as_ref().and_then(Trace::traceparent) {
        command.env("TRACEPARENT", trace);
    }
    if let Some(folder) = &run.cwd {
        command.current_dir(&**folder);
    }
    command
}

fn passed_on(
    environment: impl Fn(&str) -> Option<OsString>,
) -> impl Iterator<Item = (&'static str, OsString)> {
    VARIABLES.into_iter().filter_map(move |name| Some((name, environment(name)?)))
}

/// Writes the input and reads the output until the program ends.
async fn run_to_end(
    child: &mut Child,
    group: &mut Group,
    input: String,
    printed: &mut Printed,
) -> io::Result<Result<(), TooMuch>> {
    let (mut out, mut err) = (Pipe::of(child.stdout.take()), Pipe::of(child.stderr.take()));
    {
        let mut feeding = std::pin::pin!(feed(child.stdin.take(), input));
        let mut ended = std::pin::pin!(group.ended());
        let mut is_fed = false;
        loop {
            tokio::select! {
                bytes = out.read() => if printed.take(bytes).is_err() { return Ok(Err(TooMuch)) },
                bytes = err.read() => printed.stderr.push(bytes),
                () = &mut feeding, if !is_fed => is_fed = true,
                ended = &mut ended => break ended?,
            }
        }
    }
    group.kill();
    // The last output may still be in the pipes.
    let rest = async {
        while out.is_open() || err.is_open() {
            tokio::select! {
                bytes = out.read() => printed.take(bytes)?,
                bytes = err.read() => printed.stderr.push(bytes),
            }
        }
        Ok(())
    };
    // A process that has left the group may hold them open.
    Ok(tokio::time::timeout(OUTPUT_GRACE, rest).await.unwrap_or(Ok(())))
}

/// Writes the input. A program that does not read it does not fail.
async fn feed(stdin: Option<ChildStdin>, input: String) {
    if let Some(mut stdin) = stdin
        && stdin.write_all(input.as_bytes()).await.is_ok()
    {
        let _ = stdin.shutdown().await;
    }
}

impl Printed {
    fn take(&mut self, bytes: &[u8]) -> Result<(), TooMuch> {
        if self.output.len() + bytes.len() > self.bytes_max {
            return Err(TooMuch);
        }
        self.output.extend_from_slice(bytes);
        Ok(())
    }
}

fn outcome(status: ExitStatus, printed: Printed, secrets: &Known) -> Result<Value, AttemptFailure> {
    let stderr = || {
        let text = redact_unknown(secrets.removed_from(printed.stderr.text()));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let surplus = text.chars().count().saturating_sub(STDERR_CHARS_MAX);
        let text: String = text.chars().skip(surplus).collect();
        let text = text.trim_start();
        if text.is_empty() { String::new() } else { format!(": {text}") }
    };
    match (status.code(), status.signal()) {
        (Some(0), _) => output(printed.output, secrets),
        (Some(code), _) => Err(failed(format!("the program exited with code {code}{}", stderr()))),
        (None, Some(signal)) => {
            Err(failed(format!("the program was ended by signal {signal}{}", stderr())))
        }
        (None, None) => Err(failed("the program ended without an exit code")),
    }
}

/// Parses the output as JSON; `null` if nothing was printed.
fn output(bytes: Vec<u8>, secrets: &Known) -> Result<Value, AttemptFailure> {
    let unreadable = |why: String| AttemptFailure::new(ErrorKind::Response, why);
    let text = String::from_utf8(bytes);
    let text = text.map_err(|_| unreadable("the program's output is not UTF-8".to_owned()))?;
    let text = secrets.removed_from(text);
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let value = foreign::from_str(&text);
    value.map_err(|error| unreadable(format!("the program's output is not JSON: {error}")))
}

fn failed(message: impl Into<String>) -> AttemptFailure {
    AttemptFailure::new(ErrorKind::Command, message)
}

/// Makes a text for callers that names the program without paths of this machine, and logs the
/// rest.
fn not_started(error: &io::Error, run: &CommandRun, origin: &CallOrigin) -> AttemptFailure {
    let CommandRun { program, cwd, .. } = run;
    log::warn!("{}: {program} cannot be started: {error}", origin.name);
    let name = std::path::Path::new(&**program).file_name();
    let name = name.map_or(Cow::Borrowed("?"), |name| name.to_string_lossy());
    let folder = cwd.as_ref().filter(|folder| !std::path::Path::new(&***folder).is_dir());
    failed(match error.kind() {
        _ if folder.is_some() => {
            format!("the folder in which {name} should run (`cwd`) does not exist")
        }
        io::ErrorKind::NotFound => format!("the program {name} does not exist"),
        io::ErrorKind::PermissionDenied => format!("the program {name} is not executable"),
        io::ErrorKind::ArgumentListTooLong => {
            format!("the arguments of {name} are too long; pass large values as input")
        }
        kind => format!("the program {name} cannot be started: {kind}"),
    })
}

fn lost(error: &io::Error, origin: &CallOrigin) -> AttemptFailure {
    log::error!("{}: cannot read the program's output or exit status: {error}", origin.name);
    failed("the result of the program is unknown")
}

#[cfg(test)]
mod tests;
