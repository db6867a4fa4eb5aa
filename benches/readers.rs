//! Cost of subscribers that never read: memory of the server, and the time of executions beside
//! them.
//!
//! ```text
//! cargo bench --bench readers
//! cargo bench --bench readers -- --readers 1500 --steps 600 --executions 20000
//! ```
//!
//! Each subscriber requests the events of one finished execution over a separate connection. Its
//! record has 10 kB for each step. The subscriber reads nothing, not even the head of the answer.
//! Fails if they take more than 100 MB, or if an execution beside them takes five seconds.

#[path = "growth/instance.rs"]
mod instance;
#[path = "watchers/server.rs"]
mod server;

use std::fmt::Write as _;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::instance::{Outcome, connect, execute};
use crate::server::Server;

const WARM_UP: usize = 2_000;
const TEXT_BYTES: usize = 10_000;
const MEMORY_MAX: u64 = 100 * 1024 * 1024;
const SLOWEST_MAX: Duration = Duration::from_secs(5);

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    // without the `--bench` that cargo passes, as under `cargo test --benches`: a short form
    let (mut readers, mut steps, mut executions) = (50, 50, 500);
    while let Some(argument) = arguments.next() {
        let mut value =
            || -> Outcome<usize> { Ok(arguments.next().ok_or("a value is missing")?.parse()?) };
        match argument.as_str() {
            "--bench" => (readers, steps, executions) = (1_500, 600, 20_000),
            "--readers" => readers = value()?,
            "--steps" => steps = value()?,
            "--executions" => executions = value()?,
            _ => return Err(format!("unknown argument {argument}").into()),
        }
    }
    // every subscriber is a socket of this process as well
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    let server = Server::start(&large_workflow(steps))?;
    server.execute(WARM_UP)?;
    execute_large(&server)?;
    let (alone, slowest_alone) = server.execute(executions)?;
    let before = server.instance.memory()?;
    let silent: Vec<_> = (0..readers).map(|_| ask(&server)).collect::<Outcome<_>>()?;
    let (beside, slowest) = server.execute(executions)?;
    let grown = server.instance.memory()?.saturating_sub(before);
    drop(silent);
    #[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
    {
        println!("executions per second: {alone:.0}, the slowest {slowest_alone:?}");
        println!("beside {readers} readers: {beside:.0}, the slowest {slowest:?}");
        println!("memory grew by {} kB", grown / 1024);
    }
    if grown > MEMORY_MAX {
        return Err(format!("memory grew by {grown} bytes").into());
    }
    if slowest > SLOWEST_MAX {
        return Err(format!("an execution took {slowest:?}").into());
    }
    Ok(())
}

/// Returns a workflow whose steps pass a text on, which is in the record of each of them.
fn large_workflow(steps: usize) -> String {
    let mut workflow = "[workflows.large]\n".to_owned();
    for step in 0..steps {
        let _ = write!(
            workflow,
            "[[workflows.large.steps]]\nid = \"s{step}\"\nmap = {{ text = \"data.text\" }}\n"
        );
    }
    workflow
}

fn execute_large(server: &Server) -> Outcome<()> {
    let text = "x".repeat(TEXT_BYTES);
    let body =
        format!("{{\"input\":{{\"text\":\"{text}\"}},\"options\":{{\"executionId\":\"e\"}}}}");
    execute(&mut connect(server.instance.address)?, "large", &body, "\"completed\"")
}

/// Requests the events, without reading them.
fn ask(server: &Server) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(server.instance.address)?;
    let path = "/workflows/large/executions/e/stream";
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
    Ok(stream)
}
