//! Several processes over one store in memory, each with its own handle.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::faults::Faults;
use super::{Disk, MemoryStore};
use crate::domain::cluster::{NodeId, SlotMap};
use crate::domain::ids::ExecutionId;
use crate::domain::slot::{SlotSet, slot_of};
use crate::ports::members::{Lease, Member, MemberState, Members, View};
use crate::ports::store::{Read, ReadError, TimerChange};

/// Members of a disk, and the owners of its slots.
#[derive(Clone)]
pub(super) struct Cluster {
    last: NodeId,
    members: BTreeMap<NodeId, Member>,
    owners: Arc<SlotMap>,
}

impl Default for Cluster {
    fn default() -> Self {
        let owners = Arc::new(SlotMap::unowned());
        Self { last: NodeId(0), members: BTreeMap::new(), owners }
    }
}

impl Cluster {
    /// Returns the cluster without members, whose numbers are not used again.
    pub(super) fn left(&self) -> Self {
        Self { last: self.last, ..Self::default() }
    }

    fn join(&mut self, name: Arc<str>) -> NodeId {
        let older = self.members.values().filter(|member| member.name == name);
        let older: Vec<NodeId> = older.map(|member| member.node).collect();
        older.into_iter().for_each(|node| self.remove(node));
        self.last = NodeId(self.last.0 + 1);
        let version = Arc::from(env!("CARGO_PKG_VERSION"));
        let (node, state) = (self.last, MemberState::Active);
        self.members.insert(node, Member { node, name, version, address: None, state, beat: 0 });
        node
    }

    fn beat(&mut self, node: NodeId) -> Option<(Vec<Member>, Arc<SlotMap>)> {
        self.members.get_mut(&node)?.beat += 1;
        Some((self.members.values().cloned().collect(), Arc::clone(&self.owners)))
    }

    fn fence(&mut self, by: NodeId, node: NodeId, beat: u64) -> bool {
        let is_silent = self.members.get(&node).is_some_and(|member| member.beat == beat);
        let is_fenced = is_silent && self.has(by);
        if is_fenced {
            self.remove(node);
        }
        is_fenced
    }

    fn claim(&mut self, by: NodeId, slots: &SlotSet) -> SlotSet {
        match self.is_active(by) {
            true => self.hand_over(slots, None, by),
            false => SlotSet::new(),
        }
    }

    fn give(&mut self, by: NodeId, slots: &SlotSet, to: NodeId) -> SlotSet {
        match self.is_active(to) {
            true => self.hand_over(slots, Some(by), to),
            false => SlotSet::new(),
        }
    }

    /// Changes the owner of those slots that have the given one; returns them.
    fn hand_over(&mut self, slots: &SlotSet, from: Option<NodeId>, to: NodeId) -> SlotSet {
        let of_owner = slots.iter().filter(|slot| self.owners.owner(*slot) == from);
        let moved: SlotSet = of_owner.collect();
        let owners = Arc::make_mut(&mut self.owners);
        moved.iter().for_each(|slot| owners.set(slot, Some(to)));
        moved
    }

    /// Removes a member; its slots have no owner.
    pub(super) fn remove(&mut self, node: NodeId) {
        self.members.remove(&node);
        let own = self.owners.slots_of(Some(node));
        let owners = Arc::make_mut(&mut self.owners);
        own.iter().for_each(|slot| owners.set(slot, None));
    }

    /// Returns true if the process is a member.
    pub(super) fn has(&self, node: NodeId) -> bool {
        self.members.contains_key(&node)
    }

    fn is_active(&self, node: NodeId) -> bool {
        self.members.get(&node).is_some_and(|member| member.state == MemberState::Active)
    }

    /// Returns true if the process owns the slot of the execution.
    pub(super) fn owns(&self, node: NodeId, execution: &ExecutionId) -> bool {
        self.owners.owner(slot_of(execution)) == Some(node)
    }

