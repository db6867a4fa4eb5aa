//! The slots that this process serves, and whether it may believe that it still does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep};

use crate::cluster::figures::ClusterCounters;
use crate::domain::cluster::lease::Lease;
use crate::domain::cluster::{NodeId, SlotMap};
use crate::domain::ids::ExecutionId;
use crate::domain::slot::{Slot, SlotSet, slot_of};
use crate::ports::links::Links;
use crate::ports::members::{MemberState, Members, View};

/// Slot whose owner does what is to be done once for all members.
const HOUSEWORK: Option<Slot> = Slot::new(0);

/// Commands that may wait for other members, with callers of executions that run there.
const FORWARDED_MAX: usize = 10_000;

/// Time, in intervals of beats, after which all other members have read the owners of slots again.
/// Until then they may send commands to the last one, whose answer is that they are not its own.
const INTERVALS_TO_BE_KNOWN: u32 = 2;

/// Views that are asked for between two beats, while commands wait for a change of owners.
const REFRESHES_PER_BEAT: u32 = 10;

/// The slots that this process serves.
pub(crate) struct Ownership {
    /// `None`: this process has the store alone.
    members: Option<Arc<dyn Members>>,
    /// Connections to the other members.
    links: Option<Arc<dyn Links>>,
    /// The owners of all slots, as of the last beat.
    owners: watch::Sender<Arc<SlotMap>>,
    /// Wakes commands that wait for an owner, in the order in which they came: a watch wakes in any.
    noted: Notify,
    /// The last view of the members.
    view: RwLock<Option<Arc<View>>>,
    /// Bounds the commands that wait for other members.
    forwarding: Arc<Semaphore>,
    /// Commands that wait for the answer of another member.
    asking: watch::Sender<usize>,
    served: RwLock<Arc<SlotSet>>,
    /// True while all slots are served, which is known without reading `served`.
    serves_all: AtomicBool,
    /// Begin of `believed_until`.
    origin: Instant,
    /// Time until which this process may believe that no other one has taken its slots, in
    /// milliseconds since the origin.
    believed_until: AtomicU64,
    /// Time at which a view was last asked for, in milliseconds since the origin.
    refreshed: AtomicU64,
    pub(crate) counters: ClusterCounters,
}

impl Ownership {
    /// Returns the ownership of a process that serves nothing yet.
    pub(crate) fn new(members: Option<Arc<dyn Members>>, links: Option<Arc<dyn Links>>) -> Self {
        Self {
            members,
            links,
            owners: watch::Sender::new(Arc::new(SlotMap::unowned())),
            noted: Notify::new(),
            view: RwLock::default(),
            forwarding: Arc::new(Semaphore::new(FORWARDED_MAX)),
            asking: watch::Sender::new(0),
            served: RwLock::default(),
            serves_all: AtomicBool::new(false),
            origin: Instant::now(),
            believed_until: AtomicU64::new(0),
            refreshed: AtomicU64::new(0),
            counters: ClusterCounters::default(),
        }
    }

    /// Returns the members of the store, if this process does not have it alone.
    pub(crate) fn members(&self) -> Option<&Arc<dyn Members>> {
        self.members.as_ref()
    }

    /// Returns the number of this process among the members.
    pub(crate) fn own(&self) -> Option<NodeId> {
        self.members.as_ref().map(|members| members.own())
    }

    /// Returns the name of this process among the members, as soon as a beat has shown it.
    pub(crate) fn own_name(&self) -> Option<Arc<str>> {
        self.view()?.name_of(self.own()?)
    }

    /// Returns the name of the member that owns the slot of an execution, as the last view shows it.
    pub(crate) fn owner_name(&self, id: &ExecutionId) -> Option<Arc<str>> {
        let view = self.view()?;
        view.name_of(view.owners.owner(slot_of(id))?)
    }

    /// Returns the time for which one beat shows that a member is alive.
    pub(crate) fn lease(&self) -> Duration {
        self.members.as_ref().map_or(Duration::ZERO, |members| members.lease().length())
    }

    /// Returns the time between two beats.
    fn beat_interval(&self) -> Duration {
        Lease::new(self.lease()).interval()
    }

    /// Returns the connections to the other members, if there are any.
    pub(crate) fn links(&self) -> Option<&Arc<dyn Links>> {
        self.links.as_ref()
    }

