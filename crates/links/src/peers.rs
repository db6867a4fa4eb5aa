//! The other servers, as the list of members changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom_actors::domain::cluster::NodeId;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::dialling::{Peer, keep_connected};
use crate::shared::Shared;

/// Addresses of members, host and port.
pub type Addresses = Arc<BTreeMap<NodeId, String>>;

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

    /// Returns what `read` reads of each server.
    pub(crate) fn read<T>(&self, read: impl Fn(&Peer) -> T) -> BTreeMap<NodeId, T> {
        self.all().iter().map(|(node, (peer, _))| (*node, read(peer))).collect()
    }

    /// Connects to new servers, and ends the connections of those that are no longer listed.
    fn follow(&self, listed: &BTreeMap<NodeId, String>, own: NodeId, shared: &Arc<Shared>) {
        let mut peers = self.all();
        peers.retain(|node, (peer, task)| {
            let address = listed.get(node);
            if address.is_none() {
                shared.accepted.leave(*node);
            }
            let stays = address.is_some_and(|address| address == peer.address());
            if !stays {
                task.abort();
            }
            stays
        });
        for (node, address) in listed.iter().filter(|(node, _)| **node != own) {
            peers.entry(*node).or_insert_with(|| {
                shared.accepted.join(*node);
                let peer = Arc::new(Peer::new(*node, address.clone()));
                let task = tokio::spawn(keep_connected(Arc::clone(&peer), Arc::clone(shared)));
                (peer, task.abort_handle())
            });
        }
    }
}

/// Follows the list of members. Once it changes no longer, the last one is valid.
pub(crate) async fn follow(
    peers: Arc<Peers>,
    mut lists: watch::Receiver<Addresses>,
    own: NodeId,
    shared: Arc<Shared>,
) {
    loop {
        let listed = Arc::clone(&lists.borrow_and_update());
        peers.follow(&listed, own, &shared);
        if lists.changed().await.is_err() {
            return;
        }
    }
}
