//! Decides whether and when a request is retried. Pure.

use std::time::Duration;

use greenroom_actors::ports::model::{ModelError, ModelErrorKind};

/// Number of attempts, and the pauses between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Number of attempts, the first one included.
    pub attempts: u32,
    /// Pause after the first attempt.
    pub delay: Duration,
    /// Factor by which each pause grows.
    pub factor: f64,
    /// Longest pause, even if the provider asks for a longer one.
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

/// Returns the pause before the next attempt after `failed` ones, the last with `error`; `None` if
/// another attempt is useless. `left` is the time left for the whole answer. `spread`, from 0 to 1,
/// shortens the pause by up to half, so that requests that failed together are not repeated
/// together. A pause that the provider asks for is not shortened.
pub(super) fn pause_before_next(
    policy: &RetryPolicy,
    failed: u32,
    error: &ModelError,
    left: Duration,
    spread: f64,
) -> Option<Duration> {
    let is_retryable = match error.kind {
        ModelErrorKind::RateLimited | ModelErrorKind::Unavailable | ModelErrorKind::Timeout => true,
        ModelErrorKind::Auth | ModelErrorKind::Other => false,
    };
    let requested = error.retry_after.unwrap_or_default();
    if !is_retryable || failed >= policy.attempts || requested >= left {
        return None;
    }
    let exponent = i32::try_from(failed.saturating_sub(1)).unwrap_or(i32::MAX);
    let grown = policy.delay.as_secs_f64() * policy.factor.powi(exponent);
    let grown = grown.min(policy.max_delay.as_secs_f64()) * (1.0 - 0.5 * spread.clamp(0.0, 1.0));
    let grown = Duration::try_from_secs_f64(grown).unwrap_or(policy.max_delay);
    let pause = grown.max(requested.min(policy.max_delay));
    (pause < left).then_some(pause)
}

/// Returns true if another model is tried after the last failed attempt: not if the provider
/// refused the request itself, which would only hide the mistake.
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
    fn pauses_grow_within_the_limits_of_the_policy_and_the_provider() {
        use ModelErrorKind::{Auth, Other, RateLimited, Timeout, Unavailable};
        let policy = RetryPolicy { attempts: 4, ..RetryPolicy::default() };
        // kind, requested pause, failed, left, spread, expected; all in milliseconds
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
        for (kind, requested, failed, left, spread, expected) in rows {
            let retry_after = requested.map(Duration::from_millis);
            let error = ModelError { kind, message: String::new(), retry_after };
            let left = Duration::from_millis(left);
            let pause = pause_before_next(&policy, failed, &error, left, spread);
            let row = format!("{kind:?} {requested:?} {failed} {left:?}");
            assert_eq!(pause, expected.map(Duration::from_millis), "{row}");
        }
    }

    #[test]
    fn extreme_policies_do_not_overflow() {
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
