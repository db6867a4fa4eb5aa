//! Damaged rows: each affects only its own record, never a list, a search or the start.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_actors::ports::meter::JournalMeter;

use crate::columns::Stored;
use crate::pool::Failure;

/// Maximum number of records that are logged only once; further ones are logged with every read.
const KNOWN_MAX: usize = 1_000;

/// Reports damaged rows: counts every read, and logs each record once.
pub(crate) struct Defects {
    meter: Arc<dyn JournalMeter>,
    known: Mutex<HashSet<String>>,
}

impl Defects {
    pub(crate) fn new(meter: Arc<dyn JournalMeter>) -> Self {
        Self { meter, known: Mutex::default() }
    }

    pub(crate) fn report(&self, record: &str, what: &str) {
        self.meter.met_defect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < KNOWN_MAX && !known.insert(record.to_owned()) {
            return;
        }
        log::error!("the record of {record} is corrupt: {what}");
    }

    /// Returns what was read; `None` for a damaged row, which is reported.
    pub(crate) fn readable<T>(
        &self,
        record: impl FnOnce() -> String,
        read: Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(Failure::Damaged(what)) => {
                self.report(&record(), &what);
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
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
