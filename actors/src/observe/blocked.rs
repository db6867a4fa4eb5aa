//! Code of a program that blocks its thread: how long each poll takes, and how often that is said.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};

use futures_util::future::BoxFuture;

use crate::domain::time::Timestamp;
use crate::ports::clock::Clock;

/// Duration of a poll from which on it is reported.
pub(crate) const BLOCKED_AFTER_MS: u64 = 100;

/// Least time between two warnings about the same code.
const WARNED_EVERY_MS: u64 = 60_000;

/// Code that is remembered; more than a program has, unless its names come from data.
const KNOWN_MAX: usize = 1000;

/// Times of the last warnings, by the code that they are about.
#[derive(Default)]
pub(crate) struct Warned(Mutex<HashMap<String, Timestamp>>);

impl Warned {
    /// Returns true if a warning about this code is due, which then counts as given.
    pub(crate) fn is_due(&self, code: &str, now: Timestamp) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(code).is_some_and(|last| now.ms_since(*last) < WARNED_EVERY_MS) {
            return false;
        }
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(code.to_owned(), now);
        true
    }
}

/// Runs work, and calls a function with the milliseconds of each poll that blocks its thread.
pub(crate) async fn timed<T>(
    clock: &dyn Clock,
    mut work: BoxFuture<'static, T>,
    mut blocked: impl FnMut(u64),
) -> T {
    poll_fn(move |cx| {
        let begun = clock.now();
        let polled = work.as_mut().poll(cx);
        let held_ms = clock.now().ms_since(begun);
        if held_ms >= BLOCKED_AFTER_MS {
            blocked(held_ms);
        }
        polled
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use futures_util::FutureExt as _;

    use super::*;

    /// A clock that only the test moves.
    #[derive(Default)]
    struct Moved(AtomicI64);

    impl Clock for Moved {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.load(Ordering::SeqCst))
        }

        fn new_id(&self) -> Arc<str> {
            "id".into()
        }
    }

    #[tokio::test]
    async fn each_poll_counts_by_itself() {
        for (polls, expected) in [
            (vec![99, 99, 99], vec![]),
            (vec![0, 100], vec![100]),
            (vec![250, 10, 101], vec![250, 101]),
        ] {
            let clock = Arc::new(Moved::default());
            let (inside, takes) = (Arc::clone(&clock), polls.clone());
            let work = async move {
                for takes_ms in takes {
                    inside.0.fetch_add(takes_ms, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                }
                "done"
            };
            let mut seen = Vec::new();
            assert_eq!(timed(&*clock, work.boxed(), |ms| seen.push(ms)).await, "done");
            assert_eq!(seen, expected, "{polls:?}");
        }
    }

    #[test]
    fn the_same_code_is_warned_of_once_a_minute() {
        let warned = Warned::default();
        let rows = [
            ("a", 1_000, true),
            ("a", 1_001, false),
            ("b", 1_002, true),
            ("a", 60_999, false),
            ("a", 61_000, true),
            ("b", 61_000, false),
            ("b", 61_002, true),
        ];
        for (code, now, expected) in rows {
            assert_eq!(warned.is_due(code, Timestamp(now)), expected, "{code} at {now}");
        }
        for number in 0..2 * KNOWN_MAX {
            assert!(warned.is_due(&number.to_string(), Timestamp(0)));
        }
        assert!(warned.0.lock().unwrap().len() <= KNOWN_MAX);
    }
}
