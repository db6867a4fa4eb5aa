//! The store, opened.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use greenroom_actors::ports::meter::JournalMeter;
use greenroom_actors::ports::store::{CommitSink, Journal as _};
use greenroom_actors::threads::Driver;

use tokio::sync::Semaphore;

use crate::connector::Connector;
use crate::key_purge::NewestAppend;
use crate::lane::Lanes;
use crate::lane::outage::Outages;
use crate::membership::{Lost, Membership};
use crate::numbers::Numbers;
use crate::open::Identity;
use crate::pool::Pool;
use crate::settings::PostgresSettings;

/// State that the lanes and the store share.
pub(crate) struct Shared {
    pub(crate) settings: PostgresSettings,
    pub(crate) connector: Connector,
    pub(crate) pool: Pool,
    pub(crate) meter: Arc<dyn JournalMeter>,
    pub(crate) sink: OnceLock<Arc<dyn CommitSink>>,
    pub(crate) newest_append: NewestAppend,
    pub(crate) outages: Arc<Outages>,
    /// One permit for each change outside the lanes that can run at once.
    pub(crate) room_for_changes: Arc<Semaphore>,
    /// One permit for each search that can run at once, so that other reads find a connection.
    pub(crate) room_for_searches: Arc<Semaphore>,
    /// Numbers of new executions.
    pub(crate) execution_rows: Numbers,
    /// Numbers of new generations.
    pub(crate) generation_rows: Numbers,
    /// Number of this process in `nodes`; never used again by another.
    pub(crate) node: i64,
    pub(crate) membership: Arc<Membership>,
    /// Size of the database.
    pub(crate) database_bytes: AtomicU64,
}

/// A store in a PostgreSQL database, which this server has for itself or shares with other members.
///
/// Dropping it commits what is queued and gives the database up.
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
    pub(crate) lanes: Lanes,
    pub(crate) driver: Driver,
    pub(crate) identity: Identity,
}

impl PostgresStore {
    /// Returns the id of the database, which no other one has.
    pub fn database_id(&self) -> &str {
        &self.identity.database
    }

    /// Returns the secret by which the members of the database know each other. Anyone who
    /// can read the database knows it.
    pub fn secret(&self) -> &[u8] {
        &self.identity.secret
    }

    /// Returns the size of the database in bytes, measured once a minute.
    pub fn database_bytes(&self) -> u64 {
        self.shared.database_bytes.load(Ordering::Relaxed)
    }

    /// Resolves when another server has taken the database over, or a panic has ended a part of the
    /// store: nothing is stored from then on, and the process should end.
    pub fn lost(&self) -> impl Future<Output = Lost> + Send + 'static {
        Arc::clone(&self.shared.membership).lost()
    }

    /// Gives the database up, so that another server can have it at once; blocks.
    pub(crate) fn leave(&self) {
        self.shared.membership.leave_within(&self.driver);
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("node", &self.shared.node).finish_non_exhaustive()
    }
}
