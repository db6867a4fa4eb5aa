//! Code of a program that blocks its thread: how long each poll takes, and how often that is said.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

/// Duration of a poll from which on it is reported.
pub(crate) const BLOCKED_AFTER: Duration = Duration::from_millis(100);

/// Least time between two warnings about the same code.
const WARNED_EVERY: Duration = Duration::from_secs(60);

/// Code that is remembered; more than a program has, unless its names come from data.
const KNOWN_MAX: usize = 1000;

/// Times of the last warnings, by the code that they are about.
#[derive(Default)]
pub(crate) struct Warned(Mutex<HashMap<String, Instant>>);

impl Warned {
    /// Returns true if a warning about this code is due, which then counts as given.
    pub(crate) fn is_due(&self, code: &str, now: Instant) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(code).is_some_and(|last| now.duration_since(*last) < WARNED_EVERY) {
            return false;
        }
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(code.to_owned(), now);
        true
    }
}

/// Runs work, and calls a function with the duration of each poll that blocks its thread.
pub(crate) async fn timed<T>(
    mut work: BoxFuture<'static, T>,
    mut blocked: impl FnMut(Duration),
) -> T {
    poll_fn(move |cx| {
        let begun = Instant::now();
        let polled = work.as_mut().poll(cx);
        let held = begun.elapsed();
        if held >= BLOCKED_AFTER {
            blocked(held);
        }
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_poll_counts_by_itself() {
        for (polls, expected) in [
            (vec![99, 99, 99], vec![]),
            (vec![0, 100], vec![100]),
            (vec![250, 10, 101], vec![250, 101]),
        ] {
            let takes = polls.clone();
            let work = async move {
                for takes_ms in takes {
                    // within one poll
                    advance(Duration::from_millis(takes_ms)).await;
                }
                "done"
            };
            let mut seen = Vec::new();
            assert_eq!(timed(work.boxed(), |held| seen.push(held.as_millis())).await, "done");
            assert_eq!(seen, expected, "{polls:?}");
        }
    }

    #[test]
    fn the_same_code_is_warned_of_once_a_minute() {
        let (warned, begun) = (Warned::default(), Instant::now());
        let rows = [
            ("a", 1_000, true),
            ("a", 1_001, false),
            ("b", 1_002, true),
            ("a", 60_999, false),
            ("a", 61_000, true),
            ("b", 61_000, false),
            ("b", 61_002, true),
        ];
        for (code, at_ms, expected) in rows {
            let now = begun + Duration::from_millis(at_ms);
            assert_eq!(warned.is_due(code, now), expected, "{code} at {at_ms}");
        }
        for number in 0..2 * KNOWN_MAX {
            assert!(warned.is_due(&number.to_string(), begun));
        }
        assert!(warned.0.lock().unwrap().len() <= KNOWN_MAX);
    }
}
