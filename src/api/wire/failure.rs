//! Failures on the wire: of an execution, and of single attempts.

use greenroom_actors::domain::failure::{AttemptError, ErrorClass};
use greenroom_actors::requests::Failure;
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::wire::Iso;
use crate::api::wire::shape::error_kind;

/// `error` of an execution.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ExecutionFailure)]
#[serde(rename_all = "camelCase")]
pub struct FailureView<'a> {
    pub message: &'a str,
    /// Null if the execution failed as a whole, not a step.
    #[schema(required)]
    #[serialize_always]
    pub step_id: Option<&'a str>,
    pub path: Option<&'a str>,
    /// Absent in records of older versions.
    #[schema(schema_with = error_kind, required = false)]
    pub kind: Option<&'static str>,
    /// HTTP status of the called server.
    pub status: Option<u16>,
}

impl<'a> FailureView<'a> {
    /// Shows the failure of an execution.
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

/// A failed attempt.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AttemptError)]
#[serde(rename_all = "camelCase")]
pub struct AttemptErrorView<'a> {
    pub attempt: u32,
    pub at: Iso,
    pub message: &'a str,
    /// Absent in records of older versions.
    #[schema(schema_with = error_kind, required = false)]
    pub kind: Option<&'static str>,
    /// HTTP status of the called server.
    pub status: Option<u16>,
}

impl<'a> AttemptErrorView<'a> {
    /// Shows the failed attempts of a step.
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

/// Returns the name of the kind of a failure.
pub fn kind_of(class: Option<ErrorClass>) -> Option<&'static str> {
    class.map(|class| class.kind.as_str())
}

/// Returns the HTTP status of the called server.
pub fn status_of(class: Option<ErrorClass>) -> Option<u16> {
    class.and_then(|class| class.status)
}
