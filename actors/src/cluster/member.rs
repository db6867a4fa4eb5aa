//! This process among the members of its store: it fences those that are gone, takes slots that
//! have no owner, and gives those away that others should have.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::cluster::handover::Handover;
use crate::domain::cluster::lease::Suspicion;
use crate::domain::cluster::plan::{Part, part_of};
use crate::domain::cluster::{NodeId, SlotMap};
use crate::domain::slot::SlotSet;
use crate::ports::members::{Member, MemberState, Members, View};
use crate::shared::Shared;

/// Follows the beats of the members until this process ends. `joined` is notified when it has taken
/// its first slots, or there are none for it yet.
pub(crate) async fn follow(
    shared: Weak<Shared>,
    members: Arc<dyn Members>,
    joined: oneshot::Sender<()>,
) {
    // a change of members or slots may wait for the store while this process beats
    let believing = believe(Weak::clone(&shared), &*members);
    tokio::join!(believing, act(shared, Arc::clone(&members), joined));
}

/// Notes each view: this process is alive, and these are the members.
async fn believe(shared: Weak<Shared>, members: &dyn Members) {
    let lease = members.lease();
    let mut views = members.views();
    loop {
        let view = views.borrow_and_update().clone();
        if let Some(view) = view {
            let Some(shared) = shared.upgrade() else { return };
            shared.ownership.believe_since(view.sent, lease);
            shared.ownership.note_view(&view);
        }
        if views.changed().await.is_err() {
            // another process may have taken the slots at once, as one with the same name does
            shared.upgrade().inspect(|shared| shared.ownership.end_belief());
            return;
        }
    }
}

/// Does what follows from each view.
async fn act(shared: Weak<Shared>, members: Arc<dyn Members>, joined: oneshot::Sender<()>) {
    let mut views = members.views();
    let mut keeper = SlotKeeper::new(members);
    let mut joined = Some(joined);
    loop {
        let view = views.borrow_and_update().clone();
        if let Some(view) = view {
            // Weak, so that a waiting task keeps nothing alive.
            let Some(shared) = shared.upgrade() else { return };
            keeper.follow(&shared, &view).await;
            keeper.note_members(&shared, &view);
            keeper.interrupt_abandoned(&shared).await;
            // an error: the launch no longer waits
            joined.take().map(|joined| joined.send(()));
        }
        if views.changed().await.is_err() {
            return;
        }
    }
}

/// Keeps the slots of this process as the views of the members ask for.
struct SlotKeeper {
    members: Arc<dyn Members>,
    suspicion: Suspicion,
    origin: Instant,
    /// Time of the last answer to a change of slots. An older view does not show that change.
    changed: Instant,
    handover: Handover,
    /// The members of the last view, with their names.
    known: BTreeMap<NodeId, Arc<str>>,
    /// True if this process is to leave, as the last view shows.
    is_leaving: bool,
    /// True if members have gone, and their generations may still count as working.
    has_abandoned: bool,
    /// The round of the handover that is under way, with its slots.
    moving: Option<(SlotSet, JoinHandle<usize>)>,
}

impl SlotKeeper {
    fn new(members: Arc<dyn Members>) -> Self {
        let suspicion = Suspicion::new(members.lease());
        let now = Instant::now();
        Self {
            members,
            suspicion,
            origin: now,
            changed: now,
            handover: Handover::default(),
            known: BTreeMap::new(),
            is_leaving: false,
            has_abandoned: false,
            moving: None,
        }
    }

    /// Does what follows from one view.
    async fn follow(&mut self, shared: &Arc<Shared>, view: &Arc<View>) {
        let gone = self.fence_suspects(shared, view).await;
        self.end_round().await;
        if view.sent < self.changed {
            return;
        }
        let mut owners = SlotMap::clone(&view.owners);
        let lost: Vec<_> = owners.iter().filter(|(_, owner)| is_in(&gone, *owner)).collect();
        lost.into_iter().for_each(|(slot, _)| owners.set(slot, None));
        self.agree(shared, &owners).await;
        let members: Vec<_> = view.members.iter().filter(|it| !gone.contains(&it.node)).collect();
        self.follow_plan(shared, &members, &owners).await;
    }

    /// Fences members that are gone; returns them.
    async fn fence_suspects(&mut self, shared: &Shared, view: &View) -> Vec<NodeId> {
        let own = self.members.own();
        let since = |at: Instant| at.saturating_duration_since(self.origin);
        let times = (since(view.sent), since(Instant::now()));
        let others = view.members.iter().filter(|member| member.node != own);
        let beats = others.map(|member| (member.node, member.beat));
        let links = shared.ownership.links();
        let has_ended = |node| links.is_some_and(|links| links.has_ended(node));
        let mut gone = Vec::new();
        for (node, beat) in self.suspicion.look(times, beats, has_ended) {
            let name = view.name_of(node).unwrap_or_default();
            match self.members.fence(node, beat).await {
                Ok(true) => {
                    log::warn!(
                        "server {name} (node {node}) shows no sign of life; its slots are taken over"
                    );
                    shared.ownership.counters.took_over();
                    gone.push(node);
                }
                Ok(false) => {
                    log::info!("server {name} (node {node}) is alive, or was taken over already");
                }
                Err(error) => {
                    log::warn!("cannot take over from server {name} (node {node}): {error}")
                }
            }
        }
        gone
    }

