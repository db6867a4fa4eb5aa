//! Pages that are refused when their rows have too many bytes, before the rest is read.

use greenroom_actors::ports::store::{PageRoom, PageTooLarge};
use rusqlite::types::ValueRef;
use rusqlite::{Error, Result, Row};

/// Takes room for a row, and for more bytes that belong to it.
pub(super) fn take_room(room: &mut PageRoom, row: &Row<'_>, more: usize) -> Result<()> {
    // a variant that carries any error, and that is not taken for damage
    room.take(bytes_of(row)? + more)
        .map_err(|refusal| Error::ToSqlConversionFailure(Box::new(refusal)))
}

/// Returns the refusal of a page, if it is the reason for an error.
pub(super) fn page_too_large(error: &Error) -> Option<PageTooLarge> {
    match error {
        Error::ToSqlConversionFailure(cause) => cause.downcast_ref().copied(),
        _ => None,
    }
}

/// Returns the bytes of the texts and blobs of a row.
pub(super) fn bytes_of(row: &Row<'_>) -> Result<usize> {
    let columns = 0..row.as_ref().column_count();
    let bytes = columns.map(|column| {
        Ok(match row.get_ref(column)? {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 0,
        })
    });
    bytes.sum()
}
