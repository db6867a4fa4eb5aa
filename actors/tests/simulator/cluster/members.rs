//! A process among the members of the disk: beats and changes of owners that take time, arrive
//! late, fail, or succeed without an answer.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use greenroom_actors::domain::cluster::lease::Lease;
use greenroom_actors::domain::cluster::owned::Owned;
use greenroom_actors::domain::cluster::{NodeId, SlotMap};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::ports::members::{Members, View};
use greenroom_actors::ports::store::{Read, ReadError, Status};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::simulator::cluster::line::Line;
use crate::simulator::dice::Dice;
use crate::simulator::stage::Stage;
use crate::simulator::store::wait;

/// Time after which it is asked again whose slots are whose giving failed.
const SETTLE_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct SimMembers {
    pub(crate) stage: Arc<Stage>,
    pub(crate) line: Arc<Line>,
    own: NodeId,
    disk: Arc<dyn Members>,
    views: watch::Receiver<Option<Arc<View>>>,
    owned: Mutex<Owned>,
    dice: Mutex<Dice>,
    /// Held while owners are changed: one change at a time.
    changing: tokio::sync::Mutex<()>,
}

/// Result of a change whose answer does not arrive.
fn unanswered() -> ReadError {
    ReadError::Unavailable(Arc::from("the database does not answer"))
}

impl SimMembers {
    /// Returns a member of the disk, and shows it what its beats have seen.
    pub(crate) fn of(
        disk: Arc<dyn Members>,
        stage: &Arc<Stage>,
        line: &Arc<Line>,
        dice: Dice,
    ) -> Arc<Self> {
        let (shown, views) = watch::channel(None);
        let members = Arc::new(Self {
            stage: Arc::clone(stage),
            line: Arc::clone(line),
            own: disk.own(),
            owned: Mutex::new(Owned::new(disk.own())),
            disk,
            views,
            dice: Mutex::new(dice),
            changing: tokio::sync::Mutex::default(),
        });
        tokio::spawn(Arc::clone(&members).show(shown));
        members
    }

    /// Shows what each beat has seen, when its answer arrives.
    async fn show(self: Arc<Self>, shown: watch::Sender<Option<Arc<View>>>) {
        let lease = self.lease();
        let mut beats = self.disk.views();
        let mut answered = Instant::now();
        while beats.changed().await.is_ok() {
            let view = beats.borrow_and_update().clone().unwrap();
            let changes = self.owned().changes();
            let sent = view.sent - self.latency();
            self.pass(self.latency()).await;
            let (sent, members) = (sent.max(answered), view.members.clone());
            let owners = self.learn(&view.owners, changes);
            answered = Instant::now();
            let until = sent + lease.believed_until(Duration::ZERO);
            self.stage.book.believes(self.own, until);
            let has_newer_tables = view.has_newer_tables;
            shown.send_replace(Some(Arc::new(View { sent, members, owners, has_newer_tables })));
        }
        // the answer that it is gone
        self.pass(self.latency()).await;
    }

