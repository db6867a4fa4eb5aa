//! Queries of generations: one, or a page of an agent's history.
//!
//! A page and the length of the history are one statement, whose rows all have the length; a page
//! without entries is one row without the rest.

use greenroom_actors::ports::store::{GenerationEntry, GenerationPage, PageSize};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::generation_columns;
use greenroom_store_codec::history::PageStart;
use greenroom_store_codec::json::parse;
use greenroom_store_codec::numbers::{limit_of, signed, unsigned};
use greenroom_store_codec::records::{entry_of, put_step};

use crate::columns::Stored;
use crate::defects::Defects;
use crate::pool::{Failure, Reading, Values};
use crate::text::Text;

/// Columns of a generation and its turns for [`whole_entry_of`], which [`later_turns`] joins.
macro_rules! whole_columns {
    () => {
        concat!(generation_columns!(), ", numbers, bodies")
    };
}
pub(crate) use whole_columns;

/// Joins the turns of a generation `g` that have their own rows, as two arrays.
macro_rules! later_turns {
    () => {
        "LEFT JOIN LATERAL (SELECT array_agg(number ORDER BY number) AS numbers,
            array_agg(body ORDER BY number) AS bodies
            FROM steps WHERE generation = g.n) AS later ON true"
    };
}
pub(crate) use later_turns;

/// Column of the length of the history, after [`whole_columns`].
const TOTAL: usize = 19;

pub(crate) const BY_ID: &str =
    concat!("SELECT ", whole_columns!(), " FROM generations g ", later_turns!(), " WHERE id = $1");

/// Every number that was assigned is in a row or counted in `forgotten`.
pub(crate) const PAGE: &str = concat!(
    "SELECT ",
    whole_columns!(),
    ", total FROM (
        SELECT last - coalesce((SELECT sum(count) FROM forgotten WHERE agent = $1), 0)::bigint
        AS total FROM agents WHERE agent = $1) AS counted
    LEFT JOIN LATERAL (
        SELECT * FROM generations WHERE agent = $1 AND number <= $2
        ORDER BY number DESC LIMIT $3 OFFSET $4) AS g ON true ",
    later_turns!(),
    " ORDER BY number DESC"
);

/// Counts and skips along the index of a user's generations of an agent.
pub(crate) const PAGE_OF_USER: &str = concat!(
    "SELECT ",
    whole_columns!(),
    ", total FROM (
        SELECT count(*) AS total FROM generations WHERE user_id = $1 AND agent = $2) AS counted
    LEFT JOIN LATERAL (
        SELECT * FROM generations WHERE user_id = $1 AND agent = $2
        ORDER BY number DESC LIMIT $3 OFFSET $4) AS g ON true ",
    later_turns!(),
    " ORDER BY number DESC"
);

/// Returns the newest number of an agent, and its blocks with holes, newest first.
pub(crate) const HOLES: &str = "SELECT last, blocks, counts FROM agents,
    (SELECT array_agg(block ORDER BY block DESC) AS blocks,
        array_agg(count ORDER BY block DESC) AS counts
        FROM forgotten WHERE agent = $1) AS holes
    WHERE agent = $1";

pub(crate) async fn generation(
    reading: Reading,
    id: &str,
) -> Result<Option<GenerationEntry>, Failure> {
    let rows = reading.rows(BY_ID, &[&Text(id)]).await?;
    reading.decoded(rows, |rows, _| rows.first().map(whole_entry_of).transpose()).await
}

/// Reads a page of the history of an agent.
///
/// Behind the first page, it is two statements. A deletion between them shifts the page as one
/// before both would.
pub(crate) async fn generations(
    reading: Reading,
    agent: &str,
    offset: u64,
    size: PageSize,
) -> Result<GenerationPage, Failure> {
    let agent = Text(agent);
    let (start, skip) = match signed(offset) {
        0 => (i64::MAX, 0),
        offset => {
            let Some(row) = reading.row(HOLES, &[&agent]).await? else {
                return Ok(GenerationPage::default());
            };
            start_of(&row, offset)?
        }
    };
    let values: Values<'_> = &[&agent, &start, &limit_of(size.records), &skip];
    let rows = reading.page(PAGE, values, size).await?;
    reading.decoded(rows, page).await
}

/// Reads a page of the agent's generations of one user.
pub(crate) async fn of_user(
    reading: Reading,
    agent: &str,
    user: &str,
    offset: u64,
    size: PageSize,
) -> Result<GenerationPage, Failure> {
    let (limit, offset) = (limit_of(size.records), signed(offset));
    let values: Values<'_> = &[&Text(user), &Text(agent), &limit, &offset];
    let rows = reading.page(PAGE_OF_USER, values, size).await?;
    reading.decoded(rows, page).await
}

/// Returns the number to start from, downwards, and the rows to skip before the page.
fn start_of(row: &Stored, offset: i64) -> Result<(i64, i64), Failure> {
    let newest = row.integer(0)?;
    let blocks: Option<Vec<i64>> = row.value(1)?;
    let counts: Option<Vec<i64>> = row.value(2)?;
    let mut holes = blocks.unwrap_or_default().into_iter().zip(counts.unwrap_or_default());
    // behind the oldest number there is nothing, however far
    let mut start = PageStart::new(newest, offset.min(newest));
    while let Some((block, count)) = holes.next()
        && start.pass(block, count)
    {}
    Ok(start.place())
}

fn page(rows: &[Stored], defects: &Defects) -> Result<GenerationPage, Failure> {
    let total = rows.first().map_or(Ok(0), |row| row.unsigned(TOTAL))?;
    let has_entry = |row: &Stored| row.optional_integer(0);
    let mut entries = Vec::with_capacity(rows.len());
    for row in rows {
        if has_entry(row)?.is_some() {
            let name = || row.named("generation", 1);
            entries.extend(defects.readable(name, whole_entry_of(row))?);
        }
    }
    Ok(GenerationPage { entries, total })
}

/// Decodes the columns of [`whole_columns`].
pub(crate) fn whole_entry_of(row: &Stored) -> Result<GenerationEntry, Failure> {
    let mut entry = entry_of(row)?;
    let numbers: Option<Vec<i32>> = row.value(17)?;
    for (number, body) in numbers.unwrap_or_default().into_iter().zip(row.pieces(18)?) {
        put_step(&mut entry.steps, unsigned(number.into())?, parse(body)?);
    }
    Ok(entry)
}