    /// Resolves with the next view; those that wait longest first.
    pub(crate) fn next_view(&self) -> Notified<'_> {
        self.noted.notified()
    }

    /// Returns the owners of all slots; notified of each beat.
    pub(crate) fn owners(&self) -> watch::Receiver<Arc<SlotMap>> {
        self.owners.subscribe()
    }

    /// Notes what a beat has shown.
    pub(crate) fn note_view(&self, view: &Arc<View>) {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(view));
        self.owners.send_replace(Arc::clone(&view.owners));
        self.noted.notify_waiters();
    }

    /// Returns what the last beat has shown; `None` before the first.
    pub(crate) fn view(&self) -> Option<Arc<View>> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the time after which a command that waits for a change of owners asks for a view.
    pub(crate) fn refresh_interval(&self) -> Duration {
        self.beat_interval() / REFRESHES_PER_BEAT
    }

    /// Asks for a view before the next beat is due: for a command that has waited since the last one.
    /// All commands together ask once in that interval.
    pub(crate) fn refresh(&self) {
        let Some(members) = &self.members else { return };
        let now = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let pause = u64::try_from(self.refresh_interval().as_millis()).unwrap_or(u64::MAX);
        let is_due = |last: u64| (now >= last.saturating_add(pause)).then_some(now);
        if self.refreshed.fetch_update(Ordering::AcqRel, Ordering::Acquire, is_due).is_ok() {
            members.refresh();
        }
    }

    /// Returns the time since the last beat was sent that was answered.
    pub(crate) fn beat_age(&self) -> Duration {
        self.view().map_or(self.origin, |view| view.sent).elapsed()
    }

    /// Reserves room for a command that waits for another member.
    pub(crate) fn reserve_forwarding(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.forwarding).try_acquire_owned().ok()
    }

    /// Returns the number of commands that wait for other members.
    pub(crate) fn forwarding(&self) -> usize {
        FORWARDED_MAX - self.forwarding.available_permits()
    }

    /// Counts a command that waits for the answer of another member, until the guard is dropped.
    pub(crate) fn asking(&self) -> Asking<'_> {
        self.asking.send_modify(|commands| *commands += 1);
        Asking(&self.asking)
    }

    /// Resolves when no command waits for the answer of another member.
    pub(crate) async fn none_asks(&self) {
        // the sender lives as long as `self`: waiting cannot fail
        let _ = self.asking.subscribe().wait_for(|commands| *commands == 0).await;
    }

    /// Resolves when other members have all slots of this process, which leaves, and know it; at once
    /// if it has the store alone, or if no other member takes slots.
    pub(crate) async fn handed_over(&self) {
        let Some(members) = &self.members else { return };
        // a member no longer: the others have its slots
        if members.views().has_changed().is_err() {
            return;
        }
        let own = members.own();
        let mut views = self.owners();
        // the sender lives as long as `self`: waiting cannot fail
        let given = views.wait_for(|_| self.view().is_none_or(|view| !could_give(&view, own)));
        let _ = given.await;
        // not counted in views: while commands wait, there are more of them than beats
        let known = sleep(self.beat_interval() * INTERVALS_TO_BE_KNOWN);
        let alone = views.wait_for(|_| self.view().is_none_or(|view| !has_other(&view, own)));
        tokio::select! {
            () = known => {}
            _ = alone => {}
        }
    }

    /// Returns the slots that are served.
    pub(crate) fn served(&self) -> Arc<SlotSet> {
        Arc::clone(&self.served.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns true if this process serves the execution.
    pub(crate) fn serves(&self, id: &ExecutionId) -> bool {
        self.serves_all.load(Ordering::Acquire) || self.served().has(id)
    }

    /// Returns true if this process does what is done once for all members.
    pub(crate) fn does_housework(&self) -> bool {
        HOUSEWORK.is_some_and(|slot| self.served().contains(slot))
    }

    /// Returns a served slot, which is chosen by another one; `None` if none is served.
    pub(crate) fn slot_near(&self, slot: Slot) -> Option<Slot> {
        let served = self.served();
        usize::from(slot.number()).checked_rem(served.len()).and_then(|place| served.nth(place))
    }

    /// Serves these slots as well.
    pub(crate) fn add(&self, slots: &SlotSet) {
        self.change(|served| served.extend(slots.iter()));
    }

    /// No longer serves these slots.
    pub(crate) fn remove(&self, slots: &SlotSet) {
        self.change(|served| *served = served.without(slots));
    }

    /// Serves slots again that were not given away; commands that wait for their owner learn it.
    pub(crate) fn take_back(&self, slots: &SlotSet) {
        if !slots.is_empty() {
            self.add(slots);
            self.owners.send_modify(|_| ());
            self.noted.notify_waiters();
        }
    }

    fn change(&self, change: impl FnOnce(&mut SlotSet)) {
        let mut served = self.served.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = SlotSet::clone(&served);
        change(&mut next);
        self.serves_all.store(next.is_all(), Ordering::Release);
        *served = Arc::new(next);
    }

    /// Notes that a beat was answered that was sent at this time.
    pub(crate) fn believe_since(&self, sent: Instant, lease: Lease) {
        let before = self.origin.saturating_duration_since(sent);
        let until = lease.believed_until(sent.saturating_duration_since(self.origin));
        let until = until.saturating_sub(before);
        let until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        self.believed_until.fetch_max(until, Ordering::AcqRel);
    }

    /// Notes that this process is a member no longer.
    pub(crate) fn end_belief(&self) {
        self.believed_until.store(0, Ordering::Release);
    }

    /// Returns true if this process may believe that it still serves its slots: another one would
    /// wait longer before it takes them.
    pub(crate) fn is_believed(&self) -> bool {
        if self.members.is_none() {
            return true;
        }
        let now = self.origin.elapsed().as_millis();
        now < u128::from(self.believed_until.load(Ordering::Acquire))
    }

    /// Resolves when this process may believe that it still serves its slots.
    pub(crate) async fn believed(&self) {
        // the sender lives as long as `self`: waiting cannot fail
        let _ = self.owners().wait_for(|_| self.is_believed()).await;
    }
}

/// A command that waits for the answer of another member.
pub(crate) struct Asking<'o>(&'o watch::Sender<usize>);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|commands| *commands -= 1);
    }
}

