//! The table of results.

use std::fmt;
use std::time::Duration;

use crate::filters::Filter;

/// Target of a page, and the multiple of it that is a fault and not noise.
const TARGET: Duration = Duration::from_millis(5);
const ALARM: u32 = 10;

const HEAD: &str = "\
| filters | asks on the first page | first page: p50 ms | p95 ms | CPU ms | pages behind: p50 ms | p95 ms |
|---|---|---|---|---|---|---|
";

/// Times of requests, sorted.
#[derive(Debug)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// Returns the time that so many of a hundred did not exceed; `None` without any.
    fn percentile(&self, percent: usize) -> Option<Duration> {
        let last = self.0.len().checked_sub(1)?;
        self.0.get((self.0.len() * percent / 100).min(last)).copied()
    }

    /// Formats the 50th and the 95th percentile; empty without any time.
    fn shown(&self) -> [String; 2] {
        [50, 95].map(|percent| self.percentile(percent).map(milliseconds).unwrap_or_default())
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// Times by one filter.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) filter: Filter,
    /// Number on the first page.
    pub(crate) asks: usize,
    pub(crate) first: Times,
    /// Mean CPU of the server for the first page.
    pub(crate) cpu: Duration,
    pub(crate) behind: Times,
}

impl Row {
    fn failure(&self) -> Option<String> {
        let medians = [&self.first, &self.behind].map(|times| times.percentile(50));
        let slowest = medians.into_iter().flatten().max()?;
        let name = &self.filter.name;
        (slowest > TARGET * ALARM).then(|| format!("{name}: {slowest:?}, target {TARGET:?}"))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { filter: Filter { name, note, .. }, asks, first, cpu, behind } = self;
        match &**name {
            "" => f.write_str("| none"),
            name => write!(f, "| `{name}`"),
        }?;
        let separator = if note.is_empty() { "" } else { ", " };
        write!(f, "{separator}{note} | {asks} |")?;
        let [p50, p95] = first.shown();
        let [behind_p50, behind_p95] = behind.shown();
        let cpu = milliseconds(*cpu);
        write!(f, " {p50} | {p95} | {cpu} | {behind_p50} | {behind_p95} |")
    }
}

/// The rows of all filters.
#[derive(Default)]
pub(crate) struct Table(Vec<Row>);

impl Table {
    pub(crate) fn add(&mut self, row: Row) {
        self.0.push(row);
    }

    /// Returns the times that are worse than any noise.
    pub(crate) fn failures(&self) -> Vec<String> {
        self.0.iter().filter_map(Row::failure).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        self.0.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}
