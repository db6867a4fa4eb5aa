//! One connection: its transport, its begin, and the list of tools.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_actors::domain::failure::shortened;
use greenroom_actors::threads::{Pool, shared};
use http::{HeaderName, HeaderValue};
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
    ErrorCode, ErrorData, Implementation, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, TASKS_EXTENSION_ID, Tool,
};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, NotificationContext,
    RequestContext, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError,
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::{ClientHandler, Peer, RoleClient, ServiceError};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Notify;

use super::child::{Program, Start};
use super::events::{SessionId, WatchedClient};
use super::findings::Findings;
use super::legacy::Asking;
use super::lines::Lines;
use super::names::{Admission, Listed};
use super::outbox::{Bounded, Outbox};
use super::progress::Listeners;
use super::settings::{McpServer, McpTransport};
use crate::adapters::tools::secrets::{Known, SecretLookup};

/// Time limit of one connection over TCP.
const TCP_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of pages that are read of a server's list.
const PAGES_MAX: usize = 1000;
/// Maximum number of threads that check lists; each server has one list at a time.
const CHECKS_MAX: usize = 32;
/// Requests over HTTP beside those of calls: reading the list, listening for changes, pings.
const REQUESTS_BESIDE: usize = 4;
/// Longest cause of a connection that cannot be made.
const CAUSE_BYTES_MAX: usize = 200;

/// A connection with the client's side of it.
pub(super) type Service = RunningService<RoleClient, Client>;

/// Reactions to requests and notifications of a server.
pub(super) struct Client {
    /// Notified when the server's list of tools has changed.
    pub(super) changed: Arc<Notify>,
    pub(super) server: Arc<McpServer>,
    /// Its calls, some of which may ask.
    pub(super) asking: Arc<Asking>,
    pub(super) progress: Arc<Listeners>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let tasks = (TASKS_EXTENSION_ID.to_owned(), Default::default());
        capabilities.extensions = Some([tasks].into());
        if self.server.on_input.is_some() {
            let (form, url) = Default::default();
            capabilities.elicitation =
                Some(ElicitationCapability::new().with_form(form).with_url(url));
        }
        let client = Implementation::new("greenroom", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    async fn on_progress(
        &self,
        report: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.hear(report);
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        if self.server.on_input.is_none() {
            let why = "this client cannot ask a person";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None));
        }
        self.asking.answer(&self.server, asked)
    }
}

/// Parts of this process that connections need.
#[derive(Debug, Clone)]
pub struct McpEnvironment {
    pub secrets: SecretLookup,
    /// Default limit of each process of a program.
    pub memory_bytes_max: u64,
}

/// The begin of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// The newest version that both know.
    Newest,
    /// With a handshake, for servers that end at the first request of newer versions, or answer it
    /// without a refusal.
    Handshake,
}

impl Era {
    /// Returns how to begin after a conversation that did not: programs may end at the first request of
    /// newer versions, while servers over HTTP refuse it.
    pub(super) fn next(self, transport: &McpTransport) -> Self {
        match (transport, self) {
            (McpTransport::Program { .. }, Self::Newest) => Self::Handshake,
            (McpTransport::Program { .. }, Self::Handshake) | (McpTransport::Http { .. }, _) => {
                Self::Newest
            }
        }
    }
}

/// A transport that is open, before the first message.
pub(super) enum Transport {
    Program(ChildStdin, Lines<ChildStdout>),
    Http(StreamableHttpClientTransport<WatchedClient>),
}

/// An open transport with what belongs to it.
pub(super) struct Opened {
    pub(super) transport: Transport,
    pub(super) program: Option<Program>,
    pub(super) findings: Findings,
    /// Secrets that were sent.
    pub(super) secrets: Arc<Known>,
}

/// Starts the program, or prepares the client, which takes down the id of its session. The error has no
/// secrets.
pub(super) fn open(
    server: &McpServer,
    environment: &McpEnvironment,
    session: &SessionId,
) -> Result<Opened, String> {
    session.set(None);
    let texts: Vec<_> =
        server.transport.texts().map(|(name, text)| (Arc::<str>::from(name), text)).collect();
    let resolved = environment.secrets.resolve(texts.iter().map(|(name, text)| (name, *text)))?;
    let secrets = Arc::new(resolved.secrets);
    let findings = Findings::about(&server.name, Arc::clone(&secrets));
    let (transport, program) = match &server.transport {
        McpTransport::Http { url, .. } => {
            let client = crate::http_client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(TCP_TIMEOUT)
                .build();
            let client = client.map_err(|_| "this server cannot make HTTP calls".to_owned())?;
            let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                .custom_headers(headers(&resolved.texts)?)
                .max_concurrent_requests(server.concurrency.saturating_add(REQUESTS_BESIDE))
                .max_sse_event_size(server.message_bytes_max)
                .max_json_response_size(server.message_bytes_max);
            let max = server.message_bytes_max;
            let client = WatchedClient::of(client, findings.clone(), session.clone(), max);
            (Transport::Http(StreamableHttpClientTransport::with_client(client, config)), None)
        }
        McpTransport::Program { argv, cwd, memory_bytes_max, .. } => {
            let start = Start {
                argv,
                env: resolved.texts,
                cwd: cwd.as_deref(),
                memory_bytes_max: memory_bytes_max.unwrap_or(environment.memory_bytes_max),
                secrets: Arc::clone(&secrets),
            };
            let (program, stdin, stdout) = start.start()?;
            let lines = Lines::of(stdout, server.message_bytes_max, findings.clone());
            (Transport::Program(stdin, lines), Some(program))
        }
    };
    Ok(Opened { transport, program, findings, secrets })
}

