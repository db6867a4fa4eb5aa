//! The table of results.

use std::fmt;

use crate::load::Sample;
use crate::server::Kind;
use crate::work::Work;

/// Part of a target below which a ratio is a fault and not noise.
const ALARM: f64 = 0.1;

const HEAD: &str = "\
| | connections | beside: per second | p50/p99 ms | first event ms | CPU µs | sleeps \
| measured: per second | p50/p99 ms | first event ms | CPU µs | sleeps \
| rate ratio | target | CPU ratio |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
";

/// Both servers at one kind of work and one number of connections.
pub(crate) struct Comparison {
    work: Work,
    connections: usize,
    beside: Vec<Sample>,
    measured: Vec<Sample>,
}

impl Comparison {
    pub(crate) fn new(work: Work, connections: usize) -> Self {
        Self { work, connections, beside: Vec::new(), measured: Vec::new() }
    }

    pub(crate) fn add(&mut self, kind: Kind, sample: Sample) {
        let [beside, _] = self.work.servers();
        let samples = if kind == beside { &mut self.beside } else { &mut self.measured };
        samples.push(sample);
    }

    /// Returns the median of the measured server relative to the other's.
    fn ratio(&self, of: impl Fn(&Sample) -> f64) -> Option<f64> {
        Some(median(&self.measured, &of)? / median(&self.beside, &of)?)
    }

    fn failure(&self) -> Option<String> {
        let target = self.work.target(self.connections);
        let ratio = self.ratio(|sample| sample.rate)?;
        // a ratio that is not a number fails, too
        let is_well = ratio >= target * ALARM;
        (!is_well).then(|| {
            format!(
                "{} at {} connections: ratio {ratio:.3}, less than a tenth of its target {target}",
                self.work.title(),
                self.connections
            )
        })
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.work.target(self.connections);
        write!(formatter, "| {} | {} |", self.work.title(), self.connections)?;
        for samples in [&self.beside, &self.measured] {
            write!(formatter, " {} |", Cells(samples))?;
        }
        let rate = Ratio(self.ratio(|sample| sample.rate));
        let cpu = Ratio(self.ratio(|sample| sample.cpu_us));
        write!(formatter, " {rate} | {target:.2} | {cpu} |")
    }
}

/// Every comparison of a run.
#[derive(Default)]
pub(crate) struct Table(Vec<Comparison>);

impl Table {
    pub(crate) fn add(&mut self, comparison: Comparison) {
        self.0.push(comparison);
    }

    /// Returns the figures that are worse than any noise.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.0.iter().filter_map(Comparison::failure).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HEAD)?;
        self.0.iter().try_for_each(|comparison| writeln!(formatter, "{comparison}"))
    }
}

/// One server's part of a row.
struct Cells<'a>(&'a [Sample]);

impl fmt::Display for Cells<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |value: fn(&Sample) -> f64| median(self.0, value);
        let (Some(rate), Some(p50), Some(p99), Some(cpu), Some(sleeps)) = (
            of(|sample| sample.rate),
            of(|sample| sample.p50_ms),
            of(|sample| sample.p99_ms),
            of(|sample| sample.cpu_us),
            of(|sample| sample.sleeps),
        ) else {
            return formatter.write_str("- | - | - | - | -");
        };
        let errors: usize = self.0.iter().map(|sample| sample.errors).sum();
        write!(formatter, "{rate:.0}")?;
        if errors > 0 {
            write!(formatter, " ({errors} errors)")?;
        }
        write!(formatter, " | {p50:.2}/{p99:.2} | ")?;
        match median_of_some(self.0) {
            Some(first) => write!(formatter, "{first:.2}")?,
            None => formatter.write_str("-")?,
        }
        write!(formatter, " | {cpu:.1} | {sleeps:.2}")
    }
}

struct Ratio(Option<f64>);

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ratio) => write!(formatter, "{ratio:.2}"),
            None => formatter.write_str("-"),
        }
    }
}

fn median_of_some(samples: &[Sample]) -> Option<f64> {
    samples.iter().all(|sample| sample.first_event_ms.is_some()).then_some(())?;
    median(samples, |sample| sample.first_event_ms.unwrap_or(f64::NAN))
}

/// Returns the median; of an even number, the mean of the two in the middle.
fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> Option<f64> {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}
