//! When to ask again. Pure: what happens is elsewhere.

use std::time::Duration;

use greenroom_actors::ports::model::{ModelError, ModelErrorKind};

/// How often a model is asked again, and after what pauses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// In all, the first one included.
    pub attempts: u32,
    /// The pause after the first.
    pub delay: Duration,
    /// What multiplies the pause each time.
    pub factor: f64,
    /// The longest pause, also where the provider asks for a longer one.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            delay: Duration::from_millis(200),
            factor: 2.0,
            max_delay: Duration::from_secs(10),
        }
    }
}

/// The pause before the next attempt, after so many failed ones of which `error` is the newest;
/// `None` where another is of no use. `left` is what is left of the time for the whole answer;
/// `spread`, from 0 to 1, shortens the pause to as little as its half, so that those who failed
/// together do not come back together. What the provider asks for is not shortened.
pub(super) fn pause_before_next(
    policy: &RetryPolicy,
    failed: u32,
    error: &ModelError,
    left: Duration,
    spread: f64,
) -> Option<Duration> {
    let is_worth_it = match error.kind {
        ModelErrorKind::RateLimited | ModelErrorKind::Unavailable | ModelErrorKind::Timeout => true,
        ModelErrorKind::Auth | ModelErrorKind::Other => false,
    };
    let asked = error.retry_after.unwrap_or_default();
    if !is_worth_it || failed >= policy.attempts || asked >= left {
        return None;
    }
    let exponent = i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = policy.delay.as_secs_f64() * policy.factor.powi(exponent);
    let grown = grown.min(policy.max_delay.as_secs_f64()) * (1.0 - 0.5 * spread.clamp(0.0, 1.0));
    let grown = Duration::try_from_secs_f64(grown).unwrap_or(policy.max_delay);
    let pause = grown.max(asked.min(policy.max_delay));
    (pause < left).then_some(pause)
}

/// Whether another model is asked in place of one that has failed for good: not where the
/// request itself was refused, which would only hide the mistake.
pub(super) fn is_for_fallback(error: &ModelError) -> bool {
    match error.kind {
        ModelErrorKind::RateLimited
        | ModelErrorKind::Unavailable
        | ModelErrorKind::Timeout
        | ModelErrorKind::Auth => true,
        ModelErrorKind::Other => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_respect_everybody() {
        use ModelErrorKind::{Auth, Other, RateLimited, Timeout, Unavailable};
        let policy = RetryPolicy { attempts: 4, ..RetryPolicy::default() };
        // kind, asked for, failed, left, spread, expected; all in milliseconds
        let rows = [
            (Unavailable, None, 1, 60_000, 0.0, Some(200)),
            (Unavailable, None, 2, 60_000, 0.0, Some(400)),
            (Unavailable, None, 3, 60_000, 0.0, Some(800)),
            (Unavailable, None, 4, 60_000, 0.0, None),
            (Timeout, None, 2, 60_000, 1.0, Some(200)),
            (RateLimited, Some(3_000), 1, 60_000, 1.0, Some(3_000)),
            (RateLimited, Some(30_000), 1, 60_000, 0.0, Some(10_000)),
            (RateLimited, Some(90_000), 1, 60_000, 0.0, None),
            (RateLimited, Some(60_000), 1, 60_000, 0.0, None),
            (RateLimited, Some(1), 1, 60_000, 0.0, Some(200)),
            (Unavailable, None, 1, 100, 0.0, None),
            (Unavailable, None, 1, 0, 0.0, None),
            (Auth, None, 1, 60_000, 0.0, None),
            (Other, Some(1), 1, 60_000, 0.0, None),
        ];
        for (kind, asked, failed, left, spread, expected) in rows {
            let retry_after = asked.map(Duration::from_millis);
            let error = ModelError { kind, message: String::new(), retry_after };
            let left = Duration::from_millis(left);
            let pause = pause_before_next(&policy, failed, &error, left, spread);
            let row = format!("{kind:?} {asked:?} {failed} {left:?}");
            assert_eq!(pause, expected.map(Duration::from_millis), "{row}");
        }
    }

    #[test]
    fn no_policy_overflows() {
        let error = ModelError::new(ModelErrorKind::Unavailable, "");
        for factor in [0.0, 1.0, 1e300, f64::MAX] {
            let policy = RetryPolicy { attempts: u32::MAX, factor, ..RetryPolicy::default() };
            for failed in [1, 2, 1000, u32::MAX - 1] {
                let pause = pause_before_next(&policy, failed, &error, Duration::MAX, 0.5);
                assert!(pause.unwrap() <= policy.max_delay, "{factor} {failed}");
            }
        }
    }
}