/// Returns true if there is an active member other than this one.
fn has_other(view: &View, own: NodeId) -> bool {
    view.members.iter().any(|it| it.node != own && it.state == MemberState::Active)
}

/// Returns true if a member has slots which another one could take.
fn could_give(view: &View, own: NodeId) -> bool {
    has_other(view, own) && view.owners.iter().any(|(_, owner)| owner == Some(own))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::memory::MemoryStore;

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    fn set(numbers: &[u16]) -> SlotSet {
        numbers.iter().copied().map(slot).collect()
    }

    fn id(slot: &str) -> ExecutionId {
        ExecutionId::trusted(format!("01932f6c-9d1e-7a3b-8c4d-5e6f70800{slot}"))
    }

    #[test]
    fn what_is_added_is_served_until_it_is_removed() {
        let ownership = Ownership::new(None, None);
        assert!(!ownership.serves(&id("001")) && !ownership.does_housework());
        assert_eq!(ownership.slot_near(slot(7)), None);
        ownership.add(&set(&[0, 1, 0xfff]));
        assert!(ownership.serves(&id("001")) && ownership.serves(&id("fff")));
        assert!(!ownership.serves(&id("002")) && ownership.does_housework());
        assert_eq!(ownership.slot_near(slot(4)), Some(slot(1)), "the second of three");
        ownership.remove(&set(&[0, 1, 2]));
        assert!(!ownership.serves(&id("001")) && ownership.serves(&id("fff")));
        assert!(!ownership.does_housework());
        ownership.add(&SlotSet::all());
        assert!(ownership.serves(&id("001")) && ownership.serves(&id("002")));
    }

    #[tokio::test(start_paused = true)]
    async fn slots_are_handed_over_when_the_others_have_had_the_time_to_know_it() {
        const LEASE: Duration = Duration::from_secs(6);
        let disk = MemoryStore::new();
        let (one, two) = (disk.join("one", LEASE), disk.join("two", LEASE));
        let (members, other) = (one.members().unwrap(), two.members().unwrap().own());
        let ownership = Ownership::new(Some(Arc::clone(&members)), None);
        assert_eq!(members.claim(&SlotSet::all()).await, Ok(SlotSet::all()));
        let mut views = members.views();
        let noting = async {
            while views.changed().await.is_ok() {
                let view = views.borrow_and_update().clone();
                ownership.note_view(&view.expect("a beat was answered"));
            }
        };
        // as commands do that wait
        let looking = async {
            loop {
                members.refresh();
                sleep(Duration::from_millis(10)).await;
            }
        };
        let handing = async {
            sleep(LEASE).await;
            let given = Instant::now();
            assert_eq!(members.give(&SlotSet::all(), other).await, Ok(SlotSet::all()));
            given
        };
        let waiting = async {
            ownership.owners().changed().await.unwrap();
            ownership.handed_over().await;
            Instant::now()
        };
        tokio::select! {
            () = noting => panic!("it is a member"),
            () = looking => {}
            (given, known) = async { tokio::join!(handing, waiting) } => {
                let took = known - given;
                let expected = LEASE / 6 * INTERVALS_TO_BE_KNOWN;
                assert!((expected..expected * 2).contains(&took), "{took:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn belief_lasts_from_the_time_at_which_a_beat_was_sent() {
        let length = Duration::from_secs(6);
        let store = MemoryStore::new().join("one", length);
        let lease = Lease::new(length);
        for (sent_before_s, expected) in [(8, false), (5, false), (4, true), (0, true)] {
            let sent = Instant::now();
            tokio::time::advance(Duration::from_secs(sent_before_s)).await;
            let ownership = Ownership::new(store.members(), None);
            ownership.believe_since(sent, lease);
            assert_eq!(ownership.is_believed(), expected, "{sent_before_s} s before");
            ownership.end_belief();
            assert!(!ownership.is_believed(), "it is a member no longer");
        }
    }

    #[test]
    fn a_process_that_is_alone_needs_no_beats() {
        assert!(Ownership::new(None, None).is_believed());
    }
}
