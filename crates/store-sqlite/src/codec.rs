//! Encoding of domain types in columns.

use std::sync::Arc;

use greenroom_actors::domain::fact::{Others, Suspension};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::message::Role;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::LogLevel;
use greenroom_actors::ports::store::{GenerationStatus, Projection, Status, TimerKey, read_stored};
use rusqlite::types::Type;
use rusqlite::{Error, Result, Row};
use serde::de::DeserializeOwned;

/// Returns the code of a status, which is part of the file format. Completed has the highest: see
/// the notes on indexes in `schema`.
pub(super) fn status_code(status: Status) -> i64 {
    match status {
        Status::Running => 0,
        Status::Suspended => 1,
        Status::Error => 2,
        Status::Cancelled => 3,
        Status::Completed => 4,
    }
}

pub(super) fn status_of(row: &Row<'_>, column: usize) -> Result<Status> {
    let code: i64 = row.get(column)?;
    let found = Status::ALL.into_iter().find(|status| status_code(*status) == code);
    found.ok_or_else(|| unreadable(column, Type::Integer, format!("{code} is not a status")))
}

pub(super) fn generation_code(status: GenerationStatus) -> i64 {
    match status {
        GenerationStatus::Working => 0,
        GenerationStatus::Completed => 1,
        GenerationStatus::Error => 2,
        GenerationStatus::Cancelled => 3,
    }
}

pub(super) fn generation_status_of(row: &Row<'_>, column: usize) -> Result<GenerationStatus> {
    let code: i64 = row.get(column)?;
    match code {
        0 => Ok(GenerationStatus::Working),
        1 => Ok(GenerationStatus::Completed),
        2 => Ok(GenerationStatus::Error),
        3 => Ok(GenerationStatus::Cancelled),
        _ => Err(unreadable(column, Type::Integer, format!("{code} is not a status"))),
    }
}

/// Encodes a user in keys, which cannot be null. The prefix distinguishes the user with an empty
/// name from none.
pub(super) fn user_text(user: Option<&str>) -> String {
    user.map(|user| format!("={user}")).unwrap_or_default()
}

pub(super) fn user_of(row: &Row<'_>, column: usize) -> Result<Option<Arc<str>>> {
    Ok(row.get_ref(column)?.as_str()?.strip_prefix('=').map(Arc::from))
}

pub(super) fn role_code(role: Role) -> i64 {
    match role {
        Role::System => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
    }
}

pub(super) fn role_of(row: &Row<'_>, column: usize) -> Result<Role> {
    let code: i64 = row.get(column)?;
    match code {
        0 => Ok(Role::System),
        1 => Ok(Role::User),
        2 => Ok(Role::Assistant),
        3 => Ok(Role::Tool),
        _ => Err(unreadable(column, Type::Integer, format!("{code} is not a role"))),
    }
}

/// Returns the code of a level; more severe levels have higher codes.
pub(super) fn level_code(level: LogLevel) -> i64 {
    match level {
        LogLevel::Trace => 0,
        LogLevel::Debug => 1,
        LogLevel::Info => 2,
        LogLevel::Warn => 3,
        LogLevel::Error => 4,
    }
}

pub(super) fn level_of(row: &Row<'_>, column: usize) -> Result<LogLevel> {
    let code: i64 = row.get(column)?;
    let found = LogLevel::ALL.into_iter().find(|level| level_code(*level) == code);
    found.ok_or_else(|| unreadable(column, Type::Integer, format!("{code} is not a level")))
}

const NODE: &str = "node:";
const ASK: &str = "ask:";
const ABANDONED: &str = "abandoned";

pub(super) fn timer_key_text(key: &TimerKey) -> String {
    match key {
        TimerKey::Node(path) => format!("{NODE}{path}"),
        TimerKey::AskChild(child) => format!("{ASK}{child}"),
        TimerKey::Abandoned => ABANDONED.to_owned(),
    }
}

pub(super) fn timer_key_of(row: &Row<'_>, column: usize) -> Result<TimerKey> {
    let text = row.get_ref(column)?.as_str()?;
    if let Some(path) = text.strip_prefix(NODE) {
        Ok(TimerKey::Node(path.into()))
    } else if let Some(child) = text.strip_prefix(ASK) {
        Ok(TimerKey::AskChild(ExecutionId::trusted(child)))
    } else if text == ABANDONED {
        Ok(TimerKey::Abandoned)
    } else {
        Err(unreadable(column, Type::Text, format!("{text:?} is not a timer")))
    }
}

pub(super) fn json_of<T: DeserializeOwned + Send>(row: &Row<'_>, column: usize) -> Result<T> {
    parse(column, row.get_ref(column)?.as_blob()?)
}

pub(super) fn optional_json_of<T: DeserializeOwned + Send>(
    row: &Row<'_>,
    column: usize,
) -> Result<Option<T>> {
    let blob = row.get_ref(column)?.as_blob_or_null()?;
    blob.map(|bytes| parse(column, bytes)).transpose()
}

pub(super) fn parse<T: DeserializeOwned + Send>(column: usize, bytes: &[u8]) -> Result<T> {
    read_stored(bytes)
        .map_err(|error| Error::FromSqlConversionFailure(column, Type::Blob, Box::new(error)))
}

/// Encodes the suspensions of an execution: the shown one, or a pair of it and the others.
pub(super) fn suspensions_text(projection: &Projection) -> Option<serde_json::Result<Vec<u8>>> {
    let shown = projection.suspension.as_deref()?;
    Some(match projection.others.as_deref() {
        None => serde_json::to_vec(shown),
        Some(others) => serde_json::to_vec(&(shown, others)),
    })
}

pub(super) fn suspensions_of(
    row: &Row<'_>,
    column: usize,
) -> Result<(Option<Suspension>, Option<Others>)> {
    let Some(bytes) = row.get_ref(column)?.as_blob_or_null()? else { return Ok((None, None)) };
    if bytes.first() == Some(&b'[') {
        let (shown, others) = parse(column, bytes)?;
        return Ok((Some(shown), Some(others)));
    }
    Ok((Some(parse(column, bytes)?), None))
}

pub(super) fn time_of(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    row.get(column).map(Timestamp)
}

/// Converts to SQLite's signed integers. Numbers of events never reach the maximum.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned_of(row: &Row<'_>, column: usize) -> Result<u64> {
    let number: i64 = row.get(column)?;
    u64::try_from(number)
        .map_err(|_| unreadable(column, Type::Integer, format!("{number} is negative")))
}

/// Converts a limit on rows; SQLite interprets negative limits as none.
pub(super) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn unreadable(column: usize, kind: Type, what: String) -> Error {
    Error::FromSqlConversionFailure(column, kind, what.into())
}
