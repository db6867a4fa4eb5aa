//! Installing by a command of the operator's choice: no shell, nobody to answer its questions, an
//! environment without secrets, an end in time.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::process::{Child, Command};

use crate::adapters::process::{Group, OUTPUT_GRACE, Pipe, Tail};
use crate::upkeep::{InstallError, Installer};

/// Stands for the package's name in arguments.
const PACKAGE: &str = "{package}";
/// Of what the command says, so much of the end goes to the log.
const TAIL_BYTES: usize = 2048;
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
    let mut tail = Tail::of(TAIL_BYTES);
    let ended = tokio::time::timeout(timeout, listen(&mut child, &mut tail)).await;
    if ended.is_err() {
        group.kill();
        // Of a process that was killed: at once.
        let _ = child.wait().await;
    }
    group.release();
    if !tail.is_empty() {
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
}
