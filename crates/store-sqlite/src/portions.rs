//! Parts of an execution's facts, limited in bytes: of a large row, only the requested part is
//! parsed and held in memory.
//!
//! SQLite reads whole rows of `chunks` to find one. So the statement that finds a chunk also
//! returns the part of it, and a portion usually takes one statement.

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{FactCursor, Mark, Portion, Row};
use greenroom_store_codec::portion::{Filling, Walk, Window};
use rusqlite::{Connection, Error, MAIN_DB, OptionalExtension, Result, params};

use super::codec::{damage_in_part, signed, unsigned_of};

/// Bytes of facts above which an execution is read on a separate thread.
const LARGE_BYTES: i64 = 64 * 1024;
/// Number of events above which an execution is read on a separate thread, whatever its bytes.
const LARGE_EVENTS: i64 = 1000;

pub(super) const IS_LARGE: &str = "SELECT CASE WHEN last_seq > ?2 OR ifnull(length(events), 0) > ?3
        THEN 1
        ELSE (SELECT ifnull(sum(length(events)), 0) > ?3 FROM chunks WHERE execution = n) END
    FROM executions WHERE id = ?1";

pub(super) const OWN: &str = "SELECT n, ifnull(length(events), 0) FROM executions WHERE id = ?1";

pub(super) const CHUNK_BEHIND: &str =
    "SELECT last, part, length(events), substr(events, ?4, ?5) FROM chunks
    WHERE execution = ?1 AND (last, part) > (?2, ?3) ORDER BY last, part LIMIT 1";

pub(super) const CHUNK: &str =
    "SELECT last, part, length(events), substr(events, ?4, ?5) FROM chunks
    WHERE execution = ?1 AND last = ?2 AND part = ?3";

pub(super) const PIECE: &str = "SELECT substr(events, ?4, ?5) FROM chunks
    WHERE execution = ?1 AND last = ?2 AND part = ?3";

/// Returns true if the facts of an execution take long to read.
pub(super) fn is_large(connection: &Connection, id: &ExecutionId) -> Result<bool> {
    let mut statement = connection.prepare_cached(IS_LARGE)?;
    let parameters = params![id.as_str(), LARGE_EVENTS, LARGE_BYTES];
    Ok(statement.query_row(parameters, |row| row.get(0)).optional()?.unwrap_or(false))
}

/// Reads facts from a place on, about `bytes` in their stored size, including at least one with an
/// event if there is one.
pub(super) fn portion(
    connection: &Connection,
    id: &ExecutionId,
    from: FactCursor,
    bytes: usize,
) -> Result<Portion> {
    match read(connection, id, from, bytes) {
        // the mark belongs to other content
        Err(Error::FromSqlConversionFailure(..)) if from.mark.is_some() => {
            read(connection, id, FactCursor::above(from.above), bytes)
        }
        read => read,
    }
}

fn read(
    connection: &Connection,
    id: &ExecutionId,
    from: FactCursor,
    bytes: usize,
) -> Result<Portion> {
    let transaction = connection.unchecked_transaction()?;
    let mut filling = Filling::new(from.above, bytes);
    let mut statement = transaction.prepare_cached(OWN)?;
    let own = statement.query_row([id.as_str()], |row| Ok((row.get(0)?, unsigned_of(row, 1)?)));
    let Some((row, length)) = own.optional()? else {
        return Ok(Portion { facts: Vec::new(), next: FactCursor::above(from.above) });
    };
    let own = Piece { row, chunk: None, length, head: None };
    let (mut piece, mut offset) = match from.mark {
        Some(Mark { piece: Some(chunk), offset }) => {
            match Piece::find(&transaction, CHUNK, row, chunk, filling.window(offset))? {
                Some(piece) => (piece, offset),
                None => (own, 0),
            }
        }
        Some(Mark { piece: None, offset }) => (own, offset),
        None => (own, 0),
    };
    loop {
        offset = take(&transaction, &mut filling, &mut piece, offset)?;
        if filling.is_full() {
            break;
        }
        let behind = piece.chunk.unwrap_or_else(|| (signed(from.above), i64::MAX));
        match Piece::find(&transaction, CHUNK_BEHIND, row, behind, filling.window(0))? {
            Some(next) => (piece, offset) = (next, 0),
            None => break,
        }
    }
    Ok(filling.into_portion(piece.chunk, offset))
}

/// A JSON array of facts, in the execution's own row or in a chunk.
struct Piece {
    row: Row,
    chunk: Option<(i64, i64)>,
    length: u64,
    /// First window, read with the statement that found the piece.
    head: Option<Vec<u8>>,
}

impl Piece {
    /// Finds the chunk at a place, or the first one after it, with a window of it.
    fn find(
        connection: &Connection,
        sql: &str,
        row: Row,
        place: (i64, i64),
        window: Window,
    ) -> Result<Option<Self>> {
        let mut statement = connection.prepare_cached(sql)?;
        let (at, length) = window.as_substr();
        let found = statement.query_row(params![row, place.0, place.1, at, length], |columns| {
            let chunk = Some((columns.get(0)?, columns.get(1)?));
            Ok(Self { row, chunk, length: unsigned_of(columns, 2)?, head: columns.get(3)? })
        });
        found.optional()
    }
}

/// Takes facts from a piece, from an offset on; returns the offset after the last one.
fn take(
    connection: &Connection,
    filling: &mut Filling,
    piece: &mut Piece,
    offset: u64,
) -> Result<u64> {
    match piece.chunk {
        None if piece.length == 0 => Ok(0),
        None => {
            let blob = connection.blob_open(MAIN_DB, "executions", "events", piece.row, true)?;
            let walk = Walk::of_row(filling, piece.length, offset);
            pass(filling, walk, |Window { at, length }| {
                let mut bytes = vec![0; length];
                blob.read_at_exact(&mut bytes, at)?;
                Ok(bytes)
            })
        }
        Some((last, part)) => {
            let walk = Walk::of_chunk(filling, piece.length, offset);
            let mut statement = connection.prepare_cached(PIECE)?;
            let mut head = piece.head.take();
            pass(filling, walk, |window| {
                if let Some(head) = head.take() {
                    return Ok(head);
                }
                let (at, length) = window.as_substr();
                statement.query_row(params![piece.row, last, part, at, length], |row| row.get(0))
            })
        }
    }
}

/// Takes facts window by window; returns the offset after the last one.
fn pass(
    filling: &mut Filling,
    mut walk: Walk,
    mut read: impl FnMut(Window) -> Result<Vec<u8>>,
) -> Result<u64> {
    while let Some(window) = walk.next_window(filling) {
        walk.take(filling, &read(window)?).map_err(damage_in_part)?;
    }
    Ok(walk.offset())
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn portions_find_their_rows_by_an_index() {
        for sql in [IS_LARGE, OWN, CHUNK_BEHIND, CHUNK, PIECE] {
            assert_uses_indexes(sql);
        }
    }
}
