//! Conversion of errors of the runtime into refusals.

use greenroom_actors::agent::generation::GenerateError;
use greenroom_actors::domain::fact::Suspension;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{AppendError, PageTooLarge, ReadError};
use greenroom_actors::requests::{
    ControlError, DescribeError, ResumeError, StartError, Unavailable,
};
use greenroom_actors::runtime::{CancelGenerationError, FailedGeneration, ReplayError};

use crate::api::error::{ApiError, AskRefusal, GenerationFailure, Product, Recorded, Shortage};

impl ApiError {
    /// Converts the refusal of a suspend or cancel.
    pub fn from_control(id: &ExecutionId, error: ControlError) -> Self {
        match error {
            ControlError::NotFound => Self::ExecutionNotFound(id.to_string()),
            ControlError::Already(status) => Self::ExecutionAlready { id: id.clone(), status },
            ControlError::Compensating => Self::ExecutionCompensates(id.clone()),
            ControlError::Unavailable(cause) => cause.into(),
        }
    }

    /// Converts the refusal of a resume.
    pub fn from_resume(id: &ExecutionId, error: ResumeError) -> Self {
        match error {
            ResumeError::NotFound => Self::ExecutionNotFound(id.to_string()),
            ResumeError::NotSuspended => Self::NotSuspended(id.clone()),
            ResumeError::UnknownStep(step) => Self::StepNotFound(step.into()),
            ResumeError::StepNotSuspended(step) => Self::StepNotSuspended(step),
            ResumeError::Ambiguous { step, paths } => Self::StepAmbiguous { step, paths },
            ResumeError::SeveralWait { paths } => Self::SeveralStepsWaiting(paths),
            ResumeError::SuspensionPassed { id, waiting } => {
                let why = not_answered(&id, &waiting);
                Self::SuspensionPassed { id, why }
            }
            ResumeError::AsksOpen(step) => Self::StepAsks(step),
            ResumeError::NotAssigned => {
                let (is_nameless, is_of_nobody) = (false, false);
                Self::Ask(AskRefusal::NotAssigned { to: Vec::new(), is_nameless, is_of_nobody })
            }
            ResumeError::Refused(why) => Self::Ask(AskRefusal::Refused(why)),
            ResumeError::InvalidData(detail) => Self::ResumeDataInvalid(detail),
            ResumeError::KeyReused => Self::KeyReused,
            ResumeError::Unavailable(cause) => cause.into(),
        }
    }

    /// Converts the refusal of a replay.
    pub fn from_replay(id: &ExecutionId, error: ReplayError) -> Self {
        match error {
            ReplayError::NotFound => Self::ExecutionNotFound(id.to_string()),
            ReplayError::UnknownStep(step) => Self::StepNotFound(step.into()),
            ReplayError::NotReplayable { step, from } => Self::StepNotReplayable { step, from },
            ReplayError::NoStepFailed { from } => Self::NoStepFailed(from),
            ReplayError::CompensationSkipped { path, from } => {
                Self::CompensationSkipped { path, from }
            }
            ReplayError::Compensating => Self::ExecutionCompensates(id.clone()),
            ReplayError::DefinitionDiffers(detail) => Self::DefinitionDiffers(detail),
            ReplayError::DoesNotSuspend(step) => Self::StepDoesNotSuspend(step),
            ReplayError::InvalidData(detail) => Self::ResumeDataInvalid(detail),
            ReplayError::Refused(why) => Self::Ask(AskRefusal::Refused(why)),
            ReplayError::Start(error) => error.into(),
        }
    }

    /// Converts the failure of a generation.
    pub fn from_generate(product: Product, failure: FailedGeneration) -> Self {
        let FailedGeneration { id, error } = failure;
        if let (Some(id), GenerateError::Unavailable(cause)) = (&id, &error) {
            let recorded = Some(Recorded::Generation(id.clone()));
            match cause {
                Unavailable::Store { .. } => return Self::StoreUnavailable { recorded },
                Unavailable::Draining { .. } => return Self::Draining { recorded },
                _ => {}
            }
        }
        let failed =
            |message: String, cause| Self::GenerationFailed { id, product, message, cause };
        match error {
            GenerateError::UnknownAgent(id) => Self::AgentNotFound(id.into()),
            GenerateError::InvalidSchema(detail) => Self::SchemaInvalid(detail),
            GenerateError::InvalidRequest(detail) => Self::InvalidBody(detail),
            GenerateError::Model(error) => {
                failed(error.message, GenerationFailure::Provider(error.kind))
            }
            GenerateError::Failed(message) => failed(message, GenerationFailure::Agent),
            GenerateError::Cancelled => {
                failed("the generation was cancelled".to_owned(), GenerationFailure::Cancelled)
            }
            GenerateError::Exists(id) => Self::GenerationExists(id),
            GenerateError::Unavailable(cause) => cause.into(),
        }
    }

