//! The processes that share a store: which of them are alive, and which slots each owns.

use std::sync::Arc;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::domain::cluster::{NodeId, SlotMap};
use crate::domain::slot::SlotSet;
use crate::ports::store::Read;

pub use crate::domain::cluster::lease::Lease;

/// A process that shares the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub node: NodeId,
    /// Name of the server, which stays the same when it starts again.
    pub name: Arc<str>,
    pub version: Arc<str>,
    /// Address at which the other members reach it, as `host:port`.
    pub address: Option<Arc<str>>,
    pub state: MemberState,
    /// Number that the process increments to show that it is alive.
    pub beat: u64,
}

/// State of a member that is not known to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// Takes slots.
    Active,
    /// Gives its slots away, and takes none.
    Leaving,
}

/// Members and owners, as one beat of this process has seen them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Time at which the beat was sent.
    pub sent: Instant,
    /// The members, this process included, in the order of their nodes.
    pub members: Vec<Member>,
    /// Owners of the slots, with every claim and every giving that this process knows the answer of.
    /// This process may write in the slots that it owns here, as in those that were given to it. A
    /// slot whose giving failed is shown without an owner until it is known whose it is.
    pub owners: Arc<SlotMap>,
    /// True if a newer version of the program has migrated the store, which this one can still use.
    pub has_newer_tables: bool,
}

impl View {
    /// Returns the name of a member.
    pub fn name_of(&self, node: NodeId) -> Option<Arc<str>> {
        let member = self.members.iter().find(|member| member.node == node)?;
        Some(Arc::clone(&member.name))
    }
}

/// This process among the members of a store.
///
/// The store beats without being asked, on a thread of the store. It also refuses what this process
/// may not write: an append to an execution whose slot it does not own, and everything once another
/// process has fenced it.
pub trait Members: Send + Sync {
    /// Returns the number of this process.
    fn own(&self) -> NodeId;

    /// Returns the time for which one beat shows that a process is alive.
    fn lease(&self) -> Lease;

    /// Returns the newest view; it changes with each beat that the store has answered. Closed once
    /// this process is no longer a member.
    fn views(&self) -> watch::Receiver<Option<Arc<View>>>;

    /// Asks for a new view at once, before the next beat is due.
    fn refresh(&self);

    /// Declares a member gone if it still has this beat: it stores nothing from then on, and its
    /// slots have no owner. Returns false if it has beaten again, or is gone already. What it is
    /// storing at the moment is stored before this returns, or never.
    fn fence(&self, node: NodeId, beat: u64) -> Read<'_, bool>;

    /// Takes slots that have no owner, and those of this process whose last claim or giving failed, so
    /// that its outcome was unknown; returns those taken. From then on this process may write
    /// there, and everything stored by their last owner can be read. A leaving process takes none.
    fn claim<'a>(&'a self, slots: &'a SlotSet) -> Read<'a, SlotSet>;

    /// Gives slots of this process to an active member; returns those given. From its call on this
    /// process writes nothing there; what it has queued must be stored before.
    fn give<'a>(&'a self, slots: &'a SlotSet, to: NodeId) -> Read<'a, SlotSet>;

    /// Changes the state of this process from active to leaving.
    fn set_leaving(&self) -> Read<'_, ()>;

    /// Notes the members that this process has no connection to, for people who look at the store.
    fn note_unreachable(&self, _nodes: Vec<NodeId>) {}
}
