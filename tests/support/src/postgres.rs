//! PostgreSQL for tests: the installed one, with its data in a temporary folder.
//!
//! Where it is not installed, each way in gives `None` after [`not_tested`] has reported it.

mod installed;
#[cfg(test)]
mod tests;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::listener::reserved_port;
use crate::not_tested;
use installed::Installed;

/// The role of [`Server::url`]; it owns its schemas and databases, and nothing else.
const ROLE: &str = "greenroom";
/// Password of all roles.
pub const PASSWORD: &str = "not-a-secret";
/// Settings of every server. No file is synchronized: what the system has been given survives the
/// end of any process, and no test switches the machine off.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("fsync", "off"),
    // tests run side by side, each with several connections
    ("max_connections", "300"),
    ("shared_buffers", "32MB"),
    ("autovacuum_naptime", "10s"),
];
/// Stops the server and removes its folder when the process of the test is gone, however it ended.
const GUARD: &str = r#"read -r _; "$0" stop -s -D "$1/data" -m immediate; rm -rf "$1""#;

/// Proof of identity that a server demands of its clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Auth {
    /// By their word.
    #[default]
    Trust,
    /// By a password, which is in every [`Server::url`].
    Scram,
}

/// A server with its own data. It is stopped and removed when it goes out of scope, and also when
/// the process is killed.
#[derive(Debug)]
pub struct Server {
    installed: Installed,
    directory: TempDir,
    guard: Child,
    auth: Auth,
    port: u16,
    /// Number of schemas and databases made by the `fresh` functions.
    fresh: AtomicU32,
}

/// Returns the URL of a new schema of the [`Server::shared`] server.
pub fn fresh_url() -> Option<String> {
    Server::shared().map(Server::fresh_url)
}

