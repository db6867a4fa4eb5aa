//! Refusals in the shape of OpenAI's API.

use serde::Serialize;
use utoipa::ToSchema;

use crate::api::error::ErrorCode;

/// A refusal, or the failure of a stream.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiError)]
pub struct FailureView<'a> {
    error: FailureFields<'a>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OpenAiErrorFields)]
struct FailureFields<'a> {
    message: &'a str,
    r#type: &'static str,
    /// Path of the member of the body that is wrong.
    #[schema(required)]
    param: Option<&'a str>,
    /// As in `x-error-code`, or OpenAI's own where clients branch on it.
    code: &'static str,
}

impl<'a> FailureView<'a> {
    /// Shows a refusal; `place` is the path of what is wrong in the body.
    pub fn of(code: ErrorCode, message: &'a str, place: Option<&'a str>) -> Self {
        let r#type = match code.status() {
            429 => "rate_limit_error",
            400..500 => "invalid_request_error",
            _ => "server_error",
        };
        let code = match code {
            ErrorCode::AuthRequired | ErrorCode::TokenExpired | ErrorCode::TokenInvalid => {
                "invalid_api_key"
            }
            ErrorCode::ProviderRateLimited => "rate_limit_exceeded",
            code => code.as_str(),
        };
        Self { error: FailureFields { message, r#type, param: place, code } }
    }
}
