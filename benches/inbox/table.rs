//! The table of results.

use std::fmt;
use std::time::Duration;

use crate::filters::Filter;

/// Target of a page, and the multiple of it that is a fault and not noise.
const TARGET: Duration = Duration::from_millis(5);
const ALARM: u32 = 10;

const HEAD: &str = "\
| filters | asks on the first page | first page: p50 ms | p95 ms | pages behind: p50 ms | p95 ms |
|---|---|---|---|---|---|
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
}

/// Times by one filter.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) filter: Filter,
    /// Number on the first page.
    pub(crate) asks: usize,
    pub(crate) first: Times,
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
        let Self { filter: Filter { name, note, .. }, asks, first, behind } = self;
        match &**name {
            "" => f.write_str("| none"),
            name => write!(f, "| `{name}`"),
        }?;
        let separator = if note.is_empty() { "" } else { ", " };
        write!(f, "{separator}{note} | {asks} |")?;
        for time in [first, behind].map(|it| [it.percentile(50), it.percentile(95)]).concat() {
            match time {
                Some(time) => write!(f, " {:.2} |", time.as_secs_f64() * 1e3),
                None => f.write_str(" |"),
            }?;
        }
        Ok(())
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
