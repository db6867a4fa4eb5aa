//! State that the parts of an opened store share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use greenroom_actors::ports::meter::JournalMeter;
use greenroom_actors::ports::store::CommitSink;
use tokio::sync::Semaphore;

use crate::connector::Connector;
use crate::key_purge::NewestAppend;
use crate::lane::outage::Outages;
use crate::membership::Membership;
use crate::numbers::Numbers;
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
