//! A server as its own process, and a client that shows every byte it gets.

pub(crate) mod client;
pub(crate) mod lab;
pub(crate) mod server;

use std::time::{Duration, Instant};

/// How long anything may take that is expected to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Between two looks at a condition, so that looking takes nothing from what is looked at.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// Asks again until there is an answer.
///
/// # Panics
///
/// When there is none in time.
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(PAUSE);
    }
}
