//! The other servers, as the list of members changes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom_actors::domain::cluster::NodeId;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::dialling::{Peer, keep_connected};
use crate::shared::Shared;

/// The members that can be connected to.
pub type Addresses = Arc<BTreeMap<NodeId, PeerAddress>>;

/// A member that can be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerAddress {
    /// Name of the server, for the log.
    pub name: Arc<str>,
    /// Host and port.
    pub address: Arc<str>,
}

/// The other servers.
#[derive(Debug, Default)]
pub(crate) struct Peers(Mutex<BTreeMap<NodeId, (Arc<Peer>, AbortHandle)>>);

impl Peers {
    fn all(&self) -> MutexGuard<'_, BTreeMap<NodeId, (Arc<Peer>, AbortHandle)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a server that is listed.
    pub(crate) fn get(&self, node: NodeId) -> Option<Arc<Peer>> {
        self.all().get(&node).map(|(peer, _)| Arc::clone(peer))
    }

    /// Returns a server as the log names it.
    pub(crate) fn named(&self, node: NodeId) -> impl fmt::Display + use<> {
        let name = self.get(node).map(|peer| Arc::clone(&peer.listed().name));
        Named { name, node }
    }

    /// Returns what `read` reads of each server.
    pub(crate) fn read<T>(&self, read: impl Fn(&Peer) -> T) -> BTreeMap<NodeId, T> {
        self.all().iter().map(|(node, (peer, _))| (*node, read(peer))).collect()
    }

    /// Connects to new servers, and ends the connections of those that are no longer listed.
    fn follow(&self, listed: &BTreeMap<NodeId, PeerAddress>, own: NodeId, shared: &Arc<Shared>) {
        let mut peers = self.all();
        peers.retain(|node, (peer, task)| {
            let still_listed = listed.get(node);
            if still_listed.is_none() {
                shared.accepted.leave(*node);
            }
            let stays = still_listed == Some(peer.listed());
            if !stays {
                task.abort();
            }
            stays
        });
        for (node, listed) in listed.iter().filter(|(node, _)| **node != own) {
            peers.entry(*node).or_insert_with(|| {
                shared.accepted.join(*node);
                let peer = Arc::new(Peer::new(*node, listed.clone()));
                let task = tokio::spawn(keep_connected(Arc::clone(&peer), Arc::clone(shared)));
                (peer, task.abort_handle())
            });
        }
    }
}

/// A server as the log names it.
pub(crate) struct Named {
    /// `None` for a server that is not listed.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) node: NodeId,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, node } = self;
        match name {
            Some(name) => write!(f, "{name} (node {node})"),
            None => write!(f, "node {node}"),
        }
    }
}

/// Follows the list of members. Once it changes no longer, the last one is valid.
pub(crate) async fn follow(
    mut lists: watch::Receiver<Addresses>,
    own: NodeId,
    shared: Arc<Shared>,
) {
    loop {
        let listed = Arc::clone(&lists.borrow_and_update());
        shared.peers.follow(&listed, own, &shared);
        if lists.changed().await.is_err() {
            return;
        }
    }
}
