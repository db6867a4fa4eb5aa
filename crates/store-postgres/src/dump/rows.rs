//! Values of records in rows and parameters.

use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::dump::{Record, Type, Value};
use tokio_postgres::types::ToSql;

use crate::columns::Stored;
use crate::pool::Failure;
use crate::text::Text;

/// Decodes a row.
pub(super) fn record_of(row: &Stored, types: &[Type]) -> Result<Record, Failure> {
    let value = |(column, of): (usize, &Type)| {
        Ok(match of {
            Type::Integer => row.optional_integer(column)?.map(Value::Integer),
            Type::Text => row.optional_string(column)?.map(Value::Text),
            Type::Bytes => row.optional_bytes(column)?.map(|it| Value::Bytes(it.to_vec())),
        }
        .unwrap_or(Value::Null))
    };
    types.iter().enumerate().map(value).collect()
}

/// A column of records, which is one parameter of a statement.
pub(super) enum Column {
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<Text<String>>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Column {
    fn new(of: Type, length: usize) -> Self {
        match of {
            Type::Integer => Self::Integers(Vec::with_capacity(length)),
            Type::Text => Self::Texts(Vec::with_capacity(length)),
            Type::Bytes => Self::Bytes(Vec::with_capacity(length)),
        }
    }

    /// Adds a value; one of another type becomes null.
    fn add(&mut self, value: Value) {
        match (self, value) {
            (Self::Integers(column), Value::Integer(number)) => column.push(Some(number)),
            (Self::Texts(column), Value::Text(text)) => column.push(Some(Text(text))),
            (Self::Bytes(column), Value::Bytes(bytes)) => column.push(Some(bytes)),
            (Self::Integers(column), _) => column.push(None),
            (Self::Texts(column), _) => column.push(None),
            (Self::Bytes(column), _) => column.push(None),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Integers(column) => column.len(),
            Self::Texts(column) => column.len(),
            Self::Bytes(column) => column.len(),
        }
    }

    /// Returns the value of the parameter.
    pub(super) fn value(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Integers(column) => column,
            Self::Texts(column) => column,
            Self::Bytes(column) => column,
        }
    }
}

/// Turns records into columns.
pub(super) fn columns(types: impl Iterator<Item = Type>, records: Vec<Record>) -> Vec<Column> {
    let mut columns: Vec<_> = types.map(|of| Column::new(of, records.len())).collect();
    for record in records {
        for (column, value) in columns.iter_mut().zip(record) {
            column.add(value);
        }
    }
    columns
}
