//! Steps: what all kinds share. Their constructors are in the files beside this one.

mod containers;
mod leaves;
mod modifiers;

use greenroom_actors::domain::definition::{StepDefinition, StepKind};
use greenroom_actors::domain::plan::Problem;

use super::closure::Closure;
use super::code::Code;
use crate::config::workflows::kind;

/// Builder of a step: its work and its modifiers. Modifiers that do not fit the kind are refused
/// when the workflow is compiled.
///
/// ```
/// use greenroom::builder::{Retry, Step, Workflow};
/// use std::time::Duration;
///
/// let nap = Step::sleep("nap", Duration::from_secs(1)).retry(Retry::attempts(2));
/// let problems = Workflow::new("w").step(nap).compile().unwrap_err();
/// assert_eq!(problems[0].message, "key `retry` does not belong to andSleep");
/// ```
#[derive(Debug, Clone)]
pub struct Step {
    step: StepDefinition,
    /// Keys that were set, to check that the kind has them.
    set: Vec<&'static str>,
    misfits: Vec<Problem>,
    code: Code,
}

impl Step {
    /// Adds a closure by its name.
    fn carrying(mut self, closure: Option<(String, Closure)>) -> Self {
        self.code.closures.extend(closure);
        self
    }

    fn new(id: impl Into<String>, kind: StepKind) -> Self {
        let step = StepDefinition::new(id, kind);
        Self { step, set: Vec::new(), misfits: Vec::new(), code: Code::default() }
    }

    /// Adds the step to `steps`, and its modifiers that do not fit to `misfits`. Returns the
    /// code that it carries.
    pub(super) fn add_to(
        self,
        steps: &mut Vec<StepDefinition>,
        misfits: &mut Vec<Problem>,
    ) -> Code {
        let Self { step, set, misfits: inner, code } = self;
        let kind = step.kind.step_type();
        let fitting = kind.keys();
        misfits.extend(inner);
        misfits.extend(set.into_iter().filter(|key| !fitting.contains(key)).map(|key| Problem {
            place: vec!["steps".to_owned(), step.id.clone(), key.to_owned()],
            message: kind::misfit(key, kind),
        }));
        steps.push(step);
        code
    }
}
