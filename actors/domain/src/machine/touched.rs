//! The part of an execution that facts are about.

use crate::fact::{Fact, Recorded};
use crate::ids::{StepPath, is_at_or_below};

/// Number of facts above which the whole execution is looked at, because that is quicker.
const FACTS_MAX: usize = 16;

/// The part of an execution that some facts are about: steps with everything inside them. Work
/// elsewhere continues as before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched<'f> {
    /// `None`: the whole execution.
    pub(super) steps: Option<Vec<&'f StepPath>>,
}

impl<'f> Touched<'f> {
    /// The whole execution.
    pub const WHOLE: Touched<'static> = Touched { steps: None };

    /// Returns a step, with everything inside it.
    pub fn at(path: &'f StepPath) -> Self {
        Self { steps: Some(vec![path]) }
    }

    /// Returns what these facts are about.
    pub fn by(facts: &'f [Recorded]) -> Self {
        let mut steps: Vec<&StepPath> = Vec::new();
        if facts.len() > FACTS_MAX {
            return Self::WHOLE;
        }
        for Recorded { fact, .. } in facts {
            match fact.step_path() {
                Some(path) if steps.iter().any(|outer| is_at_or_below(path, outer)) => {}
                Some(path) => steps.push(path),
                // they only announce the status
                None if matches!(fact, Fact::WorkflowSuspended { .. } | Fact::WorkflowResumed) => {}
                None => return Self::WHOLE,
            }
        }
        Self { steps: Some(steps) }
    }

    /// Returns true if the step at a path is in this part.
    pub fn includes(&self, path: &str) -> bool {
        let Some(steps) = &self.steps else { return true };
        steps.iter().any(|outer| is_at_or_below(path, outer))
    }
}
