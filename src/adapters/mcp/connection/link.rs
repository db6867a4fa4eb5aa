//! One server: its connection, which is made again whenever it is lost, and its tools.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use greenroom_actors::domain::failure::shortened;
use rmcp::model::ProtocolVersion;
use rmcp::{Peer, RoleClient};
use tokio::sync::{Mutex, Notify, Semaphore, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::adapters::mcp::connection::asking::Asking;
use crate::adapters::mcp::connection::child::Program;
use crate::adapters::mcp::connection::connect::{
    Client, McpEnvironment, Opened, next_protocol, open,
};
use crate::adapters::mcp::connection::http_client::SessionId;
use crate::adapters::mcp::connection::progress::Listeners;
use crate::adapters::mcp::counts::Counts;
use crate::adapters::mcp::reasons::{is_of_older, why_not_begun};
use crate::adapters::mcp::secrets::Sent;
use crate::adapters::mcp::settings::{McpServer, Protocol, Restart};
use crate::adapters::mcp::tools::admission::Listed;
use crate::adapters::mcp::tools::records::Records;
use crate::adapters::tools::secrets::Known;
use crate::mcp_servers::ServerState;
use crate::telemetry::redact::redact_unknown;

/// Time that a program has to end after its input was closed.
const END_GRACE: Duration = Duration::from_secs(2);
/// Longest pause before the next connection for which calls wait.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Longest reason of a failed connection, without what its program printed.
const REASON_BYTES_MAX: usize = 600;

/// State of the connection.
#[derive(Clone)]
pub(crate) enum State {
    Connecting,
    /// With the number of the session.
    Ready(Peer<RoleClient>, u64),
    Failed(Arc<str>),
}

/// End of a session.
pub(crate) enum Ending {
    /// The process stops.
    Stopped,
    /// Another connection was asked for.
    Asked,
    /// The connection was ready, and is lost.
    Lost(String),
    /// There was none: the program or the address was not reached.
    NotOpened(String),
    /// There was none: the conversation did not begin.
    Failed(String),
    /// There was none: the server does not know the first request of newer versions.
    Older(String),
}

/// One server. Shared by the thread of connections, callers, and `GET /tools/mcp`.
pub(crate) struct Link {
    pub(crate) server: Arc<McpServer>,
    environment: McpEnvironment,
    pub(crate) state: watch::Sender<State>,
    /// The newest list as the server says it. Held while it is reviewed.
    pub(crate) newest: Mutex<Arc<Listed>>,
    /// The same as it is used.
    pub(crate) listed: RwLock<Arc<Listed>>,
    /// Definitions that are accepted.
    pub(crate) records: Records,
    /// Secrets that were sent to the server.
    pub(crate) sent: Sent,
    /// Limit of calls at once, which all tools share.
    pub(crate) permits: Arc<Semaphore>,
    /// Questions of the server during calls.
    pub(crate) asking: Arc<Asking>,
    /// Calls whose progress the server may report.
    pub(crate) progress: Arc<Listeners>,
    /// Notified when another connection is asked for.
    pub(crate) restart: Notify,
    /// Notified when the list of tools should be read again.
    pub(crate) changed: Arc<Notify>,
    /// Notified when a call was given up.
    pub(crate) given_up: Arc<Notify>,
    /// Counts changes of lists, of all servers.
    pub(crate) changes: watch::Sender<u64>,
    pub(crate) session_id: SessionId,
    /// Number of sessions so far.
    pub(crate) sessions: AtomicU64,
    pub(crate) counts: Counts,
}

impl Link {
    pub(crate) fn new(
        server: McpServer,
        environment: McpEnvironment,
        records: Records,
        changes: watch::Sender<u64>,
    ) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(
                server.limits.concurrency.min(Semaphore::MAX_PERMITS),
            )),
            server: Arc::new(server),
            environment,
            asking: Arc::default(),
            progress: Arc::default(),
            state: watch::Sender::new(State::Connecting),
            newest: Mutex::default(),
            listed: RwLock::default(),
            records,
            sent: Sent::default(),
            restart: Notify::new(),
            changed: Arc::default(),
            given_up: Arc::default(),
            changes,
            session_id: SessionId::default(),
            sessions: AtomicU64::new(0),
            counts: Counts::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.server.name
    }

    /// Returns the state, with the reason of a failure and the version of a ready connection.
    pub(crate) fn state(&self) -> (ServerState, Option<Arc<str>>, Option<ProtocolVersion>) {
        match &*self.state.borrow() {
            State::Connecting => (ServerState::Connecting, None, None),
            State::Ready(peer, _) => {
                let version = peer.peer_info().map(|info| info.protocol_version.clone());
                (ServerState::Ready, None, version)
            }
            State::Failed(why) => (ServerState::Failed, Some(Arc::clone(why)), None),
        }
    }

    /// Returns the tools of the newest list, also while the server is away.
    pub(crate) fn listed(&self) -> Arc<Listed> {
        Arc::clone(&self.listed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if the list of the server makes calls of a tool need an approval that its name alone
    /// does not.
    pub(crate) fn guards(&self, tool: &str) -> bool {
        let approval = self.server.approval.as_ref();
        approval.is_some_and(|(globs, _)| !globs.selects(tool)) && self.listed().is_guarded
    }

    /// Asks for a look whether the server is still there.
    pub(crate) fn suspect(&self) {
        self.changed.notify_one();
    }

    /// Returns the secrets that were sent to the server.
    pub(crate) fn secrets(&self) -> Arc<Known> {
        self.sent.known()
    }

    pub(crate) fn has_secrets(&self) -> bool {
        !self.secrets().is_empty()
    }

    /// Removes the secrets of the connection from a text.
    pub(crate) fn without_secrets(&self, text: String) -> String {
        self.secrets().removed_from(text)
    }

    /// Removes the secrets of the connection, and what is shaped like one, from the text of an error.
    pub(crate) fn cleaned_error(&self, text: String) -> String {
        redact_unknown(self.without_secrets(text))
    }

    /// Returns a reason, partly in words of the server, as it is shown: without secrets, then cut.
    pub(crate) fn said(&self, why: &str) -> String {
        shortened(&self.cleaned_error(why.to_owned()), REASON_BYTES_MAX).to_owned()
    }

    /// Keeps the server connected until the process stops.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        let McpServer { restart: Restart { delay, max_delay }, protocol: first, .. } = *self.server;
        let (mut pause, mut protocol) = (delay, first);
        loop {
            let begun = Instant::now();
            match self.session(protocol, &stop).await {
                Ending::Stopped => return,
                Ending::Asked => {
                    (pause, protocol) = (delay, first);
                    self.enter(State::Connecting);
                    continue;
                }
                Ending::Lost(why) => {
                    self.counts.lose();
                    log::warn!("MCP server {}: the connection was lost: {why}", self.name());
                    if begun.elapsed() >= max_delay {
                        pause = delay;
                    }
                    // one that is lost again and again counts as failed
                    let is_soon = pause <= WAIT_MAX;
                    self.enter(if is_soon { State::Connecting } else { State::Failed(why.into()) });
                }
                Ending::NotOpened(why) => self.note_failure(why, pause),
                Ending::Failed(why) => {
                    self.note_failure(why, pause);
                    protocol = next_protocol(&self.server, protocol);
                }
                Ending::Older(why) => {
                    self.note_failure(why, pause);
                    protocol = Protocol::Handshake;
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.restart.notified() => {
                    (pause, protocol) = (delay, first);
                    self.enter(State::Connecting);
                }
                () = sleep(pause) => pause = (pause * 2).min(max_delay),
            }
        }
    }

    fn note_failure(&self, why: String, pause: Duration) {
        log::warn!("MCP server {}: {why}; next attempt in {pause:?}", self.name());
        self.enter(State::Failed(why.into()));
    }

    pub(crate) fn enter(&self, state: State) {
        let is_ready = |state: &State| matches!(state, State::Ready(..));
        if is_ready(&state) != is_ready(&self.state.borrow()) {
            self.counts.change();
        }
        self.state.send_replace(state);
    }

    /// Connects, and stays connected until the connection ends or has to.
    async fn session(&self, protocol: Protocol, stop: &CancellationToken) -> Ending {
        let opened = match open(&self.server, &self.environment, &self.session_id, &self.sent) {
            Ok(opened) => opened,
            Err(why) => return Ending::NotOpened(why),
        };
        let Opened { transport, program, findings } = opened;
        self.progress.forget();
        let client = Client {
            changed: Arc::clone(&self.changed),
            server: Arc::clone(&self.server),
            asking: Arc::clone(&self.asking),
            progress: Arc::clone(&self.progress),
        };
        let limit = self.server.limits.connect_timeout;
        let deadline = Instant::now() + limit;
        let bytes_max = self.server.limits.message_bytes_max;
        let begin = transport.begin(client, protocol, bytes_max, findings.clone());
        let begun = tokio::select! {
            begun = timeout_at(deadline, begin) => begun,
            () = stop.cancelled() => return self.stopped(program).await,
            () = self.restart.notified() => return self.asked(program).await,
        };
        let service = match begun {
            Ok(Ok(service)) => service,
            ended => {
                let (why, is_older) = match &ended {
                    Ok(Err(error)) => (why_not_begun(error), is_of_older(error, protocol)),
                    _ => (format!("it did not answer within {limit:?}"), false),
                };
                let why = findings.explain(why);
                let why = self.with_last_words(why, program, END_GRACE).await;
                return if is_older { Ending::Older(why) } else { Ending::Failed(why) };
            }
        };
        let peer = service.peer().clone();
        let mut closed = Box::pin(service.waiting());
        let ending = tokio::select! {
            ending = self.serve(&peer, deadline) => ending,
            _ = &mut closed => Ending::Lost("it closed the connection".to_owned()),
            () = ended(program.as_ref()) => Ending::Lost("it ended".to_owned()),
            () = self.silent(&peer, &findings) => Ending::Lost("it does not answer".to_owned()),
            () = findings.faulted() => Ending::Lost("its messages cannot be read".to_owned()),
            () = stop.cancelled() => Ending::Stopped,
            () = self.restart.notified() => Ending::Asked,
        };
        // callers must not find a connection that is being closed
        if !matches!(ending, Ending::Stopped) {
            self.enter(State::Connecting);
        }
        drop(closed);
        match ending {
            Ending::Stopped => self.stopped(program).await,
            Ending::Asked => self.asked(program).await,
            Ending::Lost(why) => {
                let why = findings.explain(why);
                Ending::Lost(self.with_last_words(why, program, Duration::ZERO).await)
            }
            Ending::NotOpened(why) => Ending::NotOpened(why),
            Ending::Older(why) => Ending::Older(why),
            Ending::Failed(why) => {
                let why = findings.explain(why);
                Ending::Failed(self.with_last_words(why, program, Duration::ZERO).await)
            }
        }
    }

    async fn stopped(&self, program: Option<Program>) -> Ending {
        if let Some(program) = program {
            program.end(END_GRACE).await;
        }
        Ending::Stopped
    }

    async fn asked(&self, program: Option<Program>) -> Ending {
        log::info!("MCP server {}: connecting again, as requested", self.name());
        self.stopped(program).await;
        Ending::Asked
    }

    /// Ends the program, and adds what it said last to a reason.
    async fn with_last_words(
        &self,
        why: String,
        program: Option<Program>,
        grace: Duration,
    ) -> String {
        let said = match program {
            Some(program) => program.end(grace).await,
            None => String::new(),
        };
        let why = self.said(&why);
        if said.is_empty() { why } else { format!("{why}; {said}") }
    }

    /// Returns the number of calls that are being made.
    pub(crate) fn running(&self) -> u64 {
        let most = self.server.limits.concurrency.min(Semaphore::MAX_PERMITS);
        most.saturating_sub(self.permits.available_permits()) as u64
    }
}

async fn ended(program: Option<&Program>) {
    match program {
        Some(program) => program.ended().await,
        None => std::future::pending().await,
    }
}
