//! Reasons of failures of a connection, in words for people.

use greenroom_actors::domain::failure::shortened;
use rmcp::ServiceError;
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
};

use crate::adapters::mcp::refusal::Refusal;
use crate::adapters::mcp::settings::Protocol;

/// Longest cause of a connection that cannot be made.
const CAUSE_BYTES_MAX: usize = 200;

/// Explains why the tools of a server are not known: in words of the server, too.
pub(crate) fn why_not_listed(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => {
            format!("its tools cannot be listed: {}", error.message)
        }
        ServiceError::UnexpectedResponse => {
            "its tool list is invalid: every tool needs a name and an input schema".to_owned()
        }
        error => format!("its tools cannot be listed: {}", why_not_sent(error)),
    }
}

/// Returns true for servers that answer the first request of newer versions, which they do not know,
/// as if they did.
pub(crate) fn is_of_older(error: &ClientInitializeError, protocol: Protocol) -> bool {
    protocol == Protocol::Newest && matches!(error, ClientInitializeError::ExpectedInitResult(_))
}

/// Explains why a conversation did not begin: in words of the server, too.
pub(crate) fn why_not_begun(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => why_not_sent(error.error.as_ref()),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => why_not_begun(fallback),
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::JsonRpcError(error) => {
            format!("it refused the connection: {}", error.message)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
            format!("it speaks other versions: {}", versions.join(", "))
        }
        _ => "it sent an invalid MCP response".to_owned(),
    }
}

/// Explains why a request was not answered: in words of the server, too. The text has no address, which
/// may be confidential.
pub(crate) fn why_not_sent(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(refusal) = refusal_of(error) {
        return refusal.to_string();
    }
    match status_of(error) {
        Some(401) => return "it asks for authorization (status 401)".to_owned(),
        Some(403) => return "it refuses the authorization (status 403)".to_owned(),
        Some(status) => return format!("it answered with status {status}"),
        None => {}
    }
    match causes(error).find_map(of_client) {
        Some(error) if error.is_connect() => {
            let cause = causes(error).last().unwrap_or(error).to_string();
            format!("it cannot be reached: {}", shortened(&cause, CAUSE_BYTES_MAX))
        }
        Some(error) if error.is_timeout() => "it did not answer in time".to_owned(),
        Some(_) => "the connection broke".to_owned(),
        None => error.to_string(),
    }
}

/// Returns the status of an answer that is a failure.
pub(crate) fn status_of(error: &(dyn std::error::Error + 'static)) -> Option<u16> {
    causes(error).find_map(|cause| {
        if let Some(refusal) = refusal_in(cause) {
            return refusal.status;
        }
        if cause.is::<AuthRequiredError>() {
            return Some(401);
        }
        if cause.is::<InsufficientScopeError>() {
            return Some(403);
        }
        let said = cause.downcast_ref::<HttpStatusError>().map(|error| error.status);
        let said = said.or_else(|| status_in(cause.downcast_ref()?));
        said.or_else(|| of_client(cause)?.status().map(|status| status.as_u16()))
    })
}

/// Returns the status in an error of the transport, which does not name it as its source: most are
/// in a text that begins with `HTTP 409 Conflict`.
fn status_in(error: &StreamableHttpError<reqwest::Error>) -> Option<u16> {
    match error {
        StreamableHttpError::HttpStatus(error) => Some(error.status),
        StreamableHttpError::UnexpectedServerResponse(text) => {
            text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
        }
        _ => None,
    }
}

/// Returns true if the request has certainly not reached the server.
pub(crate) fn was_not_sent(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_refused = |cause: &(dyn std::error::Error + 'static)| {
        of_client(cause).is_some_and(reqwest::Error::is_connect)
    };
    causes(error).any(is_refused) || refusal_of(error).is_some_and(|it| it.status.is_none())
}

/// Returns the reason of a request for which there is no token, or none that the server takes.
pub(crate) fn refusal_of<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e Refusal> {
    causes(error).find_map(refusal_in)
}

fn refusal_in<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e Refusal> {
    match cause.downcast_ref::<StreamableHttpError<reqwest::Error>>()? {
        // errors of the transport have no other place for it
        StreamableHttpError::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Returns an error of the transport with this reason.
pub(crate) fn refused(refusal: Refusal) -> StreamableHttpError<reqwest::Error> {
    StreamableHttpError::Io(std::io::Error::other(refusal))
}

/// Returns the challenge of an answer with status 401 or 403; empty: it has none.
pub(crate) fn challenge_of(error: &StreamableHttpError<reqwest::Error>) -> Option<(u16, &str)> {
    match error {
        StreamableHttpError::AuthRequired(error) => Some((401, &error.www_authenticate_header)),
        StreamableHttpError::InsufficientScope(error) => {
            Some((403, &error.www_authenticate_header))
        }
        error => status_of(error).filter(|status| matches!(status, 401 | 403)).map(|it| (it, "")),
    }
}

/// Returns the error of the HTTP client, which its wrapper does not name as its source.
fn of_client<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e reqwest::Error> {
    match cause.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => Some(error),
        _ => cause.downcast_ref::<reqwest::Error>(),
    }
}

pub(crate) fn causes<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'e (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_found_wherever_the_transport_has_them() {
        type Error = StreamableHttpError<reqwest::Error>;
        for (error, status, why) in [
            (
                Error::HttpStatus(HttpStatusError::new(429, None)),
                Some(429),
                "it answered with status 429",
            ),
            (
                Error::UnexpectedServerResponse("HTTP 409 Conflict: taken".into()),
                Some(409),
                "it answered with status 409",
            ),
            (
                Error::UnexpectedServerResponse("expect text".into()),
                None,
                "unexpected server response: expect text",
            ),
            (
                Error::UnexpectedServerResponse("HTTP".into()),
                None,
                "unexpected server response: HTTP",
            ),
            (
                refused(Refusal::of_new_token()),
                Some(401),
                "it refuses a new token (status 401): see which audience and scope the \
                 authorization server gives to this client",
            ),
        ] {
            assert_eq!(status_of(&error), status, "{error}");
            assert_eq!(why_not_sent(&error), why);
        }
    }

    #[test]
    fn challenges_are_found_wherever_the_transport_has_them() {
        type Error = StreamableHttpError<reqwest::Error>;
        for (error, expected) in [
            (
                Error::AuthRequired(AuthRequiredError::new("Bearer a=b".to_owned())),
                Some((401, "Bearer a=b")),
            ),
            (
                Error::InsufficientScope(InsufficientScopeError::new("Bearer".to_owned(), None)),
                Some((403, "Bearer")),
            ),
            (Error::UnexpectedServerResponse("HTTP 401 Unauthorized: no".into()), Some((401, ""))),
            (Error::UnexpectedServerResponse("HTTP 409 Conflict: taken".into()), None),
            (refused(Refusal::of_new_token()), Some((401, ""))),
            (Error::SessionExpired, None),
        ] {
            assert_eq!(challenge_of(&error), expected, "{error}");
        }
    }
}
