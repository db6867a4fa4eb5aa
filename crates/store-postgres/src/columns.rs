//! Values of columns.

use std::sync::Arc;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::read_stored;
use serde::de::DeserializeOwned;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::pool::Failure;
use crate::text::Text;

/// Returns the value of a column; a value of another type is damage.
pub(crate) fn value_of<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, Failure> {
    row.try_get(column).map_err(|error| Failure::Damaged(error.to_string()))
}

pub(crate) fn text_of(row: &Row, column: usize) -> Result<Arc<str>, Failure> {
    value_of::<Text<Arc<str>>>(row, column).map(|text| text.0)
}

pub(crate) fn string_of(row: &Row, column: usize) -> Result<String, Failure> {
    value_of::<Text<String>>(row, column).map(|text| text.0)
}

pub(crate) fn optional_text_of(row: &Row, column: usize) -> Result<Option<Arc<str>>, Failure> {
    value_of::<Option<Text<Arc<str>>>>(row, column).map(|text| text.map(|text| text.0))
}

pub(crate) fn optional_string_of(row: &Row, column: usize) -> Result<Option<String>, Failure> {
    value_of::<Option<Text<String>>>(row, column).map(|text| text.map(|text| text.0))
}

pub(crate) fn time_of(row: &Row, column: usize) -> Result<Timestamp, Failure> {
    value_of(row, column).map(Timestamp)
}

pub(crate) fn unsigned_of(row: &Row, column: usize) -> Result<u64, Failure> {
    let number: i64 = value_of(row, column)?;
    u64::try_from(number).map_err(|_| Failure::Damaged(format!("{number} is negative")))
}

/// Returns the JSON of a `bytea` column, decoded.
pub(crate) fn json_of<T: DeserializeOwned + Send>(row: &Row, column: usize) -> Result<T, Failure> {
    parse(value_of(row, column)?)
}

pub(crate) fn optional_json_of<T: DeserializeOwned + Send>(
    row: &Row,
    column: usize,
) -> Result<Option<T>, Failure> {
    value_of::<Option<&[u8]>>(row, column)?.map(parse).transpose()
}

pub(crate) fn parse<T: DeserializeOwned + Send>(bytes: &[u8]) -> Result<T, Failure> {
    read_stored(bytes).map_err(|error| Failure::Damaged(error.to_string()))
}

/// Converts to PostgreSQL's signed integers. Numbers of events never reach the maximum.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a limit on rows.
pub(crate) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Names a row by the text in a column.
pub(crate) fn named(kind: &str, row: &Row, column: usize) -> String {
    let name = string_of(row, column).unwrap_or_else(|_| "without a name".to_owned());
    format!("{kind} {name}")
}
