//! The table.

use std::fmt;
use std::time::Duration;

/// Beyond this many times its target a figure is not noise but a fault.
const ALARM: f64 = 10.0;
/// Targets: bytes of an execution that waits, and the start with 100,000 of them.
const BYTES_EACH: f64 = 1024.0;
const READY: Duration = Duration::from_secs(1);
/// With fewer stored, what a server needs anyway outweighs what each of them does.
const TELLING: usize = 10_000;
const READY_STORED: usize = 100_000;

const HEAD: &str = "\
| stored | file MB | filled/s | bytes each | idle CPU ms/s | ready ms | first answer ms \
| MB after the start | noop3/s | CPU µs | CPU ratio |
|---|---|---|---|---|---|---|---|---|---|---|
";

/// What was seen with so many stored.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) stored: usize,
    /// Executions a second while they were made.
    pub(crate) fill: f64,
    pub(crate) file: u64,
    /// Resident memory after they have left memory, above what it was before them.
    pub(crate) grown: u64,
    /// In each second in which nobody asked for anything.
    pub(crate) idle_cpu: Duration,
    /// From the start of the process until it listened, and until it had answered.
    pub(crate) ready: Duration,
    pub(crate) first_answer: Duration,
    pub(crate) started_memory: u64,
    /// `noop3` over what is stored, a second, and the CPU of each.
    pub(crate) rate: f64,
    pub(crate) cpu: Duration,
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "figures of a table")]
    fn bytes_each(&self) -> f64 {
        self.grown as f64 / self.stored.max(1) as f64
    }
}

/// Every number that was asked for, the smallest first.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    pub(crate) fn add(&mut self, row: Row) {
        self.0.push(row);
    }

    /// The cost of an execution as a part of what it is in the first row.
    fn cpu_ratio(&self, row: &Row) -> f64 {
        let first = self.0.first().map_or(f64::NAN, |first| first.cpu.as_secs_f64());
        row.cpu.as_secs_f64() / first
    }

    /// What is worse than any noise.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for row in &self.0 {
            let stored = row.stored;
            let each = row.bytes_each();
            if stored >= TELLING && each > BYTES_EACH * ALARM {
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
