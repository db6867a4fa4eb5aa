//! Columns of PostgreSQL's rows, and damage in them.

use std::borrow::Cow;
use std::error::Error;

use greenroom_store_codec::Damaged;
use greenroom_store_codec::columns::Columns;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type, accepts};

use crate::pool::Failure;
use crate::text::unescaped;

/// A row of a result, for the decoders that all stores share.
pub(crate) struct Stored(pub(crate) Row);

/// Wraps the rows of a result.
pub(crate) fn stored(rows: Vec<Row>) -> Vec<Stored> {
    rows.into_iter().map(Stored).collect()
}

/// Returns the bytes of all columns of rows.
pub(crate) fn bytes_of(rows: &[Stored]) -> usize {
    rows.iter().map(|row| row.0.raw_size_bytes()).sum()
}

impl Stored {
    /// Returns a value of a column; one of another type is damage.
    pub(crate) fn value<'r, T: FromSql<'r>>(&'r self, column: usize) -> Result<T, Failure> {
        self.0.try_get(column).map_err(|error| Failure::Damaged(error.to_string()))
    }

    /// Returns the elements of an array of `bytea`; none for null.
    pub(crate) fn pieces(&self, column: usize) -> Result<Vec<&[u8]>, Failure> {
        Ok(self.value::<Option<_>>(column)?.unwrap_or_default())
    }
}

impl Columns for Stored {
    type Error = Failure;

    fn optional_integer(&self, column: usize) -> Result<Option<i64>, Failure> {
        Ok(self.value::<Option<Integer>>(column)?.map(|it| it.0))
    }

    fn optional_text(&self, column: usize) -> Result<Option<Cow<'_, str>>, Failure> {
        Ok(self.value::<Option<&str>>(column)?.map(unescaped))
    }

    fn optional_bytes(&self, column: usize) -> Result<Option<&[u8]>, Failure> {
        self.value(column)
    }

    fn damaged(&self, column: usize, damage: Damaged) -> Failure {
        let name = self.0.columns().get(column).map_or("", |column| column.name());
        Failure::Damaged(format!("{name}: {damage}"))
    }
}

impl From<Damaged> for Failure {
    fn from(damage: Damaged) -> Self {
        Self::Damaged(damage.to_string())
    }
}

/// An integer of any width.
struct Integer(i64);

impl<'r> FromSql<'r> for Integer {
    fn from_sql(kind: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(match *kind {
            Type::INT2 => i16::from_sql(kind, raw)?.into(),
            Type::INT4 => i32::from_sql(kind, raw)?.into(),
            _ => i64::from_sql(kind, raw)?,
        }))
    }

    accepts!(INT2, INT4, INT8);
}
