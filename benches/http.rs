//! Requests per second and server CPU of greenroom beside a bare actix-web server that parses the
//! same bodies and waits for the same kind of group commit, in one run, as ratios.
//!
//! ```text
//! cargo bench --bench http
//! cargo bench --bench http -- --quick
//! cargo bench --bench http -- --only noop3 --connections 16 --server greenroom
//! ```
//!
//! `GREENROOM_BENCH_SECONDS` and `GREENROOM_BENCH_ROUNDS` change how long and how often work is
//! measured. The exit code is a failure only if something is wrong by an order of magnitude.

#[path = "http/bare.rs"]
mod bare;
#[path = "http/commits.rs"]
mod commits;
#[path = "http/connection.rs"]
mod connection;
#[path = "http/load.rs"]
mod load;
#[path = "http/machine.rs"]
mod machine;
#[path = "http/observers.rs"]
mod observers;
#[path = "http/options.rs"]
mod options;
#[path = "http/process.rs"]
mod process;
#[path = "http/report.rs"]
mod report;
#[path = "http/server.rs"]
mod server;
#[path = "http/token.rs"]
mod token;
#[path = "http/work.rs"]
mod work;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::load::Sample;
use crate::options::Options;
use crate::report::{Comparison, Table};
use crate::server::{Kind, Server};
use crate::work::Work;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<ExitCode> {
    if std::env::args().nth(1).as_deref() == Some(bare::ARGUMENT) {
        bare::serve()?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::read(std::env::args().skip(1))?;
    #[expect(clippy::print_stdout, reason = "the table is what this program is for")]
    {
        println!("{}\n", machine::describe()?);
        println!("{}\n", options.describe());
    }
    let table = measure(&options)?;
    #[expect(clippy::print_stdout, reason = "the table is what this program is for")]
    {
        println!("{table}");
    }
    let failures = table.failures();
    for failure in &failures {
        writeln!(io::stderr(), "{failure}")?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Measures every kind of work at every number of connections, both servers in turn.
fn measure(options: &Options) -> Outcome<Table> {
    let mut table = Table::default();
    for &work in &options.works {
        for &connections in &options.connections {
            let mut comparison = Comparison::new(work, connections);
            for round in 1..=options.rounds {
                for kind in work.servers().into_iter().filter(|it| options.servers.contains(it)) {
                    let sample = measure_once(options, kind, work, connections)?;
                    writeln!(
                        io::stderr(),
                        "{work}, {connections} connections, round {round}, {kind}: {sample}"
                    )?;
                    comparison.add(kind, sample);
                }
            }
            table.add(comparison);
        }
    }
    Ok(table)
}

/// Measures one new process with an empty store.
fn measure_once(options: &Options, kind: Kind, work: Work, connections: usize) -> Outcome<Sample> {
    let mut server = Server::start(kind)?;
    let plan = load::Plan {
        address: server.address(),
        process: server.process(),
        kind,
        work,
        connections,
        warm_up: options.warm_up,
        measured: options.measured,
    };
    let sample = load::run(plan);
    let alive = server.check_alive();
    let with_log = |error| format!("{kind}: {error}\n{}", server.last_lines()).into();
    alive.and(sample).map_err(with_log)
}
