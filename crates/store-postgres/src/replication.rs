//! Commits that wait for synchronous replicas.
//!
//! The wait of a commit can be canceled, by an operator or when the connection is terminated. It has
//! happened on its server then, and PostgreSQL reports it as done, with a warning; but no replica may
//! have it, and a failover would lose it. Replicas follow in order, so they have it as soon as they
//! have a later commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Error};

use crate::connector::SessionError;

/// Function of PostgreSQL that waits for replicas. Its warnings have no SQLSTATE that others do not
/// have, and their texts are translated.
const WAIT: &str = "SyncRepWaitForLSN";

/// Looks for connections that wait for replicas.
const WAITING: &str = "SELECT EXISTS (SELECT FROM pg_stat_activity
    WHERE starts_with(application_name, $1) AND wait_event = 'SyncRep')";

/// Number of commits of one or several connections whose wait for replicas was canceled.
#[derive(Debug, Clone, Default)]
pub(crate) struct CanceledWaits(Arc<AtomicU64>);

impl CanceledWaits {
    /// Counts a notice of the database, if it is about such a commit.
    pub(crate) fn note(&self, notice: &DbError) {
        if notice.routine() == Some(WAIT) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns the number. A commit is counted before it is reported as done.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Returns the reason of a failure of a statement: one that waits for a lock may do so because an
/// earlier connection, whose name begins in this way, waits for replicas.
pub(crate) async fn explained(client: &Client, error: Error, name: &str) -> SessionError {
    if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
        && let Ok(row) = client.query_one(WAITING, &[&name]).await
        && row.try_get(0).unwrap_or(false)
    {
        return SessionError::NotReplicated;
    }
    SessionError::Failed(error)
}
