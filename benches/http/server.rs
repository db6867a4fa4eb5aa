//! The servers, each in a separate process.

use std::collections::VecDeque;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::Process;
use crate::{Outcome, bare, observers, token};

/// Time in which a server must start.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// Last lines of its log, shown if it fails.
const LINES_KEPT: usize = 20;
/// Text before the address that both print when they are ready.
pub(crate) const LISTENS: &str = "listens at http://";

const CONFIG: &str = include_str!("greenroom.toml");
/// Additional configuration of the quiet server.
const QUIET: &str = "\n[metrics]\nenabled = false\n\n[logs]\nlevel = \"off\"\n";
/// Additional configuration of each of several servers.
const CLUSTER: &str = "\n[cluster]\nlisten = \"127.0.0.1:0\"\n";
/// Additional configuration of the guarded server.
const GUARD: &str = "\n[auth.jwt]\nsecret = \"secret:JWT_SECRET\"\n";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Parses the bodies and waits for a group commit.
    Bare,
    Greenroom,
    /// Greenroom with authentication by token.
    Guarded,
    /// Greenroom without metrics, logs and telemetry.
    Quiet,
    /// Greenroom with metrics, stored logs, and all spans sent to a collector.
    Observed,
    /// [`Self::Observed`] with a WebSocket that reads every span.
    Watched,
    /// Greenroom with SQLite, beside others with PostgreSQL.
    Embedded,
    /// Several servers over one database.
    Members,
    /// [`Self::Members`] whose second request of a unit is sent to another one than the first.
    Scattered,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Bare,
        Self::Greenroom,
        Self::Guarded,
        Self::Quiet,
        Self::Observed,
        Self::Watched,
        Self::Embedded,
        Self::Members,
        Self::Scattered,
    ];

    /// Returns true for several servers.
    pub(crate) fn is_cluster(self) -> bool {
        matches!(self, Self::Members | Self::Scattered)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Greenroom => "greenroom",
            Self::Guarded => "guarded",
            Self::Quiet => "quiet",
            Self::Observed => "observed",
            Self::Watched => "watched",
            Self::Embedded => "sqlite",
            Self::Members => "members",
            Self::Scattered => "scattered",
        }
    }

    /// Returns the command that serves with a store in a database, or else in the directory.
    fn command(self, directory: &Path, database: Option<&str>) -> Outcome<Command> {
        let config = match database {
            Some(url) => format!("{CONFIG}\n[store]\nurl = \"{url}\"\n"),
            None => CONFIG.to_owned(),
        };
        match self {
            Self::Bare => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg(bare::ARGUMENT).args(database);
                Ok(command)
            }
            Self::Greenroom | Self::Embedded => greenroom(directory, &config),
            Self::Members | Self::Scattered => greenroom(directory, &format!("{config}{CLUSTER}")),
            Self::Quiet => greenroom(directory, &format!("{config}{QUIET}")),
            Self::Observed | Self::Watched => {
                let collector = observers::collector()?;
                let telemetry = format!("\n[telemetry]\nendpoint = \"http://{collector}\"\n");
                greenroom(directory, &format!("{config}{telemetry}"))
            }
            Self::Guarded => {
                let mut command = greenroom(directory, &format!("{config}{GUARD}"))?;
                command.env(token::SECRET_VARIABLE, token::SECRET);
                Ok(command)
            }
        }
    }
}

fn greenroom(directory: &Path, config: &str) -> Outcome<Command> {
    let path = directory.join("config.toml");
    std::fs::write(&path, config)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.arg("serve").arg("--config").arg(path);
    Ok(command)
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(())
    }
}

/// A running server with an empty store. Ends on drop.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    lines: Arc<Mutex<VecDeque<String>>>,
    /// Last, so that it is dropped after the process.
    _directory: TempDir,
}

impl Server {
    /// Starts a server and waits until it listens. Its store is in the given empty database, or else
    /// under `target`.
    pub(crate) fn start(kind: Kind, database: Option<&str>) -> Outcome<Self> {
        if kind == Kind::Bare && database.is_some() {
            // makes the tables, and ends
            Self::start(Kind::Greenroom, database)?;
        }
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let mut child = kind
            .command(directory.path(), database)?
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let (ready, is_ready) = channel();
        if let Some(output) = child.stderr.take() {
            let lines = lines.clone();
            std::thread::spawn(move || read_lines(output, &lines, &ready));
        }
        let no_address = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = Self { child, address: no_address, lines, _directory: directory };
        server.address = wait_for(&is_ready)
            .map_err(|error| format!("{kind}: {error}\n{}", server.last_lines()))?;
        if kind == Kind::Watched {
            observers::watch(server.address)?;
        }
        Ok(server)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn process(&self) -> Process {
        Process { id: self.child.id() }
    }

    /// Fails if the server has ended: then the sample is invalid.
    pub(crate) fn check_alive(&mut self) -> Outcome<()> {
        match self.child.try_wait()? {
            Some(status) => Err(format!("the server has ended: {status}").into()),
            None => Ok(()),
        }
    }

    /// Returns the last lines of its log.
    pub(crate) fn last_lines(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // both fail if the process has ended already
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the log to its end, so that the server never blocks on it.
fn read_lines(
    output: ChildStderr,
    last_lines: &Mutex<VecDeque<String>>,
    ready: &Sender<SocketAddr>,
) {
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        if let Some((_, rest)) = line.split_once(LISTENS)
            && let Ok(address) = rest.trim().parse()
        {
            // only the first address is received
            let _ = ready.send(address);
        }
        let mut last_lines = last_lines.lock().unwrap_or_else(PoisonError::into_inner);
        if last_lines.len() == LINES_KEPT {
            last_lines.pop_front();
        }
        last_lines.push_back(line);
    }
}

fn wait_for(ready: &Receiver<SocketAddr>) -> Outcome<SocketAddr> {
    ready.recv_timeout(START_TIMEOUT).map_err(|error| format!("it does not start: {error}").into())
}