    /// Notes who has joined and who has left.
    fn note_members(&mut self, shared: &Shared, view: &View) {
        let named = |member: &Member| (member.node, Arc::clone(&member.name));
        let members: BTreeMap<_, _> = view.members.iter().map(named).collect();
        let is_first = self.known.is_empty();
        for (node, name) in members.iter().filter(|(node, _)| !self.known.contains_key(node)) {
            match (is_first, *node == self.members.own()) {
                (false, _) => log::info!("server {name} (node {node}) has joined"),
                (true, true) => log::info!("this server is {name} (node {node})"),
                (true, false) => log::info!("server {name} (node {node}) shares the database"),
            }
        }
        for (node, name) in self.known.iter().filter(|(node, _)| !members.contains_key(node)) {
            log::info!("server {name} (node {node}) has left");
            self.has_abandoned = true;
        }
        self.known = members;
        let own = view.members.iter().find(|member| member.node == self.members.own());
        let is_leaving = own.is_some_and(|own| own.state == MemberState::Leaving);
        if is_leaving && !self.is_leaving && !shared.is_draining() {
            log::info!("this server is being drained: it hands its slots over, and takes none");
        }
        self.is_leaving = is_leaving;
    }

    /// Marks the generations of members that are gone as interrupted, at the latest with the view
    /// after the one that no longer shows them.
    async fn interrupt_abandoned(&mut self, shared: &Shared) {
        if !self.has_abandoned {
            return;
        }
        match shared.store.interrupt_working(shared.clock.now()).await {
            Ok(()) => {
                self.has_abandoned = false;
                shared.abandoned.notify_one();
            }
            // the next view brings another attempt
            Err(error) => {
                let level = shared.level_of_failure(log::Level::Warn);
                log::log!(
                    level,
                    "cannot mark generations of other servers as interrupted: {error}"
                );
            }
        }
    }

    /// Notes the end of the round of the handover that was under way.
    async fn end_round(&mut self) {
        if let Some((_, round)) = self.moving.take_if(|(_, round)| round.is_finished()) {
            // an error: it has panicked, and the next view shows whose the slots are
            self.handover.note(round.await.unwrap_or_default());
            self.changed = Instant::now();
        }
    }

    /// Serves what the store says that this process owns, and nothing else: a failover of the store
    /// may have undone a change.
    async fn agree(&mut self, shared: &Arc<Shared>, owners: &SlotMap) {
        let moving = self.moving.as_ref().map(|(slots, _)| slots.clone()).unwrap_or_default();
        let owned = owners.slots_of(Some(self.members.own())).without(&moving);
        // those of a round are served until their turn comes
        let served = shared.ownership.served().without(&moving);
        let lost = served.without(&owned);
        if !lost.is_empty() {
            log::warn!("{} slots are no longer owned by this server", lost.len());
            shared.lose(&lost).await;
        }
        let gained = owned.without(&served);
        if !gained.is_empty() {
            shared.ownership.counters.took(&gained);
            shared.gain(gained, "their last owner").await;
        }
    }

    async fn follow_plan(&mut self, shared: &Arc<Shared>, members: &[&Member], owners: &SlotMap) {
        let own = self.members.own();
        let active = members.iter().filter(|member| member.state == MemberState::Active);
        let active: Vec<NodeId> = active.map(|member| member.node).collect();
        let is_member = |node| members.iter().any(|member| member.node == node);
        let Part { claim, give } = part_of(own, &active, is_member, owners);
        if !claim.is_empty() {
            let claimed = self.members.claim(&claim).await;
            self.changed = Instant::now();
            match claimed {
                Ok(slots) => {
                    shared.ownership.counters.took(&slots);
                    shared.gain(slots, "their last owner").await;
                }
                Err(error) => log::warn!("cannot take {} slots over: {error}", claim.len()),
            }
        }
        if self.moving.is_some() {
            return;
        }
        let is_leaving = !active.contains(&own);
        if let Some(round) = self.handover.next_round(shared, give, is_leaving).await {
            let slots = round.slots();
            let (shared, members) = (Arc::clone(shared), Arc::clone(&self.members));
            let round = actix::spawn(async move { shared.hand_over(&*members, round).await });
            self.moving = Some((slots, round));
        }
    }
}

fn is_in(nodes: &[NodeId], owner: Option<NodeId>) -> bool {
    owner.is_some_and(|owner| nodes.contains(&owner))
}
