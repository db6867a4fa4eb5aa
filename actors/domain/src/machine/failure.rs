//! Ends of attempts: an output, a failure with or without a retry, or a suspension.

use std::sync::Arc;

use serde_json::Value;

use crate::assignment::AskRules;
use crate::definition::RetryPolicy;
use crate::effort::{self, within};
use crate::expression::{ExpressionError, json_bytes_exceed};
use crate::fact::{AfterFailure, Fact};
use crate::failure::{AttemptFailure, ErrorClass, ErrorKind, shortened};
use crate::hash::fraction_of;
use crate::machine::place::Site;
use crate::machine::scope::Named;
use crate::machine::{Machine, Moment, ToolQuestion};
use crate::plan::{AfterLastAttempt, Retry, Step};
use crate::state::suspension_id;

/// Maximum length of a recorded error text, in bytes.
const ERROR_BYTES_MAX: usize = 4096;

/// Maximum delay that a server or a function can request if the policy has no `max_delay`: an hour.
const ASKED_PAUSE_MS_MAX: u64 = 3_600_000;

impl Machine {
    /// Completes an attempt whose output may be too large: that of a body, or of many lanes. Values
    /// that the machine evaluates are limited during the evaluation.
    pub(super) fn completed_within_bounds(&self, site: &Site<'_>, output: &Arc<Value>) -> Fact {
        let max = site.moment.limits.value_bytes_max;
        if json_bytes_exceed(output, max) {
            let error = format!("the output is larger than {max} bytes");
            let failure = AttemptFailure::new(ErrorKind::Limit, error);
            return self.failed(site, &failure);
        }
        self.completed_with(site, Arc::clone(output))
    }

    /// Completes an attempt whose output may be nested too deep.
    pub(super) fn completed_with(&self, site: &Site<'_>, output: Arc<Value>) -> Fact {
        if let Err(too_deep) = self.check_made(&output, site.moment) {
            let failure =
                AttemptFailure::new(ErrorKind::Limit, format!("the output is {too_deep}"));
            return self.failed(site, &failure);
        }
        self.completed(site, output)
    }

    /// Completes an attempt, or fails it if the output does not match its schema.
    pub(super) fn completed(&self, site: &Site<'_>, output: Arc<Value>) -> Fact {
        let Site { step, node, .. } = *site;
        if let Some(schema) = &step.output_schema
            && let Err(violation) = schema.check(&output)
        {
            let failure = AttemptFailure::not_valid("output", &violation);
            return self.failed(site, &failure);
        }
        let output = if step.is_tap { Arc::clone(&node.input) } else { output };
        let (attempt, since) = (node.attempt, node.attempt_started_at);
        Fact::StepCompleted {
            path: site.path(),
            attempt,
            since,
            output,
            usage: None,
            compensable: false,
            skipped: false,
            mcp: None,
        }
    }

    /// Fails an attempt; another one follows if the policy allows it.
    pub(super) fn failed(&self, site: &Site<'_>, failure: &AttemptFailure) -> Fact {
        let Site { step, node, moment, .. } = *site;
        let failures = node.failures + 1;
        let is_last = failure.class.is_some_and(ErrorClass::is_never_retried);
        let retry = step.retry.as_ref().filter(|_| !is_last);
        let retry = retry.filter(|retry| failures < retry.policy.attempts);
        let Some(retry) = retry else {
            return self.failed_finally(site, failure);
        };
        match self.is_worth_another(retry, site, failure) {
            Ok(true) => {
                let id = self.state.id.as_str();
                let delay = retry_delay_ms(&retry.policy, failures, id, &site.path());
                let delay = delay.max(asked_pause_ms(&retry.policy, failure));
                let until = moment.now.plus_ms(delay);
                step_failed(site, failure, AfterFailure::Retry { until })
            }
            Ok(false) => self.failed_finally(site, failure),
            Err((key, second)) => {
                self.failed_finally(site, &failure.and_then(&format!("retry.{key}"), &second))
            }
        }
    }

    /// Returns true if the policy retries this failure. An error names the key whose expression
    /// failed.
    fn is_worth_another(
        &self,
        retry: &Retry,
        site: &Site<'_>,
        failure: &AttemptFailure,
    ) -> Result<bool, (&'static str, ExpressionError)> {
        let Retry { policy: _, on, never } = retry;
        if on.is_none() && never.is_none() {
            return Ok(!failure.class.is_some_and(|class| class.is_final()));
        }
        let uses = |name: &str| on.iter().chain(never).any(|expression| expression.uses(name));
        let scope = self.scope_at(site, Named::by(uses));
        let scope = scope.with("error", error_in_scope(site, failure));
        if let Some(never) = never
            && never.holds(&scope).map_err(|error| ("never", error))?
        {
            return Ok(false);
        }
        match on {
            Some(on) => on.holds(&scope).map_err(|error| ("on", error)),
            None => Ok(!failure.class.is_some_and(|class| class.is_final())),
        }
    }

