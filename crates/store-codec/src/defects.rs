//! Reports of damaged records: each affects only itself, never a list, a search or the start.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_actors::ports::meter::JournalMeter;

/// Maximum number of records that are logged only once; further ones are logged with every read.
const KNOWN_MAX: usize = 1_000;

/// Reports damaged records: counts every read, and logs each record once.
pub struct Defects {
    meter: Arc<dyn JournalMeter>,
    known: Mutex<HashSet<String>>,
}

impl Defects {
    /// Reports to a meter, and to the log.
    pub fn new(meter: Arc<dyn JournalMeter>) -> Self {
        Self { meter, known: Mutex::default() }
    }

    /// Reports a damaged record by its name.
    pub fn report(&self, record: &str, damage: impl Display) {
        self.meter.met_defect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < KNOWN_MAX && !known.insert(record.to_owned()) {
            return;
        }
        log::error!("the record of {record} is corrupt: {damage}");
    }

    /// Returns what was read; `None` for a damaged record, which is reported. `is_damage`
    /// distinguishes its errors from those of the store.
    pub fn readable<T, E: Display>(
        &self,
        record: impl FnOnce() -> String,
        read: Result<T, E>,
        is_damage: impl FnOnce(&E) -> bool,
    ) -> Result<Option<T>, E> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error) if is_damage(&error) => {
                self.report(&record(), error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
