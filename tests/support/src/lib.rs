//! Helpers of the black-box tests and the benchmarks: servers as processes, a client that shows
//! every byte it receives, scripted servers for the other side of a connection, and PostgreSQL.

pub mod client;
pub mod clock;
pub mod listener;
pub mod postgres;
pub mod provider;
pub mod proxy;
pub mod server;
pub mod store;

use std::io::Write as _;
use std::time::{Duration, Instant};

/// Upper bound on anything that is expected to happen, also on a machine with ten times as much to do.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// Pause between two looks at a condition, so that polling does not slow down the server.
pub const PAUSE: Duration = Duration::from_millis(1);

/// Polls until there is an answer.
///
/// # Panics
///
/// After [`PATIENCE`] without one.
pub fn eventually<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = poll() {
            return answer;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Reports on stderr that a test was skipped because a program is missing.
///
/// # Panics
///
/// With `CI=true`, where every test must run.
pub fn not_tested(subject: &str, missing: &str) {
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "{subject}: {missing}");
    // directly to stderr: the harness captures the prints of tests that pass
    let line = format!("\n*** NOT TESTED: {subject}. {missing}\n\n");
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
}
