//! The store, opened.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use greenroom_actors::ports::meter::JournalMeter;
use greenroom_actors::ports::store::CommitSink;

use crate::connector::Connector;
use crate::driver::Driver;
use crate::pool::Pool;
use crate::settings::PostgresSettings;

/// State that the lanes and the store share.
pub(crate) struct Shared {
    pub(crate) settings: PostgresSettings,
    pub(crate) connector: Connector,
    pub(crate) pool: Pool,
    pub(crate) meter: Arc<dyn JournalMeter>,
    pub(crate) sink: OnceLock<Arc<dyn CommitSink>>,
    /// False during an outage.
    pub(crate) writable: AtomicBool,
    /// Number of this process in `nodes`; never used again by another.
    pub(crate) node: i64,
}

/// A store in a PostgreSQL database, which this server has for itself.
///
/// Dropping it commits what is queued and gives the database up.
pub struct PostgresStore {
    pub(crate) shared: Arc<Shared>,
    pub(crate) driver: Driver,
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("node", &self.shared.node).finish_non_exhaustive()
    }
}
