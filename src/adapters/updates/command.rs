//! Installation by a configured command: no shell, empty input, an environment without secrets, and
//! a timeout.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::process::{Child, Command};

use crate::adapters::process::{Group, OUTPUT_GRACE, Pipe, Tail};
use crate::maintenance::{InstallError, Installer};

/// Placeholder for the package's name in arguments.
const PACKAGE: &str = "{package}";
/// Bytes of the end of the output that are logged.
const TAIL_BYTES: usize = 2048;
/// Environment variables that the command gets: paths and proxies, no keys of providers.
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
    /// Takes the program and its arguments; `None` if `argv` is empty.
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
    // Declared after the child, so that it is dropped first: until the child is reaped, no other
    // process can have the id of its group.
    let mut group = Group::of(&child);
    let mut tail = Tail::of(TAIL_BYTES);
    let ended = tokio::time::timeout(timeout, listen(&mut child, &mut tail)).await;
    if ended.is_err() {
        group.kill();
        // the process was killed: this resolves at once
        let _ = child.wait().await;
    }
    group.release();
    if !tail.is_empty() {
        log::info!("output of the install command: {tail}");
    }
    match ended {
        Err(_) => Err(InstallError::TooSlow(timeout)),
        Ok(Err(error)) => {
            log::error!(
                "cannot read the output or the exit status of the install command: {error}"
            );
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

/// Reads the output until the command ends.
async fn listen(child: &mut Child, tail: &mut Tail) -> io::Result<ExitStatus> {
    let (mut out, mut err) = (Pipe::of(child.stdout.take()), Pipe::of(child.stderr.take()));
    let status = loop {
        tokio::select! {
            bytes = out.read() => tail.push(bytes),
            bytes = err.read() => tail.push(bytes),
            status = child.wait() => break status?,
        }
    };
    // The last output may still be in the pipes.
    let rest = async {
        while out.is_open() || err.is_open() {
            tokio::select! {
                bytes = out.read() => tail.push(bytes),
                bytes = err.read() => tail.push(bytes),
            }
        }
    };
    // A process that it left running may hold them open.
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
