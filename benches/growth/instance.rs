//! A server in a separate process, and its workflows.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::calls::{Outcome, call};

/// Configuration of the measured workflows.
pub(crate) const CONFIG: &str = include_str!("../http/greenroom.toml");

/// A running server. Killed on drop.
pub(crate) struct Instance {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Instance {
    /// Starts a server in a folder, and waits until it listens.
    pub(crate) fn start(folder: &Path, config: &str) -> Outcome<Self> {
        std::fs::write(folder.join("config.toml"), config)?;
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
        Ok(Self { child, address })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in bytes.
    pub(crate) fn memory(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.ok_or("no memory")?.trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<u64>()? * 1024)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // both fail if the process has ended already
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Executes a workflow; fails unless the answer contains `mark`.
pub(crate) fn execute(
    stream: &mut TcpStream,
    workflow: &str,
    body: &str,
    mark: &str,
) -> Outcome<()> {
    let length = body.len();
    let request = format!(
        "POST /workflows/{workflow}/execute HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let answer = call(stream, &request)?;
    if answer.contains(mark) {
        Ok(())
    } else {
        Err(format!("{workflow}: not {mark}: {answer}").into())
    }
}
