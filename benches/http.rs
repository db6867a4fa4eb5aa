//! Requests per second and server CPU of greenroom beside a bare actix-web server that parses the
//! same bodies and waits for the same kind of group commit, in one run, as ratios.
//!
//! ```text
//! cargo bench --bench http
//! cargo bench --bench http -- --quick
//! cargo bench --bench http -- --only noop3 --connections 16 --server greenroom
//! cargo bench --bench http -- --store postgres
//! cargo bench --bench http -- --store postgres --nodes 3
//! ```
//!
//! With `--store postgres` both write to a PostgreSQL that this program starts, the bare server the
//! same rows as greenroom, by statements of the same shape; and greenroom with SQLite is measured
//! beside them. It prints the plans of greenroom's statements, and refuses those that read a table
//! from its beginning to its end.
//!
//! With `--nodes`, so many servers over one database are measured beside one, and a resume at another
//! server than the one that runs the execution beside one at the same.
//!
//! `GREENROOM_BENCH_SECONDS` and `GREENROOM_BENCH_ROUNDS` change how long and how often work is
//! measured. The exit code is a failure only if something is wrong by an order of magnitude.

#[path = "http/bare.rs"]
mod bare;
#[path = "http/batches.rs"]
mod batches;
#[path = "http/commits.rs"]
mod commits;
#[path = "http/connection.rs"]
mod connection;
#[path = "http/database.rs"]
mod database;
#[path = "http/facts.rs"]
mod facts;
#[path = "http/family.rs"]
mod family;
#[path = "http/lanes.rs"]
mod lanes;
#[path = "http/load.rs"]
mod load;
#[path = "http/machine.rs"]
mod machine;
#[path = "http/observers.rs"]
mod observers;
#[path = "http/options.rs"]
mod options;
#[path = "http/plans.rs"]
mod plans;
#[path = "http/process.rs"]
mod process;
#[path = "http/records.rs"]
mod records;
#[path = "http/report.rs"]
mod report;
#[path = "http/server.rs"]
mod server;
#[path = "http/servers.rs"]
mod servers;
#[path = "http/share.rs"]
mod share;
#[path = "http/token.rs"]
mod token;
#[path = "http/work.rs"]
mod work;

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::database::{Database, Store};
use crate::load::Sample;
use crate::options::Options;
use crate::plans::Plans;
use crate::report::{Comparison, Table};
use crate::server::Kind;
use crate::servers::Servers;
use crate::work::Work;

/// Warm-up and duration of a run whose plans are logged, and number of its connections.
const SHORTLY: Duration = Duration::from_secs(1);
const EXPLAINED: usize = 16;

type Outcome<T> = Result<T, Box<dyn Error>>;

#[expect(clippy::print_stdout, reason = "the figures are what this program is for")]
fn main() -> Outcome<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    if std::env::args().nth(1).as_deref() == Some(bare::ARGUMENT) {
        bare::serve(arguments.nth(1).as_deref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::read(arguments)?;
    println!("{}\n", machine::describe()?);
    println!("{}\n", options.describe());
    let database = match options.store {
        Store::Postgres => Some(Database::start()?),
        Store::Sqlite => None,
    };
    let mut failures = Vec::new();
    if let Some(database) = &database {
        println!("{}\n", database.describe()?);
        let plans = plans_of(&options, database)?;
        println!("{plans}");
        failures.extend(plans.failures());
    }
    let table = measure(&options, database.as_ref())?;
    println!("{table}");
    failures.extend(table.failures());
    for failure in &failures {
        writeln!(io::stderr(), "{failure}")?;
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the plans of greenroom's statements at every kind of work.
fn plans_of(options: &Options, database: &Database) -> Outcome<Plans> {
    database.explain(true);
    for &work in &options.works {
        let shortly = Options { warm_up: SHORTLY, measured: SHORTLY, ..options.clone() };
        measure_once(&shortly, Some(database), Kind::Greenroom, work, EXPLAINED)?;
    }
    database.explain(false);
    Ok(Plans::read(&database.log()))
}

/// Measures every kind of work at every number of connections, the servers in turn.
fn measure(options: &Options, database: Option<&Database>) -> Outcome<Table> {
    let mut table = Table::default();
    for &work in &options.works {
        for &connections in &options.connections {
            let mut comparison = Comparison::new(options, work, connections);
            for round in 1..=options.rounds {
                for kind in options.servers(work) {
                    let sample = measure_once(options, database, kind, work, connections)?;
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

/// Measures one new process with an empty store, or several.
fn measure_once(
    options: &Options,
    database: Option<&Database>,
    kind: Kind,
    work: Work,
    connections: usize,
) -> Outcome<Sample> {
    let database = database.filter(|_| kind != Kind::Embedded);
    let servers = Servers::start(kind, options.nodes, database)?;
    let plan = load::Plan {
        addresses: servers.addresses(),
        processes: servers.processes(),
        database: database.map(Database::processes),
        kind,
        work,
        connections,
        warm_up: options.warm_up,
        measured: options.measured,
    };
    servers.checked(load::run(plan))
}
