//! What watchers cost: executions per second with nobody, with one who reads and with many who
//! never do, and the memory that those take while the events pass them.
//!
//! ```text
//! cargo bench --bench watchers
//! cargo bench --bench watchers -- --watchers 1000 --executions 12500
//! ```
//!
//! Each execution of `noop3` is eight events. Fails when the watchers take more than 64 MB, or one
//! of them is neither told what it missed nor cut.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{WebSocket, client};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const CONFIG: &str = include_str!("http/greenroom.toml");
const CALLERS: usize = 16;
const EVENTS_EACH: usize = 8;
const WARM_UP: usize = 2_000;
const MEMORY_MAX: u64 = 64 * 1024 * 1024;
/// How long a socket may be silent that has something to say.
const SILENCE: Duration = Duration::from_secs(20);

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    // without the `--bench` that cargo passes, as under `cargo test --benches`: a short form
    let (mut watchers, mut executions) = (50, 500);
    while let Some(argument) = arguments.next() {
        let mut value =
            || -> Outcome<usize> { Ok(arguments.next().ok_or("a value is missing")?.parse()?) };
        match argument.as_str() {
            "--bench" => (watchers, executions) = (1_000, 12_500),
            "--watchers" => watchers = value()?,
            "--executions" => executions = value()?,
            _ => return Err(format!("unknown argument {argument}").into()),
        }
    }
    let server = Server::start()?;
    server.execute(WARM_UP)?;
    let alone = server.execute(executions)?;
    let one = with_a_reader(&server, executions)?;
    let idle: Vec<_> = (0..watchers).map(|_| server.watch()).collect::<Outcome<_>>()?;
    let before = server.memory()?;
    let many = server.execute(executions)?;
    let grown = server.memory()?.saturating_sub(before);
    let told = idle.into_iter().filter_map(|mut socket| is_told(&mut socket)).count();
    #[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
    {
        println!("executions per second: {alone:.0} with nobody, {one:.0} with one who reads,");
        println!("{many:.0} with {watchers} who do not: {:.2} of the first", many / alone);
        let events = executions * EVENTS_EACH;
        println!("{events} events passed them; memory grew by {:.1} MB", to_megabytes(grown));
        println!("{told} were told what they missed, {} were cut", watchers - told);
    }
    if grown > MEMORY_MAX {
        return Err(format!("memory grew by {grown} bytes").into());
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "it is shown with one digit")]
fn to_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn with_a_reader(server: &Server, executions: usize) -> Outcome<f64> {
    let mut socket = server.watch()?;
    socket.get_ref().set_read_timeout(Some(Duration::from_millis(100)))?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                // An error is the end of the time for one read.
                let _ = socket.read();
            }
        });
        let rate = server.execute(executions);
        is_over.store(true, Ordering::Relaxed);
        rate
    })
}

/// Whether the socket says that something was missed; `None` when it ends before.
fn is_told(socket: &mut WebSocket<TcpStream>) -> Option<()> {
    loop {
        let message = socket.read().ok()?;
        if message.to_text().is_ok_and(|text| text.contains("\"DROPPED\"")) {
            return Some(());
        }
    }
}

/// A server with a store that nobody else uses. Ends when it is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
    /// Last, so that it goes after the process.
    _directory: TempDir,
}

impl Server {
    fn start() -> Outcome<Self> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let path = directory.path().join("config.toml");
        std::fs::write(&path, CONFIG)?;
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

    fn watch(&self) -> Outcome<WebSocket<TcpStream>> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let request = format!("ws://{}/ws/observability", self.address).into_client_request()?;
        let (mut socket, _) = client(request, stream).map_err(|error| error.to_string())?;
        socket.read()?;
        Ok(socket)
    }

    /// Resident memory in bytes.
    fn memory(&self) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.ok_or("no memory")?.trim().trim_end_matches(" kB");
        Ok(kilobytes.parse::<u64>()? * 1024)
    }

    /// Executes `noop3` so often; gives how many a second.
    #[expect(clippy::cast_precision_loss, reason = "there are few executions")]
    fn execute(&self, executions: usize) -> Outcome<f64> {
        let (begun, next) = (Instant::now(), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let call = || -> Outcome<()> {
                let mut stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                while next.fetch_add(1, Ordering::Relaxed) < executions {
                    execute_once(&mut stream)?;
                }
                Ok(())
            };
            let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(call)).collect();
            callers.into_iter().try_for_each(|caller| {
                caller.join().unwrap_or_else(|_| Err("a caller has panicked".into()))
            })
        })?;
        Ok(executions as f64 / begun.elapsed().as_secs_f64())
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