    /// Converts the refusal to describe or stream an execution.
    pub fn from_describe(id: &ExecutionId, error: DescribeError) -> Self {
        match error {
            DescribeError::NotFound => Self::ExecutionNotFound(id.to_string()),
            DescribeError::Unavailable(cause) => cause.into(),
        }
    }
}

/// Says why `options.suspensionId` cannot be resumed.
fn not_answered(id: &str, waiting: &[Suspension]) -> String {
    if let Some(elsewhere) = waiting.iter().find(|it| it.id.as_deref() == Some(id)) {
        return format!("waits at {}, not where options.stepId says", elsewhere.path);
    }
    if waiting.is_empty() {
        return "no longer waits; nothing waits now".to_owned();
    }
    let named = waiting.iter().map(|suspension| {
        let id = suspension.id.as_deref().unwrap_or_default();
        format!("{id} at {}", suspension.path)
    });
    let named: Vec<_> = named.collect();
    format!("no longer waits; what waits now: {}", named.join(", "))
}

impl From<StartError> for ApiError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::UnknownWorkflow(id) => Self::WorkflowNotFound(id.into()),
            StartError::InvalidInput(detail) => Self::InputInvalid(detail),
            StartError::Exists(id) => Self::ExecutionExists(id),
            StartError::KeyReused => Self::KeyReused,
            StartError::Unavailable(cause) => cause.into(),
        }
    }
}

impl From<Unavailable> for ApiError {
    fn from(cause: Unavailable) -> Self {
        match cause {
            Unavailable::Draining { execution } => {
                Self::Draining { recorded: execution.map(Recorded::Execution) }
            }
            Unavailable::Busy { execution } => Self::Busy { execution },
            Unavailable::Moved { execution } => Self::ExecutionMoved { execution },
            Unavailable::TooLarge => Self::TooLargeToPassOn,
            Unavailable::Unreachable => Self::ServerUnreachable,
            Unavailable::NoMemory => Self::AtCapacity(Shortage::ExecutionMemory),
            Unavailable::Store { reason, execution } => {
                // The store logs once when it fails and when it recovers.
                log::debug!("the store is not available: {reason}");
                Self::StoreUnavailable { recorded: execution.map(Recorded::Execution) }
            }
            Unavailable::Corrupt(record) => Self::RecordCorrupt(record.to_string()),
            Unavailable::ActorLost => {
                log::error!("an actor stopped while a request waited for it; the request failed");
                Self::Internal
            }
        }
    }
}

impl From<CancelGenerationError> for ApiError {
    fn from(error: CancelGenerationError) -> Self {
        match error {
            CancelGenerationError::NotFound(id) => Self::GenerationNotFound(id),
            CancelGenerationError::Ended { id, status } => Self::GenerationAlready { id, status },
            CancelGenerationError::Unavailable(cause) => cause.into(),
        }
    }
}

impl ApiError {
    /// Returns the refusal of a page with too many bytes, of which so many records fit.
    pub(in crate::api) fn page_too_large(fits: usize) -> Self {
        let what =
            format!("must be at most {fits} here: the records have too many bytes for one page");
        Self::InvalidQuery { name: "limit".to_owned(), what }
    }
}

impl From<ReadError> for ApiError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::TooLarge(PageTooLarge { fits }) => Self::page_too_large(fits),
            error => Unavailable::from(error).into(),
        }
    }
}

impl ApiError {
    /// Converts the refusal of a change of a conversation; `id` is that of the new conversation.
    pub fn from_change(id: &str, error: AppendError) -> Self {
        match error {
            AppendError::Exists => Self::ConversationExists(id.to_owned()),
            AppendError::Unavailable(reason) => {
                Unavailable::Store { reason, execution: None }.into()
            }
            AppendError::Lost | AppendError::Unsettled => Unavailable::from(error).into(),
            AppendError::Stale | AppendError::KeyTaken => {
                log::error!("bug in the server: a conversation was not changed: {error}");
                Self::Internal
            }
        }
    }
}
