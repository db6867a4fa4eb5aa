//! Codes of failed generations.

use greenroom_actors::agent::generation::FailureKind;
use greenroom_actors::ports::model::ModelErrorKind;

use crate::api::error::ErrorCode;

/// Origin of a failed generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenerationFailure {
    Provider(ModelErrorKind),
    /// The agent's configuration, or an answer that does not match the schema.
    Agent,
    Cancelled,
}

/// Returns the code of a failure inside a stream, whose header has already been sent.
pub fn stream_failure(kind: FailureKind) -> ErrorCode {
    match kind {
        FailureKind::Model(kind) => GenerationFailure::Provider(kind).code(),
        FailureKind::Agent => ErrorCode::GenerationFailed,
        FailureKind::Draining => ErrorCode::Draining,
        FailureKind::Store => ErrorCode::StoreUnavailable,
        FailureKind::Server => ErrorCode::Internal,
    }
}

impl GenerationFailure {
    pub(super) fn code(self) -> ErrorCode {
        match self {
            Self::Provider(ModelErrorKind::RateLimited) => ErrorCode::ProviderRateLimited,
            Self::Provider(ModelErrorKind::Auth) => ErrorCode::ProviderAuth,
            Self::Provider(ModelErrorKind::Timeout) => ErrorCode::ProviderTimeout,
            Self::Provider(ModelErrorKind::Other | ModelErrorKind::Unavailable) => {
                ErrorCode::ProviderError
            }
            Self::Agent => ErrorCode::GenerationFailed,
            Self::Cancelled => ErrorCode::GenerationCancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_inside_a_stream_have_the_codes_of_refusals() {
        for (kind, code) in [
            (FailureKind::Model(ModelErrorKind::RateLimited), "provider_rate_limited"),
            (FailureKind::Agent, "generation_failed"),
            (FailureKind::Draining, "draining"),
            (FailureKind::Store, "store_unavailable"),
            (FailureKind::Server, "internal"),
        ] {
            assert_eq!(stream_failure(kind).as_str(), code, "{kind:?}");
        }
    }
}
