//! Parts of an execution's facts, limited in bytes: of a large row, only the requested part is
//! parsed and held in memory.
//!
//! SQLite reads whole rows of `chunks` to find one. So the statement that finds a chunk also
//! returns the part of it, and a portion usually takes one statement.

use greenroom_actors::domain::event::events_of;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::ports::store::{Mark, Place, Portion, Row};
use rusqlite::types::Type;
use rusqlite::{Connection, Error, MAIN_DB, OptionalExtension, Result, params};
use serde::Deserialize;

use super::codec::{parse, signed, unsigned_of};

/// Bytes of facts above which an execution is read on a separate thread.
const LARGE_BYTES: i64 = 64 * 1024;
/// Number of events above which an execution is read on a separate thread, whatever its bytes.
const LARGE_EVENTS: i64 = 1000;
/// Maximum number of portions of a chunk, because it is read whole for each of them.
const CHUNK_PORTIONS: u64 = 64;
/// Minimum number of bytes to read at once, and bytes read beyond a portion to detect its end.
const WINDOW_MIN: usize = 4096;

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
    from: Place,
    bytes: usize,
) -> Result<Portion> {
    match read(connection, id, from, bytes) {
        // the mark belongs to other content
        Err(Error::FromSqlConversionFailure(..)) if from.mark.is_some() => {
            read(connection, id, Place::above(from.above), bytes)
        }
        read => read,
    }
}

fn read(connection: &Connection, id: &ExecutionId, from: Place, bytes: usize) -> Result<Portion> {
    let transaction = connection.unchecked_transaction()?;
    let mut filling = Filling { above: from.above, left: bytes, facts: Vec::new(), is_full: false };
    let mut statement = transaction.prepare_cached(OWN)?;
    let own = statement.query_row([id.as_str()], |row| Ok((row.get(0)?, unsigned_of(row, 1)?)));
    let Some((row, length)) = own.optional()? else {
        return Ok(Portion { facts: Vec::new(), next: Place::above(from.above) });
    };
    let own = Piece { row, chunk: None, length, head: None };
    let (mut piece, mut offset) = match from.mark {
        Some(Mark { piece: Some(chunk), offset }) => {
            let window = Window { at: first_of(offset), length: filling.window() };
            match Piece::find(&transaction, CHUNK, row, chunk, window)? {
                Some(piece) => (piece, offset),
                None => (own, 0),
            }
        }
        Some(Mark { piece: None, offset }) => (own, offset),
        None => (own, 0),
    };
    loop {
        offset = filling.take(&transaction, &mut piece, offset)?;
        if filling.is_full {
            break;
        }
        let behind = piece.chunk.unwrap_or_else(|| (signed(from.above), i64::MAX));
        let window = Window { at: first_of(0), length: filling.window() };
        match Piece::find(&transaction, CHUNK_BEHIND, row, behind, window)? {
            Some(next) => (piece, offset) = (next, 0),
            None => break,
        }
    }
    let last = filling.facts.last().map(|fact| fact.next_seq().saturating_sub(1));
    let mark = Mark { piece: piece.chunk, offset };
    let next = Place { above: last.unwrap_or(from.above), mark: Some(mark) };
    Ok(Portion { facts: filling.facts, next })
}

/// A JSON array of facts, in the execution's own row or in a chunk.
struct Piece {
    row: Row,
    chunk: Option<(i64, i64)>,
    length: u64,
    /// First window, read with the statement that found the piece.
    head: Option<Vec<u8>>,
}

/// Range of bytes of a piece.
#[derive(Debug, Clone, Copy)]
struct Window {
    at: usize,
    length: usize,
}

impl Window {
    /// Returns position and length for `substr`, which counts from 1.
    fn as_substr(self) -> (i64, i64) {
        (signed(self.at as u64 + 1), signed(self.length as u64))
    }
}

/// Returns the position of the first fact at an offset, after the opening bracket.
fn first_of(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX).max(1)
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

/// A portion that is being filled.
struct Filling {
    above: u64,
    /// Number of bytes that still fit.
    left: usize,
    facts: Vec<Recorded>,
    is_full: bool,
}

/// Number of a fact, parsed without the rest.
#[derive(Deserialize)]
struct Numbered {
    n: u64,
}

impl Filling {
    /// Returns the bytes to read at once: all that fit, and the start of the next fact.
    fn window(&self) -> usize {
        self.left.saturating_add(WINDOW_MIN)
    }

    /// Takes facts from a piece, from an offset on; returns the offset after the last one.
    fn take(&mut self, connection: &Connection, piece: &mut Piece, offset: u64) -> Result<u64> {
        let window = self.window();
        match piece.chunk {
            None if piece.length == 0 => Ok(0),
            None => {
                let blob =
                    connection.blob_open(MAIN_DB, "executions", "events", piece.row, true)?;
                self.walk(piece.length, offset, window, |at, length| {
                    let mut bytes = vec![0; length];
                    blob.read_at_exact(&mut bytes, at)?;
                    Ok(bytes)
                })
            }
            Some((last, part)) => {
                let share = usize::try_from(piece.length / CHUNK_PORTIONS).unwrap_or(usize::MAX);
                self.left = self.left.max(share);
                let mut statement = connection.prepare_cached(PIECE)?;
                let mut head = piece.head.take();
                self.walk(piece.length, offset, window.max(share), |at, length| {
                    if let Some(head) = head.take() {
                        return Ok(head);
                    }
                    let (at, length) = Window { at, length }.as_substr();
                    statement
                        .query_row(params![piece.row, last, part, at, length], |row| row.get(0))
                })
            }
        }
    }

