//! Cost of a large store: memory of suspended executions, start-up, and executions per second, with
//! few and with many stored; and the cost of a long execution.
//!
//! ```text
//! cargo bench --bench growth
//! cargo bench --bench growth -- --stored 1000,100000,1000000 --executions 20000
//! cargo bench --bench growth -- --rounds 1000,10000,100000 --stored none
//! ```
//!
//! For each number, a new store is filled over HTTP with executions that wait for a person. Once
//! they are unloaded, the server is measured from outside, killed, and restarted over the same
//! store. The exit code is a failure only if something is wrong by an order of magnitude.

#[path = "growth/calls.rs"]
mod calls;
#[path = "growth/client.rs"]
mod client;
#[path = "growth/instance.rs"]
mod instance;
#[path = "http/machine.rs"]
mod machine;
#[path = "http/process.rs"]
mod process;
#[path = "growth/rounds.rs"]
mod rounds;
#[path = "growth/server.rs"]
mod server;
#[path = "growth/table.rs"]
mod table;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::calls::Outcome;
use crate::client::Work;
use crate::rounds::Rounds;
use crate::server::Server;
use crate::table::{Row, Table};

/// Executions before the measurement, which warm the server up.
const WARM_UP: usize = 2_000;
/// Time without requests in which idle CPU is measured.
const IDLE: Duration = Duration::from_secs(5);

struct Options {
    stored: Vec<usize>,
    /// Executions of `noop3` over the filled store.
    executions: usize,
    /// Rounds of one execution.
    rounds: Vec<usize>,
}

impl Options {
    /// Reads the command line. Without the `--bench` that cargo passes, as under
    /// `cargo test --benches`, the short form is run.
    fn read(mut arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let (mut stored, mut executions, mut rounds, mut is_bench) = (None, None, None, false);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument}: no value"));
            match argument.as_str() {
                "--bench" => is_bench = true,
                "--stored" => stored = Some(numbers(&value()?)?),
                "--rounds" => rounds = Some(numbers(&value()?)?),
                "--executions" => executions = Some(value()?.parse()?),
                _ => return Err(format!("unknown argument {argument}").into()),
            }
        }
        let (usual_stored, usual_executions, usual_rounds) = match is_bench {
            true => (vec![1_000, 100_000, 1_000_000], 20_000, vec![1_000, 10_000, 100_000]),
            false => (vec![100], 200, vec![100]),
        };
        Ok(Self {
            stored: stored.unwrap_or(usual_stored),
            executions: executions.unwrap_or(usual_executions).max(1),
            rounds: rounds.unwrap_or(usual_rounds),
        })
    }
}

/// Parses numbers separated by commas, or `none`.
fn numbers(text: &str) -> Outcome<Vec<usize>> {
    let numbers = text.split(',').map(str::trim).filter(|it| *it != "none");
    Ok(numbers.map(|it| it.parse::<usize>().map(|it| it.max(1))).collect::<Result<_, _>>()?)
}

fn main() -> Outcome<ExitCode> {
    let options = Options::read(std::env::args().skip(1))?;
    let mut table = Table::default();
    for &stored in &options.stored {
        let row = measure(stored, options.executions)?;
        writeln!(io::stderr(), "{stored} stored: {row:?}")?;
        table.add(row);
    }
    let rounds = Rounds::measure(&options.rounds)?;
    #[expect(clippy::print_stdout, reason = "the table is what this program is for")]
    {
        println!("{}\n", machine::describe()?);
        println!("{table}");
        println!("{rounds}");
    }
    let failures = [table.failures(), rounds.failures()].concat();
    for failure in &failures {
        writeln!(io::stderr(), "{failure}")?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn measure(stored: usize, executions: usize) -> Outcome<Row> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let server = Server::start(directory.path())?;
    client::execute(server.address(), Work::Noop3, WARM_UP)?;
    client::execute(server.address(), Work::Approval, WARM_UP.min(stored))?;
    server.wait_until_none_is_live()?;
    let before = server.memory()?;
    let fill = client::execute(server.address(), Work::Approval, stored)?;
    server.wait_until_none_is_live()?;
    let grown = server.memory()?.saturating_sub(before);
    let idle = server.process().spent()?;
    std::thread::sleep(IDLE);
    let idle = server.process().spent()? - idle;
    drop(server);

    let begun = Instant::now();
    let server = Server::start(directory.path())?;
    let ready = begun.elapsed();
    client::execute_once(server.address(), Work::Noop3)?;
    let first_answer = begun.elapsed();
    let started_memory = server.memory()?;
    client::execute(server.address(), Work::Noop3, WARM_UP)?;
    let spent = server.process().spent()?;
    let rate = client::execute(server.address(), Work::Noop3, executions)?;
    let spent = server.process().spent()? - spent;
    Ok(Row {
        stored,
        fill,
        file: server.file_bytes(),
        grown,
        idle_cpu: idle.cpu / u32::try_from(IDLE.as_secs())?,
        ready,
        first_answer,
        started_memory,
        rate,
        cpu: spent.cpu / u32::try_from(executions)?,
    })
}
