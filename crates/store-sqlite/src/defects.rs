//! Rows that make no sense: each costs what it is about, and no list, search or start.

use std::collections::HashSet;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_actors::ports::meter::JournalMeter;
use rusqlite::{Connection, Error, Result, Row};

/// Records that are told of once; of more, each reading is told.
const KNOWN_MAX: usize = 1_000;

/// Tells of what makes no sense: in the log once for each record, and counted with each reading.
pub(super) struct Defects {
    meter: Arc<dyn JournalMeter>,
    known: Mutex<HashSet<String>>,
}

/// Whether it is the row, not the store, that is at fault.
pub(super) fn is_defect(error: &Error) -> bool {
    matches!(
        error,
        Error::FromSqlConversionFailure(..)
            | Error::IntegralValueOutOfRange(..)
            | Error::InvalidColumnType(..)
            | Error::Utf8Error(..)
    )
}

/// What a row is called by the text in a column.
pub(super) fn named(kind: &str, row: &Row<'_>, column: usize) -> String {
    let name = row.get_ref(column).ok().and_then(|value| value.as_str().ok());
    format!("{kind} {}", name.unwrap_or("without a name"))
}

impl Defects {
    pub(super) fn new(meter: Arc<dyn JournalMeter>) -> Self {
        Self { meter, known: Mutex::default() }
    }

    pub(super) fn tell(&self, record: &str, error: &Error) {
        self.meter.met_defect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < KNOWN_MAX && !known.insert(record.to_owned()) {
            return;
        }
        log::error!("the record of {record} is corrupt: {error}");
    }

    /// What was read; nothing where it makes no sense, which is told.
    pub(super) fn readable<T>(
        &self,
        record: impl FnOnce() -> String,
        read: Result<T>,
    ) -> Result<Option<T>> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if is_defect(&error) => {
                self.tell(&record(), &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// All rows of an answer that make sense. `name`: what a row is called.
    pub(super) fn readable_rows<T>(
        &self,
        rows: &mut rusqlite::Rows<'_>,
        name: impl Fn(&Row<'_>) -> String,
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.extend(self.readable(|| name(row), read(row))?);
        }
        Ok(all)
    }
}

/// A connection that reads, and where it tells of what makes no sense.
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
