//! Queries of generations: one, or a page of an agent's history.

use greenroom_actors::ports::store::{GenerationEntry, GenerationPage, GenerationStep, PageSize};
use greenroom_store_codec::generation_columns as columns;
use greenroom_store_codec::history::PageStart;
use greenroom_store_codec::records::put_step;
use rusqlite::{Connection, OptionalExtension, Result, ToSql, params};

use super::codec::{entry_of, json_of, limit_of, named, signed, unsigned_of};
use super::defects::Reading;
use super::generations::NEWEST;
use super::page::{bytes_of, take_room};

const BY_ID: &str = concat!("SELECT ", columns!(), " FROM generations WHERE id = ?1");

const PAGE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM generations WHERE agent = ?1 AND number <= ?2 ORDER BY number DESC LIMIT ?3 OFFSET ?4"
);

/// Reads a page along the index of a user's generations of an agent.
const PAGE_OF_USER: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM generations INDEXED BY generations_by_user WHERE user_id = ?1 AND agent = ?2
    ORDER BY number DESC LIMIT ?3 OFFSET ?4"
);

const COUNT_OF_USER: &str = "SELECT count(*) FROM generations INDEXED BY generations_by_user
    WHERE user_id = ?1 AND agent = ?2";

const STEPS: &str = "SELECT number, body FROM steps WHERE generation = ?1 ORDER BY number";

const HOLES: &str = "SELECT block, count FROM forgotten WHERE agent = ?1 ORDER BY block DESC";

const HOLES_IN_ALL: &str = "SELECT ifnull(sum(count), 0) FROM forgotten WHERE agent = ?1";

pub(super) fn generation(connection: &Connection, id: &str) -> Result<Option<GenerationEntry>> {
    let transaction = connection.unchecked_transaction()?;
    let mut statement = transaction.prepare_cached(BY_ID)?;
    let found = statement.query_row([id], |row| Ok((row.get(0)?, entry_of(row)?))).optional()?;
    let Some((n, mut entry)) = found else { return Ok(None) };
    add_later_steps(&transaction, n, &mut entry.steps)?;
    Ok(Some(entry))
}

pub(super) fn generations(
    reading: &Reading<'_>,
    agent: &str,
    offset: u64,
    size: PageSize,
) -> Result<GenerationPage> {
    let transaction = reading.unchecked_transaction()?;
    let newest: i64 = transaction.prepare_cached(NEWEST)?.query_row([agent], |row| row.get(0))?;
    let holes: i64 =
        transaction.prepare_cached(HOLES_IN_ALL)?.query_row([agent], |row| row.get(0))?;
    let total = newest - holes;
    let offset = signed(offset);
    if offset >= total {
        return Ok(GenerationPage { entries: Vec::new(), total: total.unsigned_abs() });
    }
    let (start, skip) = start_of(&transaction, agent, newest, offset)?;
    let place = params![agent, start, limit_of(size.records), skip];
    let entries = page(reading, PAGE, place, size)?;
    Ok(GenerationPage { entries, total: total.unsigned_abs() })
}

/// Reads a page of the agent's generations of one user, skipped and counted along an index.
pub(super) fn of_user(
    reading: &Reading<'_>,
    agent: &str,
    user: &str,
    offset: u64,
    size: PageSize,
) -> Result<GenerationPage> {
    let transaction = reading.unchecked_transaction()?;
    let mut count = transaction.prepare_cached(COUNT_OF_USER)?;
    let total = count.query_row([user, agent], |row| unsigned_of(row, 0))?;
    if offset >= total {
        return Ok(GenerationPage { entries: Vec::new(), total });
    }
    let place = params![user, agent, limit_of(size.records), signed(offset)];
    let entries = page(reading, PAGE_OF_USER, place, size)?;
    Ok(GenerationPage { entries, total })
}

/// Reads a page in the open transaction.
fn page(
    reading: &Reading<'_>,
    sql: &str,
    place: &[&dyn ToSql],
    size: PageSize,
) -> Result<Vec<GenerationEntry>> {
    let mut room = size.room();
    let mut statement = reading.prepare_cached(sql)?;
    let mut rows = statement.query(place)?;
    reading.defects.readable_rows(
        &mut rows,
        |row| named("generation", row, 1),
        |row| {
            let mut entry = entry_of(row)?;
            let later = add_later_steps(reading, row.get(0)?, &mut entry.steps)?;
            take_room(&mut room, row, later)?;
            Ok(entry)
        },
    )
}

/// Returns the number to start from, downwards, and the rows to skip before the page.
fn start_of(connection: &Connection, agent: &str, newest: i64, offset: i64) -> Result<(i64, i64)> {
    let mut start = PageStart::new(newest, offset);
    let mut statement = connection.prepare_cached(HOLES)?;
    let mut blocks = statement.query([agent])?;
    while let Some(row) = blocks.next()?
        && start.pass(row.get(0)?, row.get(1)?)
    {}
    Ok(start.place())
}

/// Adds the turns that have their own rows; returns their bytes.
pub(super) fn add_later_steps(
    connection: &Connection,
    generation: i64,
    steps: &mut Vec<GenerationStep>,
) -> Result<usize> {
    let mut statement = connection.prepare_cached(STEPS)?;
    let mut rows = statement.query([generation])?;
    let mut bytes = 0;
    while let Some(row) = rows.next()? {
        bytes += bytes_of(row)?;
        put_step(steps, unsigned_of(row, 0)?, json_of(row, 1)?);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn reads_find_their_rows_by_an_index() {
        for sql in [BY_ID, PAGE, PAGE_OF_USER, COUNT_OF_USER, STEPS, HOLES, HOLES_IN_ALL] {
            assert_uses_indexes(sql);
        }
    }
}
