//! A server in a separate process, and requests to it.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Configuration of the measured workflows.
pub(crate) const CONFIG: &str = include_str!("../http/greenroom.toml");
const CALLERS: usize = 16;

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

/// Calls `execute` so many times over several connections; returns executions per second and the
/// longest time of one.
#[expect(clippy::cast_precision_loss, reason = "there are few executions")]
pub(crate) fn execute_many(
    address: SocketAddr,
    executions: usize,
    execute: impl Fn(&mut TcpStream) -> Outcome<()> + Sync,
) -> Outcome<(f64, Duration)> {
    let (begun, next) = (Instant::now(), AtomicUsize::new(0));
    let slowest = std::thread::scope(|scope| {
        let call = || -> Outcome<Duration> {
            let mut stream = connect(address)?;
            let mut slowest = Duration::ZERO;
            while next.fetch_add(1, Ordering::Relaxed) < executions {
                let begun = Instant::now();
                execute(&mut stream)?;
                slowest = slowest.max(begun.elapsed());
            }
            Ok(slowest)
        };
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
        callers.into_iter().try_fold(Duration::ZERO, |slowest, caller| {
            let of_one = caller.join().unwrap_or_else(|_| Err("a caller has panicked".into()));
            Outcome::Ok(slowest.max(of_one?))
        })
    })?;
    Ok((executions as f64 / begun.elapsed().as_secs_f64(), slowest))
}

pub(crate) fn connect(address: SocketAddr) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
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

/// Sends a request and returns the body of the answer, which must have a length.
pub(crate) fn call(stream: &mut TcpStream, request: &str) -> Outcome<String> {
    stream.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    let mut piece = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let whole = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let length = head.lines().find_map(|line| {
                let line = line.to_ascii_lowercase();
                line.strip_prefix("content-length:")?.trim().parse::<usize>().ok()
            });
            length.filter(|length| body.len() >= *length).map(|_| (head, body))
        });
        match whole {
            Some((head, body)) if head.starts_with("HTTP/1.1 200") => return Ok(body.to_owned()),
            None if read > 0 => {}
            Some(_) | None => return Err(format!("not answered: {text:.300}").into()),
        }
    }
}
