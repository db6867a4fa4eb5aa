//! Register of the connections of other servers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use greenroom_actors::domain::cluster::NodeId;
use tokio::sync::oneshot;

/// Maximum number of connections that are not yet established. The oldest makes room: a server
/// needs little time, so one that is slow is none.
pub(crate) const UNFINISHED_MAX: usize = 64;

/// Number of servers that have left which are remembered. The lowest numbers are the oldest.
const GONE_MAX: usize = 1024;

/// Number of a connection.
pub(crate) type Entry = u64;

/// The connections of other servers. One ends when its sender is dropped from here.
#[derive(Debug, Default)]
pub(crate) struct Accepted(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Entry,
    unfinished: VecDeque<(Entry, oneshot::Sender<()>)>,
    established: BTreeMap<NodeId, (Entry, oneshot::Sender<()>)>,
    /// Servers that were members and have left.
    gone: BTreeSet<NodeId>,
}

impl Accepted {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection; it is to be ended when the receiver resolves.
    pub(crate) fn begin(&self) -> (Entry, oneshot::Receiver<()>) {
        let mut state = self.state();
        state.last += 1;
        let entry = state.last;
        let (keeps, ends) = oneshot::channel();
        if state.unfinished.len() >= UNFINISHED_MAX {
            state.unfinished.pop_front();
        }
        state.unfinished.push_back((entry, keeps));
        (entry, ends)
    }

    /// Notes that the handshake of a connection is over.
    pub(crate) fn finish(&self, entry: Entry) {
        self.state().unfinished.retain(|(of, _)| *of != entry);
    }

    /// Adds an established connection, in place of an older one of the server; it is to be ended
    /// when the receiver resolves. `None`: the server has left.
    pub(crate) fn keep(&self, entry: Entry, node: NodeId) -> Option<oneshot::Receiver<()>> {
        let mut state = self.state();
        if state.gone.contains(&node) {
            return None;
        }
        let (keeps, ends) = oneshot::channel();
        state.established.insert(node, (entry, keeps));
        Some(ends)
    }

    /// Removes an established connection.
    pub(crate) fn end(&self, entry: Entry, node: NodeId) {
        let mut state = self.state();
        if state.established.get(&node).is_some_and(|(of, _)| *of == entry) {
            state.established.remove(&node);
        }
    }

    /// Ends the connection of a server that has left, and refuses others of it.
    pub(crate) fn leave(&self, node: NodeId) {
        let mut state = self.state();
        state.established.remove(&node);
        state.gone.insert(node);
        if state.gone.len() > GONE_MAX {
            state.gone.pop_first();
        }
    }

    /// Answers a server again that is listed: it has not left.
    pub(crate) fn join(&self, node: NodeId) {
        self.state().gone.remove(&node);
    }

    /// Returns true if a server has left.
    pub(crate) fn is_gone(&self, node: NodeId) -> bool {
        self.state().gone.contains(&node)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::error::TryRecvError;

    use super::*;

    const OPEN: Result<(), TryRecvError> = Err(TryRecvError::Empty);
    const ENDED: Result<(), TryRecvError> = Err(TryRecvError::Closed);

    #[test]
    fn the_oldest_unfinished_connection_makes_room() {
        let accepted = Accepted::default();
        let mut begun: Vec<_> = (0..UNFINISHED_MAX).map(|_| accepted.begin()).collect();
        accepted.finish(begun[0].0);
        let (_, mut new) = accepted.begin();
        assert_eq!(begun[1].1.try_recv(), OPEN, "one was finished");
        let (_, mut newer) = accepted.begin();
        assert_eq!(begun[1].1.try_recv(), ENDED);
        assert_eq!((begun[2].1.try_recv(), new.try_recv(), newer.try_recv()), (OPEN, OPEN, OPEN));
    }

    #[test]
    fn a_server_has_one_connection_and_none_once_it_has_left() {
        let accepted = Accepted::default();
        let node = NodeId(7);
        let mut first = accepted.keep(1, node).unwrap();
        let mut second = accepted.keep(2, node).unwrap();
        assert_eq!((first.try_recv(), second.try_recv()), (ENDED, OPEN));
        accepted.end(1, node);
        assert_eq!(second.try_recv(), OPEN, "another connection ended");
        accepted.leave(node);
        assert_eq!(second.try_recv(), ENDED);
        assert!(accepted.is_gone(node) && accepted.keep(3, node).is_none());
        accepted.join(node);
        assert!(!accepted.is_gone(node) && accepted.keep(4, node).is_some());
        (0..2000).for_each(|number| accepted.leave(NodeId(number)));
        assert_eq!(accepted.state().gone.len(), GONE_MAX);
        assert!(!accepted.is_gone(node) && accepted.is_gone(NodeId(1999)));
    }
}
