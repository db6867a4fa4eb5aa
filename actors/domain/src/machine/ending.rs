//! The end of an execution, with the failed step and the steps to replay from.

use std::sync::Arc;

use crate::failure::AttemptError;
use crate::ids::StepPath;
use crate::machine::Machine;
use crate::state::{End, Outcome, Phase, errors_of};
use serde::{Deserialize, Serialize};

/// The end of an execution, with its causes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    pub end: End,
    /// The step that failed first, if one did.
    pub failed: Option<FailedStep>,
    /// Steps at which a replay can begin.
    pub replayable: Vec<Arc<str>>,
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
        Some(Ending { end, failed, replayable: self.replayable_steps(&self.plan) })
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
