//! Refusals in the form of RFC 9457.

use std::sync::Arc;

use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::error::code::ErrorCode;

/// `{"type":"urn:...","title":"...","status":404,"detail":"...","code":"..."}` with details.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub struct ProblemView<'a> {
    /// URN of the code; it cannot be opened.
    #[serde(rename = "type")]
    uri: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    /// Same as `detail`; the envelope uses this key, so that clients can read both forms.
    error: &'a str,
    code: &'static str,
    request_id: Option<&'a str>,
    execution_id: Option<&'a str>,
    generation_id: Option<&'a str>,
    /// Step that failed. The state of the execution has the reason.
    step_id: Option<&'a str>,
    /// Path of that step.
    path: Option<&'a str>,
    /// Nearest known name.
    did_you_mean: Option<&'a str>,
}

/// Details of a refusal: `data` of the envelope.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusalDetails {
    /// The execution that failed.
    pub execution_id: Option<String>,
    /// Step that failed. The state of the execution has the reason.
    #[schema(value_type = String, required = false)]
    pub step_id: Option<Arc<str>>,
    /// Path of that step.
    #[schema(value_type = String, required = false)]
    pub path: Option<Arc<str>>,
    /// Nearest known name.
    pub did_you_mean: Option<String>,
}

impl<'a> ProblemView<'a> {
    /// Creates a problem; `detail` is the text of the refusal.
    pub fn of(code: ErrorCode, status: u16, detail: &'a str) -> Self {
        Self {
            uri: code.uri(),
            title: code.title(),
            status,
            detail,
            error: detail,
            code: code.as_str(),
            ..Self::default()
        }
    }

    /// Adds the details of the refusal.
    pub fn detailed(self, details: Option<&'a RefusalDetails>) -> Self {
        let Some(details) = details else { return self };
        Self {
            step_id: details.step_id.as_deref(),
            path: details.path.as_deref(),
            did_you_mean: details.did_you_mean.as_deref(),
            ..self
        }
    }

    /// Adds the ids of the header fields.
    pub fn about(
        self,
        request_id: Option<&'a str>,
        execution_id: Option<&'a str>,
        generation_id: Option<&'a str>,
    ) -> Self {
        Self { request_id, execution_id, generation_id, ..self }
    }
}
