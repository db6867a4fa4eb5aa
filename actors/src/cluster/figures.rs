//! Figures of this process among the members of its store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cluster::ownership::Ownership;
use crate::counters::Counters;
use crate::domain::cluster::NodeId;
use crate::domain::slot::SlotSet;
use crate::ports::members::MemberState;

/// A process among the members of its store, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStats {
    /// Slots that this process serves.
    pub slots_served: usize,
    /// Slots without an owner, as of the last beat.
    pub slots_unowned: usize,
    /// Names of the members as of the last beat, this process included.
    pub members: BTreeMap<NodeId, Arc<str>>,
    /// True if this process hands its slots over, and takes none.
    pub is_leaving: bool,
    /// True if a newer version of the program has migrated the store, which this one can still use.
    pub has_newer_tables: bool,
    /// True if this process may believe that its slots are still its own.
    pub is_believed: bool,
    /// Time since the last beat was sent that was answered.
    pub beat_age: Duration,
    /// Time for which one beat shows that a member is alive.
    pub lease: Duration,
    /// Members that this process has declared gone.
    pub takeovers: u64,
    /// Slots that this process has begun to serve.
    pub slots_taken: u64,
    /// Slots that this process has given to other members.
    pub slots_given: u64,
    /// Commands for executions of other members that these have answered.
    pub forwarded_answered: u64,
    /// Commands that this process carried out, because it got the slot while they waited.
    pub forwarded_here: u64,
    /// Commands refused because their slot had no owner in time, or the owner was lost.
    pub forwarded_refused: u64,
    /// Commands and subscriptions that wait for other members now.
    pub forwarding: usize,
}

/// Counters behind [`ClusterStats`].
#[derive(Debug, Default)]
pub(crate) struct ClusterCounters {
    takeovers: AtomicU64,
    slots_taken: AtomicU64,
    slots_given: AtomicU64,
    answered: AtomicU64,
    here: AtomicU64,
    refused: AtomicU64,
}

/// End of a command for an execution of another member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forwarded {
    Answered,
    Here,
    Refused,
}

impl ClusterCounters {
    pub(crate) fn took_over(&self) {
        Counters::add_one(&self.takeovers);
    }

    pub(crate) fn took(&self, slots: &SlotSet) {
        add(&self.slots_taken, slots);
    }

    pub(crate) fn gave(&self, slots: &SlotSet) {
        add(&self.slots_given, slots);
    }

    pub(crate) fn forwarded(&self, end: Forwarded) {
        Counters::add_one(match end {
            Forwarded::Answered => &self.answered,
            Forwarded::Here => &self.here,
            Forwarded::Refused => &self.refused,
        });
    }
}

fn add(count: &AtomicU64, slots: &SlotSet) {
    count.fetch_add(slots.len() as u64, Ordering::Relaxed);
}

impl Ownership {
    /// Returns the figures of this process; `None` if it has the store alone.
    pub(crate) fn figures(&self) -> Option<ClusterStats> {
        let own = self.own()?;
        let view = self.view();
        let members = view.iter().flat_map(|view| &view.members);
        let counters = &self.counters;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Some(ClusterStats {
            slots_served: self.served().len(),
            slots_unowned: self.owners().borrow().slots_of(None).len(),
            is_leaving: members
                .clone()
                .any(|member| member.node == own && member.state == MemberState::Leaving),
            members: members.map(|member| (member.node, Arc::clone(&member.name))).collect(),
            has_newer_tables: view.as_ref().is_some_and(|view| view.has_newer_tables),
            is_believed: self.is_believed(),
            beat_age: self.beat_age(),
            lease: self.lease(),
            takeovers: count(&counters.takeovers),
            slots_taken: count(&counters.slots_taken),
            slots_given: count(&counters.slots_given),
            forwarded_answered: count(&counters.answered),
            forwarded_here: count(&counters.here),
            forwarded_refused: count(&counters.refused),
            forwarding: self.forwarding(),
        })
    }
}
