//! A refusal in the shape of RFC 9457, for those who ask for it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::error::ErrorCode;

/// `{"type":"urn:...","title":"...","status":404,"detail":"...","code":"..."}` and what else is
/// known.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub struct ProblemView<'a> {
    /// Names the code, and leads nowhere.
    #[serde(rename = "type")]
    uri: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    execution_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    generation_id: Option<&'a str>,
}

impl<'a> ProblemView<'a> {
    /// `detail`: the text of the refusal; `status`: that of the answer.
    pub fn of(code: ErrorCode, status: u16, detail: &'a str) -> Self {
        Self {
            uri: code.uri(),
            title: code.title(),
            status,
            detail,
            code: code.as_str(),
            request_id: None,
            execution_id: None,
            generation_id: None,
        }
    }

    /// Adds the ids that the answer has in its headers.
    pub fn about(
        self,
        request_id: Option<&'a str>,
        execution_id: Option<&'a str>,
        generation_id: Option<&'a str>,
    ) -> Self {
        Self { request_id, execution_id, generation_id, ..self }
    }
}
