//! Connections to other servers: one to each, which carries the requests of this server.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::ports::links::LinkError;
use tokio::net::{TcpStream, lookup_host};

use crate::asking::{Answers, Asking};
use crate::connection::{Socket, carry};
use crate::handshake::{HandshakeError, Session};
use crate::peers::{Named, PeerAddress};
use crate::shared::Shared;

/// Another server, to which this one keeps a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    node: NodeId,
    listed: PeerAddress,
    status: Mutex<Status>,
}

#[derive(Debug, Default)]
struct Status {
    /// The connection, while it is established.
    link: Option<Arc<Asking>>,
    /// True if there was a connection: its process has listened at the address.
    was_connected: bool,
    has_ended: bool,
    last_error: Option<String>,
}

/// State of the connection to another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerFigures {
    /// Host and port of the server.
    pub address: Arc<str>,
    pub is_connected: bool,
    /// True if the host of the server has refused to connect since the last connection: its
    /// process has ended. False before the first connection: the address may be wrong.
    pub has_ended: bool,
    /// Size of the requests that wait to be sent.
    pub queued_bytes: usize,
    /// Reason for the last failure, also if the connection is established again.
    pub last_error: Option<String>,
}

impl Peer {
    pub(crate) fn new(node: NodeId, listed: PeerAddress) -> Self {
        Self { node, listed, status: Mutex::default() }
    }

    pub(crate) fn listed(&self) -> &PeerAddress {
        &self.listed
    }

    fn named(&self) -> Named {
        Named { name: Some(Arc::clone(&self.listed.name)), node: self.node }
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request.
    pub(crate) fn ask(&self, request: Bytes) -> Result<Answers, LinkError> {
        let link = self.status().link.clone();
        link.ok_or(LinkError::NotSent)?.ask(request)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.status().has_ended
    }

    pub(crate) fn figures(&self) -> PeerFigures {
        let status = self.status();
        PeerFigures {
            address: Arc::clone(&self.listed.address),
            is_connected: status.link.is_some(),
            has_ended: status.has_ended,
            queued_bytes: status.link.as_ref().map_or(0, |link| link.queued_bytes()),
            last_error: status.last_error.clone(),
        }
    }

    fn note_failure(&self, error: &DialError, shared: &Shared) {
        let cause = error.to_string();
        let mut status = self.status();
        // a process that has ended does not come back, even if its host then falls silent
        let has_just_ended = !status.has_ended && status.was_connected && error.is_refusal();
        status.has_ended |= has_just_ended;
        status.last_error = Some(cause.clone());
        drop(status);
        let (name, address) = (self.named(), &self.listed.address);
        if !shared.complaints.is_new(&self.node.to_string(), &cause) {
            return;
        }
        // in good order, or its slots are taken over, which is logged then
        if has_just_ended {
            return log::info!("{name} no longer listens at {address}: it has ended");
        }
        log::warn!("cannot connect to {name} at {address}: {cause}; retrying");
    }
}

/// A connection in use. Its exchanges end with it, also if the task is aborted.
struct Connected<'a> {
    peer: &'a Peer,
    link: Arc<Asking>,
}

impl<'a> Connected<'a> {
    fn new(peer: &'a Peer, session: Session) -> Self {
        let link = Asking::new(session.limits);
        let mut status = peer.status();
        status.link = Some(Arc::clone(&link));
        (status.was_connected, status.has_ended) = (true, false);
        Self { peer, link }
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.peer.status().link = None;
        self.link.lose();
    }
}

/// Connects to a server, again and again, until the task is aborted.
pub(crate) async fn keep_connected(peer: Arc<Peer>, shared: Arc<Shared>) {
    let (shortest, longest) = shared.times.pauses;
    let mut pause = shortest;
    loop {
        match dial(&peer, &shared).await {
            Ok((socket, session)) => {
                let (name, address) = (peer.named(), &peer.listed.address);
                let version = session.version;
                log::debug!("connected to {name} at {address}, protocol version {version}");
                shared.complaints.forget(&peer.node.to_string());
                let connected = Connected::new(&peer, session);
                let ending = carry(socket, &*connected.link, &shared.times).await;
                log::info!("the connection to {name} at {address} ended: {ending}");
                drop(connected);
                peer.status().last_error = Some(ending.to_string());
                pause = shortest;
                tokio::time::sleep(pause).await;
            }
            Err(error) => {
                peer.note_failure(&error, &shared);
                tokio::time::sleep(pause).await;
                pause = longest.min(pause * 2);
            }
        }
    }
}

/// Failure to connect to another server.
#[derive(Debug, thiserror::Error)]
enum DialError {
    #[error("its address cannot be resolved: {0}")]
    Unresolved(io::Error),
    #[error(
        "{0} is beyond this machine: set `certificate`, `key` and `ca` under [cluster], or \
         `trusted_network = true` there"
    )]
    Unprotected(SocketAddr),
    #[error("{0}")]
    Unconnected(io::Error),
    #[error("no answer within {0:?}")]
    Silent(Duration),
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

impl DialError {
    /// Returns true if the host answered that no process listens there.
    fn is_refusal(&self) -> bool {
        let kinds = [io::ErrorKind::ConnectionRefused, io::ErrorKind::ConnectionReset];
        matches!(self, Self::Unconnected(error) if kinds.contains(&error.kind()))
    }
}

async fn dial(peer: &Peer, shared: &Shared) -> Result<(Box<dyn Socket>, Session), DialError> {
    let within = shared.times.handshake;
    let dialled = tokio::time::timeout(within, establish(peer, shared)).await;
    dialled.unwrap_or(Err(DialError::Silent(within)))
}

async fn establish(peer: &Peer, shared: &Shared) -> Result<(Box<dyn Socket>, Session), DialError> {
    let resolved = lookup_host(&*peer.listed.address).await.map_err(DialError::Unresolved)?;
    let addresses: Vec<SocketAddr> = resolved.collect();
    if let Some(address) = addresses.iter().find(|address| !shared.may_be_plain(address)) {
        return Err(DialError::Unprotected(*address));
    }
    let socket = TcpStream::connect(&*addresses).await.map_err(DialError::Unconnected)?;
    socket.set_nodelay(true).map_err(DialError::Unconnected)?;
    let (mut socket, binding): (Box<dyn Socket>, _) = match &shared.tls {
        Some(tls) => tls.connect(socket).await?,
        None => (Box::new(socket), None),
    };
    let session = shared.greeter.ask(&mut *socket, peer.node, binding).await?;
    Ok((socket, session))
}
