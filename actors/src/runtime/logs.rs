//! Stored log records, and new ones.

use std::sync::Arc;

use crate::observe::log_record::LogRecord;
use crate::ports::store::{LogFilter, LogNumber, LogPage};
use crate::requests::Unavailable;
use crate::runtime::Runtime;

impl Runtime {
    /// Returns the newest matching records older than `before`, at most `limit`, oldest first.
    pub async fn logs(
        &self,
        filter: &LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Result<LogPage, Unavailable> {
        Ok(self.shared.store.logs(filter, before, limit).await?)
    }

    /// Returns the number of stored records.
    pub async fn log_count(&self) -> Result<u64, Unavailable> {
        Ok(self.shared.store.log_count().await?)
    }

    /// Sends records to observers, without waiting. The store must have them already, so that an
    /// observer that registers and then reads the store misses none.
    pub fn publish_logs(&self, batch: Arc<[Arc<LogRecord>]>) {
        self.shared.feed.publish_logs(batch);
    }
}
