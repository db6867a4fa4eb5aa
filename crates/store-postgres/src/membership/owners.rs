//! Changes of the owners of slots, and of members, as the port has them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::domain::slot::{Slot, SlotSet};
use greenroom_actors::ports::members::{Lease, Members, View};
use greenroom_actors::ports::store::{Read, ReadError};
use tokio::sync::watch;
use tokio_postgres::error::SqlState;

use super::Cluster;
use super::fence::{self, CUT, IMPATIENT, NOTE, TERMINATE, TERMINATIONS_MAX, connections_of};
use crate::changes::Changing;
use crate::columns::Stored;
use crate::pool::Failure;
use crate::reader::number_of;
use crate::shared::Shared;
use crate::store::PostgresStore;

/// Finds this process among those that are not gone.
const OWN: &str = "SELECT FROM nodes WHERE node = $1 AND state < 2";

/// Takes slots without an owner, and those of this process. The lock lets it beat, and makes a fence
/// wait.
const CLAIM: &str = "WITH me AS (SELECT FROM nodes WHERE node = $1 AND state = 0 FOR KEY SHARE),
        got AS (UPDATE slots SET node = $1
            WHERE slot = ANY ($2) AND (node IS NULL OR node = $1) AND EXISTS (SELECT FROM me)
            RETURNING slot),
        note AS (UPDATE meta SET map = map + 1 WHERE EXISTS (SELECT FROM got))
    SELECT slot FROM got";

/// Gives slots of this process to a member that is active. Returns those that it has from this
/// process, also by an earlier attempt. One statement: a process that is paused between two would
/// hold up the changes of all others.
const GIVE: &str = "WITH taker AS (
            SELECT FROM nodes WHERE node = $2 AND state = 0 FOR KEY SHARE),
        given AS (UPDATE slots SET node = $2
            WHERE slot = ANY ($3) AND node = $1 AND EXISTS (SELECT FROM taker)
            RETURNING slot),
        note AS (UPDATE meta SET map = map + 1 WHERE EXISTS (SELECT FROM given))
    SELECT slot FROM given UNION ALL SELECT slot FROM slots WHERE slot = ANY ($3) AND node = $2";

/// Finds slots of this process, after what is under way has ended.
const SETTLE: &str = "SELECT slot FROM slots WHERE slot = ANY ($2) AND node = $1 FOR UPDATE";

/// Pause before it is asked again whose slots are.
const SETTLE_AGAIN: Duration = Duration::from_secs(1);

const SET_LEAVING: &str = "UPDATE nodes SET state = 1 WHERE node = $1 AND state = 0";

/// Result of an attempt to fence.
enum Attempt {
    Fenced,
    /// It has another beat, or one of the two is gone.
    Refused,
    /// It holds locks in an open transaction.
    Hangs,
}

/// A store that is one of the members.
struct StoreOfMember(Arc<PostgresStore>);

impl PostgresStore {
    /// Returns the members of the database, of which this process is one; `None` if it has the
    /// database alone.
    pub fn members(self: &Arc<Self>) -> Option<Arc<dyn Members>> {
        self.shared.membership.cluster.as_ref()?;
        Some(Arc::new(StoreOfMember(Arc::clone(self))))
    }
}

impl StoreOfMember {
    fn cluster(&self) -> &Cluster {
        cluster_of(&self.0.shared)
    }

    /// Starts a change on the store's thread, which runs to its end even if the caller leaves.
    fn start<T: Send + 'static>(
        &self,
        change: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Read<'static, T> {
        let changing = self.0.driver.handle().spawn(change);
        Box::pin(async move {
            let reason = match changing.await {
                Ok(Ok(changed)) => return Ok(changed),
                Ok(Err(failure)) => failure.to_string(),
                // the thread has ended, or the change panicked
                Err(_) => "the store is closed".to_owned(),
            };
            Err(ReadError::Unavailable(Arc::from(reason)))
        })
    }
}

/// Returns this process among the members, of which it is one.
#[expect(clippy::expect_used, reason = "a store without members gives no access to them")]
fn cluster_of(shared: &Shared) -> &Cluster {
    shared.membership.cluster.as_ref().expect("the store is that of a member")
}

impl Members for StoreOfMember {
    fn own(&self) -> NodeId {
        self.cluster().node
    }

    fn lease(&self) -> Lease {
        self.cluster().lease
    }

    fn views(&self) -> watch::Receiver<Option<Arc<View>>> {
        self.cluster().views.clone()
    }

    fn refresh(&self) {
        self.0.shared.membership.beat_now();
    }

