//! Records of connections that broke.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use log::Level;

/// Minimum time between two warnings: all connections break at once.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Time of the last warning of this process.
static WARNED: Mutex<Option<Instant>> = Mutex::new(None);

/// Logs that a connection broke or is given up: the first of several as a warning.
pub(crate) fn report(reason: &str) {
    let level =
        level_at(Instant::now(), &mut WARNED.lock().unwrap_or_else(PoisonError::into_inner));
    log::log!(level, "lost a connection to the database: {reason}");
}

fn level_at(now: Instant, warned: &mut Option<Instant>) -> Level {
    if warned.is_some_and(|at| now.duration_since(at) < WARN_EVERY) {
        return Level::Debug;
    }
    *warned = Some(now);
    Level::Warn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_losses_is_a_warning() {
        let (begin, mut warned) = (Instant::now(), None);
        let levels = [0, 1, 9, 10, 11].map(|seconds| {
            let later = begin + Duration::from_secs(seconds);
            level_at(later, &mut warned)
        });
        assert_eq!(levels, [Level::Warn, Level::Debug, Level::Debug, Level::Warn, Level::Debug]);
    }
}
