//! Decoding of SQLite's columns.

use std::sync::Arc;

use greenroom_actors::domain::fact::{Others, Suspension};
use greenroom_actors::domain::message::Role;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::Trace;
use greenroom_actors::observe::log_record::LogLevel;
use greenroom_actors::ports::store::{GenerationStatus, Status, TimerKey};
pub(super) use greenroom_store_codec::codes::{
    generation_code, level_code, role_code, status_code,
};
pub(super) use greenroom_store_codec::keys::{timer_key_text, user_text};
pub(super) use greenroom_store_codec::numbers::{limit_of, signed};
use greenroom_store_codec::{Damaged, codes, json, keys, numbers, trace};
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};
use serde::de::DeserializeOwned;

/// Reports a damaged value of a column.
fn checked<T>(row: &Row<'_>, column: usize, read: std::result::Result<T, Damaged>) -> Result<T> {
    read.or_else(|damage| {
        let kind = row.get_ref(column)?.data_type();
        Err(Error::FromSqlConversionFailure(column, kind, damage.into()))
    })
}

pub(super) fn status_of(row: &Row<'_>, column: usize) -> Result<Status> {
    checked(row, column, codes::status_of(row.get(column)?))
}

pub(super) fn generation_status_of(row: &Row<'_>, column: usize) -> Result<GenerationStatus> {
    checked(row, column, codes::generation_status_of(row.get(column)?))
}

pub(super) fn role_of(row: &Row<'_>, column: usize) -> Result<Role> {
    checked(row, column, codes::role_of(row.get(column)?))
}

pub(super) fn level_of(row: &Row<'_>, column: usize) -> Result<LogLevel> {
    checked(row, column, codes::level_of(row.get(column)?))
}

pub(super) fn user_of(row: &Row<'_>, column: usize) -> Result<Option<Arc<str>>> {
    Ok(keys::user_of(row.get_ref(column)?.as_str()?))
}

pub(super) fn timer_key_of(row: &Row<'_>, column: usize) -> Result<TimerKey> {
    checked(row, column, keys::timer_key_of(row.get_ref(column)?.as_str()?))
}

pub(super) fn json_of<T: DeserializeOwned + Send>(row: &Row<'_>, column: usize) -> Result<T> {
    checked(row, column, json::parse(row.get_ref(column)?.as_blob()?))
}

pub(super) fn optional_json_of<T: DeserializeOwned + Send>(
    row: &Row<'_>,
    column: usize,
) -> Result<Option<T>> {
    checked(row, column, json::parse_optional(row.get_ref(column)?.as_blob_or_null()?))
}

pub(super) fn suspensions_of(
    row: &Row<'_>,
    column: usize,
) -> Result<(Option<Suspension>, Option<Others>)> {
    checked(row, column, json::suspensions_of(row.get_ref(column)?.as_blob_or_null()?))
}

pub(super) fn time_of(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    row.get(column).map(Timestamp)
}

pub(super) fn unsigned_of(row: &Row<'_>, column: usize) -> Result<u64> {
    checked(row, column, numbers::unsigned(row.get(column)?))
}

/// Decodes the trace of an execution from `trace`, `parent_span`, `root_workflow` and `around`,
/// which start at column `first`.
pub(super) fn execution_trace_of(row: &Row<'_>, n: i64, first: usize) -> Result<Trace> {
    let parent_span = row.get_ref(first + 1)?.as_str_or_null()?.and_then(|id| id.parse().ok());
    let around = row.get_ref(first + 3)?.as_blob_or_null()?;
    let (name, root) = (row.get(first)?, row.get(first + 2)?);
    checked(row, first + 3, trace::execution_trace(n, name, parent_span, root, around))
}

/// Decodes the trace of a generation from `trace`, which is null if named after its id, and
/// `around`, which start at column `first`.
pub(super) fn generation_trace_of(
    row: &Row<'_>,
    (n, id, agent): (i64, &str, &Arc<str>),
    first: usize,
) -> Result<Trace> {
    let around = row.get_ref(first + 1)?.as_blob_or_null()?;
    let name = row.get(first)?;
    checked(row, first + 1, trace::generation_trace(n, id, agent, name, around))
}

/// Reports damage in a value that is not a whole column.
pub(super) fn damage_in_part(damage: Damaged) -> Error {
    Error::FromSqlConversionFailure(0, Type::Blob, damage.into())
}
