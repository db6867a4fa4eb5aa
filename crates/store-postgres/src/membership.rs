//! This process among the servers of the database: its row, and the beats that show that it is
//! alive.
//!
//! A server has the database for itself, or shares it with other members. Its row has a number that it increments every second;
//! another server that starts looks whether that number changes, so no clocks are compared. To take
//! over, a server sets the state of the other's row and deletes its lanes in one statement: from
//! then on no execution and no generation of the other is stored, even if it was only paused. Its
//! other changes, as of conversations, can still follow until its next beat.
//!
//! Members divide the slots: `slots` has the owner of each. A member writes only to executions of
//! its slots. With each beat it reads the other members, and the owners if they have changed.

mod beat;
mod cluster;
mod fence;
mod join;
mod owners;
mod wall_clock;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, RwLockReadGuard};
use std::time::Duration;

use futures_util::FutureExt as _;
use greenroom_actors::domain::cluster::owned::Owned;
use greenroom_actors::ports::meter::JournalMeter;
use greenroom_actors::threads::Driver;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

pub(crate) use self::cluster::Cluster;

use crate::connector::Connector;
use crate::lane::outage::Outages;
use crate::migration::Schema;

/// Time between two beats.
pub(crate) const BEAT: Duration = Duration::from_secs(1);

/// Time to give the database up.
const LEAVE_MAX: Duration = Duration::from_secs(5);

/// Name of a server, as other servers and people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "greenroom {} ({})", self.version, self.name)
    }
}

/// Loss of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// Name of this server.
    pub name: String,
    pub(crate) cause: Cause,
}

/// Reason why this process may no longer write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The server that has the database now, if one is there.
    Taken(Option<Peer>),
    /// The database has less than it confirmed, so that memory is ahead of it.
    HistoryLost,
    /// The other members have declared this one gone.
    Fenced,
    /// The tables are of this version, which this process cannot work on.
    Outdated(i32),
    /// A task of this name that the store needs has panicked, with this message.
    Panicked(String, String),
}

impl Cause {
    /// Returns the loss by a panic of a task.
    pub(crate) fn panicked(task: &str, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Self::Panicked(task.to_owned(), text.unwrap_or_else(|| "no message".to_owned()))
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, cause } = self;
        match cause {
            Cause::Taken(Some(taker)) if taker.name == *name => write!(
                f,
                "another server with the name of this one, {taker}, has taken the database over; \
                 if two servers are intended, give each its own `name`, and its own database unless \
                 they share it (`[cluster]`)"
            ),
            Cause::Taken(Some(taker)) => write!(
                f,
                "{taker} has taken the database over, because this server ({name}) did not show \
                 that it was alive"
            ),
            Cause::Taken(None) => {
                write!(f, "the database no longer knows this server ({name})")
            }
            Cause::Fenced => write!(
                f,
                "the other servers of the database count this one ({name}) as gone, because it did \
                 not show that it was alive"
            ),
            Cause::Outdated(found) => write!(
                f,
                "the tables of the database are of version {found}, which this server ({name}) is \
                 too old for; install the version of the servers that use it"
            ),
            Cause::HistoryLost => write!(
                f,
                "the database has lost commits that it had confirmed to this server ({name}), as a \
                 replica does that takes over without them; with durability = \"replicated\" it \
                 would have them"
            ),
            Cause::Panicked(task, message) => write!(
                f,
                "{task} of the store of this server ({name}) panicked, which is a defect of \
                 greenroom: {message}"
            ),
        }
    }
}

/// The row of this process, and its state.
pub(crate) struct Membership {
    /// Number of this process in `nodes`.
    pub(crate) node: i64,
    name: String,
    /// This process among the members; `None` if it has the database alone.
    pub(crate) cluster: Option<Cluster>,
    /// Versions of the tables that this process knows.
    schema: Schema,
    /// Number of the last batch of each lane that the database has confirmed.
    confirmed: Mutex<BTreeMap<i16, i64>>,
    /// The ability to write, which the beats test as well.
    pub(crate) outages: Arc<Outages>,
    lost: watch::Sender<Option<Lost>>,
    /// Asks for a beat at once.
    beat_now: Notify,
    /// Ends the beats.
    leave: watch::Sender<bool>,
    beats: Mutex<Option<JoinHandle<()>>>,
}

