//! Failures on the wire: of an execution, and of single attempts.

use greenroom_actors::domain::failure::{AttemptError, ErrorClass};
use greenroom_actors::requests::Failure;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::wire::Iso;
use crate::api::wire::shape::error_kind;

/// `error` of an execution.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionFailure)]
#[serde(rename_all = "camelCase")]
pub struct FailureView<'a> {
    pub message: &'a str,
    /// None where no step failed, but the execution as a whole.
    #[schema(required)]
    pub step_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub path: Option<&'a str>,
    /// Left out of failures that an earlier version recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = error_kind, required = false)]
    pub kind: Option<&'static str>,
    /// Of an answer over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub status: Option<u16>,
}

impl<'a> FailureView<'a> {
    /// Shows why an execution failed.
    pub fn of(failure: &'a Failure) -> Self {
        Self {
            message: &failure.message,
            step_id: failure.step_id.as_deref(),
            path: failure.path.as_deref(),
            kind: kind_of(failure.class),
            status: status_of(failure.class),
        }
    }
}

/// An attempt that failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AttemptError)]
#[serde(rename_all = "camelCase")]
pub struct AttemptErrorView<'a> {
    pub attempt: u32,
    pub at: Iso,
    pub message: &'a str,
    /// Left out of failures that an earlier version recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = error_kind, required = false)]
    pub kind: Option<&'static str>,
    /// Of an answer over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub status: Option<u16>,
}

impl<'a> AttemptErrorView<'a> {
    /// Shows all of a step.
    pub fn all(errors: &'a [AttemptError]) -> Vec<Self> {
        errors.iter().map(Self::of).collect()
    }

    fn of(error: &'a AttemptError) -> Self {
        let AttemptError { attempt, at, message, class } = error;
        Self {
            attempt: *attempt,
            at: Iso(*at),
            message,
            kind: kind_of(*class),
            status: status_of(*class),
        }
    }
}

/// The name of a kind.
pub fn kind_of(class: Option<ErrorClass>) -> Option<&'static str> {
    class.map(|class| class.kind.as_str())
}

/// The status that another server answered with.
pub fn status_of(class: Option<ErrorClass>) -> Option<u16> {
    class.and_then(|class| class.status)
}
