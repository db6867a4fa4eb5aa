//! Facts of an execution as pieces: the JSON arrays in its own row and in its chunks.
//!
//! One statement returns the next pieces, with the bytes that are wanted: of a large piece only a
//! window, and nothing of those beyond a number of bytes. PostgreSQL decompresses a large array up
//! to the end of the window, so it counts as read whole.

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::facts::FactPage;
use greenroom_store_codec::json::parse;
use greenroom_store_codec::numbers::signed;
use greenroom_store_codec::portion::{CHUNK_PORTIONS, Window};

use crate::columns::{Stored, bytes_of};
use crate::pool::{Failure, Reading};
use crate::text::Text;

/// Selects the next pieces: key, length, and the bytes of a window. It starts at `$4` in the first
/// piece and at `$8` in the others. Its length is `$5`, or more for a piece that would be read in
/// more than `$7` windows. Pieces that follow more than `$6` bytes come without theirs; `before` has
/// the bytes before a piece.
macro_rules! pieces {
    ($source:expr) => {
        concat!(
            "SELECT last, revision, length, CASE WHEN coalesce(before, 0) < $6
                THEN substr(events, at, greatest($5::bigint, length / $7::bigint)::int) END
            FROM (SELECT last, revision, at, events, length(events) AS length,
                    sum(length(events) - at + 1) OVER (ORDER BY last, revision
                        ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
                FROM (",
            $source,
            ") source) piece ORDER BY last, revision"
        )
    };
}

/// Selects the next chunks, from the key (`$2`, `$3`) on.
///
/// The range of three columns has the same rows as one of two for the execution. But for that one,
/// PostgreSQL could expect few rows, and read and sort all of them.
macro_rules! chunks {
    ($at:literal) => {
        concat!(
            "SELECT last, revision, ",
            $at,
            " AS at, events FROM chunks
            WHERE execution <= (SELECT n FROM executions WHERE id = $1)
                AND (execution, last, revision) >= ((SELECT n FROM executions WHERE id = $1), $2, $3)
            ORDER BY execution, last, revision LIMIT 64"
        )
    };
}

/// Selects the facts in the execution's own row, from `$4` on, and chunks.
pub(crate) const OWN_AND_CHUNKS: &str = pieces!(concat!(
    "SELECT -1::bigint AS last, -1::bigint AS revision, $4::bigint::int AS at,
        coalesce(events, '') AS events
    FROM executions WHERE id = $1 UNION ALL (",
    chunks!("$8::bigint::int"),
    ")"
));

/// Selects chunks; the one with the key itself from `$4` on.
pub(crate) const CHUNKS: &str = pieces!(chunks!(
    "CASE WHEN (last, revision) = ($2, $3) THEN $4::bigint::int ELSE $8::bigint::int END"
));

/// Selects a window of the facts in the execution's own row.
pub(crate) const OWN_WINDOW: &str = "SELECT substr(events, $2::bigint::int, $3::bigint::int)
    FROM executions WHERE id = $1";

/// Selects a window of a chunk.
pub(crate) const CHUNK_WINDOW: &str = "SELECT substr(events, $4::bigint::int, $5::bigint::int)
    FROM chunks WHERE execution = (SELECT n FROM executions WHERE id = $1)
        AND last = $2 AND revision = $3";

/// Maximum number of chunks that one statement returns.
const CHUNKS_MAX: usize = 64;

/// Bytes that one statement returns of a page of facts, about.
const PAGE_BYTES: i64 = 1024 * 1024;

/// Indexes of columns.
pub(crate) const LENGTH: usize = 2;
pub(crate) const BYTES: usize = 3;

/// Key of a chunk: the number of its last fact, and its revision.
pub(crate) type Key = (i64, i64);

/// Key that the statements return for the execution's own row.
pub(crate) const OWN: Key = (-1, -1);

/// Returns the first key of chunks with facts above a number.
pub(crate) fn first_above(number: u64) -> Key {
    (signed(number).saturating_add(1), i64::MIN)
}

pub(crate) fn key_of(row: &Stored) -> Result<Key, Failure> {
    Ok((row.integer(0)?, row.integer(1)?))
}

/// Returns the key from which further chunks follow, if any can follow these pieces.
pub(crate) fn next_key(pieces: &[Stored]) -> Result<Option<Key>, Failure> {
    let mut chunks = 0;
    for piece in pieces {
        let key = key_of(piece)?;
        if piece.optional_bytes(BYTES)?.is_none() {
            return Ok(Some(key));
        }
        chunks += usize::from(key != OWN);
        if chunks == CHUNKS_MAX {
            return Ok(Some(behind(key)));
        }
    }
    Ok(None)
}

pub(crate) fn behind((last, revision): Key) -> Key {
    (last, revision.saturating_add(1))
}

/// Converts position and length for `substr` of a value, which has less than a gigabyte.
fn as_substr(window: Window) -> (i64, i64) {
    let (at, length) = window.as_substr();
    (at.min(i32::MAX.into()), length.min(i32::MAX.into()))
}

/// Reads the next pieces with `sql`, from a key on: of the first one the window, of the others a
/// window of its length from `start` on, and of all about `bytes`.
pub(crate) async fn pieces(
    reading: &Reading,
    sql: &str,
    id: &ExecutionId,
    (last, revision): Key,
    window: Window,
    start: usize,
    bytes: i64,
) -> Result<Vec<Stored>, Failure> {
    let (id, (at, length)) = (Text(id.as_str()), as_substr(window));
    let (start, _) = as_substr(Window { at: start, length: 0 });
    let portions = signed(CHUNK_PORTIONS);
    reading.rows(sql, &[&id, &last, &revision, &at, &length, &bytes, &portions, &start]).await
}

/// Reads a window of one piece.
pub(crate) async fn window(
    reading: &Reading,
    id: &ExecutionId,
    key: Key,
    window: Window,
) -> Result<Vec<Stored>, Failure> {
    let (id, (at, length)) = (Text(id.as_str()), as_substr(window));
    match key {
        OWN => reading.rows(OWN_WINDOW, &[&id, &at, &length]).await,
        (last, revision) => {
            reading.rows(CHUNK_WINDOW, &[&id, &last, &revision, &at, &length]).await
        }
    }
}

/// Reads facts with numbers above `after`, at most `limit` with events.
pub(crate) async fn facts(
    reading: Reading,
    id: &ExecutionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>, Failure> {
    let mut page = FactPage::new(after, limit);
    let all = Window { at: 0, length: usize::MAX };
    let (mut sql, mut key) = (OWN_AND_CHUNKS, first_above(after));
    loop {
        let rows = pieces(&reading, sql, id, key, all, all.at, PAGE_BYTES).await?;
        let next = next_key(&rows)?;
        page = reading.decoders.decode(bytes_of(&rows), move || add(page, &rows)).await?;
        match next {
            Some(next) if !page.is_full() => (sql, key) = (CHUNKS, next),
            Some(_) | None => return Ok(page.into_facts()),
        }
    }
}

fn add(mut page: FactPage, pieces: &[Stored]) -> Result<FactPage, Failure> {
    for piece in pieces {
        match piece.optional_bytes(BYTES)? {
            Some(bytes) if !page.is_full() && !bytes.is_empty() => page.add(parse(bytes)?),
            Some(_) | None => {}
        }
    }
    Ok(page)
}