fn headers(texts: &[(Arc<str>, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let header = |(name, text): &(Arc<str>, String)| {
        let unusable = || format!("the header {name} has a value that no header can have");
        let name = HeaderName::try_from(&**name).map_err(|_| unusable())?;
        let mut value = HeaderValue::from_str(text.trim()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    texts.iter().map(header).collect()
}

impl Transport {
    /// Begins the conversation. Dropping the future closes the transport.
    pub(super) async fn begin(
        self,
        client: Client,
        era: Era,
        message_bytes_max: usize,
        findings: Findings,
    ) -> Result<Service, ClientInitializeError> {
        let lifecycle = match era {
            Era::Newest => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Era::Handshake => ClientLifecycleMode::Initialize,
        };
        let is_serial = matches!(self, Self::Program(..));
        let outbox = Outbox::new(message_bytes_max, findings, is_serial);
        let service = match self {
            Self::Program(stdin, lines) => {
                let transport = AsyncRwTransport::new_client(lines, stdin);
                // longer ones have ended the reading
                let transport = transport.with_max_line_length(message_bytes_max + 2);
                let transport = Bounded { transport, outbox };
                Box::pin(serve_client_with_lifecycle(client, transport, lifecycle)).await?
            }
            Self::Http(transport) => {
                let transport = Bounded { transport, outbox };
                Box::pin(serve_client_with_lifecycle(client, transport, lifecycle)).await?
            }
        };
        // the list is kept here; a cached one would hide that a server is away
        service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        Ok(service)
    }
}

/// Reads the server's tools. Returns also the time for which the list is fresh, if the server says so.
pub(super) async fn list(
    peer: &Peer<RoleClient>,
    mut admission: Admission,
) -> Result<(Listed, Option<Duration>), ServiceError> {
    let has_tools = peer.peer_info().is_some_and(|info| info.capabilities.tools.is_some());
    if !has_tools {
        return Ok((Listed::default(), None));
    }
    let (mut fresh, mut cursor) = (None::<u64>, None);
    let mut is_cut = true;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(params)).await?;
        fresh = fresh.into_iter().chain(page.ttl_ms).min();
        let is_taken;
        (admission, is_taken) = checked(admission, page.tools).await?;
        cursor = page.next_cursor;
        is_cut = !is_taken || cursor.is_some();
        if !is_taken || cursor.is_none() {
            break;
        }
    }
    Ok((admission.finish(is_cut), fresh.map(Duration::from_millis)))
}

/// Decides about the tools of a page on a separate thread: the connections of all servers share one. The
/// check ends early if the future is dropped.
async fn checked(
    mut admission: Admission,
    page: Vec<Tool>,
) -> Result<(Admission, bool), ServiceError> {
    let wanted = Arc::new(());
    let noted = Arc::downgrade(&wanted);
    let check = move || {
        let is_taken = admission.take(page, || noted.strong_count() > 0);
        (admission, is_taken)
    };
    let checked = match start_checks() {
        Ok(pool) => pool.run(check).await,
        Err(error) => Err(error),
    };
    drop(wanted);
    checked.map_err(|error| {
        log::error!("the tools of an MCP server cannot be checked: {error}");
        ServiceError::UnexpectedResponse
    })
}

/// Starts the first of the threads that check lists.
pub(super) fn start_checks() -> io::Result<&'static Pool> {
    static CHECKS: OnceLock<Pool> = OnceLock::new();
    shared(&CHECKS, "mcp-lists", CHECKS_MAX)
}

/// Explains why the tools of a server are not known: in words of the server, too.
pub(super) fn why_not_listed(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => {
            format!("its tools cannot be listed: {}", error.message)
        }
        ServiceError::UnexpectedResponse => "its list of tools is none of the protocol; one tool \
            without a name or a schema of its arguments spoils the whole list"
            .to_owned(),
        error => format!("its tools cannot be listed: {}", why_not_sent(error)),
    }
}

/// Returns true for servers that answer the first request of newer versions, which they do not know,
/// as if they did.
pub(super) fn is_of_older(error: &ClientInitializeError, era: Era) -> bool {
    era == Era::Newest && matches!(error, ClientInitializeError::ExpectedInitResult(_))
}

/// Explains why a conversation did not begin: in words of the server, too.
pub(super) fn why_not_begun(error: &ClientInitializeError) -> String {
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
        _ => "its answers are none of the protocol".to_owned(),
    }
}

/// Explains why a request was not answered: in words of the server, too. The text has no address, which
/// may be confidential.
pub(super) fn why_not_sent(error: &(dyn std::error::Error + 'static)) -> String {
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
pub(super) fn status_of(error: &(dyn std::error::Error + 'static)) -> Option<u16> {
    causes(error).find_map(|cause| {
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
pub(super) fn was_not_sent(error: &(dyn std::error::Error + 'static)) -> bool {
    let is_refused = |cause: &(dyn std::error::Error + 'static)| {
        of_client(cause).is_some_and(reqwest::Error::is_connect)
    };
    causes(error).any(is_refused)
}

/// Returns the error of the HTTP client, which its wrapper does not name as its source.
fn of_client<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e reqwest::Error> {
    match cause.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => Some(error),
        _ => cause.downcast_ref::<reqwest::Error>(),
    }
}

fn causes<'e>(
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
        ] {
            assert_eq!(status_of(&error), status, "{error}");
            assert_eq!(why_not_sent(&error), why);
        }
    }
}
