//! Log records that are kept.

use crate::ports::store::{LogFilter, LogNumber, LogPage};
use crate::requests::Unavailable;
use crate::runtime::{Runtime, unreadable};

impl Runtime {
    /// The newest wanted records that are older than `before`, at most `limit`, oldest first.
    pub async fn logs(
        &self,
        filter: &LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Result<LogPage, Unavailable> {
        self.core.store.logs(filter, before, limit).await.map_err(unreadable)
    }

    /// Records that are kept.
    pub async fn log_count(&self) -> Result<u64, Unavailable> {
        self.core.store.log_count().await.map_err(unreadable)
    }
}
