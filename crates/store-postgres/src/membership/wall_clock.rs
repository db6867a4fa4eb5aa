//! The wall clock of this server, compared with that of the database.

use std::time::Duration;

use greenroom_actors::ports::clock::{Clock as _, SystemClock};

/// Difference above which it is reported, in seconds. Timers fire early or late by as much.
const REPORTED: f64 = 1.0;

/// The wall clock of this server.
#[derive(Debug, Default)]
pub(super) struct WallClock {
    is_reported: bool,
}

impl WallClock {
    /// Returns the seconds by which the clock is ahead of the database's, whose answer came now and
    /// took so long, and logs a difference once. `database` is in seconds since 1970.
    pub(super) fn compare(&mut self, took: Duration, database: f64) -> f64 {
        let now = SystemClock.now().0 as f64 / 1000.0;
        let ahead = now - took.as_secs_f64() / 2.0 - database;
        if let Some(report) = self.report(ahead, took) {
            log::warn!("{report}");
        }
        ahead
    }

    /// Returns what is to be logged about a difference, as exact as the time of the answer.
    fn report(&mut self, ahead: f64, took: Duration) -> Option<String> {
        let was_reported = self.is_reported;
        self.is_reported = ahead.abs() > REPORTED + took.as_secs_f64() / 2.0;
        if !self.is_reported || was_reported {
            return None;
        }
        let (side, effect) = if ahead > 0.0 { ("ahead of", "early") } else { ("behind", "late") };
        let seconds = ahead.abs();
        Some(format!(
            "the wall clock of this server is {seconds:.1} s {side} that of the database: timers \
             fire {effect} here, and times are stored wrong; check that both are synchronized"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_reported_once_until_it_is_gone() {
        let mut clock = WallClock::default();
        for (ahead, took_ms, expected) in [
            (0.9, 0, None),
            (1.1, 400, None),
            (1.3, 400, Some("1.3 s ahead of that of the database: timers fire early")),
            (5.0, 0, None),
            (-0.2, 0, None),
            (-86_400.0, 0, Some("86400.0 s behind that of the database: timers fire late")),
            (-86_401.0, 0, None),
        ] {
            let report = clock.report(ahead, Duration::from_millis(took_ms));
            match expected {
                Some(text) => {
                    assert!(report.as_ref().is_some_and(|it| it.contains(text)), "{report:?}")
                }
                None => assert_eq!(report, None, "{ahead}"),
            }
        }
    }

    #[test]
    fn the_time_of_the_answer_is_divided() {
        let now = SystemClock.now().0 as f64 / 1000.0;
        let ahead = WallClock::default().compare(Duration::from_secs(2), now - 61.0);
        assert!((59.9..61.0).contains(&ahead), "{ahead}");
    }
}
