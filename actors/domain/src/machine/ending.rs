//! The end of an execution, with the failed step and the steps to replay from.

use std::sync::Arc;

use crate::failure::AttemptError;
use crate::ids::{StepPath, compensated_path};
use crate::machine::Machine;
use crate::principal::Principal;
use crate::state::{End, Outcome, Phase, errors_of};
use crate::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The end of an execution, with its causes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    pub end: End,
    /// The step that failed first, if one did.
    pub failed: Option<FailedStep>,
    /// Steps at which a replay can begin. None of a reversal, which has run no step: to run one again
    /// is no continuation of it.
    pub replayable: Vec<Arc<str>>,
    /// Steps whose compensation a person skipped, in the order of these decisions; the newest
    /// [`SKIPPED_MAX`].
    #[serde(default)]
    pub skipped: Vec<SkippedCompensation>,
    /// Number of those before.
    #[serde(default)]
    pub skipped_before: usize,
}

/// Maximum number of skipped compensations of an [`Ending`].
pub const SKIPPED_MAX: usize = 50;

/// A compensation that a person skipped, or a reversal in which one was skipped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SkippedCompensation {
    /// The step that was not compensated.
    pub path: StepPath,
    /// Time of the answer, if it is known.
    pub at: Option<Timestamp>,
    /// `None` if the principal is unknown.
    pub by: Option<Arc<Principal>>,
}

/// The step whose failure ended an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailedStep {
    pub step_id: Arc<str>,
    pub path: StepPath,
    /// Number of attempts started.
    pub attempts: u32,
    /// Errors of the newest failed attempts, oldest first.
    pub errors: Vec<AttemptError>,
}

impl Machine {
    /// Returns the end of the execution; `None` if it has not ended.
    pub fn ending(&self) -> Option<Ending> {
        let end = self.state.end.clone()?;
        let replayable = match self.state.start.reversal {
            Some(_) => Vec::new(),
            None => self.replayable_steps(&self.plan),
        };
        Some(Ending { replayable, ..self.ending_of(end) })
    }

    /// Returns the end that follows the compensations, at the time at which they began, without steps
    /// to replay from; `None` unless the execution compensates.
    pub fn pending_ending(&self) -> Option<Ending> {
        let compensating =
            self.state.compensating.as_deref().filter(|_| self.state.end.is_none())?;
        let (outcome, by) = (compensating.outcome.clone(), compensating.by.clone());
        Some(self.ending_of(End { at: compensating.since, outcome, by, compensates: true }))
    }

    fn ending_of(&self, end: End) -> Ending {
        let failed = match &end.outcome {
            Outcome::Failed { path, .. } => path.clone().or_else(|| self.failed_path()),
            Outcome::Completed { .. } | Outcome::Cancelled { .. } => None,
        };
        let failed = failed.and_then(|path| {
            let (step, node) = self.node(&path)?;
            Some(FailedStep {
                step_id: Arc::clone(&step.id),
                attempts: node.attempt,
                errors: errors_of(node),
                path,
            })
        });
        let mut skipped = self.skipped_compensations();
        let skipped_before = skipped.len().saturating_sub(SKIPPED_MAX);
        skipped.drain(..skipped_before);
        Ending { end, failed, replayable: Vec::new(), skipped, skipped_before }
    }

    fn skipped_compensations(&self) -> Vec<SkippedCompensation> {
        let skipped = self.state.compensating.iter().flat_map(|it| it.skipped());
        let skipped = skipped.map(|begun| {
            let step = self.plan.step_at(&begun.path);
            let is_reversal = step.is_some_and(|step| step.work.is_reversal());
            // what was skipped inside of a reversal is answered there
            let is_here = !is_reversal || begun.is_answered_with_skip();
            let answered = begun.node.resumed.as_ref().filter(|_| is_here);
            SkippedCompensation {
                path: Arc::from(compensated_path(&begun.path).unwrap_or(&begun.path)),
                at: answered.map(|resumed| resumed.at),
                by: answered.and_then(|resumed| resumed.by.clone()),
            }
        });
        skipped.collect()
    }

    /// Returns the innermost step whose failure ended the execution.
    pub(super) fn failed_path(&self) -> Option<StepPath> {
        let (mut steps, mut sequence) = (self.plan.steps.as_slice(), &self.state.root);
        let mut step = steps.get(sequence.nodes.len().checked_sub(1)?)?;
        let mut path = step.id.to_string();
        loop {
            let node = sequence.nodes.last()?;
            if !matches!(node.phase, Phase::Failed { output: None, .. }) {
                return None;
            }
            let Some(lane) = node.failed_lane(step) else { return Some(Arc::from(path)) };
            sequence = node.branches.get(lane)?;
            steps = &step.work.branch_of(lane)?.steps;
            let inner = steps.get(sequence.nodes.len().checked_sub(1)?)?;
            path = step.work.inner_path(&path, lane, &inner.id);
            step = inner;
        }
    }
}
