//! Policies of steps: suspension and retry.

use std::time::Duration;

use greenroom_actors::domain::definition::{
    EscalateRule, Mapping, OnTimeout, RetryPolicy, SuspendRule,
};
use serde_json::Value;

use super::closure::{Closure, Given};
use super::{Computation, Condition};

use crate::config::milliseconds;

/// Suspension of a step; see [`Step::suspend`](super::Step::suspend).
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
///     .to(["role:manager", "user:{{ input.owner }}", "!self"])
///     .deadline(Duration::from_secs(48 * 3600))
///     .on_timeout_resume(json!({ "approved": false }));
/// # drop(rule);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Suspend {
    /// All but the parts that follow.
    rule: SuspendRule,
    when: Option<Given<String>>,
    payload: Option<Given<Value>>,
    on_timeout_resume: Option<Given<Value>>,
}

impl Suspend {
    /// Suspends if the condition is true: an expression, or a closure over a
    /// [`Scope`](super::Scope).
    pub fn when<Shape>(condition: impl Condition<Shape>) -> Self {
        Self { when: Some(condition.given()), ..Self::always() }
    }

    /// Suspends always.
    pub fn always() -> Self {
        let rule = SuspendRule::default();
        Self { rule, when: None, payload: None, on_timeout_resume: None }
    }

    /// Sets the template of the reason.
    pub fn reason(mut self, template: impl Into<String>) -> Self {
        self.rule.reason = Some(template.into());
        self
    }

    /// Sets the payload, which is shown with the reason: JSON whose strings are expressions, or a
    /// closure over a [`Scope`](super::Scope).
    pub fn payload<Shape>(mut self, payload: impl Computation<Shape>) -> Self {
        self.payload = Some(payload.given());
        self
    }

    /// Sets the longest wait. Afterwards the step fails, or resumes with
    /// [`Suspend::on_timeout_resume`].
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.rule.deadline_ms = Some(milliseconds(deadline));
        self
    }

    /// Sets who may resume the step: templates of `user:<id>` and `role:<name>`. `!self` excludes the
    /// user who started the execution.
    pub fn to<T: Into<String>>(mut self, assignees: impl IntoIterator<Item = T>) -> Self {
        self.rule.to = assignees.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the times of reminders, after the step has suspended.
    pub fn remind(mut self, times: impl IntoIterator<Item = Duration>) -> Self {
        self.rule.remind_ms = times.into_iter().map(milliseconds).collect();
        self
    }

    /// Asks others in addition if the step still waits after a while; templates as those of
    /// [`Suspend::to`].
    pub fn escalate<T: Into<String>>(
        mut self,
        after: Duration,
        assignees: impl IntoIterator<Item = T>,
    ) -> Self {
        let to = assignees.into_iter().map(Into::into).collect();
        self.rule.escalate = Some(EscalateRule { after_ms: milliseconds(after), to });
        self
    }

    /// Sets the value to resume with after the deadline: JSON whose strings are expressions, or a
    /// closure over a [`Scope`](super::Scope).
    pub fn on_timeout_resume<Shape>(mut self, data: impl Computation<Shape>) -> Self {
        self.on_timeout_resume = Some(data.given());
        self
    }

    /// Returns the rule of a step, and its closures by name.
    pub(super) fn named(self, step: &str) -> (SuspendRule, Vec<(String, Closure)>) {
        let Self { mut rule, when, payload, on_timeout_resume } = self;
        let mut closures = Vec::new();
        if let Some(given) = when {
            let (when, closure) = given.named(&format!("{step}.suspend.when"));
            rule.when = Some(when);
            closures.extend(closure);
        }
        if let Some(given) = payload {
            let (payload, closure) = given.named(&format!("{step}.suspend.payload"));
            rule.payload = Some(Mapping(payload));
            closures.extend(closure);
        }
        if let Some(given) = on_timeout_resume {
            let (data, closure) = given.named(&format!("{step}.suspend.on_timeout"));
            rule.on_timeout = OnTimeout::Resume(Mapping(data));
            closures.extend(closure);
        }
        (rule, closures)
    }
}

/// Retry policy of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    pub(super) policy: RetryPolicy,
}

impl Retry {
    /// Sets the number of attempts, including the first one.
    pub fn attempts(attempts: u32) -> Self {
        Self { policy: RetryPolicy { attempts, ..RetryPolicy::default() } }
    }

    /// Sets the pause after the first failure.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.policy.delay_ms = milliseconds(delay);
        self
    }

    /// Sets the factor that multiplies the pause after each failure.
    pub fn factor(mut self, factor: f64) -> Self {
        self.policy.factor = factor;
        self
    }

    /// Sets the longest pause.
    pub fn max_delay(mut self, max_delay: Duration) -> Self {
        self.policy.max_delay_ms = Some(milliseconds(max_delay));
        self
    }

    /// Shortens each pause randomly by up to half.
    pub fn jitter(mut self) -> Self {
        self.policy.jitter = true;
        self
    }

    /// Retries only if this expression is true, as in
    /// `error.kind == 'timeout' or error.status == 503`; `error` has `kind`, `status`, `message`,
    /// `stepId` and `attempt`. Default: all failures except answers 4xx other than 408, 409, 425
    /// and 429.
    pub fn on(mut self, expression: impl Into<String>) -> Self {
        self.policy.on = Some(expression.into());
        self
    }

    /// Does not retry if this expression over `error` is true, overriding [`Retry::on`].
    pub fn never(mut self, expression: impl Into<String>) -> Self {
        self.policy.never = Some(expression.into());
        self
    }
}