    fn walk(
        &mut self,
        length: u64,
        offset: u64,
        window_min: usize,
        mut read: impl FnMut(usize, usize) -> Result<Vec<u8>>,
    ) -> Result<u64> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let mut at = first_of(offset);
        let mut window = window_min;
        while at < length && !self.is_full {
            let bytes = read(at, window.min(length - at))?;
            let used = self.take_from(&bytes)?;
            if used == 0 && !self.is_full {
                if at + bytes.len() >= length {
                    return Err(malformed("ends inside a fact".into()));
                }
                window = window.saturating_mul(2);
            } else {
                window = window_min;
            }
            at += used;
        }
        Ok(at as u64)
    }

    /// Takes complete facts; returns the number of bytes up to the first one not taken.
    fn take_from(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut at = 0;
        while !self.is_full {
            at += bytes[at..].iter().take_while(|byte| matches!(byte, b',' | b']')).count();
            let mut facts = serde_json::Deserializer::from_slice(&bytes[at..]).into_iter();
            let number = match facts.next() {
                Some(Ok(Numbered { n })) => n,
                Some(Err(error)) if !error.is_eof() => return Err(malformed(error.into())),
                Some(Err(_)) | None => {
                    // the part read is too large already, without the rest
                    self.is_full = bytes.len() - at > self.left && self.has_event();
                    break;
                }
            };
            let length = facts.byte_offset();
            if number > self.above {
                if length > self.left && self.has_event() {
                    self.is_full = true;
                    break;
                }
                self.left = self.left.saturating_sub(length);
                self.facts.push(parse(0, &bytes[at..at + length])?);
            }
            at += length;
        }
        Ok(at)
    }

    fn has_event(&self) -> bool {
        self.facts.iter().any(|fact| !events_of(&fact.fact).is_empty())
    }
}

fn malformed(what: Box<dyn std::error::Error + Send + Sync>) -> Error {
    Error::FromSqlConversionFailure(0, Type::Blob, what)
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

    fn filled(above: u64, left: usize, json: &str, window: usize) -> Result<(Vec<u64>, u64)> {
        let mut filling = Filling { above, left, facts: Vec::new(), is_full: false };
        let bytes = json.as_bytes();
        let end = filling.walk(bytes.len() as u64, 0, window, |at, length| {
            Ok(bytes[at..at + length].to_vec())
        })?;
        Ok((filling.facts.iter().map(|fact| fact.seq).collect(), end))
    }

    fn fact(n: u64) -> String {
        let fact = greenroom_actors::domain::fact::Fact::StepStarted {
            path: "a,]}\"ü".into(),
            attempt: 1,
            interrupted: false,
            opening: None,
        };
        let at = greenroom_actors::domain::time::Timestamp(1);
        serde_json::to_string(&Recorded { seq: n, at, fact, by: None }).unwrap()
    }

    #[test]
    fn a_portion_is_read_in_one_window() {
        let facts: Vec<_> = (1..=1000).map(fact).collect();
        let bytes = format!("[{}]", facts.join(",")).into_bytes();
        for left in [1, 1000, 5000, 20_000] {
            let mut filling = Filling { above: 0, left, facts: Vec::new(), is_full: false };
            let (window, mut reads) = (filling.window(), 0);
            let walked = filling.walk(bytes.len() as u64, 0, window, |at, length| {
                reads += 1;
                Ok(bytes[at..at + length].to_vec())
            });
            assert!(walked.is_ok() && filling.is_full && !filling.facts.is_empty());
            assert_eq!(reads, 1, "{left} bytes");
        }
    }

    #[test]
    fn a_piece_can_be_read_in_windows_of_any_size() {
        let facts: Vec<_> = (1..=5).map(fact).collect();
        let json = format!("[{}]", facts.join(","));
        let length = facts[0].len();
        for window in [1, 7, length, 10 * length] {
            let end = json.len() as u64;
            assert_eq!(filled(0, 1000, &json, window).unwrap(), (vec![1, 2, 3, 4, 5], end));
            assert_eq!(filled(3, 1000, &json, window).unwrap(), (vec![4, 5], end));
            assert_eq!(filled(9, 1000, &json, window).unwrap(), (vec![], end));
            let second = 1 + 2 * (length as u64 + 1);
            assert_eq!(filled(0, 2 * length, &json, window).unwrap(), (vec![1, 2], second));
            assert_eq!(filled(0, 1, &json, window).unwrap().0, [1], "one at least");
        }
        for broken in [&json[..json.len() - 3], "[{\"n\":1},", "[{\"n\":\"x\"}]"] {
            assert!(filled(0, 1000, broken, 16).is_err(), "{broken}");
        }
    }
}
