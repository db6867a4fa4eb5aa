//! Log of reads and changes that fail although there is no outage.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Failure;

/// Time for which further failures are only counted.
const PAUSE: Duration = Duration::from_secs(10);

/// Logs failures, but not each of many.
#[derive(Debug, Default)]
pub(super) struct Complaints(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    logged: Option<Instant>,
    left_out: u64,
}

impl Complaints {
    /// Logs a failure with its reason, unless another one was logged a short time before.
    pub(super) fn report(&self, failure: &Failure) {
        let due = self.0.lock().unwrap_or_else(PoisonError::into_inner).due(Instant::now());
        match due {
            None => {}
            Some(0) => log::error!("the database refused a request: {failure}"),
            Some(others) => log::error!(
                "the database refused a request, and {others} more since the last such record: \
                 {failure}"
            ),
        }
    }
}

impl Counted {
    /// Returns the number of failures left out since the last one logged; `None` if this one is
    /// left out as well.
    fn due(&mut self, now: Instant) -> Option<u64> {
        if self.logged.is_some_and(|at| now.duration_since(at) < PAUSE) {
            self.left_out += 1;
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_failures_some_are_logged_with_the_number_of_the_others() {
        let (mut counted, begun) = (Counted::default(), Instant::now());
        let due = |ms| (ms, begun + Duration::from_millis(ms));
        for ((ms, at), expected) in [
            (due(0), Some(0)),
            (due(1), None),
            (due(9_999), None),
            (due(10_000), Some(2)),
            (due(10_001), None),
            (due(30_000), Some(1)),
            (due(60_000), Some(0)),
        ] {
            assert_eq!(counted.due(at), expected, "{ms} ms");
        }
    }
}