    /// Fails the last attempt: `on_error` decides the consequence.
    pub(super) fn failed_finally(&self, site: &Site<'_>, failure: &AttemptFailure) -> Fact {
        let Site { step, node, moment, .. } = *site;
        let pass = || AfterFailure::Continue { output: Arc::clone(&node.input) };
        if step.is_tap {
            return step_failed(site, failure, pass());
        }
        match &step.on_error {
            AfterLastAttempt::Fail => step_failed(site, failure, AfterFailure::Fail),
            AfterLastAttempt::Ask => step_failed(site, failure, AfterFailure::Ask),
            AfterLastAttempt::Ignore => step_failed(site, failure, pass()),
            AfterLastAttempt::Value(value) => {
                let named = Named::by(|name| value.uses(name));
                let scope = self.scope_at(site, named);
                let scope = scope.with("error", error_in_scope(site, failure));
                let made = in_new_budget(moment, || value.evaluate(&scope));
                let made = made.map_err(|error| failure.and_then("on_error", &error));
                let made = made.and_then(|output| match self.check_made(&output, moment) {
                    Ok(()) => Ok(Arc::new(output)),
                    Err(too_deep) => {
                        let message = format!("{failure}; on_error: {too_deep}");
                        Err(AttemptFailure { message, ..failure.clone() })
                    }
                });
                match made {
                    Ok(output) => step_failed(site, failure, AfterFailure::Continue { output }),
                    Err(both) => step_failed(site, &both, AfterFailure::Fail),
                }
            }
        }
    }

    /// Suspends a step at the request of its body.
    pub(super) fn suspended_itself(
        &self,
        site: &Site<'_>,
        reason: Option<&str>,
        payload: Option<Arc<Value>>,
    ) -> Fact {
        let Site { step, node, moment, .. } = *site;
        if step.is_tap || step.is_compensation() {
            let what = if step.is_tap { "andTap" } else { "a compensation" };
            let failure =
                AttemptFailure::new(ErrorKind::Function, format!("{what} cannot suspend"));
            return self.failed(site, &failure);
        }
        let max = moment.limits.value_bytes_max;
        if payload.as_ref().is_some_and(|payload| json_bytes_exceed(payload, max)) {
            let error = format!("the suspend payload is larger than {max} bytes");
            let failure = AttemptFailure::new(ErrorKind::Limit, error);
            return self.failed(site, &failure);
        }
        let checked = match &payload {
            Some(payload) => self.check_payload(site, payload),
            None => Ok(()),
        };
        if let Err(failure) = checked {
            return self.failed(site, &failure);
        }
        let reason = reason.map_or_else(|| default_reason(step), str::to_owned);
        let path = site.path();
        Fact::StepSuspended {
            id: Some(suspension_id(&self.state.id, &path, node.asked + 1)),
            path,
            reason: recorded_reason(&reason),
            payload: shown_payload(payload),
            deadline: None,
            ask: None,
            question: None,
            mcp: None,
        }
    }

    /// Suspends a step whose tool asks a person.
    pub(super) fn asked_by_tool(&self, site: &Site<'_>, asked: &ToolQuestion) -> Fact {
        let ToolQuestion { reason, to, deadline_ms, question: of_tool } = asked;
        let mut fact = self.suspended_itself(site, Some(reason), None);
        if let Fact::StepSuspended { deadline, ask, question, payload, .. } = &mut fact {
            *payload = shown_payload(self.arguments(site));
            *deadline = deadline_ms.map(|ms| site.moment.now.plus_ms(ms));
            let rules = || AskRules { to: to.clone(), ..AskRules::default() };
            *ask = (!to.is_empty()).then(|| Arc::new(rules()));
            *question = Some(Arc::clone(of_tool));
        }
        fact
    }

