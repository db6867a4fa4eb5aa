//! The table of results.

use std::fmt;
use std::time::Duration;

use crate::callers::Times;
use crate::cluster::Loss;

/// Multiple of a target above which a time is a fault and not noise.
const ALARM: u32 = 10;
const HEAD: &str = "\
| one of three is | lease s | its slots | first answer: first slot s | half of the slots s \
| last slot s | target | its executions | all answered s | per second, after the last slot \
| refusals |
|---|---|---|---|---|---|---|---|---|---|---|
";

/// The loss of a server.
pub(crate) struct Row {
    pub(crate) loss: Loss,
    pub(crate) lease: Duration,
    /// Number of executions that the server had.
    pub(crate) executions: usize,
    pub(crate) times: Times,
}

impl Row {
    fn last_slot(&self) -> Duration {
        self.times.slots.last().copied().unwrap_or_default()
    }

    fn failure(&self) -> Option<String> {
        let (last, target) = (self.last_slot(), self.loss.target(self.lease));
        (last > target * ALARM).then(|| format!("{}: {last:?}, target {target:?}", self.loss))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { loss, lease, executions, times } = self;
        let (slots, last) = (times.slots.len(), self.last_slot());
        let first = times.slots.first().copied().unwrap_or_default();
        let half = times.slots.get(slots / 2).copied().unwrap_or_default();
        let rest = (executions - slots) as f64 / (times.all - last).as_secs_f64();
        write!(f, "| {loss} | {:.1} | {slots} |", lease.as_secs_f64())?;
        for time in [first, half, last, loss.target(*lease)] {
            write!(f, " {:.1} |", time.as_secs_f64())?;
        }
        let all = times.all.as_secs_f64();
        write!(f, " {executions} | {all:.1} | {rest:.0} | {} |", times.refusals)
    }
}

/// All losses.
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
