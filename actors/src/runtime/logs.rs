//! Log records: those that are kept, and those that come.

use std::sync::Arc;

use crate::observe::log_record::LogRecord;
use crate::ports::store::{LogFilter, LogNumber, LogPage};
use crate::requests::Unavailable;
use crate::runtime::Runtime;

impl Runtime {
    /// The newest wanted records that are older than `before`, at most `limit`, oldest first.
    pub async fn logs(
        &self,
        filter: &LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Result<LogPage, Unavailable> {
        Ok(self.shared.store.logs(filter, before, limit).await?)
    }

    /// Records that are kept.
    pub async fn log_count(&self) -> Result<u64, Unavailable> {
        Ok(self.shared.store.log_count().await?)
    }

    /// Tells observers of records. They must be in the store by then: whoever registers an
    /// observer and then reads the store misses none. Never waits.
    pub fn publish_logs(&self, batch: Arc<[Arc<LogRecord>]>) {
        self.shared.feed.publish_logs(batch);
    }
}