    fn owned(&self) -> MutexGuard<'_, Owned> {
        self.owned.lock().unwrap()
    }

    /// Takes owners over that were read after so many changes, unless there was another since.
    fn learn(&self, owners: &Arc<SlotMap>, changes: u64) -> Arc<SlotMap> {
        let mut owned = self.owned();
        owned.learn(Arc::clone(owners), changes);
        owned.owners()
    }

    fn latency(&self) -> Duration {
        let most = self.stage.faults.slowness_ms.load(std::sync::atomic::Ordering::SeqCst);
        let beat = u64::try_from(self.lease().interval().as_millis()).unwrap();
        Duration::from_millis(self.dice.lock().unwrap().millis(most.min(beat * 2)))
    }

    async fn pass(&self, time: Duration) {
        wait(time).await;
        self.line.opened().await;
    }

    fn fails(&self) -> Result<(), ReadError> {
        let percent = self.stage.faults.failing_percent.load(std::sync::atomic::Ordering::SeqCst);
        match self.dice.lock().unwrap().chance(percent) {
            true => Err(unanswered()),
            false => Ok(()),
        }
    }

    /// Makes a change. It may fail before, and after it was made.
    async fn change<T>(
        &self,
        change: impl Future<Output = Result<T, ReadError>>,
    ) -> Result<T, ReadError> {
        self.pass(self.latency()).await;
        self.fails()?;
        let changed = change.await?;
        self.pass(self.latency()).await;
        self.fails()?;
        Ok(changed)
    }

    /// Returns true if the process has no reason to refuse an append by itself.
    pub(crate) fn may_write(&self, id: &ExecutionId) -> bool {
        self.owned().has(id)
    }

    /// Notes a commit, which only the owner of the slot may make.
    pub(crate) fn committed(&self, id: &ExecutionId, status: Status) {
        let is_owner = self.stage.book.committed(self.own, id, status);
        self.stage.require(is_owner, || {
            format!("process {} has written {id}, which is not its own", self.own)
        });
    }

    /// Finds out whose slots are whose giving failed.
    async fn settle(self: Arc<Self>, begun: SlotSet) {
        loop {
            self.pass(SETTLE_AFTER).await;
            let _one_at_a_time = self.changing.lock().await;
            self.pass(self.latency()).await;
            if self.fails().is_err() {
                continue;
            }
            let mut owned = self.owned();
            let open = owned.open_among(&begun);
            let is_own = |slot| self.stage.book.owns(self.own, slot);
            let own = open.iter().filter(|slot| is_own(*slot)).collect();
            return owned.settle(&open, &own);
        }
    }

    async fn give_away(self: Arc<Self>, begun: SlotSet, to: NodeId) -> Result<SlotSet, ReadError> {
        let _one_at_a_time = self.changing.lock().await;
        let given = self
            .change(async {
                let given = self.disk.give(&begun, to).await?;
                self.stage.book.given(self.own, to, &given);
                Ok(given)
            })
            .await;
        match &given {
            Ok(given) => self.owned().end_giving(&begun, given, to),
            Err(_) => {
                self.owned().leave_open(&begun);
                self.stage.count("giving with unknown outcome");
                tokio::spawn(Arc::clone(&self).settle(begun));
            }
        }
        given
    }
}

/// A process among the members, as its runtime sees it.
pub(crate) struct Port(pub(crate) Arc<SimMembers>);

impl Members for Port {
    fn own(&self) -> NodeId {
        self.0.own
    }

    fn lease(&self) -> Lease {
        self.0.lease()
    }

    fn views(&self) -> watch::Receiver<Option<Arc<View>>> {
        self.0.views.clone()
    }

    fn refresh(&self) {
        self.0.disk.refresh();
    }

    fn fence(&self, node: NodeId, beat: u64) -> Read<'_, bool> {
        Box::pin(self.0.change(async move {
            let is_fenced = self.0.disk.fence(node, beat).await?;
            if is_fenced {
                self.0.stage.note(&format!("process {node} is fenced by {}", self.0.own));
                self.0.stage.count("fence");
                self.0.stage.book.gone(node);
            }
            Ok(is_fenced)
        }))
    }

    fn claim<'a>(&'a self, slots: &'a SlotSet) -> Read<'a, SlotSet> {
        let members = &self.0;
        Box::pin(async move {
            let _one_at_a_time = members.changing.lock().await;
            let claimable = members.owned().claimable(slots);
            let claimed = members
                .change(async {
                    let mut claimed = members.disk.claim(&claimable).await?;
                    // those whose last claim or giving failed
                    let book = &members.stage.book;
                    claimed.extend(claimable.iter().filter(|it| book.owns(members.own, *it)));
                    book.claimed(members.own, &claimed);
                    Ok(claimed)
                })
                .await?;
            members.owned().gain(&claimed);
            Ok(claimed)
        })
    }

    fn give<'a>(&'a self, slots: &'a SlotSet, to: NodeId) -> Read<'a, SlotSet> {
        let begun = self.0.owned().begin_giving(slots);
        Box::pin(Arc::clone(&self.0).give_away(begun, to))
    }

    fn set_leaving(&self) -> Read<'_, ()> {
        Box::pin(self.0.change(async { self.0.disk.set_leaving().await }))
    }
}

impl SimMembers {
    pub(crate) fn lease(&self) -> Lease {
        self.disk.lease()
    }
}
