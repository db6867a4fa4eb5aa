//! What surrounds the work of a step.

use std::time::Duration;

use greenroom_actors::domain::definition::{OnTimeout, Projection, RetryPolicy, SuspendRule};
use serde_json::Value;

use crate::config::milliseconds;

/// When and with what words a step asks for a resume; see
/// [`Step::suspend`](super::Step::suspend).
///
/// ```
/// use std::time::Duration;
///
/// use greenroom::builder::Suspend;
/// use serde_json::json;
///
/// let rule = Suspend::when("input.amount > 500")
///     .reason("{{ input.employee }} asks for {{ input.amount }}")
///     .payload(json!({ "amount": "input.amount" }))
///     .deadline(Duration::from_secs(48 * 3600))
///     .on_timeout_resume(json!({ "approved": false }));
/// # drop(rule);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Suspend {
    pub(super) rule: SuspendRule,
}

impl Suspend {
    /// Suspends when the expression holds.
    pub fn when(expression: impl Into<String>) -> Self {
        let when = Some(expression.into());
        Self { rule: SuspendRule { when, ..SuspendRule::default() } }
    }

    /// Suspends always.
    pub fn always() -> Self {
        Self { rule: SuspendRule::default() }
    }

    /// Template of the reason shown.
    pub fn reason(mut self, template: impl Into<String>) -> Self {
        self.rule.reason = Some(template.into());
        self
    }

    /// What is shown beside the reason. Strings are expressions.
    pub fn payload(mut self, payload: Value) -> Self {
        self.rule.payload = Some(Projection(payload));
        self
    }

    /// Longest wait; then the step fails, or resumes by [`Suspend::on_timeout_resume`].
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.rule.deadline_ms = Some(milliseconds(deadline));
        self
    }

    /// Resumes with this value when the deadline has passed. Strings are expressions.
    pub fn on_timeout_resume(mut self, data: Value) -> Self {
        self.rule.on_timeout = OnTimeout::Resume(Projection(data));
        self
    }
}

/// How often and how patiently a failing attempt is repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    pub(super) policy: RetryPolicy,
}

impl Retry {
    /// So many attempts in all, the first included.
    pub fn attempts(attempts: u32) -> Self {
        Self { policy: RetryPolicy { attempts, ..RetryPolicy::default() } }
    }

    /// Pause after the first failure.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.policy.delay_ms = milliseconds(delay);
        self
    }

    /// Multiplies the pause after each failure.
    pub fn factor(mut self, factor: f64) -> Self {
        self.policy.factor = factor;
        self
    }

    /// Longest pause.
    pub fn max_delay(mut self, max_delay: Duration) -> Self {
        self.policy.max_delay_ms = Some(milliseconds(max_delay));
        self
    }

    /// Spreads each pause over its upper half.
    pub fn jitter(mut self) -> Self {
        self.policy.jitter = true;
        self
    }

    /// Repeats an attempt only when this expression over `error` holds, as in
    /// `error.kind == 'timeout' or error.status == 503`; `error` has `kind`, `status`, `message`,
    /// `stepId` and `attempt`. Without it every failure is repeated but an answer 4xx other than
    /// 408, 409, 425 and 429.
    pub fn on(mut self, expression: impl Into<String>) -> Self {
        self.policy.on = Some(expression.into());
        self
    }

    /// Repeats no attempt when this expression over `error` holds, whatever else is said.
    pub fn never(mut self, expression: impl Into<String>) -> Self {
        self.policy.never = Some(expression.into());
        self
    }
}