    /// Checks the payload of a suspension.
    pub(super) fn check_payload(
        &self,
        site: &Site<'_>,
        payload: &Value,
    ) -> Result<(), AttemptFailure> {
        self.check_made(payload, site.moment).map_err(|too_deep| {
            let error = format!("the suspend payload is {too_deep}");
            AttemptFailure::new(ErrorKind::Limit, error)
        })?;
        let Site { step, node, .. } = *site;
        // what a generation waits for is no payload of the author
        let schema = step.suspend_schema.as_ref();
        let schema = schema.filter(|_| !step.waits_for_generation(node.attempt));
        let Some(schema) = schema else { return Ok(()) };
        let checked = schema.check(payload);
        checked.map_err(|violation| AttemptFailure::not_valid("suspend payload", &violation))
    }
}

/// Runs an evaluation that handles a failure, in a new budget if the failure has spent the current
/// one.
fn in_new_budget<T>(moment: &Moment<'_>, evaluate: impl FnOnce() -> T) -> T {
    if effort::is_exceeded() { within(moment.budget, evaluate).0 } else { evaluate() }
}

/// Treats a payload of `null` as none, so that live and stored suspensions are equal.
pub(super) fn shown_payload(payload: Option<Arc<Value>>) -> Option<Arc<Value>> {
    payload.filter(|payload| !payload.is_null())
}

/// Truncates the reason of a suspension.
pub(super) fn recorded_reason(reason: &str) -> Arc<str> {
    Arc::from(shortened(reason, ERROR_BYTES_MAX))
}

pub(super) fn default_reason(step: &Step) -> String {
    format!("Suspended at step {}", step.id)
}

/// Returns `error` of expressions.
fn error_in_scope(site: &Site<'_>, failure: &AttemptFailure) -> Arc<Value> {
    Arc::new(failure.in_scope(&site.step.id, site.node.attempt.max(1)))
}

fn step_failed(site: &Site<'_>, failure: &AttemptFailure, next: AfterFailure) -> Fact {
    let Site { node, moment, .. } = *site;
    // A step that fails before its first attempt has begun fails in that attempt.
    let since = if node.attempt == 0 { moment.now } else { node.attempt_started_at };
    Fact::StepFailed {
        path: site.path(),
        attempt: node.attempt.max(1),
        since,
        error: Arc::from(shortened(&failure.message, ERROR_BYTES_MAX)),
        class: failure.class,
        next,
        usage: None,
        mcp: None,
    }
}

/// Returns the delay that the server or the function requested, limited by the policy.
fn asked_pause_ms(policy: &RetryPolicy, failure: &AttemptFailure) -> u64 {
    let longest = policy.max_delay_ms.unwrap_or(ASKED_PAUSE_MS_MAX);
    failure.retry_after_ms.unwrap_or(0).min(longest)
}

/// Returns the delay after a number of failures. Jitter takes from the upper half, by a hash of the
/// execution, the path and the number, so that the same history gives the same fact.
fn retry_delay_ms(policy: &RetryPolicy, failures: u32, execution: &str, path: &str) -> u64 {
    if policy.delay_ms == 0 {
        // no factor makes it longer, not even one that has grown beyond all numbers
        return 0;
    }
    let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a delay is far below 2^52 ms")]
    let grown = policy.delay_ms as f64 * policy.factor.powi(exponent);
    // A year: longer than any reasonable policy, and far from overflow.
    let longest = policy.max_delay_ms.unwrap_or(365 * 24 * 3_600_000);
    #[expect(clippy::cast_precision_loss, reason = "a delay is far below 2^52 ms")]
    let capped = grown.min(longest as f64);
    let spread = if policy.jitter {
        1.0 - 0.5 * fraction_of(&[execution, path, &failures.to_string()])
    } else {
        1.0
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the longest delay"
    )]
    let delay = (capped * spread) as u64;
    delay
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_their_limit_and_jitter_takes_from_the_upper_half() {
        let mut policy = RetryPolicy {
            attempts: 5,
            delay_ms: 200,
            factor: 2.0,
            max_delay_ms: Some(1000),
            ..RetryPolicy::default()
        };
        let delays: Vec<u64> = (1..=5).map(|n| retry_delay_ms(&policy, n, "e", "p")).collect();
        assert_eq!(delays, [200, 400, 800, 1000, 1000]);

        policy.jitter = true;
        for failures in 1..=5 {
            let delay = retry_delay_ms(&policy, failures, "e", "p");
            assert_eq!(delay, retry_delay_ms(&policy, failures, "e", "p"), "not repeatable");
            assert!((100..=1000).contains(&delay), "{delay} is out of range");
        }

        let at_once = RetryPolicy { delay_ms: 0, factor: 100.0, ..RetryPolicy::default() };
        assert_eq!(retry_delay_ms(&at_once, 1000, "e", "p"), 0);
    }
}
