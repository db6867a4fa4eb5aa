//! Cost of a call of a tool of an MCP server, a program, beside the same tool in Rust; and of many
//! servers, of which half cannot be started, for the start and for others.
//!
//! ```text
//! cargo bench --bench mcp
//! cargo bench --bench mcp -- --servers 100 --calls 5000
//! ```
//!
//! Each call is a request over a kept connection: `POST /tools/:name/execute`, and the execution of a
//! workflow with one step that calls the tool. Fails if a call over MCP costs a hundred times as much
//! as one in Rust, or if the start with many servers takes ten times the target of one second.

#[path = "mcp/adder.rs"]
mod adder;
#[path = "watchers/arguments.rs"]
mod arguments;
#[path = "growth/calls.rs"]
mod calls;

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use greenroom::builder::McpServer;
use greenroom::prelude::*;
use serde_json::{Value, json};

use crate::arguments::Number;
use crate::calls::{Outcome, call, connect, execute_many};

const RATIO_MAX: f64 = 100.0;
const START_MAX: Duration = Duration::from_secs(10);
/// Longest wait for connections.
const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Outcome<()> {
    if std::env::args().any(|argument| argument == adder::ARGUMENT) {
        return adder::serve();
    }
    let (mut calls, mut servers) = (100, 4);
    arguments::read(&mut [
        Number { name: "calls", value: &mut calls, long: 5_000 },
        Number { name: "servers", value: &mut servers, long: 100 },
    ])?;
    let alone = Site::start(1, 0)?;
    let ratio = alone.compare(calls)?;
    drop(alone);
    let begun = Instant::now();
    let crowded = Site::start(servers / 2, servers / 2)?;
    let start = begun.elapsed();
    let ready = crowded.ready(servers / 2, begun)?;
    say(&format!("{servers} servers, half of them dead: answers after {start:.0?}, "));
    say(&format!("all others connected after {ready:.0?}\n"));
    crowded.compare(calls)?;
    if ratio > RATIO_MAX || start > START_MAX {
        return Err(format!("too slow: ratio {ratio:.1}, start {start:?}").into());
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
fn say(text: &str) {
    print!("{text}");
}

fn parameters() -> Value {
    json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } })
}

fn sum(arguments: &Value) -> Value {
    json!({ "sum": arguments["n"].as_i64().unwrap_or_default() + 1 })
}

/// A server with the tool in Rust and, several times, over MCP. Ends on drop.
struct Site {
    address: SocketAddr,
    server: Option<Server>,
    runtime: tokio::runtime::Runtime,
    /// Last, so that it is dropped after the server.
    _directory: tempfile::TempDir,
}

impl Site {
    /// Starts a server with so many MCP servers, and so many that cannot be started.
    fn start(living: usize, dead: usize) -> Outcome<Self> {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let program = std::env::current_exe()?;
        let program = program.to_str().ok_or("the path of this program is no text")?;
        let mut text = "[server]\nport = 0\n[store]\nurl = \"memory:\"\n".to_owned();
        for (workflow, tool) in [("rust", "add"), ("mcp", "own0.add")] {
            text += &format!(
                "[workflows.{workflow}]\nsteps = [{{ id = \"add\", tool = \"{tool}\", \
                 args = {{ n = \"input.n\" }} }}]\n"
            );
        }
        let path = directory.path().join("config.toml");
        std::fs::write(&path, text)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut greenroom = Greenroom::from_config(path)?;
        for number in 0..living {
            let own = McpServer::command([program, adder::ARGUMENT]);
            greenroom = greenroom.mcp(&format!("own{number}"), own);
        }
        for number in 0..dead {
            let dead = McpServer::command(["/nowhere/mcp"]);
            greenroom = greenroom.mcp(&format!("dead{number}"), dead);
        }
        let greenroom =
            greenroom.tool("add", "Adds one", parameters(), |arguments, _| async move {
                Ok(sum(&arguments))
            });
        let server = runtime.block_on(greenroom.start())?;
        let site = Self {
            address: server.handle().address(),
            server: Some(server),
            runtime,
            _directory: directory,
        };
        site.ready(living.min(1), Instant::now())?;
        Ok(site)
    }

    /// Waits until so many MCP servers are connected; returns the time since `begun`.
    fn ready(&self, count: usize, begun: Instant) -> Outcome<Duration> {
        let mut stream = connect(self.address)?;
        loop {
            let states = call(&mut stream, "GET /tools/mcp HTTP/1.1\r\nhost: localhost\r\n\r\n")?;
            if states.matches("\"state\":\"ready\"").count() >= count {
                return Ok(begun.elapsed());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("not connected: {states:.1000}").into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Measures calls of both tools; returns the ratio of their times, one after the other.
    fn compare(&self, calls: usize) -> Outcome<f64> {
        let tool = |name: &'static str| {
            move |stream: &mut TcpStream| post(stream, &format!("/tools/{name}/execute"))
        };
        let workflow = |name: &'static str| {
            move |stream: &mut TcpStream| post(stream, &format!("/workflows/{name}/execute"))
        };
        let direct = [
            self.measure("tool in Rust", calls, tool("add"))?,
            self.measure("tool over MCP", calls, tool("own0.add"))?,
        ];
        self.measure("step in Rust", calls, workflow("rust"))?;
        self.measure("step over MCP", calls, workflow("mcp"))?;
        let [rust, mcp] = direct.map(|median| median.as_secs_f64());
        say(&format!("A call over MCP takes {:.1} times as long\n\n", mcp / rust));
        Ok(mcp / rust)
    }

    /// Prints the figures of one kind of call; returns the median, one call after the other.
    fn measure(
        &self,
        what: &str,
        calls: usize,
        one: impl Fn(&mut TcpStream) -> Outcome<()> + Sync,
    ) -> Outcome<Duration> {
        let mut stream = connect(self.address)?;
        (0..calls / 10).try_for_each(|_| one(&mut stream))?;
        let mut times = Vec::with_capacity(calls);
        for _ in 0..calls {
            let begun = Instant::now();
            one(&mut stream)?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
        let (rate, slowest) = execute_many(self.address, calls, &one)?;
        say(&format!(
            "{what:14} p50 {:>8.2?} p99 {:>8.2?}; 16 at once: {rate:>6.0} per second, slowest {slowest:.1?}\n",
            at(50),
            at(99),
        ));
        Ok(at(50))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            // it ends with this process in any case
            let _ = self.runtime.block_on(server.stop());
        }
    }
}

fn post(stream: &mut TcpStream, path: &str) -> Outcome<()> {
    let body = r#"{"input":{"n":41}}"#;
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = call(stream, &request)?;
    if answer.contains("\"sum\":42") { Ok(()) } else { Err(format!("not 42: {answer}").into()) }
}
