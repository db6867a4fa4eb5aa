//! The server, as a process of its own over a store that outlives it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::Process;
use crate::{Outcome, client};

const CONFIG: &str = include_str!("../http/greenroom.toml");
/// Executions leave memory soon, and many may be on their way out.
const STORE: &str = "\n[store]\npassivate_after = \"1s\"\n\n[limits]\nexecutions_live_max = 1000000\n\
                     events_max = 1000000\n\n[logs]\nlevel = \"warn\"\n";
/// Long executions, of a step that does next to nothing.
const LONG: &str = r#"
[workflows.for-each]
steps = [{ id = "each", type = "andForEach", items = "input.items", block = "body" }]
blocks.body = [{ id = "plus", map = "data + 1" }]

[workflows.do-while]
steps = [{ id = "again", type = "andDoWhile", block = "body", when = "data.n < input.rounds", max_iterations = 100000 }]
blocks.body = [{ id = "plus", map = { n = "data.n + 1" } }]

[workflows.do-until]
steps = [{ id = "again", type = "andDoUntil", block = "body", when = "data.n >= input.rounds", max_iterations = 100000 }]
blocks.body = [{ id = "plus", map = { n = "data.n + 1" } }]
"#;
/// How long executions may take to leave memory.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);

/// Killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    store: PathBuf,
}

impl Server {
    /// Starts a server over the store in a folder, and waits until it listens.
    pub(crate) fn start(folder: &Path) -> Outcome<Self> {
        std::fs::write(folder.join("config.toml"), format!("{CONFIG}{LONG}{STORE}"))?;
        let mut child = Command::new(env!("CARGO_BIN_EXE_greenroom"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no log")?).lines();
        let listens = lines.find_map(|line| {
            let line = line.ok()?;
            line.split_once("listens at http://").map(|(_, address)| address.trim().to_owned())
        });
        std::thread::spawn(move || lines.for_each(drop));
        let address = listens.ok_or("the server does not start")?.parse()?;
        Ok(Self { child, address, store: folder.join("greenroom.db") })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn process(&self) -> Process {
        Process { id: self.child.id() }
    }

    /// Resident memory in bytes.
    pub(crate) fn memory(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.ok_or("no memory")?.trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<u64>()? * 1024)
    }

    /// Bytes that it has handed to the kernel to be written.
    pub(crate) fn written(&self) -> Outcome<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.child.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        Ok(line.ok_or("no bytes written")?.trim().parse()?)
    }

    /// Of the database, without its log.
    pub(crate) fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.store).map_or(0, |file| file.len())
    }

    pub(crate) fn wait_until_none_is_live(&self) -> Outcome<()> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let metrics = client::metrics(self.address)?;
            let live = metrics.lines().find_map(|it| it.strip_prefix("greenroom_executions_live "));
            if live.ok_or("no such metric")?.trim() == "0" {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Err("executions stay in memory".into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
