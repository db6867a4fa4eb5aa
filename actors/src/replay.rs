//! The part of an execution that a replay of it takes over.

use std::sync::Arc;

use crate::domain::fact::{Replayed, Start};
use crate::domain::ids::StepPath;
use crate::domain::machine::{Machine, ReplayFrom, ReplayRefusal};
use crate::domain::plan::Plan;
use crate::requests::{StartError, Unavailable};

/// Refusal of a replay.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ReplayError {
    #[error("execution not found")]
    NotFound,
    #[error("step {0} not found")]
    UnknownStep(String),
    #[error("step {step} cannot be replayed from{}", possible_steps(.from))]
    NotReplayable { step: String, from: Vec<Arc<str>> },
    #[error("no step failed{}", possible_steps(.from))]
    NoStepFailed { from: Vec<Arc<str>> },
    #[error(
        "a person skipped the compensation of {path}, so a step has to be named{}",
        possible_steps(.from)
    )]
    CompensationSkipped { path: StepPath, from: Vec<Arc<str>> },
    #[error("the execution compensates, so a step has to be named")]
    Compensating,
    #[error("the record does not match the current definition: {0}")]
    DefinitionDiffers(String),
    #[error("step {0} does not suspend")]
    DoesNotSuspend(String),
    #[error("resume data validation failed: {0}")]
    InvalidData(String),
    /// The program's own check refused the answer.
    #[error("the answer was refused: {0}")]
    Refused(String),
    #[error(transparent)]
    Start(#[from] StartError),
}

impl From<Unavailable> for ReplayError {
    fn from(why: Unavailable) -> Self {
        Self::Start(why.into())
    }
}

impl From<ReplayRefusal> for ReplayError {
    fn from(refusal: ReplayRefusal) -> Self {
        match refusal {
            ReplayRefusal::UnknownStep(step) => Self::UnknownStep(step),
            ReplayRefusal::NotReplayable { step, from } => Self::NotReplayable { step, from },
            ReplayRefusal::NoStepFailed { from } => Self::NoStepFailed { from },
            ReplayRefusal::CompensationSkipped { path, from } => {
                Self::CompensationSkipped { path, from }
            }
            ReplayRefusal::Compensating => Self::Compensating,
            ReplayRefusal::DefinitionDiffers(detail) => Self::DefinitionDiffers(detail),
            ReplayRefusal::DoesNotSuspend(step) => Self::DoesNotSuspend(step),
        }
    }
}

/// Formats the steps that an execution can be replayed from, as the end of a refusal.
pub fn possible_steps(from: &[Arc<str>]) -> String {
    match from {
        [] => String::new(),
        from => format!("; possible steps: {}", from.join(", ")),
    }
}

/// The part of an execution that a replay of it takes over.
pub(crate) struct Original {
    pub(crate) plan: Arc<Plan>,
    pub(crate) start: Box<Start>,
    pub(crate) replayed: Replayed,
}

impl Original {
    pub(crate) fn of(machine: &Machine, from: ReplayFrom) -> Result<Box<Self>, ReplayError> {
        let plan = from.plan.as_ref().unwrap_or_else(|| machine.plan());
        let plan = Arc::clone(plan);
        let replayed = machine.replayed_from(from)?;
        let start = machine.state().start.clone();
        Ok(Box::new(Self { plan, start, replayed }))
    }
}