impl Server {
    /// Returns the server that all tests of this process share; the first call starts it. It must
    /// stay up: outages are for servers by [`Server::start`].
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Server>> = OnceLock::new();
        SHARED.get_or_init(Self::start).as_ref()
    }

    /// Starts a server with its own data, which takes about a second.
    pub fn start() -> Option<Self> {
        Self::start_with(Auth::default(), &[])
    }

    /// Starts a server with settings of `postgresql.conf`; these are stronger than those that every
    /// server of tests gets.
    ///
    /// # Panics
    ///
    /// With what PostgreSQL says if it does not start.
    pub fn start_with(auth: Auth, settings: &[(&str, &str)]) -> Option<Self> {
        let installed = match Installed::find() {
            Ok(installed) => installed,
            Err(missing) => {
                not_tested("PostgreSQL", &missing);
                return None;
            }
        };
        // a short name: it is part of the path of a socket
        let directory = tempfile::Builder::new().prefix("pg").tempdir().unwrap();
        installed.give(directory.path());
        let guard = guard(&installed, directory.path());
        let (port, fresh) = (reserved_port(), AtomicU32::new(0));
        let server = Self { installed, directory, guard, auth, port, fresh };
        server.create(settings);
        server.start_again();
        let greenroom = format!("CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'");
        let at_first = server.address("postgres", "postgres");
        for sql in [&*greenroom, &format!("CREATE DATABASE {ROLE} OWNER {ROLE}")] {
            server.answer(&at_first, sql).unwrap();
        }
        // once for all schemas: in the schema of one test, no other test would find them
        server.sql("CREATE EXTENSION pg_trgm; CREATE EXTENSION btree_gin");
        Some(server)
    }

    /// Makes the data and the configuration.
    fn create(&self, settings: &[(&str, &str)]) {
        let password = self.path("password");
        fs::write(&password, PASSWORD).unwrap();
        self.installed.give(&password);
        let mut initdb = self.command("initdb");
        initdb.arg("-D").arg(self.path("data"));
        initdb.arg("--pwfile").arg(password);
        let auth = match self.auth {
            Auth::Trust => "--auth=trust",
            Auth::Scram => "--auth=scram-sha-256",
        };
        initdb.args(["--username=postgres", auth, "--no-sync"]);
        initdb.args(["--encoding=UTF8", "--locale=C.UTF-8"]);
        said(initdb).unwrap();

        let port = self.port.to_string();
        let folder = self.directory.path().to_str().expect("a temporary folder has a plain name");
        let own = [("port", &*port), ("unix_socket_directories", folder)];
        let file = self.path("data/postgresql.conf");
        let mut file = OpenOptions::new().append(true).open(file).unwrap();
        for (name, value) in SETTINGS.iter().chain(&own).chain(settings) {
            writeln!(file, "{name} = '{value}'").unwrap();
        }
    }

    /// Ends the server as a crash would: connections break, and what was not committed is gone.
    pub fn stop_immediate(&self) {
        self.control(&["stop", "-m", "immediate"]);
    }

    /// Starts the server after [`Server::stop_immediate`], at the same port and with its data.
    /// Returns when it accepts connections.
    pub fn start_again(&self) {
        let log = self.path("log");
        let log = log.to_str().expect("a temporary folder has a plain name");
        self.control(&["start", "-w", "-l", log]);
    }

    /// Runs `pg_ctl`; panics with the server's log if it fails.
    fn control(&self, arguments: &[&str]) {
        let mut control = self.command("pg_ctl");
        control.args(arguments).arg("-s").arg("-D").arg(self.path("data"));
        if let Err(failure) = said(control) {
            let log = fs::read_to_string(self.path("log")).unwrap_or_default();
            panic!("{failure}\n{log}");
        }
    }

    /// Returns the port, which a server keeps for its life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of an empty database, for its owner. The extensions `pg_trgm` and
    /// `btree_gin` are in its schema `public`.
    pub fn url(&self) -> String {
        self.address(ROLE, ROLE)
    }

    /// Returns the URL of an empty schema in that database. It has the schema in its `options`,
    /// before `public`.
    pub fn fresh_url(&self) -> String {
        let schema = self.fresh_name();
        self.sql(&format!("CREATE SCHEMA {schema} AUTHORIZATION {ROLE}"));
        format!("{}?options=-c%20search_path%3D{schema}%2Cpublic", self.url())
    }

    /// Returns the URL of a new database without any extension, for its owner. It costs more time
    /// and disk than a schema.
    pub fn fresh_database(&self) -> String {
        let database = self.fresh_name();
        self.sql(&format!("CREATE DATABASE {database} OWNER {ROLE} STRATEGY file_copy"));
        self.address(ROLE, &database)
    }

    fn fresh_name(&self) -> String {
        format!("fresh_{}", self.fresh.fetch_add(1, Ordering::Relaxed))
    }

    /// Runs SQL in the database of [`Server::url`], as the superuser; returns the rows as lines, the
    /// columns separated by `|`.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn sql(&self, sql: &str) -> String {
        self.answer(&self.address("postgres", ROLE), sql).unwrap()
    }

    /// Runs SQL at a URL, also of a [`Proxy`](crate::proxy::Proxy); returns the rows as
    /// [`Server::sql`] does, or the error as `psql` says it.
    pub fn answer(&self, url: &str, sql: &str) -> Result<String, String> {
        said(self.psql(url, sql)).map(|rows| rows.trim_end().to_owned())
    }

    /// Returns the command that runs SQL at a URL, to be started beside a test.
    pub fn psql(&self, url: &str, sql: &str) -> Command {
        let mut psql = self.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, url]);
        psql
    }

    fn address(&self, role: &str, database: &str) -> String {
        let password = match self.auth {
            Auth::Trust => String::new(),
            Auth::Scram => format!(":{PASSWORD}"),
        };
        format!("postgres://{role}{password}@127.0.0.1:{}/{database}", self.port)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.installed.command(program);
        // the folder of the test may be closed to the account that runs this
        command.current_dir(self.directory.path()).stdin(Stdio::null());
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // its input ends with this process, or now
        let _ = self.guard.wait();
    }
}

fn guard(installed: &Installed, directory: &Path) -> Child {
    let mut guard = installed.shell(GUARD);
    guard.arg(installed.path("pg_ctl")).arg(directory).current_dir("/");
    guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    // signals of the terminal are for the test: this one has to outlive it
    guard.process_group(0);
    guard.spawn().unwrap()
}

/// Runs a program; returns its output, or what it complains about.
fn said(mut command: Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let [out, complaint] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    Err(format!("{command:?}: {}\n{complaint}{out}", output.status))
}
