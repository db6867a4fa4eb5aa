//! Handing slots over to another member, without a step that has to run again if that can be
//! avoided.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::domain::cluster::NodeId;
use crate::domain::slot::SlotSet;
use crate::ports::members::Members;
use crate::shard::messages::{BusySlots, LeaveSlots};
use crate::shared::{Shard, Shared};

/// Time for which slots are kept in which work is in progress, when no others are left to be handed
/// over. Afterwards their steps are dropped, and run again at the next owner. A process that ends
/// keeps them for its own grace period.
const GRACE: Duration = Duration::from_secs(10);

/// Slots handed over in one round, so that callers wait for few of them at a time.
const ROUND_MAX: usize = 64;

/// Slots that are handed over at once, by their next owner.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) shares: Vec<(NodeId, SlotSet)>,
    /// True if slots are given away although they have work in progress.
    is_forced: bool,
}

/// A handover that takes several rounds.
#[derive(Default)]
pub(super) struct Handover {
    /// Time since when all slots that are left have work in progress.
    busy_since: Option<Instant>,
    /// Slots of the rounds so far.
    moved: usize,
}

impl Handover {
    /// Chooses the slots of the next round: those without work in progress if there are any. A process
    /// that leaves hands all of them over at once.
    pub(super) async fn next_round(
        &mut self,
        shared: &Shared,
        give: BTreeMap<NodeId, SlotSet>,
        is_leaving: bool,
    ) -> Option<Round> {
        let size = if is_leaving { usize::MAX } else { ROUND_MAX };
        if give.is_empty() {
            self.busy_since = None;
            match std::mem::take(&mut self.moved) {
                0 => {}
                moved => log::info!("handed {moved} slots over to other servers"),
            }
            return None;
        }
        let busy = shared.busy_slots().await;
        if let Some(round) = Round::without(&busy, &give, size, false) {
            self.busy_since = None;
            return Some(round);
        }
        let busy_since = self.busy_since.get_or_insert_with(Instant::now);
        let kept = if shared.is_draining() {
            // no further step begins here: what has none in progress waits for its next owner
            shared.bodies.slots()
        } else if busy_since.elapsed() < GRACE {
            SlotSet::all()
        } else {
            SlotSet::new()
        };
        Round::without(&kept, &give, size, true)
    }

    /// Notes how many slots a round has given away.
    pub(super) fn note(&mut self, given: usize) {
        self.moved += given;
    }
}

impl Round {
    /// Returns at most `size` of the slots, without those that are kept; `None` if none are left.
    fn without(
        kept: &SlotSet,
        give: &BTreeMap<NodeId, SlotSet>,
        size: usize,
        is_forced: bool,
    ) -> Option<Self> {
        let mut room = size;
        let mut shares = Vec::new();
        for (to, slots) in give {
            let share: SlotSet = slots.without(kept).iter().take(room).collect();
            room -= share.len();
            if !share.is_empty() {
                shares.push((*to, share));
            }
        }
        (!shares.is_empty()).then_some(Self { shares, is_forced })
    }

    /// Returns the slots of all owners.
    pub(super) fn slots(&self) -> SlotSet {
        self.shares.iter().flat_map(|(_, slots)| slots.iter()).collect()
    }
}

impl Shared {
    /// Gives the slots of a round away; returns how many.
    pub(super) async fn hand_over(&self, members: &dyn Members, round: Round) -> usize {
        let mut given = 0;
        for (to, slots) in round.shares {
            let kept = self.stop_serving(&slots, round.is_forced).await;
            let slots = slots.without(&kept);
            if !slots.is_empty() {
                self.leave(&slots).await;
                given += self.give(members, to, &slots).await;
            }
        }
        given
    }

    /// Serves slots no longer; returns those that it serves again, because work has begun in them.
    async fn stop_serving(&self, slots: &SlotSet, is_forced: bool) -> SlotSet {
        self.ownership.remove(slots);
        // asked only now, when no more work can begin
        let busy = if is_forced { SlotSet::new() } else { self.busy_slots().await };
        let kept: SlotSet = busy.iter().filter(|slot| slots.contains(*slot)).collect();
        self.ownership.take_back(&kept);
        self.announce_slots().await;
        kept
    }

    async fn give(&self, members: &dyn Members, to: NodeId, slots: &SlotSet) -> usize {
        match members.give(slots, to).await {
            Ok(given) => {
                self.ownership.counters.gave(&given);
                log::debug!("gave {} slots to the server of node {to}", given.len());
                given.len()
            }
            // the next view shows whose they are
            Err(error) => {
                log::warn!(
                    "{} slots may not be given to the server of node {to}: {error}",
                    slots.len()
                );
                0
            }
        }
    }

    /// Serves these slots no longer; resolves when their executions have left memory and everything
    /// acknowledged is durable.
    pub(super) async fn lose(&self, slots: &SlotSet) {
        self.ownership.remove(slots);
        self.announce_slots().await;
        self.leave(slots).await;
    }

    /// Stops the executions of slots that are not served; resolves when everything acknowledged is
    /// durable.
    async fn leave(&self, slots: &SlotSet) {
        let Some(routes) = self.routes.get() else { return };
        let slots = Arc::new(slots.clone());
        let leave = |shard: &Shard| shard.leave.send(LeaveSlots(Arc::clone(&slots)));
        // an error: the supervisor has ended, with its executions
        let _ = join_all(routes.shards.iter().map(leave)).await;
    }

    /// Returns the slots of executions that have work in progress.
    async fn busy_slots(&self) -> SlotSet {
        let Some(routes) = self.routes.get() else { return SlotSet::new() };
        let answers = join_all(routes.shards.iter().map(|shard| shard.busy.send(BusySlots))).await;
        let mut busy = SlotSet::new();
        for slots in answers.into_iter().flatten() {
            busy.extend(slots.iter());
        }
        busy
    }
}
