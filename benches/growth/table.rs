//! The table of results.

use std::fmt;
use std::time::Duration;

/// Multiple of a target that is a fault and not noise.
const ALARM: f64 = 10.0;
/// Targets: bytes of a suspended execution, and start-up with 100,000 of them.
const BYTES_EACH: f64 = 1024.0;
const READY: Duration = Duration::from_secs(1);
/// With fewer stored, the server's own memory outweighs that of the executions.
const STORED_MIN: usize = 10_000;
const READY_STORED: usize = 100_000;

const HEAD: &str = "\
| stored | file MB | filled/s | bytes each | idle CPU ms/s | ready ms | first answer ms \
| MB after the start | noop3/s | CPU µs | CPU ratio |
|---|---|---|---|---|---|---|---|---|---|---|
";

/// Results with so many executions stored.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) stored: usize,
    /// Executions per second while the store was filled.
    pub(crate) fill: f64,
    pub(crate) file: u64,
    /// Growth of resident memory after all were unloaded.
    pub(crate) grown: u64,
    /// CPU per second without requests.
    pub(crate) idle_cpu: Duration,
    /// Time from the start of the process until it listened, and until its first answer.
    pub(crate) ready: Duration,
    pub(crate) first_answer: Duration,
    pub(crate) started_memory: u64,
    /// Executions of `noop3` per second over the filled store, and the CPU of each.
    pub(crate) rate: f64,
    pub(crate) cpu: Duration,
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "figures of a table")]
    fn bytes_each(&self) -> f64 {
        self.grown as f64 / self.stored.max(1) as f64
    }
}

/// A row for each requested number.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    pub(crate) fn add(&mut self, row: Row) {
        self.0.push(row);
    }

    /// Returns the CPU of an execution relative to the first row.
    fn cpu_ratio(&self, row: &Row) -> f64 {
        let first = self.0.first().map_or(f64::NAN, |first| first.cpu.as_secs_f64());
        row.cpu.as_secs_f64() / first
    }

    /// Returns the figures that are worse than any noise.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for row in &self.0 {
            let stored = row.stored;
            let each = row.bytes_each();
            if stored >= STORED_MIN && each > BYTES_EACH * ALARM {
                failures.push(format!("{stored} stored: {each:.0} bytes for each of them"));
            }
            let first_answer = row.first_answer;
            if stored <= READY_STORED && first_answer > READY.mul_f64(ALARM) {
                failures.push(format!("{stored} stored: the first answer took {first_answer:?}"));
            }
            let ratio = self.cpu_ratio(row);
            if ratio > ALARM {
                failures.push(format!("{stored} stored: an execution costs {ratio:.1} times more"));
            }
        }
        failures
    }
}

impl fmt::Display for Table {
    #[expect(clippy::cast_precision_loss, reason = "figures of a table")]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MEGABYTE: f64 = 1024.0 * 1024.0;
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        formatter.write_str(HEAD)?;
        for row in &self.0 {
            writeln!(
                formatter,
                "| {} | {:.1} | {:.0} | {:.0} | {:.1} | {:.0} | {:.0} | {:.1} | {:.0} | {:.1} | {:.2} |",
                row.stored,
                row.file as f64 / MEGABYTE,
                row.fill,
                row.bytes_each(),
                milliseconds(row.idle_cpu),
                milliseconds(row.ready),
                milliseconds(row.first_answer),
                row.started_memory as f64 / MEGABYTE,
                row.rate,
                milliseconds(row.cpu) * 1e3,
                self.cpu_ratio(row),
            )?;
        }
        Ok(())
    }
}
