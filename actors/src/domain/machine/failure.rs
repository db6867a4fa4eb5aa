//! How attempts end: with an output, an error, or a question.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::definition::RetryPolicy;
use crate::domain::expression::json_bytes_exceed;
use crate::domain::fact::{AfterFailure, Fact};
use crate::domain::hash::fraction_of;
use crate::domain::ids::StepPath;
use crate::domain::machine::scope::Named;
use crate::domain::machine::{Machine, Moment};
use crate::domain::plan::{AfterLastAttempt, Step};
use crate::domain::state::Node;

/// Longest error text that is recorded, in bytes.
const ERROR_BYTES_MAX: usize = 4096;

impl Machine {
    /// The end of an attempt with an output that may be larger than values may be: that of a body
    /// outside, or of many lanes. What the machine evaluates itself is bounded while it is made.
    pub(super) fn completed_within_bounds(
        &self,
        step: &Step,
        node: &Node,
        path: &StepPath,
        output: Value,
        moment: &Moment<'_>,
    ) -> Fact {
        let max = moment.limits.value_bytes_max;
        if json_bytes_exceed(&output, max) {
            let error = format!("the output is larger than {max} bytes");
            return self.failed(step, node, path, &error, moment);
        }
        self.completed(step, node, path, Arc::new(output), moment)
    }

    /// The end of an attempt with an output, unless the output is not fit to be one.
    pub(super) fn completed(
        &self,
        step: &Step,
        node: &Node,
        path: &StepPath,
        output: Arc<Value>,
        moment: &Moment<'_>,
    ) -> Fact {
        if let Some(schema) = &step.output_schema
            && let Err(violation) = schema.check(&output)
        {
            let error = format!("output validation failed: {violation}");
            return self.failed(step, node, path, &error, moment);
        }
        let output = if step.is_tap { Arc::clone(&node.input) } else { output };
        let (attempt, since) = (node.attempt, node.attempt_started_at);
        Fact::StepCompleted { path: Arc::clone(path), attempt, since, output, usage: None }
    }

    /// A failed attempt: another one follows while the policy allows it.
    pub(super) fn failed(
        &self,
        step: &Step,
        node: &Node,
        path: &StepPath,
        error: &str,
        moment: &Moment<'_>,
    ) -> Fact {
        let failures = node.failures + 1;
        match &step.retry {
            Some(policy) if failures < policy.attempts => {
                let delay = retry_delay_ms(policy, failures, self.state.id.as_str(), path);
                let until = moment.now.plus_ms(delay);
                step_failed(node, path, error, AfterFailure::Retry { until }, moment)
            }
            Some(_) | None => self.failed_for_good(step, node, path, error, moment),
        }
    }

    /// The failure of the last attempt: `on_error` decides what it means.
    pub(super) fn failed_for_good(
        &self,
        step: &Step,
        node: &Node,
        path: &StepPath,
        error: &str,
        moment: &Moment<'_>,
    ) -> Fact {
        let pass = || AfterFailure::Continue { output: Arc::clone(&node.input) };
        if step.is_tap {
            return step_failed(node, path, error, pass(), moment);
        }
        match &step.on_error {
            AfterLastAttempt::Fail => step_failed(node, path, error, AfterFailure::Fail, moment),
            AfterLastAttempt::Ignore => step_failed(node, path, error, pass(), moment),
            AfterLastAttempt::Value(value) => {
                let named = Named::by(|name| value.uses(name));
                let scope = self.scope(path, &node.input, node.resume.as_ref(), named, moment);
                match value.evaluate(&scope) {
                    Ok(output) => {
                        let output = Arc::new(output);
                        step_failed(node, path, error, AfterFailure::Continue { output }, moment)
                    }
                    Err(second) => {
                        let both = format!("{error}; on_error: {second}");
                        step_failed(node, path, &both, AfterFailure::Fail, moment)
                    }
                }
            }
        }
    }

    /// A body that asks for a resume by itself.
    pub(super) fn suspended_itself(
        &self,
        step: &Step,
        node: &Node,
        path: &StepPath,
        reason: Option<String>,
        payload: Option<Value>,
        moment: &Moment<'_>,
    ) -> Fact {
        if step.is_tap {
            return self.failed(step, node, path, "andTap cannot suspend", moment);
        }
        let max = moment.limits.value_bytes_max;
        if payload.as_ref().is_some_and(|payload| json_bytes_exceed(payload, max)) {
            let error = format!("the suspend payload is larger than {max} bytes");
            return self.failed(step, node, path, &error, moment);
        }
        if let Err(error) = check_payload(step, payload.as_ref()) {
            return self.failed(step, node, path, &error, moment);
        }
        let reason = reason.unwrap_or_else(|| default_reason(step));
        Fact::StepSuspended {
            path: Arc::clone(path),
            reason: Arc::from(shortened(&reason)),
            payload: shown_payload(payload),
            deadline: None,
        }
    }
}

/// Checks what a step shows while it waits.
pub(super) fn check_payload(step: &Step, payload: Option<&Value>) -> Result<(), String> {
    let (Some(schema), Some(payload)) = (&step.suspend_schema, payload) else { return Ok(()) };
    schema
        .check(payload)
        .map_err(|violation| format!("suspend payload validation failed: {violation}"))
}

/// What callers see of a payload: `null` is none, live and when it is read again.
pub(super) fn shown_payload(payload: Option<Value>) -> Option<Arc<Value>> {
    payload.filter(|payload| !payload.is_null()).map(Arc::new)
}

pub(super) fn default_reason(step: &Step) -> String {
    format!("Suspended at step {}", step.id)
}

fn step_failed(
    node: &Node,
    path: &StepPath,
    error: &str,
    next: AfterFailure,
    moment: &Moment<'_>,
) -> Fact {
    // A step that fails before its first attempt began fails in that attempt.
    let since = if node.attempt == 0 { moment.now } else { node.attempt_started_at };
    Fact::StepFailed {
        path: Arc::clone(path),
        attempt: node.attempt.max(1),
        since,
        error: Arc::from(shortened(error)),
        next,
        usage: None,
    }
}

fn shortened(text: &str) -> &str {
    let mut end = text.len().min(ERROR_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The pause after so many failures. Jitter takes from the upper half, by a number that depends
/// on the execution, the path and the attempt alone: the same fact for the same history.
fn retry_delay_ms(policy: &RetryPolicy, failures: u32, execution: &str, path: &str) -> u64 {
    let exponent = i32::try_from(failures.saturating_sub(1)).unwrap_or(i32::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a delay is far below 2^52 ms")]
    let grown = policy.delay_ms as f64 * policy.factor.powi(exponent);
    // A year: what no policy means to exceed, and far from overflow.
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
    fn delays_grow_to_their_limit_and_jitter_stays_in_the_upper_half() {
        let mut policy = RetryPolicy {
            attempts: 5,
            delay_ms: 200,
            factor: 2.0,
            max_delay_ms: Some(1000),
            jitter: false,
        };
        let delays: Vec<u64> = (1..=5).map(|n| retry_delay_ms(&policy, n, "e", "p")).collect();
        assert_eq!(delays, [200, 400, 800, 1000, 1000]);

        policy.jitter = true;
        for failures in 1..=5 {
            let delay = retry_delay_ms(&policy, failures, "e", "p");
            assert_eq!(delay, retry_delay_ms(&policy, failures, "e", "p"), "not repeatable");
            assert!((100..=1000).contains(&delay), "{delay} is out of range");
        }
    }
}