    fn fence(&self, node: NodeId, beat: u64) -> Read<'_, bool> {
        let shared = Arc::clone(&self.0.shared);
        self.start(async move { fence(&shared, node, beat).await })
    }

    fn claim<'a>(&'a self, slots: &'a SlotSet) -> Read<'a, SlotSet> {
        let (shared, slots) = (Arc::clone(&self.0.shared), slots.clone());
        self.start(async move { claim(&shared, &slots).await })
    }

    fn give<'a>(&'a self, slots: &'a SlotSet, to: NodeId) -> Read<'a, SlotSet> {
        let shared = Arc::clone(&self.0.shared);
        if to == self.own() {
            return Box::pin(async { Ok(SlotSet::new()) });
        }
        let begun = self.cluster().owned_mut().begin_giving(slots);
        // what was queued before
        let marks = self.0.lanes.marks();
        self.start(async move {
            for mark in marks {
                // closes when it is stored
                let _ = mark.await;
            }
            give(&shared, &begun, to).await
        })
    }

    fn set_leaving(&self) -> Read<'_, ()> {
        let shared = Arc::clone(&self.0.shared);
        self.start(async move {
            let node = shared.node;
            let leave = async |changing: Changing| changing.execute(SET_LEAVING, &[&node]).await;
            shared.pool.change(leave).await.map(drop)
        })
    }

    fn note_unreachable(&self, nodes: Vec<NodeId>) {
        self.cluster().note_unreachable(nodes.into_iter().map(|node| node.0).collect());
    }
}

/// Fences a member if it has this beat.
async fn fence(shared: &Shared, node: NodeId, beat: u64) -> Result<bool, Failure> {
    let beat = i64::try_from(beat).unwrap_or(i64::MAX);
    let (own, node) = (shared.node, node.0);
    for _ in 0..=TERMINATIONS_MAX {
        let attempt = async |changing: Changing| attempt(changing, own, node, beat).await;
        match shared.pool.change(attempt).await? {
            Attempt::Fenced => return Ok(true),
            Attempt::Refused => return Ok(false),
            Attempt::Hangs => {}
        }
        let connections = connections_of(node);
        let terminate =
            async |changing: Changing| changing.rows(TERMINATE, &[&connections]).await.map(drop);
        shared.pool.change(terminate).await?;
    }
    Err(Failure::Hangs(node))
}

async fn attempt(
    mut changing: Changing,
    own: i64,
    node: i64,
    beat: i64,
) -> Result<Attempt, Failure> {
    let fencing = async {
        let change = changing.begin().await?;
        change.execute(IMPATIENT, &[]).await?;
        let is_fenced = change.row(OWN, &[&own]).await?.is_some()
            && change.row(fence::LOCK, &[&node, &beat]).await?.is_some();
        if !is_fenced {
            return Ok(Attempt::Refused);
        }
        for cut in CUT {
            change.execute(cut, &[&node]).await?;
        }
        change.execute(NOTE, &[]).await?;
        change.commit().await?;
        Ok(Attempt::Fenced)
    };
    match fencing.await {
        Err(Failure::Database(error)) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            Ok(Attempt::Hangs)
        }
        fenced => fenced,
    }
}

async fn claim(shared: &Shared, slots: &SlotSet) -> Result<SlotSet, Failure> {
    let cluster = cluster_of(shared);
    let _one_at_a_time = cluster.changing.lock().await;
    let (node, numbers) = (shared.node, numbers_of(&cluster.owned().claimable(slots)));
    let claim = async |changing: Changing| changing.rows(CLAIM, &[&node, &numbers]).await;
    let claimed = slots_of(&shared.pool.change(claim).await?)?;
    cluster.owned_mut().gain(&claimed);
    Ok(claimed)
}

/// Gives slots in which this process has stopped to write.
async fn give(shared: &Arc<Shared>, begun: &SlotSet, to: NodeId) -> Result<SlotSet, Failure> {
    let cluster = cluster_of(shared);
    let _one_at_a_time = cluster.changing.lock().await;
    let (own, numbers) = (shared.node, numbers_of(begun));
    let give = async |changing: Changing| changing.rows(GIVE, &[&own, &to.0, &numbers]).await;
    let given = shared.pool.change(give).await.and_then(|rows| slots_of(&rows));
    match &given {
        Ok(given) => cluster.owned_mut().end_giving(begun, given, to),
        Err(_) => {
            cluster.owned_mut().leave_open(begun);
            tokio::spawn(settle(Arc::clone(shared), begun.clone()));
        }
    }
    given
}

/// Finds out whose slots are whose giving failed, as soon as the database answers.
async fn settle(shared: Arc<Shared>, begun: SlotSet) {
    let cluster = cluster_of(&shared);
    let node = shared.node;
    while !shared.outages.is_lost() {
        let one_at_a_time = cluster.changing.lock().await;
        let open = cluster.owned().open_among(&begun);
        let numbers = numbers_of(&open);
        let ask = async |changing: Changing| changing.rows(SETTLE, &[&node, &numbers]).await;
        match shared.pool.change(ask).await.and_then(|rows| slots_of(&rows)) {
            Ok(own) => return cluster.settle(&open, &own),
            Err(Failure::Closed) => return,
            Err(failure) => log::debug!("cannot find the owners of slots: {failure}"),
        }
        drop(one_at_a_time);
        tokio::time::sleep(SETTLE_AGAIN).await;
    }
}

fn numbers_of(slots: &SlotSet) -> Vec<i16> {
    slots.iter().map(number_of).collect()
}

fn slots_of(rows: &[Stored]) -> Result<SlotSet, Failure> {
    let slot = |row: &Stored| {
        let number = row.value::<i16>(0)?;
        let slot = u16::try_from(number).ok().and_then(Slot::new);
        slot.ok_or_else(|| Failure::Damaged(format!("there is no slot {number}")))
    };
    rows.iter().map(slot).collect()
}
