//! The links of a server: its listener, and its connections to the others.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::ready;
use futures_util::stream;
use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::ports::links::{Answerer, Exchange, LinkError, Links};
use greenroom_actors::threads::Driver;
use tokio::sync::watch;

use crate::accepted::Accepted;
use crate::accepting::accept;
use crate::complaints::Complaints;
use crate::dialling::{Peer, PeerFigures};
use crate::error::LinksError;
use crate::handshake::Greeter;
use crate::peers::{Addresses, Peers, follow};
use crate::settings::{LinkIdentity, LinkSettings};
use crate::shared::{Shared, may_be_plain};
use crate::tls::Tls;

/// A listener that accepts no connections yet, with everything that settings can be wrong about.
pub struct LinkListener {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Tls>,
    settings: LinkSettings,
}

impl LinkListener {
    /// Checks the settings and listens.
    pub fn bind(settings: &LinkSettings) -> Result<Self, LinksError> {
        let tls = settings.tls.as_ref().map(Tls::read).transpose().map_err(LinksError::Tls)?;
        let refused = |reason| LinksError::Listen { address: settings.listen.clone(), reason };
        let addresses: Vec<SocketAddr> =
            settings.listen.to_socket_addrs().map_err(refused)?.collect();
        let is_open = |address: &&SocketAddr| !may_be_plain(address, settings.trusted_network);
        if let Some(address) = addresses.iter().find(is_open).filter(|_| tls.is_none()) {
            return Err(LinksError::Unprotected(*address));
        }
        let listener = TcpListener::bind(&*addresses).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Self { listener, address, tls, settings: settings.clone() })
    }

    /// Returns the address of the listener, with its port if that was to be any.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to connect to the listed servers; this server may be among them. Connections of
    /// others are accepted once there is an answerer.
    pub fn start(
        self,
        identity: &LinkIdentity,
        peers: watch::Receiver<Addresses>,
    ) -> Result<TcpLinks, LinksError> {
        let secret_bytes = identity.secret.0.len();
        if secret_bytes < LinksError::SECRET_BYTES_MIN {
            return Err(LinksError::SecretTooShort(secret_bytes));
        }
        if identity.cluster.len() > LinksError::CLUSTER_BYTES_MAX {
            return Err(LinksError::ClusterTooLong(identity.cluster.len()));
        }
        let start = |name| Driver::start(name, Duration::ZERO).map_err(LinksError::Thread);
        let (connections, answers) = (start("links")?, start("link-answers")?);
        let shared = Arc::new(Shared {
            greeter: Greeter::new(identity, self.settings.message_bytes_max),
            tls: self.tls,
            trusted_network: self.settings.trusted_network,
            times: self.settings.times,
            complaints: Complaints::default(),
            accepted: Accepted::default(),
            peers: Peers::default(),
            answers: answers.handle().clone(),
        });
        connections.handle().spawn(follow(peers, identity.own, Arc::clone(&shared)));
        let (address, listener) = (self.address, Mutex::new(Some(self.listener)));
        Ok(TcpLinks { address, listener, shared, connections, answers })
    }
}

impl fmt::Debug for LinkListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkListener").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Links over TCP. They are closed when this is dropped; an answerer that keeps this alive must
/// close them.
///
/// One thread drives the connections. Another one calls the answerer and polls its answers, which
/// take as long as reading and writing large messages does: the connections show meanwhile that this
/// server is alive.
pub struct TcpLinks {
    address: SocketAddr,
    /// The listener, until there is an answerer.
    listener: Mutex<Option<TcpListener>>,
    shared: Arc<Shared>,
    connections: Driver,
    answers: Driver,
}

impl TcpLinks {
    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the state of the connection to each server that is listed.
    pub fn figures(&self) -> BTreeMap<NodeId, PeerFigures> {
        self.shared.peers.read(Peer::figures)
    }

    /// Ends the listener, the connections and the threads; blocks for a moment. Answers that have
    /// not been read can still be read, and then the failure.
    pub fn close(&self) {
        drop(self.take_listener());
        self.connections.stop();
        self.answers.stop();
    }

    fn take_listener(&self) -> Option<TcpListener> {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Links for TcpLinks {
    /// Accepts connections from then on.
    fn attach(&self, answerer: Arc<dyn Answerer>) {
        let Some(listener) = self.take_listener() else {
            return log::error!("links have an answerer already, or are closed");
        };
        self.connections.handle().spawn(accept(listener, answerer, Arc::clone(&self.shared)));
    }

    fn open(&self, to: NodeId, request: Bytes) -> Exchange {
        let asked = self.shared.peers.get(to).ok_or(LinkError::NotSent);
        match asked.and_then(|peer| peer.ask(request)) {
            Ok(answers) => answers.boxed(),
            Err(error) => stream::once(ready(Err(error))).boxed(),
        }
    }

    /// A host that does not answer refuses nothing.
    fn has_ended(&self, node: NodeId) -> bool {
        self.shared.peers.get(node).is_some_and(|peer| peer.has_ended())
    }
}

impl fmt::Debug for TcpLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpLinks")
            .field("address", &self.address)
            .field("peers", &self.figures())
            .finish_non_exhaustive()
    }
}
