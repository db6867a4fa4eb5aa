//! Executions, their timers and idempotency keys.

use std::sync::Arc;

use greenroom_actors::domain::fact::Parent;
use greenroom_actors::ports::store::{
    ExecutionEnd, ExecutionStart, Failure, Header, IdempotencyRecord, Projection, ReplayedFrom,
    Timer,
};

use crate::codes::status_of;
use crate::columns::Columns;
use crate::json::suspensions_of;
use crate::keys::timer_key_of;
use crate::trace::execution_trace;

/// Columns of an execution for [`projection_of`](crate::records::projection_of). Facts follow at
/// [`EVENTS`](crate::records::EVENTS) where they are selected.
#[macro_export]
macro_rules! execution_columns {
    () => {
        "n, id, workflow, status, created, updated, ended, last_seq, definition, user_id, \
         conversation, parent, parent_path, trace, parent_span, root_workflow, around, \
         suspension, error, replayed_from, replayed_step"
    };
}

/// Index of `definition` in [`execution_columns`](crate::execution_columns).
pub const DEFINITION: usize = 8;

/// Index of `around` in [`execution_columns`](crate::execution_columns).
pub const AROUND: usize = 16;

/// Index of `replayed_from` in [`execution_columns`](crate::execution_columns).
pub const REPLAYED_FROM: usize = 19;

/// Index of `events`, which follows [`execution_columns`](crate::execution_columns).
pub const EVENTS: usize = 21;

/// Decodes the columns of [`execution_columns`](crate::execution_columns).
pub fn projection_of<C: Columns>(row: &C) -> Result<Projection, C::Error> {
    let parent = row.optional_execution_id(11)?.zip(row.optional_shared(12)?);
    // an invalid name of a span is none
    let parent_span = row.optional_text(14)?.and_then(|id| id.parse().ok());
    let (trace, root) = (row.shared(13)?, row.shared(15)?);
    let trace =
        execution_trace(row.integer(0)?, trace, parent_span, root, row.optional_bytes(AROUND)?);
    let header = Header {
        id: row.execution_id(1)?,
        workflow_id: row.shared(2)?,
        definition_hash: row.shared(8)?,
        user_id: row.optional_shared(9)?,
        conversation_id: row.optional_shared(10)?,
        parent: parent.map(|(execution, path)| Parent { execution, path }),
        trace: row.checked(AROUND, trace)?,
        created_at: row.time(4)?,
    };
    let (suspension, others) = row.checked(17, suspensions_of(row.optional_bytes(17)?))?;
    let replayed = row.optional_execution_id(REPLAYED_FROM)?.zip(row.optional_shared(20)?);
    Ok(Projection {
        header: Arc::new(header),
        status: row.code(3, status_of)?,
        updated_at: row.time(5)?,
        ended_at: row.optional_time(6)?,
        last_seq: row.unsigned(7)?,
        suspension: suspension.map(Arc::new),
        others: others.map(Arc::new),
        error: row.optional_json(18)?.map(Arc::new),
        replayed_from: replayed.map(|(execution, step_id)| ReplayedFrom { execution, step_id }),
    })
}

/// Columns of an end for [`end_of`](crate::records::end_of).
#[macro_export]
macro_rules! end_columns {
    () => {
        "id, workflow, user_id, created, ended, error"
    };
}

/// Decodes the columns of [`end_columns`](crate::end_columns).
pub fn end_of<C: Columns>(row: &C) -> Result<ExecutionEnd, C::Error> {
    Ok(ExecutionEnd {
        workflow_id: row.shared(1)?,
        user_id: row.optional_shared(2)?,
        created_at: row.time(3)?,
        ended_at: row.time(4)?,
        failed_step: row.optional_json::<Failure>(5)?.and_then(|failure| failure.step_id),
    })
}

/// Columns of a start for [`start_of`](crate::records::start_of).
#[macro_export]
macro_rules! start_columns {
    () => {
        "id, definition, created, user_id"
    };
}

/// Decodes the columns of [`start_columns`](crate::start_columns).
pub fn start_of<C: Columns>(row: &C) -> Result<ExecutionStart, C::Error> {
    Ok(ExecutionStart {
        definition_hash: row.shared(1)?,
        created_at: row.time(2)?,
        user_id: row.optional_shared(3)?,
    })
}

/// Decodes a timer: `execution, key, due`.
pub fn timer_of<C: Columns>(row: &C) -> Result<Timer, C::Error> {
    Ok(Timer {
        execution: row.execution_id(0)?,
        key: row.checked(1, timer_key_of(&row.text(1)?))?,
        due: row.time(2)?,
    })
}

/// Decodes an idempotency key: `scope, body_hash, execution, after_seq, expires`.
pub fn idempotency_of<C: Columns>(row: &C) -> Result<IdempotencyRecord, C::Error> {
    Ok(IdempotencyRecord {
        scope: row.shared(0)?,
        body_hash: row.shared(1)?,
        execution: row.execution_id(2)?,
        after_seq: row.unsigned(3)?,
        expires_at: row.time(4)?,
    })
}
