//! The server, as its own process, and callers that execute beside what is measured.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CONFIG: &str = include_str!("../http/greenroom.toml");
const CALLERS: usize = 16;

/// A server with a store that nobody else uses. Ends when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Last, so that it goes after the process.
    _directory: TempDir,
}

impl Server {
    /// Takes what stands behind the configuration of the other benches.
    pub(crate) fn start(more: &str) -> Outcome<Self> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let path = directory.path().join("config.toml");
        std::fs::write(&path, format!("{CONFIG}\n{more}"))?;
        let mut child = Command::new(env!("CARGO_BIN_EXE_greenroom"))
            .arg("serve")
            .arg("--config")
            .arg(path)
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no log")?).lines();
        let listens = lines.find_map(|line| {
            let line = line.ok()?;
            line.split_once("listens at http://").map(|(_, address)| address.trim().to_owned())
        });
        std::thread::spawn(move || lines.for_each(drop));
        let address = listens.ok_or("the server does not start")?.parse()?;
        Ok(Self { child, address, _directory: directory })
    }

    /// Resident memory in bytes.
    pub(crate) fn memory(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.ok_or("no memory")?.trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<u64>()? * 1024)
    }

    /// Executes `noop3` so often, from several callers; gives how many a second, and how long the
    /// slowest one took.
    #[expect(clippy::cast_precision_loss, reason = "there are few executions")]
    pub(crate) fn execute(&self, executions: usize) -> Outcome<(f64, Duration)> {
        let (begun, next) = (Instant::now(), AtomicUsize::new(0));
        let slowest = std::thread::scope(|scope| {
            let call = || -> Outcome<Duration> {
                let mut stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                let mut slowest = Duration::ZERO;
                while next.fetch_add(1, Ordering::Relaxed) < executions {
                    let begun = Instant::now();
                    execute_once(&mut stream)?;
                    slowest = slowest.max(begun.elapsed());
                }
                Ok(slowest)
            };
            let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
            callers.into_iter().try_fold(Duration::ZERO, |slowest, caller| {
                let of_one = caller.join().unwrap_or_else(|_| Err("a caller has panicked".into()));
                Ok::<_, Box<dyn Error + Send + Sync>>(slowest.max(of_one?))
            })
        })?;
        Ok((executions as f64 / begun.elapsed().as_secs_f64(), slowest))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; either way there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const BODY: &str = "{\"input\":{\"n\":1}}";

fn execute_once(stream: &mut TcpStream) -> Outcome<()> {
    let request = format!(
        "POST /workflows/noop3/execute HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
        BODY.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = stream.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
        });
        if read == 0 || !head.starts_with("HTTP/1.1 200") {
            return Err(format!("not executed: {text}").into());
        }
        if length.is_some_and(|length| body.len() >= length) {
            return Ok(());
        }
    }
}
