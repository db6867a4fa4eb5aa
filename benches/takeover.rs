//! Several servers over one database, one of which is killed or paused: time until the others answer
//! for its executions.
//!
//! ```text
//! cargo bench --bench takeover
//! cargo bench --bench takeover -- --running 1000 --suspended 10000 --lease 3
//! ```
//!
//! Three servers share the executions, of which some run (each sleeps for an hour) and the others
//! wait for a person. When one is lost, a caller at the others resumes one of its executions in each
//! of its slots, all at once; then others resume all that it had left, and ask what those that run
//! wait for. The exit code is a failure only if something is wrong by an order of magnitude.

#[path = "takeover/callers.rs"]
mod callers;
#[path = "takeover/client.rs"]
mod client;
#[path = "takeover/cluster.rs"]
mod cluster;
#[path = "takeover/executions.rs"]
mod executions;
#[path = "http/machine.rs"]
mod machine;
#[path = "http/share.rs"]
mod share;
#[path = "takeover/table.rs"]
mod table;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use support::postgres;

use crate::cluster::{Cluster, Loss};
use crate::executions::Executions;
use crate::table::{Row, Table};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Settings beside the defaults: every commit is synced to the disk.
const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("shared_buffers", "256MB"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "30min"),
];

struct Options {
    executions: Executions,
    lease: Duration,
    losses: Vec<Loss>,
}

impl Options {
    /// Reads the command line. Without the `--bench` that cargo passes, as under
    /// `cargo test --benches`, the short form is run.
    fn read(mut arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let (mut running, mut suspended, mut lease, mut is_bench) = (None, None, None, false);
        let mut losses = vec![Loss::Killed, Loss::Paused];
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument}: no value"));
            match argument.as_str() {
                "--bench" => is_bench = true,
                "--running" => running = Some(value()?.parse()?),
                "--suspended" => suspended = Some(value()?.parse()?),
                "--lease" => lease = Some(Duration::try_from_secs_f64(value()?.parse()?)?),
                "--only" => losses = vec![value()?.parse()?],
                _ => return Err(format!("unknown argument {argument}").into()),
            }
        }
        let (usual_running, usual_suspended, usual_lease) = match is_bench {
            true => (10_000, 100_000, Duration::from_secs(6)),
            false => (30, 300, Duration::from_millis(1200)),
        };
        let executions = Executions {
            running: running.unwrap_or(usual_running),
            suspended: suspended.unwrap_or(usual_suspended),
        };
        Ok(Self { executions, lease: lease.unwrap_or(usual_lease), losses })
    }
}

#[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
fn main() -> Outcome<ExitCode> {
    let options = Options::read(std::env::args().skip(1))?;
    let database = postgres::Server::start_with(postgres::Auth::Trust, SETTINGS)
        .ok_or("PostgreSQL is missing")?;
    println!("{}\n", machine::describe()?);
    let mut table = Table::default();
    for &loss in &options.losses {
        let row = measure(&options, &database, loss)?;
        writeln!(io::stderr(), "{row}")?;
        table.add(row);
    }
    println!("{table}");
    let failures = table.failures();
    for failure in &failures {
        writeln!(io::stderr(), "{failure}")?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Fills new servers, loses one of them, and measures the others.
fn measure(options: &Options, database: &postgres::Server, loss: Loss) -> Outcome<Row> {
    let Options { executions, lease, .. } = options;
    let mut cluster = Cluster::start(database, *lease)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(callers::fill(&cluster.addresses(), &cluster.owners, *executions))?;
    cluster.wait_until_unloaded()?;
    let orphans = executions.of_first(&cluster.owners);
    writeln!(io::stderr(), "{loss}: {} executions are at this server", orphans.len())?;
    let survivors = cluster.lose_first(loss);
    let times = runtime.block_on(callers::ask(&survivors, &orphans))?;
    Ok(Row { loss, lease: *lease, executions: orphans.len(), times })
}
