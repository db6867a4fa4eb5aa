//! Cost of a long execution: bytes written and CPU per round, which should not depend on the number
//! of rounds.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::calls::connect;
use crate::instance::execute;
use crate::server::Server;
use crate::{Outcome, client};

/// Rounds in total, over all executions of a row: single short ones cost too little to be measured.
const ROUNDS_IN_ALL: usize = 100_000;
/// Bytes per round, relative to the shortest execution, that count as a failure.
const BYTES_ALARM: f64 = 1.5;
/// The same for CPU, which other work on the machine disturbs.
const CPU_ALARM: f64 = 3.0;

const HEAD: &str = "\
| step | rounds | executions | bytes each round | ratio | CPU µs each round | ratio \
| rebuilt after a kill ms |
|---|---|---|---|---|---|---|---|
";

/// Step that runs a block many times.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    ForEach,
    DoWhile,
    DoUntil,
}

impl Kind {
    const ALL: [Self; 3] = [Self::ForEach, Self::DoWhile, Self::DoUntil];

    fn workflow(self) -> &'static str {
        match self {
            Self::ForEach => "for-each",
            Self::DoWhile => "do-while",
            Self::DoUntil => "do-until",
        }
    }

    fn input(self, rounds: usize) -> Value {
        match self {
            Self::ForEach => json!({ "items": (0..rounds).collect::<Vec<_>>() }),
            Self::DoWhile | Self::DoUntil => json!({ "n": 0, "rounds": rounds }),
        }
    }
}

#[derive(Debug)]
struct Row {
    kind: Kind,
    rounds: usize,
    executions: usize,
    bytes: f64,
    cpu: Duration,
    rebuilt: Duration,
}

/// Rows for each kind, in the order of the requested numbers of rounds.
#[derive(Debug, Default)]
pub(crate) struct Rounds(Vec<Row>);

impl Rounds {
    pub(crate) fn measure(numbers: &[usize]) -> Outcome<Self> {
        let mut rows = Vec::new();
        for kind in Kind::ALL {
            for &rounds in numbers {
                rows.push(measure(kind, rounds)?);
            }
        }
        Ok(Self(rows))
    }

    fn first_of(&self, kind: Kind) -> Option<&Row> {
        self.0.iter().find(|row| row.kind == kind)
    }

    fn ratios(&self, row: &Row) -> (f64, f64) {
        let first = self.first_of(row.kind).unwrap_or(row);
        (row.bytes / first.bytes, row.cpu.as_secs_f64() / first.cpu.as_secs_f64())
    }

    /// Returns the rows that are worse than any noise.
    pub(crate) fn failures(&self) -> Vec<String> {
        let grown = self.0.iter().filter_map(|row| {
            let (bytes, cpu) = self.ratios(row);
            let Row { kind, rounds, .. } = row;
            let is_grown = bytes > BYTES_ALARM || cpu > CPU_ALARM;
            is_grown.then(|| format!("{kind:?}, {rounds} rounds: {bytes:.1} and {cpu:.1} times"))
        });
        grown.collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
fn measure(kind: Kind, rounds: usize) -> Outcome<Row> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let server = Server::start(directory.path())?;
    let address = server.address();
    client::execute_once(address, client::Work::Noop3)?;
    let (spent, written) = (server.process().spent()?, server.written()?);
    let executions = (ROUNDS_IN_ALL / rounds).max(1);
    for number in 0..executions {
        run(address, kind, rounds, &format!("e{number}"))?;
    }
    let cpu = (server.process().spent()? - spent).cpu;
    let written = server.written()? - written;
    let all = executions * rounds;
    Ok(Row {
        kind,
        rounds,
        executions,
        bytes: written as f64 / all as f64,
        cpu: cpu / u32::try_from(all)?,
        rebuilt: rebuilt(kind, rounds)?,
    })
}

/// Kills a server in the middle of an execution, and returns the time from the start of the next
/// one until it answers a request about that execution.
fn rebuilt(kind: Kind, rounds: usize) -> Outcome<Duration> {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
    let server = Server::start(directory.path())?;
    let address = server.address();
    // never answered
    std::thread::spawn(move || run(address, kind, rounds, "killed"));
    let path = format!("/workflows/{}/executions/killed/why", kind.workflow());
    let begun = Instant::now();
    while client::get(address, &path).is_err() && begun.elapsed() < Duration::from_secs(10) {}
    // most of the way, if it takes that long
    std::thread::sleep(Duration::from_micros(10 * rounds as u64));
    drop(server);
    let begun = Instant::now();
    let server = Server::start(directory.path())?;
    client::get(server.address(), &path)?;
    Ok(begun.elapsed())
}

fn run(address: SocketAddr, kind: Kind, rounds: usize, id: &str) -> Outcome<()> {
    let options = json!({ "executionId": id });
    let body = json!({ "input": kind.input(rounds), "options": options });
    execute(&mut connect(address)?, kind.workflow(), &body.to_string(), "\"completed\"")
}

impl fmt::Display for Rounds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HEAD)?;
        for row in &self.0 {
            let (bytes, cpu) = self.ratios(row);
            writeln!(
                formatter,
                "| {} | {} | {} | {:.0} | {bytes:.2} | {:.1} | {cpu:.2} | {:.0} |",
                row.kind.workflow(),
                row.rounds,
                row.executions,
                row.bytes,
                row.cpu.as_secs_f64() * 1e6,
                row.rebuilt.as_secs_f64() * 1e3,
            )?;
        }
        Ok(())
    }
}
