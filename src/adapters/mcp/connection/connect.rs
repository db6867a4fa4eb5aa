//! One connection: its transport, its begin, and the list of tools.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

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
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, Peer, RoleClient, ServiceError};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Notify;

use crate::adapters::mcp::connection::asking::Asking;
use crate::adapters::mcp::connection::child::{Program, Start};
use crate::adapters::mcp::connection::faults::Findings;
use crate::adapters::mcp::connection::http_client::{SessionId, WatchedClient};
use crate::adapters::mcp::connection::lines::Lines;
use crate::adapters::mcp::connection::outgoing::{Bounded, Outbox};
use crate::adapters::mcp::connection::progress::Listeners;
use crate::adapters::mcp::oauth::{TokenSettings, Tokens, forms_of};
use crate::adapters::mcp::secrets::Sent;
use crate::adapters::mcp::settings::{McpServer, McpTransport, Protocol};
use crate::adapters::mcp::tools::admission::{Admission, Listed};
use crate::adapters::tools::OutgoingHost;
use crate::adapters::tools::secrets::SecretLookup;

/// Time limit of one connection over TCP.
const TCP_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of pages that are read of a server's list.
const PAGES_MAX: usize = 1000;
/// Maximum number of threads that check lists; each server has one list at a time.
const CHECKS_MAX: usize = 32;
/// Extension of the protocol: tokens with credentials of this process.
const CREDENTIALS_EXTENSION_ID: &str = "io.modelcontextprotocol/oauth-client-credentials";
/// Requests over HTTP beside those of calls: reading the list, listening for changes, pings.
const REQUESTS_BESIDE: usize = 4;

/// A connection with the client's side of it.
pub(crate) type Service = RunningService<RoleClient, Client>;

/// Reactions to requests and notifications of a server.
pub(crate) struct Client {
    /// Notified when the server's list of tools has changed.
    pub(crate) changed: Arc<Notify>,
    pub(crate) server: Arc<McpServer>,
    /// Its calls, some of which may ask.
    pub(crate) asking: Arc<Asking>,
    pub(crate) progress: Arc<Listeners>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let credentials = self.server.oauth.is_some().then_some(CREDENTIALS_EXTENSION_ID);
        let extensions = [TASKS_EXTENSION_ID].into_iter().chain(credentials);
        let extensions = extensions.map(|id| (id.to_owned(), Default::default()));
        capabilities.extensions = Some(extensions.collect());
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
        self.progress.take(report);
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
    /// Hosts that are not public, and that metadata of servers may name.
    pub outgoing_hosts: Arc<[OutgoingHost]>,
    /// Default limit of each process of a program.
    pub memory_bytes_max: u64,
}

/// Returns how to begin after a conversation that did not: programs may end at the first request of
/// newer versions, while servers over HTTP refuse it.
pub(crate) fn next_protocol(server: &McpServer, last: Protocol) -> Protocol {
    match (&server.transport, server.protocol, last) {
        (_, Protocol::Handshake, _)
        | (McpTransport::Program { .. }, Protocol::Newest, Protocol::Newest) => Protocol::Handshake,
        (McpTransport::Program { .. }, Protocol::Newest, Protocol::Handshake)
        | (McpTransport::Http { .. }, Protocol::Newest, _) => Protocol::Newest,
    }
}

/// A transport that is open, before the first message.
pub(crate) enum Transport {
    Program(ChildStdin, Lines<ChildStdout>),
    Http(StreamableHttpClientTransport<WatchedClient>),
}

/// An open transport with what belongs to it.
pub(crate) struct Opened {
    pub(crate) transport: Transport,
    pub(crate) program: Option<Program>,
    pub(crate) findings: Findings,
}