    /// Returns the changes of timers whose executions the process owns.
    pub(super) fn own_changes(
        &self,
        of: NodeId,
        mut changes: Vec<TimerChange>,
    ) -> Vec<TimerChange> {
        changes.retain(|change| match change {
            TimerChange::Arm(timer) => self.owns(of, &timer.execution),
            TimerChange::Disarm { execution, .. } => self.owns(of, execution),
        });
        changes
    }
}

/// A process among the members of a disk.
pub(super) struct MemoryMember {
    pub(super) own: NodeId,
    lease: Lease,
    disk: Arc<Disk>,
    faults: Arc<Faults>,
    views: watch::Receiver<Option<Arc<View>>>,
    /// Asks for a beat at once.
    refresh: Arc<Notify>,
}

/// The beats of a handle, which end with it.
pub(super) struct Beats(AbortHandle);

impl Drop for Beats {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl MemoryStore {
    /// Returns a handle for another process, which is a member of those that share the store, and
    /// without a receiver of commits. It beats in tokio's time as a task of this runtime. If it is
    /// dropped, it falls silent like a process that was killed; closing it leaves.
    ///
    /// An older member of this name is gone. A handle that did not join is no member: it may write
    /// everything.
    #[must_use]
    pub fn join(&self, name: impl Into<Arc<str>>, lease: Duration) -> Self {
        let own = self.disk.state().cluster.join(name.into());
        let (disk, faults) = (Arc::clone(&self.disk), Arc::<Faults>::default());
        let (seen, views) = watch::channel(None);
        let refresh = Arc::<Notify>::default();
        let lease = Lease::new(lease);
        let member = MemoryMember { own, lease, disk, faults, views, refresh };
        let beats = Beats(tokio::spawn(member.beat(seen)).abort_handle());
        Self {
            disk: Arc::clone(&member.disk),
            faults: Arc::clone(&member.faults),
            membership: Some((Arc::new(member), beats)),
            ..Self::default()
        }
    }

    /// Returns the members of the store, of which this process is one; `None` if it did not join.
    pub fn members(&self) -> Option<Arc<dyn Members>> {
        let (member, _) = self.membership.as_ref()?;
        Some(Arc::clone(member) as _)
    }

    /// Returns the number of this process, if it is a member or was one.
    pub(super) fn own(&self) -> Option<NodeId> {
        self.membership.as_ref().map(|(member, _)| member.own)
    }
}

impl MemoryMember {
    /// Beats until the process is gone.
    fn beat(&self, views: watch::Sender<Option<Arc<View>>>) -> impl Future<Output = ()> + use<> {
        let (disk, faults, refresh) =
            (Arc::clone(&self.disk), Arc::clone(&self.faults), Arc::clone(&self.refresh));
        let (own, every) = (self.own, self.lease.interval());
        async move {
            let mut ticks = interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = ticks.tick() => {}
                    () = refresh.notified() => {}
                }
                if faults.is_silent() {
                    continue;
                }
                let sent = Instant::now();
                let Some((members, owners)) = disk.state().cluster.beat(own) else { return };
                let view = View { sent, members, owners, has_newer_tables: false };
                views.send_replace(Some(Arc::new(view)));
            }
        }
    }

    fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&mut Cluster, NodeId) -> T,
    ) -> Read<'static, T> {
        let result = match self.faults.is_silent() {
            true => Err(ReadError::Unavailable(Arc::from("this process is silent"))),
            false => Ok(change(&mut self.disk.state().cluster, self.own)),
        };
        Box::pin(ready(result))
    }
}

impl Members for MemoryMember {
    fn own(&self) -> NodeId {
        self.own
    }

    fn lease(&self) -> Lease {
        self.lease
    }

    fn views(&self) -> watch::Receiver<Option<Arc<View>>> {
        self.views.clone()
    }

    fn refresh(&self) {
        self.refresh.notify_one();
    }

