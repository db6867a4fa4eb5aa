//! Installing by a command of the operator's choice: no shell, nobody to answer its questions, an
//! environment without secrets, an end in time.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use crate::upkeep::{InstallError, Installer};

/// Stands for the package's name in arguments.
const PACKAGE: &str = "{package}";
/// Of what the command says, so much of the end goes to the log.
const TAIL_BYTES: usize = 2048;
/// How long the output may stay open behind the command's end, where somebody inherited it.
const OUTPUT_GRACE: Duration = Duration::from_millis(200);
/// All that the command sees of the environment: where things are, and the way out. A key of a
/// provider is none of its business.
const VARIABLES: [&str; 16] = [
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// A program with its arguments, run to install a package.
#[derive(Debug, Clone)]
pub struct InstallCommand {
    program: String,
    arguments: Vec<String>,
    timeout: Duration,
}

impl InstallCommand {
    /// Takes the program and its arguments; `None` when there is no program.
    pub fn new(argv: &[String], timeout: Duration) -> Option<Self> {
        let (program, arguments) = argv.split_first()?;
        Some(Self { program: program.clone(), arguments: arguments.to_vec(), timeout })
    }

    fn command_for(&self, package: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(self.arguments.iter().map(|argument| argument.replace(PACKAGE, package)))
            .env_clear()
            .envs(passed_on(|name| std::env::var_os(name)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command
    }
}

impl Installer for InstallCommand {
    fn install(&self, package: &str) -> BoxFuture<'static, Result<(), InstallError>> {
        let (command, timeout) = (self.command_for(package), self.timeout);
        run(command, timeout).boxed()
    }
}

fn passed_on(
    environment: impl Fn(&str) -> Option<OsString>,
) -> impl Iterator<Item = (&'static str, OsString)> {
    VARIABLES.into_iter().filter_map(move |name| Some((name, environment(name)?)))
}

async fn run(mut command: Command, timeout: Duration) -> Result<(), InstallError> {
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => InstallError::Missing,
        kind => InstallError::NotStarted(kind.to_string()),
    })?;
    // Behind the child, so that it goes first: until the child is waited for, nobody else can
    // have the number of its group.
    let mut group = Group::of(&child);
    let mut tail = Tail::default();
    let ended = tokio::time::timeout(timeout, listen(&mut child, &mut tail)).await;
    if ended.is_err() {
        group.kill();
        // Of a process that was killed: at once.
        let _ = child.wait().await;
    }
    group.release();
    if !tail.0.is_empty() {
        log::info!("the install command said: {tail}");
    }
    match ended {
        Err(_) => Err(InstallError::TooSlow(timeout)),
        Ok(Err(error)) => {
            log::error!("the install command was lost: {error}");
            Err(InstallError::GivenUp)
        }
        Ok(Ok(status)) => outcome(status),
    }
}

fn outcome(status: ExitStatus) -> Result<(), InstallError> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(InstallError::ExitCode(code)),
        (None, Some(signal)) => Err(InstallError::Signal(signal)),
        (None, None) => Err(InstallError::GivenUp),
    }
}

/// Hears the command to its end.
async fn listen(child: &mut Child, tail: &mut Tail) -> io::Result<ExitStatus> {
    let (mut out, mut err) = (Pipe::of(child.stdout.take()), Pipe::of(child.stderr.take()));
    let status = loop {
        tokio::select! {
            said = out.read() => tail.push(said),
            said = err.read() => tail.push(said),
            status = child.wait() => break status?,
        }
    };
    // What it said last may still be in the pipes.
    let rest = async {
        while out.is_open() || err.is_open() {
            tokio::select! {
                said = out.read() => tail.push(said),
                said = err.read() => tail.push(said),
            }
        }
    };
    // Somebody whom it left behind may hold them open.
    let _ = tokio::time::timeout(OUTPUT_GRACE, rest).await;
    Ok(status)
}

