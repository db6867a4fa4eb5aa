//! Compensations of steps.

use std::time::Duration;

use greenroom_actors::domain::definition::{self, Body, Mapping, StepKind};
use greenroom_actors::domain::plan::Problem;
use serde_json::Value;

use super::closure::{Closure, Given};
use super::{Computation, Retry, run};
use crate::config::milliseconds;
use crate::config::workflows::kind::ARGS_ALONE;

/// Builder of a compensation, for [`Step::compensate`](super::Step::compensate): the work that undoes
/// a completed step if the execution fails. Its `data` is the output of the step, `error` says why
/// the execution ends (`StepContext::error` of a function), and its idempotency key differs from
/// that of the step.
///
/// Without [`Compensation::retry`] it has three attempts. When the last one fails, the execution
/// suspends, and a person lets it run again or skips it. A function that suspends by itself fails: a
/// compensation has no other questions.
///
/// ```
/// use greenroom::builder::{Compensation, Http, Retry, Step, Workflow, http};
/// use serde_json::json;
/// use std::time::Duration;
///
/// let cancel = http(Http::post("https://hotel.example/bookings/{{ data.id }}/cancel"));
/// let plan = Workflow::new("trip")
///     .step(Step::run("flight", "book_flight").compensate(Compensation::run("cancel_flight")))
///     .step(Step::run("hotel", "book_hotel").compensate(
///         Compensation::new(cancel).retry(Retry::attempts(5)).timeout(Duration::from_secs(10)),
///     ))
///     .step(Step::run("pay", "pay"))
///     .compile()
///     .expect("the definition is sound");
/// assert!(plan.compensates);
/// ```
#[derive(Debug, Clone)]
pub struct Compensation {
    rule: definition::Compensation,
    /// Its arguments or its input, by their key.
    given: Option<(&'static str, Given<Value>)>,
    /// Settings that do not belong to its kind: the key, and why not.
    misfits: Vec<(&'static str, &'static str)>,
}

impl Compensation {
    /// Compensates by a body other than [`map()`](super::map()).
    pub fn new(body: Body) -> Self {
        Self::of(StepKind::Then { body })
    }

    /// Compensates by a registered function; short for [`Compensation::new`] with [`run`].
    pub fn run(function: impl Into<String>) -> Self {
        Self::new(run(function))
    }

    /// Compensates by another workflow, which gets the output of the step or
    /// [`Compensation::input`].
    pub fn workflow(workflow: impl Into<String>) -> Self {
        Self::of(StepKind::Workflow { workflow: workflow.into(), input: None })
    }

    fn of(kind: StepKind) -> Self {
        Self { rule: definition::Compensation::new(kind), given: None, misfits: Vec::new() }
    }

    /// Sets the arguments of a tool: JSON whose strings are expressions, or a closure over a
    /// [`Scope`](super::Scope). Default: the output of the step.
    pub fn args<Shape>(mut self, value: impl Computation<Shape>) -> Self {
        if let StepKind::Then { body: Body::Tool { .. } } = &self.rule.kind {
            self.given = Some(("args", value.given()));
        } else {
            self.misfits.push(("args", ARGS_ALONE));
        }
        self
    }

    /// Sets the input of a workflow: JSON whose strings are expressions, or a closure over a
    /// [`Scope`](super::Scope). Default: the output of the step.
    pub fn input<Shape>(mut self, value: impl Computation<Shape>) -> Self {
        if let StepKind::Workflow { .. } = &self.rule.kind {
            self.given = Some(("input", value.given()));
        } else {
            self.misfits.push(("input", "is only valid beside `workflow`"));
        }
        self
    }

    /// Sets the attempts. Default: those of [`Retry::attempts`] with three.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.rule.retry = retry.policy;
        self
    }

    /// Sets the time limit of one attempt.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.rule.timeout_ms = Some(milliseconds(timeout));
        self
    }

    /// Returns the rule of a step, its closure by name, and its problems.
    pub(super) fn named(
        self,
        step: &str,
    ) -> (definition::Compensation, Option<(String, Closure)>, Vec<Problem>) {
        let Self { mut rule, given, misfits } = self;
        let mut code = None;
        if let Some((key, given)) = given {
            let (value, closure) = given.named(&format!("{step}.compensate.{key}"));
            code = closure;
            if let StepKind::Then { body: Body::Tool { args: given, .. } }
            | StepKind::Workflow { input: given, .. } = &mut rule.kind
            {
                *given = Some(Mapping(value));
            }
        }
        let problem = |(key, message): (&str, &str)| Problem {
            place: ["steps", step, "compensate", key].map(str::to_owned).to_vec(),
            message: message.to_owned(),
        };
        (rule, code, misfits.into_iter().map(problem).collect())
    }
}
