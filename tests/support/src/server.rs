//! The process under test.

use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Event, Events, Reply, Wire};
use crate::store::Store;
use crate::{PATIENCE, eventually};

/// Environment variable of a test binary that is started again as a server: its configuration.
pub const SERVE: &str = "GREENROOM_TEST_SERVER";
/// Environment variable: the file outside the store to which steps append a line before they work.
pub const LEDGER: &str = "GREENROOM_TEST_LEDGER";
/// Bytes of each line of the [`LEDGER`], spaces at its end included. A kill in the middle of a write
/// leaves what was written up to a border of two pages; a line of this length never crosses one.
pub const LINE: usize = 256;

/// Environment variable: a folder in which the log of every server is kept, to find the cause of a
/// failure.
const LOGS: &str = "GREENROOM_TEST_LOGS";

/// A temporary folder with a configuration in it.
#[derive(Debug)]
pub struct Home {
    directory: TempDir,
    /// The first lines of the configuration.
    base: String,
}

/// A running server. It is killed when it goes out of scope.
#[derive(Debug)]
pub struct Server {
    pub child: Child,
    pub address: SocketAddr,
    /// Unread log lines.
    pub log: Mutex<Receiver<String>>,
}

impl Home {
    /// Writes a configuration: a free port, an empty store of the chosen kind, and this text.
    pub fn new(config: &str) -> Self {
        Self::on(Store::chosen(), config)
    }

    /// Writes a configuration with an empty store of this kind.
    pub fn on(store: Store, config: &str) -> Self {
        Self::at(&store.fresh_url(), config)
    }

    /// Writes a configuration with the store at an address.
    pub fn at(store_url: &str, config: &str) -> Self {
        // the default name has the port, which every start changes
        let base =
            format!("server.port = 0\nserver.name = \"tested\"\nstore.url = \"{store_url}\"\n");
        let home = Self { directory: tempfile::tempdir().unwrap(), base };
        home.configure(config);
        home
    }

    /// Replaces the configuration by another one with the same store.
    pub fn configure(&self, config: &str) {
        self.write("config.toml", &format!("{}{config}", self.base));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Starts this test binary again, as a server with Rust functions.
    pub fn test_server(&self) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["serve_as_child", "--nocapture", "--test-threads=1"]);
        command.current_dir(self.directory.path());
        command.env(SERVE, "config.toml").env(LEDGER, self.path("ledger"));
        command
    }

    pub fn ledger(&self) -> PathBuf {
        self.path("ledger")
    }

    /// Returns the lines of the [`LEDGER`], in the order in which they were written.
    pub fn ledger_lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.ledger()).unwrap_or_default();
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

impl Server {
    /// Starts the program and waits until it listens.
    ///
    /// # Panics
    ///
    /// If it ends before, or after [`PATIENCE`].
    pub fn start(command: Command) -> Self {
        Self::try_start(command).unwrap_or_else(|said| panic!("it does not listen: {said:#?}"))
    }

    /// Starts the program and waits until it listens. Fails with the lines of its log if it does
    /// not.
    pub fn try_start(mut command: Command) -> Result<Self, Vec<String>> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (lines, log) = channel();
        let again = lines.clone();
        let mut kept = std::env::var_os(LOGS).map(|folder| {
            let name = format!("{}.log", child.id());
            File::create(PathBuf::from(folder).join(name)).expect("the folder of logs is there")
        });
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if let Some(file) = &mut kept {
                    writeln!(file, "{line}").expect("the folder of logs has room");
                }
                if lines.send(line).is_err() && kept.is_none() {
                    return;
                }
            }
        });
        let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut server = Self { child, address: unknown, log: Mutex::new(log) };
        let (early, line) = server.lines_until("greenroom listens at http://")?;
        // earlier lines can be waited for as well
        early.into_iter().for_each(|line| again.send(line).unwrap());
        drop(again);
        let (_, address) = line.split_once("http://").unwrap();
        // a line may be a JSON object
        let address = address.split('"').next().unwrap_or_default();
        server.address = address.trim().parse().unwrap();
        Ok(server)
    }

    /// Waits for a log line that contains a text, and returns it.
    pub fn says(&self, part: &str) -> String {
        match self.lines_until(part) {
            Ok((_, line)) => line,
            Err(said) => panic!("the log does not say {part:?}: {said:#?}"),
        }
    }

    /// Waits for a log line that contains a text; returns it and the unread lines before it. Fails
    /// with the unread lines.
    fn lines_until(&self, part: &str) -> Result<(Vec<String>, String), Vec<String>> {
        let deadline = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        let log = self.log.lock().unwrap();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match log.recv_timeout(left) {
                Ok(line) if line.contains(part) => return Ok((said, line)),
                Ok(line) => said.push(line),
                Err(_) => return Err(said),
            }
        }
    }

    pub fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> Reply {
        let mut wire = Wire::open(self.address).unwrap();
        wire.send(method, path, headers, body).unwrap();
        wire.reply().unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        let json = [("content-type", "application/json")];
        self.send("POST", path, &json, Some(body.to_string().as_bytes()))
    }

    pub fn state(&self, workflow: &str, execution: &str) -> Value {
        self.get(&format!("/workflows/{workflow}/executions/{execution}/state")).data()
    }

    /// Returns a value of `/metrics`, by its name with its labels.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let text = self.get("/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map(|value| value.trim().parse().unwrap())
    }

    /// Requests the state until it satisfies a condition.
    pub fn state_when(
        &self,
        workflow: &str,
        execution: &str,
        is_expected: impl Fn(&Value) -> bool,
    ) -> Value {
        eventually(&format!("the state of {execution}"), || {
            let path = format!("/workflows/{workflow}/executions/{execution}/state");
            let reply = self.get(&path);
            (reply.status == 200).then(|| reply.data()).filter(&is_expected)
        })
    }

    /// Reads the events after a number, as many as there are or until the execution has ended.
    pub fn events(&self, workflow: &str, execution: &str, after: u64, upto: u64) -> Vec<Event> {
        let path = format!("/workflows/{workflow}/executions/{execution}/stream");
        let mut wire = Wire::open(self.address).unwrap();
        wire.send("GET", &format!("{path}?fromSequence={after}"), &[], None).unwrap();
        let mut events = Events::read(wire).unwrap();
        let mut read = Vec::new();
        while read.last().is_none_or(|event: &Event| event.id < upto) {
            match events.next().unwrap() {
                Some(event) => read.push(event),
                None => break,
            }
        }
        read
    }

    /// Kills the process.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal by name.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(status.success(), "kill -s {name} {pid}: {status}");
    }

    /// Waits for the process to exit by itself.
    pub fn ended(&mut self) -> ExitStatus {
        eventually("the end of the process", || self.child.try_wait().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