    fn fence(&self, node: NodeId, beat: u64) -> Read<'_, bool> {
        self.change(|cluster, own| cluster.fence(own, node, beat))
    }

    fn claim<'a>(&'a self, slots: &'a SlotSet) -> Read<'a, SlotSet> {
        self.change(|cluster, own| cluster.claim(own, slots))
    }

    fn give<'a>(&'a self, slots: &'a SlotSet, to: NodeId) -> Read<'a, SlotSet> {
        self.change(|cluster, own| cluster.give(own, slots, to))
    }

    fn set_leaving(&self) -> Read<'_, ()> {
        self.change(|cluster, own| {
            if let Some(member) = cluster.members.get_mut(&own) {
                member.state = MemberState::Leaving;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::slot::Slot;
    use crate::ports::conformance::Bench;
    use crate::ports::store::{AppendError, Executions as _, Journal as _};

    const LEASE: Duration = Duration::from_secs(6);

    async fn next(views: &mut watch::Receiver<Option<Arc<View>>>) -> Arc<View> {
        views.changed().await.expect("it is a member");
        views.borrow_and_update().clone().expect("a beat was answered")
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_member_neither_beats_nor_changes_owners() {
        let disk = MemoryStore::new();
        let (one, two) = (disk.join("one", LEASE), disk.join("two", LEASE));
        let (of_one, of_two) = (one.members().unwrap(), two.members().unwrap());
        one.set_silent(true);
        assert!(of_one.claim(&SlotSet::all()).await.is_err());
        let mut views = of_two.views();
        let began = Instant::now();
        let beat = |view: &View| view.members.iter().map(|it| it.beat).collect::<Vec<_>>();
        assert_eq!(beat(&*next(&mut views).await), [0, 1]);
        assert_eq!(beat(&*next(&mut views).await), [0, 2]);
        assert_eq!(began.elapsed(), Lease::new(LEASE).interval(), "the first beat comes at once");
        assert_eq!(of_two.fence(of_one.own(), 0).await, Ok(true));
        one.set_silent(false);
        let mut views = of_one.views();
        assert!(views.wait_for(|_| false).await.is_err(), "its next beat finds that it is gone");
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_handle_falls_silent_and_a_closed_one_leaves() {
        let disk = MemoryStore::new();
        let (one, two) = (disk.join("one", LEASE), disk.join("two", LEASE));
        let three = disk.join("three", LEASE);
        let (gone, left) = (one.members().unwrap().own(), two.members().unwrap());
        assert_eq!(left.claim(&SlotSet::all()).await, Ok(SlotSet::all()));
        drop(one);
        two.close();
        let of_three = three.members().unwrap();
        let mut views = of_three.views();
        let view = next(&mut views).await;
        let nodes: Vec<NodeId> = view.members.iter().map(|member| member.node).collect();
        assert_eq!(nodes, [gone, of_three.own()]);
        assert_eq!(view.owners.slots_of(None), SlotSet::all(), "its slots are free");
        let again = disk.join("one", LEASE).members().unwrap().own();
        let view = next(&mut views).await;
        let nodes: Vec<NodeId> = view.members.iter().map(|member| member.node).collect();
        assert_eq!(nodes, [of_three.own(), again], "a process that starts again replaces itself");
    }

    #[tokio::test]
    async fn a_handle_that_did_not_join_writes_everywhere() {
        let disk = Arc::new(MemoryStore::new());
        let member = disk.join("one", LEASE);
        let mut bench = Bench::new(disk.clone());
        let draft = bench.creation("a");
        bench.take(&draft).await;
        assert!(disk.members().is_none());
        let mut bench = Bench::new(Arc::new(member));
        let mut late = bench.creation("b");
        assert_eq!(bench.append(&late).await, Err(AppendError::Lost), "it has no slot");
        let copy = disk.reopened();
        assert!(copy.describe(&draft.header.id).await.unwrap().is_some(), "a copy has everything");
        let copied = copy.join("one", LEASE).members().unwrap();
        assert_eq!(copied.own(), NodeId(2), "numbers are not used again");
        let slot = Slot::new(0).into_iter().collect();
        assert_eq!(copied.claim(&slot).await, Ok(slot), "but no members");
        late.revision = 1;
        assert_eq!(bench.append(&late).await, Err(AppendError::Lost));
    }
}