impl Membership {
    /// Returns the state of a process that has the database alone, or of a member with a lease.
    fn new(node: i64, name: String, lease: Option<Duration>, schema: Schema) -> Self {
        Self {
            node,
            name,
            cluster: lease.map(|lease| Cluster::new(node, lease)),
            schema,
            confirmed: Mutex::default(),
            outages: Arc::default(),
            lost: watch::Sender::new(None),
            beat_now: Notify::new(),
            leave: watch::Sender::new(false),
            beats: Mutex::default(),
        }
    }

    /// Returns true if this process does what one of the servers has to do.
    pub(crate) fn has_housework(&self) -> bool {
        self.cluster.as_ref().is_none_or(Cluster::has_housework)
    }

    /// Returns the slots of a member, which stay its own as long as the guard is held; `None` if
    /// all are.
    pub(crate) fn owned(&self) -> Option<RwLockReadGuard<'_, Owned>> {
        self.cluster.as_ref().map(Cluster::owned)
    }

    /// Begins the beats, on this runtime.
    pub(crate) fn start(self: &Arc<Self>, connector: Connector, meter: Arc<dyn JournalMeter>) {
        let beating = Arc::clone(self).beat(connector, meter);
        // without them, another server would count this one as gone
        let beats = tokio::spawn(Arc::clone(self).guard("the beats", beating));
        *self.beats.lock().unwrap_or_else(PoisonError::into_inner) = Some(beats);
    }

    /// Runs a task without which the store cannot work; a panic of it loses the database.
    pub(crate) async fn guard(self: Arc<Self>, task: &str, work: impl Future<Output = ()>) {
        if let Err(panic) = AssertUnwindSafe(work).catch_unwind().await {
            self.lose(Cause::panicked(task, &*panic));
        }
    }

    /// Notes that the database has confirmed a batch of a lane.
    pub(crate) fn note_confirmed(&self, lane: i16, batch: i64) {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner).insert(lane, batch);
    }

    fn confirmed(&self) -> BTreeMap<i16, i64> {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Beats at once: for a lane that does not have its row, and for commands that wait for the owner
    /// of a slot.
    pub(crate) fn beat_now(&self) {
        self.beat_now.notify_one();
    }

    /// Notes that this process may no longer write, and logs it once.
    pub(crate) fn lose(&self, cause: Cause) {
        self.outages.lose();
        self.lost.send_if_modified(|known| {
            let is_first = known.is_none();
            if is_first {
                let lost = Lost { name: self.name.clone(), cause };
                log::error!("{lost}; this server stores nothing from now on, and must end");
                *known = Some(lost);
            }
            is_first
        });
    }

    /// Resolves when this process may no longer write.
    pub(crate) async fn lost(self: Arc<Self>) -> Lost {
        let mut lost = self.lost.subscribe();
        let found = lost.wait_for(Option::is_some).await.ok().and_then(|lost| lost.clone());
        match found {
            Some(lost) => lost,
            // the sender is in this value
            None => std::future::pending().await,
        }
    }

    /// Gives the database up like [`Membership::leave`], on a store's thread; blocks.
    pub(crate) fn leave_within(self: &Arc<Self>, driver: &Driver) {
        if driver.run(Arc::clone(self).leave(), Some(LEAVE_MAX)).is_none() {
            log::warn!("the database does not answer: it still names this server as running");
        }
    }

    /// Ends the beats and deletes the rows of this process. Afterwards another server can have the
    /// database at once.
    pub(crate) async fn leave(self: Arc<Self>) {
        self.leave.send_replace(true);
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(beats) = beats {
            // an error: the thread has ended
            let _ = beats.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_loses_the_database() {
        let membership = Arc::new(Membership::new(1, "me".to_owned(), None, Schema::OWN));
        let guard = |work| Arc::clone(&membership).guard("a task", work);
        guard(async {}.boxed()).await;
        assert!(!membership.outages.is_lost(), "its end is no panic");
        guard(async { panic!("out of {}", "numbers") }.boxed()).await;
        guard(async { panic!("later") }.boxed()).await;
        assert!(membership.outages.is_lost());
        let lost = Arc::clone(&membership).lost().await.to_string();
        let expected = "a task of the store of this server (me) panicked, which is a defect of \
            greenroom: out of numbers";
        assert_eq!(lost, expected, "the first reason stays");
    }
}
