//! The server, as a separate process over a store that outlives it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::instance::{CONFIG, Instance};
use crate::process::Process;
use crate::{Outcome, client};

/// Executions are unloaded soon, and many at once.
const STORE: &str = "\n[store]\npassivate_after = \"1s\"\n\n[limits]\nexecutions_live_max = 1000000\n\
                     events_max = 1000000\n\n[logs]\nlevel = \"warn\"\n";
/// Long executions of cheap steps.
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
/// Time in which executions must be unloaded.
const UNLOAD_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A server over a store in a folder.
pub(crate) struct Server {
    instance: Instance,
    store: PathBuf,
}

impl Server {
    /// Starts a server over the store in a folder, and waits until it listens.
    pub(crate) fn start(folder: &Path) -> Outcome<Self> {
        let instance = Instance::start(folder, &format!("{CONFIG}{LONG}{STORE}"))?;
        Ok(Self { instance, store: folder.join("greenroom.db") })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.instance.address
    }

    pub(crate) fn process(&self) -> Process {
        Process { id: self.instance.id() }
    }

    /// Resident memory in bytes.
    pub(crate) fn memory(&self) -> Outcome<u64> {
        self.instance.memory()
    }

    /// Bytes that it has passed to the kernel for writing.
    pub(crate) fn written(&self) -> Outcome<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/io", self.instance.id()))?;
        let line = text.lines().find_map(|line| line.strip_prefix("wchar: "));
        Ok(line.ok_or("no bytes written")?.trim().parse()?)
    }

    /// Size of the database without its log, in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        std::fs::metadata(&self.store).map_or(0, |file| file.len())
    }

    pub(crate) fn wait_until_none_is_live(&self) -> Outcome<()> {
        let deadline = Instant::now() + UNLOAD_TIMEOUT;
        while Instant::now() < deadline {
            let metrics = client::get(self.instance.address, "/metrics")?;
            let live = metrics.lines().find_map(|it| it.strip_prefix("greenroom_executions_live "));
            if live.ok_or("no such metric")?.trim() == "0" {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Err("executions stay in memory".into())
    }
}
