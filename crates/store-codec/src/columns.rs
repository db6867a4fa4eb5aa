//! Columns of a row, as each store's client passes them.

use std::borrow::Cow;
use std::sync::Arc;

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use serde::de::DeserializeOwned;

use super::numbers::unsigned;
use super::{Damaged, json};

/// A row of a result, whose columns are read by their index. `None` is null. A store implements
/// the required methods; a value of another type is damage too.
pub trait Columns {
    /// The store's error, which distinguishes damaged rows from failures of the store.
    type Error;

    /// Returns an integer, whatever its width in the table.
    fn optional_integer(&self, column: usize) -> Result<Option<i64>, Self::Error>;

    /// Returns a text as it was before the store encoded it.
    fn optional_text(&self, column: usize) -> Result<Option<Cow<'_, str>>, Self::Error>;

    /// Returns bytes.
    fn optional_bytes(&self, column: usize) -> Result<Option<&[u8]>, Self::Error>;

    /// Converts damage of a column to the store's error.
    fn damaged(&self, column: usize, damage: Damaged) -> Self::Error;

    /// Reports damage, if a value was not decoded.
    fn checked<T>(&self, column: usize, read: Result<T, Damaged>) -> Result<T, Self::Error> {
        read.map_err(|damage| self.damaged(column, damage))
    }

    /// Reports a null as damage.
    fn required<T>(&self, column: usize, value: Option<T>) -> Result<T, Self::Error> {
        self.checked(column, value.ok_or_else(|| Damaged::new("is null")))
    }

    /// Returns an integer.
    fn integer(&self, column: usize) -> Result<i64, Self::Error> {
        self.required(column, self.optional_integer(column)?)
    }

    /// Returns a number that is never negative.
    fn unsigned(&self, column: usize) -> Result<u64, Self::Error> {
        self.checked(column, unsigned(self.integer(column)?))
    }

    /// Decodes a code, as one of [`codes`](super::codes).
    fn code<T>(
        &self,
        column: usize,
        decode: impl FnOnce(i64) -> Result<T, Damaged>,
    ) -> Result<T, Self::Error> {
        self.checked(column, decode(self.integer(column)?))
    }

    /// Returns a time in milliseconds.
    fn time(&self, column: usize) -> Result<Timestamp, Self::Error> {
        self.integer(column).map(Timestamp)
    }

    /// Returns a time in milliseconds, if there is one.
    fn optional_time(&self, column: usize) -> Result<Option<Timestamp>, Self::Error> {
        Ok(self.optional_integer(column)?.map(Timestamp))
    }

    /// Returns a text.
    fn text(&self, column: usize) -> Result<Cow<'_, str>, Self::Error> {
        self.required(column, self.optional_text(column)?)
    }

    /// Returns an owned text.
    fn string(&self, column: usize) -> Result<String, Self::Error> {
        self.text(column).map(Cow::into_owned)
    }

    /// Returns an owned text, if there is one.
    fn optional_string(&self, column: usize) -> Result<Option<String>, Self::Error> {
        Ok(self.optional_text(column)?.map(Cow::into_owned))
    }

    /// Returns a text to share.
    fn shared(&self, column: usize) -> Result<Arc<str>, Self::Error> {
        self.text(column).map(Arc::from)
    }

    /// Returns a text to share, if there is one.
    fn optional_shared(&self, column: usize) -> Result<Option<Arc<str>>, Self::Error> {
        Ok(self.optional_text(column)?.map(Arc::from))
    }

    /// Returns the id of an execution.
    fn execution_id(&self, column: usize) -> Result<ExecutionId, Self::Error> {
        self.shared(column).map(ExecutionId::trusted)
    }

    /// Returns the id of an execution, if there is one.
    fn optional_execution_id(&self, column: usize) -> Result<Option<ExecutionId>, Self::Error> {
        Ok(self.optional_shared(column)?.map(ExecutionId::trusted))
    }

    /// Returns bytes.
    fn bytes(&self, column: usize) -> Result<&[u8], Self::Error> {
        self.required(column, self.optional_bytes(column)?)
    }

    /// Decodes JSON.
    fn json<T: DeserializeOwned + Send>(&self, column: usize) -> Result<T, Self::Error> {
        self.checked(column, json::parse(self.bytes(column)?))
    }

    /// Decodes JSON, if there is any.
    fn optional_json<T: DeserializeOwned + Send>(
        &self,
        column: usize,
    ) -> Result<Option<T>, Self::Error> {
        self.checked(column, json::parse_optional(self.optional_bytes(column)?))
    }

    /// Decodes JSON that is stored as text, if there is any.
    fn optional_text_json<T: DeserializeOwned + Send>(
        &self,
        column: usize,
    ) -> Result<Option<T>, Self::Error> {
        let text = self.optional_text(column)?;
        self.checked(column, json::parse_optional(text.as_deref().map(str::as_bytes)))
    }

    /// Names the row by the text in a column, for reports of damage.
    fn named(&self, kind: &str, column: usize) -> String {
        let name = self.text(column).unwrap_or(Cow::Borrowed("without a name"));
        format!("{kind} {name}")
    }
}
