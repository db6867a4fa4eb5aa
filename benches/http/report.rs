//! The tables of results.

use std::fmt;

use crate::database::Store;
use crate::load::Sample;
use crate::options::Options;
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
const DATABASE_HEAD: &str = "
| | connections | beside: PostgreSQL CPU µs | measured: PostgreSQL CPU µs | target \
| greenroom with SQLite: per second | p50/p99 ms | first event ms | CPU µs | sleeps | rate ratio |
|---|---|---|---|---|---|---|---|---|---|---|
";

const ELSEWHERE_HEAD: &str = "
| | connections | the resume, beside: p50 ms | measured: p50 ms | added ms | target |
|---|---|---|---|---|---|
";

/// The servers at one kind of work and one number of connections.
pub(crate) struct Comparison {
    store: Store,
    nodes: usize,
    work: Work,
    connections: usize,
    beside: Vec<Sample>,
    measured: Vec<Sample>,
    /// Greenroom with SQLite, if the others have another store.
    embedded: Vec<Sample>,
}

impl Comparison {
    pub(crate) fn new(options: &Options, work: Work, connections: usize) -> Self {
        let Options { store, nodes, .. } = *options;
        let (beside, measured, embedded) = Default::default();
        Self { store, nodes, work, connections, beside, measured, embedded }
    }

    pub(crate) fn add(&mut self, kind: Kind, sample: Sample) {
        let [beside, _] = self.work.servers(self.nodes);
        let samples = match kind {
            Kind::Embedded => &mut self.embedded,
            kind if kind == beside => &mut self.beside,
            _ => &mut self.measured,
        };
        samples.push(sample);
    }

    fn target(&self) -> Option<f64> {
        self.work.target(self.store, self.nodes, self.connections)
    }

    /// Returns the median times of the second request, if there are such.
    fn seconds_ms(&self) -> Option<(f64, f64)> {
        let of = |samples| median_of_some(samples, |sample| sample.second_ms);
        of(&self.beside).zip(of(&self.measured))
    }

    /// Returns the median of the measured server relative to another's.
    fn ratio(&self, other: &[Sample], of: fn(&Sample) -> f64) -> Option<f64> {
        Some(median(&self.measured, of)? / median(other, of)?)
    }

    fn rate_failure(&self) -> Option<String> {
        let target = self.target()?;
        let ratio = self.ratio(&self.beside, |sample| sample.rate)?;
        // a ratio that is not a number fails, too
        let is_well = ratio >= target * ALARM;
        (!is_well).then(|| format!("ratio {ratio:.3}, less than a tenth of its target {target}"))
    }

    fn database_failure(&self) -> Option<String> {
        let target = self.work.database_target_us(self.connections)?;
        let cpu = median_of_some(&self.measured, |sample| sample.database_us)?;
        (cpu * ALARM > target)
            .then(|| format!("PostgreSQL takes {cpu:.0} µs, over ten times its target {target}"))
    }

    fn added_failure(&self) -> Option<String> {
        let target = self.work.added_target_ms(self.connections)?;
        let (beside, measured) = self.seconds_ms()?;
        let added = measured - beside;
        (added * ALARM > target)
            .then(|| format!("the resume takes {added:.2} ms more, over ten times {target}"))
    }

    fn failures(&self) -> impl Iterator<Item = String> {
        let at = format!("{} at {} connections", self.work.title(), self.connections);
        let failures = [self.rate_failure(), self.database_failure(), self.added_failure()];
        failures.into_iter().flatten().map(move |failure| format!("{at}: {failure}"))
    }
}

/// The row of the comparison of both servers.
impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "| {} | {} |", self.work.title(), self.connections)?;
        for samples in [&self.beside, &self.measured] {
            write!(formatter, " {} |", Cells(samples))?;
        }
        let rate = Cell(self.ratio(&self.beside, |sample| sample.rate), 2);
        let cpu = Cell(self.ratio(&self.beside, |sample| sample.cpu_us), 2);
        write!(formatter, " {rate} | {} | {cpu} |", Cell(self.target(), 2))
    }
}

/// The row about the database.
struct InDatabase<'a>(&'a Comparison);

impl fmt::Display for InDatabase<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { work, connections, beside, measured, embedded, .. } = self.0;
        write!(formatter, "| {} | {connections} |", work.title())?;
        for samples in [beside, measured] {
            let cpu = median_of_some(samples, |sample| sample.database_us);
            write!(formatter, " {} |", Cell(cpu, 1))?;
        }
        let target = Cell(work.database_target_us(*connections), 0);
        let rate = Cell(self.0.ratio(embedded, |sample| sample.rate), 2);
        write!(formatter, " {target} | {} | {rate} |", Cells(embedded))
    }
}

/// The row about a resume at another server.
struct Elsewhere<'a>(&'a Comparison);

impl fmt::Display for Elsewhere<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { work, connections, .. } = self.0;
        write!(formatter, "| {} | {connections} |", work.title())?;
        let (beside, measured) = self.0.seconds_ms().unzip();
        let added = measured.zip(beside).map(|(measured, beside)| measured - beside);
        for figure in [beside, measured, added] {
            write!(formatter, " {} |", Cell(figure, 3))?;
        }
        write!(formatter, " {} |", Cell(work.added_target_ms(*connections), 1))
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
        self.0.iter().flat_map(Comparison::failures).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(HEAD)?;
        self.0.iter().try_for_each(|comparison| writeln!(formatter, "{comparison}"))?;
        let in_database = self.0.iter().filter(|it| it.store == Store::Postgres);
        let mut in_database = in_database.map(InDatabase).peekable();
        if in_database.peek().is_some() {
            formatter.write_str(DATABASE_HEAD)?;
        }
        in_database.try_for_each(|row| writeln!(formatter, "{row}"))?;
        let elsewhere = self.0.iter().filter(|it| it.work == Work::Forwarded);
        let mut elsewhere = elsewhere.map(Elsewhere).peekable();
        if elsewhere.peek().is_some() {
            formatter.write_str(ELSEWHERE_HEAD)?;
        }
        elsewhere.try_for_each(|row| writeln!(formatter, "{row}"))
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
        let first = Cell(median_of_some(self.0, |sample| sample.first_event_ms), 2);
        write!(formatter, " | {p50:.2}/{p99:.2} | {first} | {cpu:.1} | {sleeps:.2}")
    }
}

/// A figure that may be missing, and the number of its decimals.
struct Cell(Option<f64>, usize);

impl fmt::Display for Cell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(figure, decimals) = self;
        match figure {
            Some(figure) => write!(formatter, "{figure:.decimals$}"),
            None => formatter.write_str("-"),
        }
    }
}

fn median_of_some(samples: &[Sample], of: fn(&Sample) -> Option<f64>) -> Option<f64> {
    samples.iter().all(|sample| of(sample).is_some()).then_some(())?;
    median(samples, |sample| of(sample).unwrap_or(f64::NAN))
}

/// Returns the median; of an even number, the mean of the two in the middle.
fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> Option<f64> {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}
