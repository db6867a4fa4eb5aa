//! Appends to executions.

use std::sync::Arc;

use greenroom_actors::ports::store::{Append, Status};

use super::PreparedAskChange;
use crate::json::suspensions_bytes;
use crate::numbers::signed;
use crate::trace::{TraceColumns, execution_columns};
use crate::users::users_in;

/// Typical size of a serialized fact, to allocate the buffer.
const FACT_BYTES_USUAL: usize = 96;

/// Maximum size of a first chunk in the row of an execution that will change again.
const INLINE_BYTES_MAX: usize = 1024;

/// A serialized append.
#[derive(Debug)]
pub struct PreparedAppend {
    /// Without changes of asks, which are serialized.
    pub append: Append,
    /// The facts, as one JSON array.
    pub events: Vec<u8>,
    /// The suspensions; see [`suspensions_bytes`].
    pub suspension: Option<Vec<u8>>,
    /// The excerpt of the error, as JSON.
    pub error: Option<Vec<u8>>,
    /// Users named in the facts.
    pub users: Vec<Arc<str>>,
    pub asks: Vec<PreparedAskChange>,
    /// Trace columns, if the append creates the execution.
    pub trace: TraceColumns,
}

impl PreparedAppend {
    /// Serializes an append.
    pub fn new(mut append: Append) -> serde_json::Result<Self> {
        let mut events = Vec::with_capacity(append.facts.len() * FACT_BYTES_USUAL);
        serde_json::to_writer(&mut events, &append.facts)?;
        let suspension = suspensions_bytes(&append.projection)?;
        let error = append.projection.error.as_deref().map(serde_json::to_vec).transpose()?;
        let trace = match append.revision {
            0 => execution_columns(&append.projection.header, append.row)?,
            _ => TraceColumns::default(),
        };
        let users = users_in(&append.facts);
        let asks = PreparedAskChange::all(std::mem::take(&mut append.asks))?;
        Ok(Self { suspension, error, users, asks, events, trace, append })
    }

    /// Returns true if the facts of a creation go into the row of the execution, which has this
    /// status after them: a row that will change is rewritten whole.
    pub fn fits_row(&self, status: Status) -> bool {
        status.is_terminal() || self.events.len() <= INLINE_BYTES_MAX
    }

    /// Returns the number of the last fact, by which the chunk is found.
    pub fn last(&self) -> i64 {
        self.append.facts.last().map_or(0, |fact| signed(fact.seq))
    }
}
