//! Damaged rows: each affects only its own record, never a list, a search or the start.

use std::sync::Arc;

use greenroom_actors::ports::meter::JournalMeter;
use greenroom_store_codec::defects;

use crate::columns::Stored;
use crate::pool::Failure;

/// Reports damaged rows.
pub(crate) struct Defects(defects::Defects);

impl Defects {
    pub(crate) fn new(meter: Arc<dyn JournalMeter>) -> Self {
        Self(defects::Defects::new(meter))
    }

    pub(crate) fn report(&self, record: &str, what: &str) {
        self.0.report(record, what);
    }

    /// Returns what was read; `None` for a damaged row, which is reported.
    pub(crate) fn readable<T>(
        &self,
        record: impl FnOnce() -> String,
        read: Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        self.0.readable(record, read, |failure| matches!(failure, Failure::Damaged(_)))
    }

    /// Decodes rows, without damaged ones, which are reported. `name` returns the name of a row.
    pub(crate) fn readable_rows<T>(
        &self,
        rows: &[Stored],
        name: impl Fn(&Stored) -> String,
        read: impl Fn(&Stored) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut all = Vec::with_capacity(rows.len());
        for row in rows {
            all.extend(self.readable(|| name(row), read(row))?);
        }
        Ok(all)
    }
}