/// Starts the program, or prepares the client, which takes down the id of its session. The error has no
/// secrets.
pub(crate) fn open(
    server: &McpServer,
    environment: &McpEnvironment,
    session: &SessionId,
    sent: &Sent,
) -> Result<Opened, String> {
    session.set(None);
    let texts: Vec<_> =
        server.transport.texts().map(|(name, text)| (Arc::<str>::from(name), text)).collect();
    let resolved = environment.secrets.resolve(texts.iter().map(|(name, text)| (name, *text)))?;
    let oauth = match &server.oauth {
        Some(oauth) => Some((oauth, environment.secrets.secret(&oauth.client_secret)?)),
        None => None,
    };
    let further = oauth
        .iter()
        .flat_map(|(oauth, secret)| [secret.clone()].into_iter().chain(forms_of(oauth, secret)));
    let secrets = Arc::new(resolved.secrets.and(further));
    sent.configure(Arc::clone(&secrets));
    let findings = Findings::about(&server.name, sent.clone());
    let (transport, program) = match &server.transport {
        McpTransport::Http { url, .. } => {
            let client = crate::http_client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(TCP_TIMEOUT)
                .build();
            let client = client.map_err(|_| "this server cannot make HTTP calls".to_owned())?;
            let config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
                .custom_headers(headers(&resolved.texts)?)
                .max_concurrent_requests(server.limits.concurrency.saturating_add(REQUESTS_BESIDE))
                .max_sse_event_size(server.limits.message_bytes_max)
                .max_json_response_size(server.limits.message_bytes_max);
            let tokens = oauth.map(|(oauth, secret)| {
                let connect_timeout = server.limits.connect_timeout;
                let (name, hosts) = (&server.name, &environment.outgoing_hosts);
                Tokens::new(
                    TokenSettings { name, url, oauth, secret, hosts, connect_timeout },
                    sent.clone(),
                )
            });
            let max = server.limits.message_bytes_max;
            let client = WatchedClient::of(client, findings.clone(), session.clone(), max);
            let client = client.with_tokens(tokens.transpose()?);
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
            let lines = Lines::of(stdout, server.limits.message_bytes_max, findings.clone());
            (Transport::Program(stdin, lines), Some(program))
        }
    };
    Ok(Opened { transport, program, findings })
}

fn headers(texts: &[(Arc<str>, String)]) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let header = |(name, text): &(Arc<str>, String)| {
        let unusable =
            || format!("the value of the header {name} contains characters that are not allowed");
        let name = HeaderName::try_from(&**name).map_err(|_| unusable())?;
        let mut value = HeaderValue::from_str(text.trim()).map_err(|_| unusable())?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    texts.iter().map(header).collect()
}

impl Transport {
    /// Begins the conversation. Dropping the future closes the transport.
    pub(crate) async fn begin(
        self,
        client: Client,
        protocol: Protocol,
        message_bytes_max: usize,
        findings: Findings,
    ) -> Result<Service, ClientInitializeError> {
        let lifecycle = match protocol {
            Protocol::Newest => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: Some(ProtocolVersion::V_2025_11_25),
            },
            Protocol::Handshake => ClientLifecycleMode::Initialize,
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
pub(crate) async fn list(
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
pub(crate) fn start_checks() -> io::Result<&'static Pool> {
    static CHECKS: OnceLock<Pool> = OnceLock::new();
    shared(&CHECKS, "mcp-lists", CHECKS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::mcp::settings::tests::server;

    #[test]
    fn a_conversation_that_does_not_begin_is_tried_with_the_other_protocol() {
        let program = server("a").transport;
        let http = McpTransport::Http {
            url: "https://a.example/mcp".parse().unwrap(),
            headers: Vec::new(),
        };
        let (newest, handshake) = (Protocol::Newest, Protocol::Handshake);
        for (transport, protocol, last, expected) in [
            (&program, newest, newest, handshake),
            (&program, newest, handshake, newest),
            (&program, handshake, handshake, handshake),
            (&http, newest, newest, newest),
            (&http, newest, handshake, newest),
            (&http, handshake, handshake, handshake),
        ] {
            let server = McpServer { transport: transport.clone(), protocol, ..server("a") };
            assert_eq!(next_protocol(&server, last), expected, "{server:?} {last:?}");
        }
    }
}
