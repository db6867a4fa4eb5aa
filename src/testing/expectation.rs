//! Expectations of the end of a case.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::expression::{Expression, Scope};
use greenroom_actors::domain::status::Status;
use serde_json::Value;

use super::case::{Case, Outcome};
use super::play::Played;

/// Difference of times that is no difference.
const TIME_PRECISION: Duration = Duration::from_secs(1);

/// Characters of a value that a problem shows.
const SHOWN_MAX: usize = 300;

/// Expectations of the end of a case.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Expectation {
    pub(crate) status: Option<Status>,
    /// Expressions that are true.
    pub(crate) truths: Vec<String>,
    /// Part of the error's message.
    pub(crate) error: Option<String>,
    pub(crate) ran: Vec<String>,
    pub(crate) not_ran: Vec<String>,
    pub(crate) took: Option<Duration>,
}

impl Expectation {
    /// Returns the differences between what is expected and what happened.
    pub(super) fn check(&self, case: &Case, played: &Played) -> Vec<String> {
        let outcome = played.outcome();
        // they explain what else is wrong
        let mut problems = played.mistakes();
        problems.extend(self.misses_status(played, &outcome));
        if let Some(part) = &self.error {
            match &outcome.error {
                Some(error) if error.contains(part) => {}
                Some(error) => problems
                    .push(format!("the error is {error:?}, without {part:?}{}", in_vain(played))),
                None if !played.waiting.is_empty() => {
                    problems.push(format!("it has not ended; expected the error {part:?}"));
                }
                None => problems.push(format!("it does not fail; expected the error {part:?}")),
            }
        }
        problems.extend(self.truths.iter().filter_map(|it| is_false(it, case, played)));
        let has_run = |step: &&String| outcome.ran.contains(*step);
        let missing = self.ran.iter().filter(|step| !has_run(step));
        problems.extend(missing.map(|step| format!("step {step} does not run")));
        let unexpected = self.not_ran.iter().filter(has_run);
        problems.extend(unexpected.map(|step| format!("step {step} runs")));
        if let Some(expected) = self.took
            && expected.abs_diff(outcome.took) >= TIME_PRECISION
        {
            let [took, expected] = [outcome.took, expected].map(shown_time);
            problems.push(format!("it takes {took}, expected {expected}"));
        }
        problems
    }

    fn misses_status(&self, played: &Played, outcome: &Outcome) -> Option<String> {
        let default = if self.error.is_some() { Status::Error } else { Status::Completed };
        let expected = self.status.unwrap_or(default);
        if outcome.status == expected {
            return None;
        }
        let mut problem =
            format!("its status is {}, expected {}", outcome.status.as_str(), expected.as_str());
        if let Some(error) = &outcome.error {
            let failed = played.state.error.as_ref().and_then(|it| it.path.as_deref());
            let place = failed.map(|path| format!("step {path}: ")).unwrap_or_default();
            let _ = write!(problem, ": {place}{error}{}", in_vain(played));
        }
        if !played.waiting.is_empty() {
            // a wait behind a failure, about a compensation, has a cause
            played.failures().iter().for_each(|failure| {
                let _ = write!(problem, ": {failure}");
            });
            let _ = write!(problem, ": {} waits for an answer", played.waiting.join(", "));
        }
        Some(problem)
    }
}

/// Returns the waits that ended at their deadline, as the end of a sentence about an error.
fn in_vain(played: &Played) -> String {
    played.unanswered.iter().map(|wait| format!("; {wait}")).collect()
}

/// Returns the problem of an expression that is not true.
fn is_false(expression: &str, case: &Case, played: &Played) -> Option<String> {
    let outcome = played.outcome();
    let scope = Scope::new()
        .with("result", Arc::new(outcome.result.clone()))
        .with("status", Arc::new(outcome.status.as_str().into()))
        .with("error", Arc::new(outcome.error.into()))
        .with("input", Arc::new(case.input.clone()))
        .with("steps", Arc::new(played.outputs()));
    let value = Expression::compile(expression).and_then(|it| it.evaluate(&scope));
    match value {
        Ok(Value::Bool(true)) => None,
        Ok(Value::Bool(false)) => {
            Some(format!("{expression} is false; the result is {}", shown(&outcome.result)))
        }
        Ok(other) => Some(format!("{expression} is neither true nor false: {}", shown(&other))),
        Err(error) => Some(format!("{expression}: {error}")),
    }
}

/// Returns a time as configurations write it, to the second.
pub(crate) fn shown_time(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

/// Returns a value as JSON, shortened.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
