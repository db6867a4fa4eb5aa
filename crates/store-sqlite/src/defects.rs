//! Damaged rows: each affects only its own record, never a list, a search or the start.

use std::ops::Deref;
use std::sync::Arc;

use greenroom_actors::ports::meter::JournalMeter;
use greenroom_store_codec::defects;
use rusqlite::{Connection, Error, Result, Row};

/// Reports damaged rows.
pub(super) struct Defects(defects::Defects);

/// Returns true if the row is at fault, not the store.
pub(super) fn is_defect(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..)
    )
}

impl Defects {
    pub(super) fn new(meter: Arc<dyn JournalMeter>) -> Self {
        Self(defects::Defects::new(meter))
    }

    pub(super) fn report(&self, record: &str, error: &Error) {
        self.0.report(record, error);
    }

    /// Returns what was read; `None` for a damaged row, which is reported.
    pub(super) fn readable<T>(
        &self,
        record: impl FnOnce() -> String,
        read: Result<T>,
    ) -> Result<Option<T>> {
        self.0.readable(record, read, is_defect)
    }

    /// Decodes rows, without damaged ones, which are reported. `name` returns the name of a row.
    pub(super) fn readable_rows<T>(
        &self,
        rows: &mut rusqlite::Rows<'_>,
        name: impl Fn(&Row<'_>) -> String,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.sought_rows(rows, usize::MAX, name, read, |_| true)
    }

    /// Decodes rows like [`Defects::readable_rows`], until it has `limit` of those sought.
    pub(super) fn sought_rows<T>(
        &self,
        rows: &mut rusqlite::Rows<'_>,
        limit: usize,
        name: impl Fn(&Row<'_>) -> String,
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
        is_sought: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>> {
        let mut sought = Vec::new();
        while sought.len() < limit
            && let Some(row) = rows.next()?
        {
            sought.extend(self.readable(|| name(row), read(row))?.filter(&is_sought));
        }
        Ok(sought)
    }
}

/// A read-only connection, and the reporter of damaged rows.
pub(super) struct Reading<'c> {
    pub connection: &'c Connection,
    pub defects: &'c Defects,
}

impl Deref for Reading<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}