/// One of the command's outputs.
struct Pipe<R> {
    reader: Option<R>,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn of(reader: Option<R>) -> Self {
        Self { reader, buffer: vec![0; TAIL_BYTES] }
    }

    fn is_open(&self) -> bool {
        self.reader.is_some()
    }

    /// What comes next. A closed pipe waits for ever, so that others get their turn.
    async fn read(&mut self) -> &[u8] {
        let Some(reader) = &mut self.reader else { return std::future::pending().await };
        let count = reader.read(&mut self.buffer).await.unwrap_or(0);
        if count == 0 {
            self.reader = None;
        }
        &self.buffer[..count]
    }
}

/// The end of what was said.
#[derive(Debug, Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    fn push(&mut self, said: &[u8]) {
        self.0.extend(said);
        let surplus = self.0.len().saturating_sub(TAIL_BYTES);
        self.0.drain(..surplus);
    }
}

impl std::fmt::Display for Tail {
    /// On one line, with nothing in it that a terminal would obey.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes: Vec<u8> = self.0.iter().copied().collect();
        for char in String::from_utf8_lossy(&bytes).trim_end().chars() {
            match char {
                '"' | '\'' => f.write_char(char)?,
                _ => write!(f, "{}", char.escape_debug())?,
            }
        }
        Ok(())
    }
}

/// The command and everything that it started. Ended when it goes out of scope before the command
/// has ended.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)))
    }

    fn kill(&mut self) {
        if let Some(group) = self.0.take()
            && let Err(error) = kill_process_group(group, Signal::KILL)
        {
            log::warn!("the install command was not ended: {error}");
        }
    }

    /// The command has ended: its number may be somebody else's.
    fn release(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_is_passed_on() {
        let environment = |name: &str| Some(OsString::from(format!("<{name}>")));
        let passed: Vec<_> = passed_on(environment).map(|(name, _)| name).collect();
        assert_eq!(passed, VARIABLES);
        for name in ["OPENAI_API_KEY", "JWT_SECRET", "SERVICE_SECRET_KEY", "LD_PRELOAD"] {
            assert!(!passed.contains(&name), "{name}");
        }
        assert_eq!(passed_on(|_| None).count(), 0);
    }

    #[test]
    fn arguments_name_the_package_and_programs_do_not() {
        let argv = ["{package}", "add", "--name={package}", "{package}"].map(str::to_owned);
        let command = InstallCommand::new(&argv, Duration::from_secs(1)).unwrap();
        let made = command.command_for("greenroom");
        let made = made.as_std();
        assert_eq!(made.get_program(), "{package}");
        let arguments: Vec<_> = made.get_args().collect();
        assert_eq!(arguments, ["add", "--name=greenroom", "greenroom"]);
        assert!(InstallCommand::new(&[], Duration::from_secs(1)).is_none());
    }

    #[test]
    fn the_end_of_what_was_said_is_shown_harmlessly() {
        let rows: [(&[&[u8]], &str); 5] = [
            (&[b"one\n", b"two\n"], "one\\ntwo"),
            (&[b"it's \"fine\""], "it's \"fine\""),
            (&[b"\x1b[2J\rgone\x07"], "\\u{1b}[2J\\rgone\\u{7}"),
            (&[b"\xff", "\u{202e}abc".as_bytes()], "\u{fffd}\\u{202e}abc"),
            (&[b"  \n"], ""),
        ];
        for (said, shown) in rows {
            let mut tail = Tail::default();
            said.iter().for_each(|part| tail.push(part));
            assert_eq!(tail.to_string(), shown);
        }
        let mut tail = Tail::default();
        (0..1000).for_each(|number| tail.push(format!("{number};").as_bytes()));
        let shown = tail.to_string();
        assert_eq!(shown.len(), TAIL_BYTES);
        assert!(shown.ends_with(";998;999;"), "{shown}");
    }
}
