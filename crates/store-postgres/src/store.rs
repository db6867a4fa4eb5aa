//! The store, opened.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use greenroom_actors::ports::store::{AppendError, Journal as _, Written};
use greenroom_actors::threads::Driver;
use tokio::time::timeout;

use crate::changes::Verdict;
use crate::lane::Lanes;
use crate::membership::Lost;
use crate::open::Identity;
use crate::pool::Failure;
use crate::shared::Shared;

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

    /// Starts a change on the store's thread, as soon as there is room for one; resolves once it is
    /// durable or refused. A caller that leaves before it starts leaves nothing in memory.
    pub(crate) fn change<T, F>(
        &self,
        change: impl FnOnce(Arc<Shared>) -> F + Send + 'static,
    ) -> Written<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<Verdict<T>, Failure>> + Send + 'static,
    {
        let (shared, driver) = (Arc::clone(&self.shared), self.driver.handle().clone());
        async move {
            let room = Arc::clone(&shared.room_for_changes).acquire_owned();
            let Ok(Ok(room)) = timeout(shared.settings.patience, room).await else {
                return Err(AppendError::Unavailable(
                    "earlier changes wait for the database".into(),
                ));
            };
            let meter = Arc::clone(&shared.meter);
            let changing = driver.spawn(async move {
                let changed = change(shared).await;
                drop(room);
                changed
            });
            let reason = match changing.await {
                Ok(Ok(verdict)) => return verdict,
                Ok(Err(failure)) => failure.to_string(),
                // the thread has ended, or the change panicked
                Err(_) => "the store is closed".to_owned(),
            };
            meter.failed();
            Err(AppendError::Unavailable(Arc::from(reason)))
        }
        .boxed()
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
