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

#[path = "watchers/arguments.rs"]
mod arguments;
#[path = "growth/calls.rs"]
mod calls;
#[path = "growth/instance.rs"]
mod instance;
#[path = "watchers/server.rs"]
mod server;

use std::fmt::Write as _;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::arguments::Number;
use crate::calls::{Outcome, connect};
use crate::instance::execute;
use crate::server::Server;

const WARM_UP: usize = 2_000;
const TEXT_BYTES: usize = 10_000;
const MEMORY_MAX: u64 = 100 * 1024 * 1024;
const SLOWEST_MAX: Duration = Duration::from_secs(5);

fn main() -> Outcome<()> {
    let (mut readers, mut steps, mut executions) = (50, 50, 500);
    arguments::read(&mut [
        Number { name: "readers", value: &mut readers, long: 1_500 },
        Number { name: "steps", value: &mut steps, long: 600 },
        Number { name: "executions", value: &mut executions, long: 20_000 },
    ])?;
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
