//! Description of the request of a call for traces.

use std::sync::Arc;

use greenroom_actors::domain::failure::shortened;
use greenroom_actors::ports::store::McpCall;
use rmcp::model::{ProtocolVersion, RequestId};

use crate::adapters::mcp::connection::http_client::SessionId;
use crate::adapters::mcp::settings::McpTransport;

/// Longest text that a server chooses, in bytes.
const TEXT_BYTES_MAX: usize = 128;

/// Describes a request that is being made. It has no address but the host and the port, as paths and
/// queries may be confidential.
pub(crate) fn of(
    transport: &McpTransport,
    version: Option<&ProtocolVersion>,
    session: &SessionId,
    id: &RequestId,
) -> McpCall {
    let text = |text: &str| Arc::from(shortened(text, TEXT_BYTES_MAX));
    let url = match transport {
        McpTransport::Http { url, .. } => Some(url),
        McpTransport::Program { .. } => None,
    };
    McpCall {
        is_http: url.is_some(),
        server: url.and_then(|url| url.host_str()).map(Arc::from),
        port: url.and_then(|url| url.port_or_known_default()),
        protocol_version: version.map(|version| text(&version.to_string())),
        session_id: session.get().map(|id| text(&id)),
        request_id: Some(text(&id.to_string())),
        tool: None,
        error_code: None,
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::adapters::mcp::settings::tests::server;

    #[test]
    fn a_request_is_described_without_what_may_be_confidential() {
        let http =
            |url: &str| McpTransport::Http { url: Url::parse(url).unwrap(), headers: Vec::new() };
        let host = |host: &str| Some(Arc::from(host));
        for (transport, is_http, server, port) in [
            (
                http("https://ann:s3cret@mcp.example/t0ken?key=k3y"),
                true,
                host("mcp.example"),
                Some(443),
            ),
            (http("http://localhost:3000/mcp"), true, host("localhost"), Some(3000)),
            (server("own").transport, false, None, None),
        ] {
            let session = SessionId::default();
            session.set(Some(Arc::from("s".repeat(1000))));
            let described = of(
                &transport,
                Some(&ProtocolVersion::V_2025_11_25),
                &session,
                &RequestId::Number(7),
            );
            let expected = McpCall {
                is_http,
                server,
                port,
                session_id: Some(Arc::from("s".repeat(TEXT_BYTES_MAX))),
                protocol_version: Some(Arc::from("2025-11-25")),
                request_id: Some(Arc::from("7")),
                tool: None,
                error_code: None,
            };
            assert_eq!(described, expected);
        }
    }
}
