//! CPU and context switches of a process, as counted by the kernel.

use std::fs;
use std::io;
use std::iter::Sum;
use std::ops::{RangeInclusive, Sub};
use std::time::Duration;

/// Unit of the kernel's CPU times: 100 per second on every Linux.
const TICK: Duration = Duration::from_millis(10);

/// A process, observed from outside.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process {
    pub(crate) id: u32,
}

/// Sums over all its threads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// User and system.
    pub(crate) cpu: Duration,
    /// Voluntary context switches.
    pub(crate) sleeps: u64,
}

impl Process {
    pub(crate) fn spent(self) -> io::Result<Spent> {
        Ok(Spent { cpu: self.cpu()?, sleeps: self.sleeps()? })
    }

    fn cpu(self) -> io::Result<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.id))?;
        // fields 14 and 15 of proc(5): user, system
        cpu_of(&text, 14..=15).ok_or_else(|| io::Error::other(format!("not understood: {text}")))
    }

    fn sleeps(self) -> io::Result<u64> {
        let mut sum = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.id))? {
            // a thread may end in the meantime
            let Ok(text) = fs::read_to_string(thread?.path().join("status")) else { continue };
            let count = text.lines().find_map(|line| {
                line.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok()
            });
            sum += count.unwrap_or(0);
        }
        Ok(sum)
    }
}

/// Adds up times in the text of `/proc/PID/stat`, whose fields proc(5) counts from 1.
pub(crate) fn cpu_of(stat: &str, fields: RangeInclusive<usize>) -> Option<Duration> {
    // the name of the program, in parentheses, may contain anything; field 3 follows it
    let values: Vec<_> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let times = values.get(fields.start() - 3..=fields.end() - 3)?;
    times.iter().map(|ticks| Some(TICK * ticks.parse::<u32>().ok()?)).sum()
}

impl Sum for Spent {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            cpu: sum.cpu + next.cpu,
            sleeps: sum.sleeps + next.sleeps,
        })
    }
}

impl Sub for Spent {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            sleeps: self.sleeps.saturating_sub(earlier.sleeps),
        }
    }
}
