//! Columns of SQLite's rows, and damage in them.

use std::borrow::Cow;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    ExecutionEnd, ExecutionStart, GenerationEntry, Projection, Status, StoredMessage,
};
pub(super) use greenroom_store_codec::codes::{
    generation_code, level_code, role_code, status_code,
};
use greenroom_store_codec::columns::Columns;
pub(super) use greenroom_store_codec::keys::{timer_key_text, user_text};
pub(super) use greenroom_store_codec::numbers::{limit_of, signed};
use greenroom_store_codec::{Damaged, codes, records};
use rusqlite::types::{FromSqlError, Type, ValueRef};
use rusqlite::{Error, Result, Row};
use serde::de::DeserializeOwned;

/// A row, for the decoders that all stores share.
pub(super) struct Stored<'r>(pub(super) &'r Row<'r>);

impl Stored<'_> {
    /// Returns a value of a column; one of another type is an error that names the column.
    fn value<'v, T>(
        &'v self,
        column: usize,
        read: impl FnOnce(ValueRef<'v>) -> std::result::Result<T, FromSqlError>,
    ) -> Result<T> {
        let value = self.0.get_ref(column)?;
        read(value).map_err(|error| {
            Error::FromSqlConversionFailure(column, value.data_type(), error.into())
        })
    }
}

impl Columns for Stored<'_> {
    type Error = Error;

    fn optional_integer(&self, column: usize) -> Result<Option<i64>> {
        self.value(column, |value| value.as_i64_or_null())
    }

    fn optional_text(&self, column: usize) -> Result<Option<Cow<'_, str>>> {
        Ok(self.value(column, |value| value.as_str_or_null())?.map(Cow::Borrowed))
    }

    fn optional_bytes(&self, column: usize) -> Result<Option<&[u8]>> {
        self.value(column, |value| value.as_blob_or_null())
    }

    fn damaged(&self, column: usize, damage: Damaged) -> Error {
        let kind = self.0.get_ref(column).map_or(Type::Null, |value| value.data_type());
        Error::FromSqlConversionFailure(column, kind, damage.into())
    }
}

/// Reports damage in a value that is not a whole column.
pub(super) fn damage_in_part(damage: Damaged) -> Error {
    Error::FromSqlConversionFailure(0, Type::Blob, damage.into())
}

pub(super) fn status_of(row: &Row<'_>, column: usize) -> Result<Status> {
    Stored(row).code(column, codes::status_of)
}

pub(super) fn time_of(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    Stored(row).time(column)
}

pub(super) fn unsigned_of(row: &Row<'_>, column: usize) -> Result<u64> {
    Stored(row).unsigned(column)
}

pub(super) fn json_of<T: DeserializeOwned + Send>(row: &Row<'_>, column: usize) -> Result<T> {
    Stored(row).json(column)
}

pub(super) fn optional_json_of<T: DeserializeOwned + Send>(
    row: &Row<'_>,
    column: usize,
) -> Result<Option<T>> {
    Stored(row).optional_json(column)
}

/// Decodes the columns of an execution.
pub(super) fn projection_of(row: &Row<'_>) -> Result<Projection> {
    records::projection_of(&Stored(row))
}

/// Decodes the columns of an end.
pub(super) fn end_of(row: &Row<'_>) -> Result<ExecutionEnd> {
    records::end_of(&Stored(row))
}

/// Decodes the columns of a start.
pub(super) fn start_of(row: &Row<'_>) -> Result<ExecutionStart> {
    records::start_of(&Stored(row))
}

/// Decodes the columns of a generation.
pub(super) fn entry_of(row: &Row<'_>) -> Result<GenerationEntry> {
    records::entry_of(&Stored(row))
}

/// Decodes a message from the second column on.
pub(super) fn message_of(row: &Row<'_>) -> Result<StoredMessage> {
    records::message_of(&Stored(row))
}

/// Names a row by the text in a column.
pub(super) fn named(kind: &str, row: &Row<'_>, column: usize) -> String {
    Stored(row).named(kind, column)
}
