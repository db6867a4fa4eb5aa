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
/// over. Afterwards their steps are dropped, and run again at the next owner.
const GRACE: Duration = Duration::from_secs(10);

/// Slots handed over in one round, so that callers wait for few of them at a time.
const ROUND_MAX: usize = 64;

/// A handover that takes several rounds.
#[derive(Default)]
pub(super) struct Handover {
    /// Time since when all slots that are left have work in progress.
    busy_since: Option<Instant>,
    /// Slots of the rounds so far.
    moved: usize,
}

impl Handover {
    /// Chooses the slots of the next round, by their next owner: those without work in progress if
    /// there are any. A process that leaves hands all of them over at once.
    pub(super) async fn next_round(
        &mut self,
        shared: &Shared,
        give: BTreeMap<NodeId, SlotSet>,
        is_leaving: bool,
    ) -> Vec<(NodeId, SlotSet)> {
        let size = if is_leaving { usize::MAX } else { ROUND_MAX };
        if give.is_empty() {
            self.busy_since = None;
            match std::mem::take(&mut self.moved) {
                0 => {}
                moved => log::info!("handed {moved} slots over to other servers"),
            }
            return Vec::new();
        }
        let round = part_of(&give, &shared.busy_slots().await, size);
        if !round.is_empty() {
            self.busy_since = None;
            return self.counted(round);
        }
        let is_over = self.busy_since.get_or_insert_with(Instant::now).elapsed() >= GRACE;
        if is_over { self.counted(part_of(&give, &SlotSet::new(), size)) } else { round }
    }

    fn counted(&mut self, round: Vec<(NodeId, SlotSet)>) -> Vec<(NodeId, SlotSet)> {
        self.moved += round.iter().map(|(_, slots)| slots.len()).sum::<usize>();
        round
    }
}

/// Returns at most `size` of the slots that are not busy.
fn part_of(
    give: &BTreeMap<NodeId, SlotSet>,
    busy: &SlotSet,
    size: usize,
) -> Vec<(NodeId, SlotSet)> {
    let mut room = size;
    let mut part = Vec::new();
    for (to, slots) in give {
        let quiet: SlotSet = slots.without(busy).iter().take(room).collect();
        room -= quiet.len();
        if !quiet.is_empty() {
            part.push((*to, quiet));
        }
    }
    part
}

impl Shared {
    /// Stops the executions of these slots and gives the slots away, once everything that was
    /// acknowledged is durable.
    pub(super) async fn hand_over(&self, members: &dyn Members, to: NodeId, slots: &SlotSet) {
        self.lose(slots).await;
        match members.give(slots, to).await {
            Ok(given) => {
                self.ownership.counters.gave(&given);
                log::debug!("gave {} slots to node {to}", given.len());
            }
            // the next view shows whose they are
            Err(error) => {
                log::warn!("{} slots may not be given to node {to}: {error}", slots.len())
            }
        }
    }

    /// Serves these slots no longer; resolves when their executions have left memory and everything
    /// acknowledged is durable.
    pub(super) async fn lose(&self, slots: &SlotSet) {
        self.ownership.remove(slots);
        self.announce_slots().await;
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
