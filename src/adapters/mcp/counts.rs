//! Numbers about a server since the start of the process.

use std::array;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use greenroom_actors::agent::tool::{ToolContext, ToolError};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use tokio::time::Instant;

use crate::mcp_servers::{CALL_BOUNDS, CallCounts, CallOutcome};

/// Number of outcomes.
const OUTCOMES: usize = CallOutcome::ALL.len();

/// Numbers about a server.
#[derive(Debug)]
pub(super) struct Counts {
    /// Time since which it is connected, or not.
    since: AtomicI64,
    lost: AtomicU64,
    /// Calls that have ended, by outcome.
    outcomes: [AtomicU64; OUTCOMES],
    /// Calls within each of [`CALL_BOUNDS`] and not within the one before, and those beyond the last.
    durations: [AtomicU64; CALL_BOUNDS.len() + 1],
    /// Duration of all calls, in microseconds.
    duration_sum: AtomicU64,
}

impl Counts {
    pub(super) fn new() -> Self {
        Self {
            since: AtomicI64::new(SystemClock.now().0),
            lost: AtomicU64::new(0),
            outcomes: array::from_fn(|_| AtomicU64::new(0)),
            durations: array::from_fn(|_| AtomicU64::new(0)),
            duration_sum: AtomicU64::new(0),
        }
    }

    /// Notes that it is connected now, or no longer.
    pub(super) fn change(&self) {
        self.since.store(SystemClock.now().0, Ordering::Relaxed);
    }

    /// Counts a lost connection.
    pub(super) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    fn call(&self, outcome: CallOutcome, took: Duration) {
        self.outcomes[outcome as usize].fetch_add(1, Ordering::Relaxed);
        let seconds = took.as_secs_f64();
        let within = CALL_BOUNDS.partition_point(|bound| *bound < seconds);
        self.durations[within].fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.duration_sum.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns the time since which it is connected, or not.
    pub(super) fn since(&self) -> Timestamp {
        Timestamp(self.since.load(Ordering::Relaxed))
    }

    /// Returns the number of connections that were lost.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns the numbers of calls that have ended.
    pub(super) fn calls(&self) -> CallCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut below = 0;
        let durations = self.durations.each_ref().map(|count| {
            below += read(count);
            below
        });
        CallCounts {
            outcomes: self.outcomes.each_ref().map(read),
            durations,
            duration_sum: Duration::from_micros(read(&self.duration_sum)),
        }
    }
}

/// A call that is being made. It is counted when this is dropped, also if it is given up.
pub(super) struct Count<'c> {
    counts: &'c Counts,
    context: &'c ToolContext,
    begun: Instant,
    /// Outcome of a call that has ended by itself.
    outcome: Option<CallOutcome>,
}

impl<'c> Count<'c> {
    pub(super) fn begin(counts: &'c Counts, context: &'c ToolContext) -> Self {
        Self { counts, context, begun: Instant::now(), outcome: None }
    }

    /// Notes how the call has ended. `said` is known where the error alone does not say it.
    pub(super) fn end<T>(&mut self, ended: &Result<T, ToolError>, said: Option<CallOutcome>) {
        self.outcome = Some(match ended {
            Ok(_) => CallOutcome::Completed,
            Err(ToolError::Waits(_) | ToolError::NeedsApproval(_)) => CallOutcome::Asked,
            Err(_) => said.unwrap_or(CallOutcome::Failed),
        });
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        let given_up = || match self.context {
            context if context.has_timed_out() => CallOutcome::TimedOut,
            context if context.is_interrupted() => CallOutcome::Interrupted,
            _ => CallOutcome::Cancelled,
        };
        self.counts.call(self.outcome.unwrap_or_else(given_up), self.begun.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use greenroom_actors::agent::ToolAsk;
    use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn calls_are_counted_by_how_they_end() {
        use CallOutcome::{
            Asked, Cancelled, Completed, Failed, Interrupted, TimedOut, ToolError as Refused,
        };
        let failed =
            || Err(ToolError::Failed(AttemptFailure::new(ErrorKind::Tool, "no".to_owned())));
        let counts = Counts::new();
        let context = ToolContext::for_test();
        for (ended, said, expected) in [
            (Ok(()), None, Completed),
            (failed(), None, Failed),
            (failed(), Some(Refused), Refused),
            (failed(), Some(Interrupted), Interrupted),
            (Err(ToolError::Waits(Box::new(ToolAsk::new("?")))), None, Asked),
        ] {
            let before = counts.calls().outcomes[expected as usize];
            Count::begin(&counts, &context).end(&ended, said);
            assert_eq!(counts.calls().outcomes[expected as usize], before + 1, "{expected:?}");
        }
        drop(Count::begin(&counts, &context));
        let calls = counts.calls();
        assert_eq!(calls.outcomes[Cancelled as usize], 1);
        assert_eq!(calls.outcomes[TimedOut as usize], 0);
        assert_eq!((calls.ended(), calls.failures()), (6, 3));
    }

    #[test]
    fn durations_are_cumulative_and_bounds_belong_to_what_is_below_them() {
        let counts = Counts::new();
        for micros in [0, 5_000, 5_001, 3_600_000_000, 3_600_000_001] {
            counts.call(CallOutcome::Completed, Duration::from_micros(micros));
        }
        let calls = counts.calls();
        let (first, last) = (calls.durations[0], calls.durations[CALL_BOUNDS.len() - 1]);
        assert_eq!((first, last, calls.durations[CALL_BOUNDS.len()]), (2, 4, 5));
        assert_eq!(calls.duration_sum, Duration::from_micros(7_200_010_002));
    }
}
