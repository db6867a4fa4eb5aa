//! Lists of executions, with an index for every filter.
//!
//! Every page is a range of an index, or a merge of one range per status. Each range has its own
//! order and limit: then PostgreSQL merges backward index scans, and reads no further than the page
//! goes; without, it would read and sort whole ranges. Lists by time of end follow the ends, and
//! check other filters on a limited number of rows.
//!
//! All statements have the parameters `$1`, earliest time, `($2, $3)`, the place before which rows
//! are listed, and `$4`, limit.

use greenroom_actors::ports::store::{
    Cursor, EndRange, ExecutionEnd, ExecutionFilter, ExecutionStart, IDS_SEARCHED_MAX,
    LIST_SEARCHED_MAX, Projection, StartRange, Status,
};
use greenroom_store_codec::codes::status_code;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::lists::{PageRange, after_prefix, page_of_ids};
use greenroom_store_codec::numbers::limit_of;
use greenroom_store_codec::records::{end_of, projection_of, start_of};
use greenroom_store_codec::{end_columns, execution_columns, start_columns};

use crate::columns::Stored;
use crate::defects::Defects;
use crate::pool::{Failure, Reading, Values};
use crate::text::Text;

/// Selects executions of a range by creation, newest first.
macro_rules! range {
    ($columns:expr, $condition:expr) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM executions WHERE ",
            $condition,
            " AND created >= $1 AND (created, n) < ($2, $3)
            ORDER BY created DESC, n DESC LIMIT $4"
        )
    };
}

/// Merges one range per status, newest first.
macro_rules! merged {
    ($columns:expr, $condition:expr) => {
        concat!(
            "(",
            $crate::list::range!($columns, concat!($condition, "status = 0")),
            ") UNION ALL (",
            $crate::list::range!($columns, concat!($condition, "status = 1")),
            ") UNION ALL (",
            $crate::list::range!($columns, concat!($condition, "status = 2")),
            ") UNION ALL (",
            $crate::list::range!($columns, concat!($condition, "status = 3")),
            ") UNION ALL (",
            $crate::list::range!($columns, concat!($condition, "status = 4")),
            ") ORDER BY created DESC, n DESC LIMIT $4"
        )
    };
}
pub(crate) use {merged, range};

pub(crate) const OF_ALL: &str = merged!(execution_columns!(), "");

pub(crate) const OF_STATUS: &str = range!(execution_columns!(), "status = $5::bigint");

pub(crate) const OF_WORKFLOW: &str = merged!(execution_columns!(), "workflow = $5 AND ");

pub(crate) const OF_WORKFLOW_AND_STATUS: &str =
    range!(execution_columns!(), "workflow = $5 AND status = $6::bigint");

/// Checks the other filters on the rows of the user.
pub(crate) const OF_USER: &str = range!(
    execution_columns!(),
    "user_id = $5 AND ($6::text IS NULL OR workflow = $6)
    AND ($7::bigint IS NULL OR status = $7)"
);

/// Checks the other filters on the few rows that replay the execution.
pub(crate) const OF_REPLAYS: &str = range!(
    execution_columns!(),
    "replayed_from = $5 AND ($6::text IS NULL OR workflow = $6)
    AND ($7::bigint IS NULL OR status = $7) AND ($8::text IS NULL OR user_id = $8)"
);

/// Checks the other filters on the rows that the execution has started.
pub(crate) const OF_CHILDREN: &str = range!(
    execution_columns!(),
    "parent = $5 AND ($6::text IS NULL OR workflow = $6)
    AND ($7::bigint IS NULL OR status = $7) AND ($8::text IS NULL OR user_id = $8)"
);

/// Selects the executions whose ids begin with a text, those with the greatest ids.
pub(crate) const OF_IDS: &str = concat!(
    "SELECT ",
    execution_columns!(),
    " FROM executions WHERE id >= $1 AND id < $2 ORDER BY id DESC LIMIT $3"
);

/// Selects executions of a range by end, last ended first, one more than a page scans.
macro_rules! ended {
    ($condition:literal) => {
        concat!(
            "SELECT ",
            execution_columns!(),
            " FROM executions WHERE ",
            $condition,
            " AND ended >= $1 AND (ended, n) < ($2, $3)
            ORDER BY ended DESC, n DESC LIMIT 5001"
        )
    };
}

/// Selects, of the rows of a range, those that match the other filters, and the last one that a
/// page scans with the one after it, which show whether more follow. The last two columns are the
/// place of the row in the range, from 1 on, and true if it matches.
macro_rules! matching {
    ($range:expr) => {
        concat!(
            "SELECT * FROM (
                SELECT *, row_number() OVER (ORDER BY ended DESC, n DESC) AS place,
                    coalesce(created >= $5 AND created < $6
                        AND ($7::text IS NULL OR workflow = $7)
                        AND ($8::text IS NULL OR user_id = $8)
                        AND ($9::text IS NULL OR replayed_from = $9)
                        AND ($10::text IS NULL OR parent = $10), false) AS matches
                FROM (",
            $range,
            ") scanned
            ) placed
            WHERE matches OR place >= 5000 ORDER BY ended DESC, n DESC LIMIT $4"
        )
    };
}

pub(crate) const ENDED_AS: &str = matching!(ended!("status = $11::bigint"));

pub(crate) const ENDED: &str = matching!(concat!(
    "(",
    ended!("status = 2"),
    ") UNION ALL (",
    ended!("status = 3"),
    ") UNION ALL (",
    ended!("status = 4"),
    ") ORDER BY ended DESC, n DESC LIMIT 5001"
));

pub(crate) const ENDS: &str = concat!(
    "SELECT ",
    end_columns!(),
    " FROM executions WHERE status = $1::bigint AND ended >= $2 AND ended < $3
    ORDER BY ended DESC, n DESC LIMIT $4"
);

pub(crate) const STARTS: &str = concat!(
    "SELECT ",
    start_columns!(),
    " FROM executions WHERE workflow = $1 AND status = $2::bigint
    ORDER BY created DESC, n DESC LIMIT $3"
);

/// Maximum number of rows that a page of ends scans: about ten milliseconds if none matches.
const ENDS_SCANNED_MAX: i64 = 5_000;

/// Indexes of columns.
const CREATED: usize = 4;
const ENDED_AT: usize = 6;
const PLACE: usize = 21;
const MATCHES: usize = 22;

/// Reads a page, newest first, and the cursor of the next one. Damaged rows are omitted.
pub(crate) async fn list(
    reading: Reading,
    filter: &ExecutionFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<(Vec<Projection>, Option<Cursor>), Failure> {
    if limit == 0 || filter.is_of_none() {
        return Ok((Vec::new(), None));
    }
    if let Some(begin) = filter.ids() {
        return list_of_ids(reading, begin, filter, after, limit).await;
    }
    let ExecutionFilter { workflow_id, user_id, replay_of, parent_id, .. } = filter;
    let PageRange { from, before: (at, row) } = PageRange::of(filter.from, filter.to, after);
    let workflow = workflow_id.as_deref().map(Text);
    let user = user_id.as_deref().map(Text);
    let replayed = replay_of.as_deref().map(Text);
    let parent = parent_id.as_deref().map(Text);
    // others have no error
    let failed = filter.error.as_ref().map(|_| Status::Error);
    let status = filter.status.or(failed).map(status_code);
    let scanned = if filter.is_search() { LIST_SEARCHED_MAX } else { limit };
    // one more, to detect another page
    let most = limit_of(scanned.saturating_add(1));
    let (sql, own): (_, Values<'_>) = match (&replayed, &parent, &user, &workflow, &status) {
        (Some(_), ..) => (OF_REPLAYS, &[&replayed, &workflow, &status, &user]),
        (None, Some(_), ..) => (OF_CHILDREN, &[&parent, &workflow, &status, &user]),
        (None, None, Some(_), ..) => (OF_USER, &[&user, &workflow, &status]),
        (None, None, None, Some(_), Some(_)) => (OF_WORKFLOW_AND_STATUS, &[&workflow, &status]),
        (None, None, None, Some(_), None) => (OF_WORKFLOW, &[&workflow]),
        (None, None, None, None, Some(_)) => (OF_STATUS, &[&status]),
        (None, None, None, None, None) => (OF_ALL, &[]),
    };
    let range: Values<'_> = &[&from, &at, &row, &most];
    let rows = reading.rows(sql, &[range, own].concat()).await?;
    let filter = filter.clone();
    let page =
        move |rows: &[Stored], defects: &Defects| page_of(rows, &filter, (limit, scanned), defects);
    reading.decoded(rows, page).await
}

/// Returns the executions of the scanned rows that a filter admits.
fn page_of(
    rows: &[Stored],
    filter: &ExecutionFilter,
    (limit, scanned): (usize, usize),
    defects: &Defects,
) -> Result<(Vec<Projection>, Option<Cursor>), Failure> {
    let (mut page, mut last) = (Vec::new(), None);
    for (looked_at, row) in rows.iter().enumerate() {
        if looked_at == scanned || page.len() == limit {
            return Ok((page, last));
        }
        last = Some(cursor_of(row, CREATED)?);
        let execution = readable(std::slice::from_ref(row), defects)?;
        page.extend(execution.into_iter().filter(|execution| filter.admits(execution)));
    }
    Ok((page, None))
}

/// Reads a page of the executions whose ids begin with a text, newest first.
async fn list_of_ids(
    reading: Reading,
    begin: &str,
    filter: &ExecutionFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<(Vec<Projection>, Option<Cursor>), Failure> {
    let (end, most) = (after_prefix(begin), limit_of(IDS_SEARCHED_MAX));
    let rows = reading.rows(OF_IDS, &[&Text(begin), &Text(&*end), &most]).await?;
    let filter = filter.clone();
    let page = move |rows: &[Stored], defects: &Defects| {
        let mut found = Vec::new();
        for row in rows {
            let read = readable(std::slice::from_ref(row), defects)?;
            let number = row.integer(0)?;
            found.extend(read.into_iter().map(|execution| (number, execution)));
        }
        Ok(page_of_ids(found, &filter, after, limit))
    };
    reading.decoded(rows, page).await
}

/// Reads a page by time of end, newest first, and the cursor of the next one. The page may be
/// shorter than `limit` although more follow.
pub(crate) async fn list_of_ends(
    reading: Reading,
    filter: &ExecutionFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<(Vec<Projection>, Option<Cursor>), Failure> {
    let ExecutionFilter { workflow_id, status, user_id, replay_of, parent_id, .. } = filter;
    let is_of_none = status.is_some_and(|status| !status.is_terminal());
    if limit == 0 || is_of_none {
        return Ok((Vec::new(), None));
    }
    let PageRange { from, before: (at, row) } =
        PageRange::of(filter.ended_from, filter.ended_to, after);
    let created_from = filter.from.map_or(i64::MIN, |from| from.0);
    let created_to = filter.to.map_or(i64::MAX, |to| to.0);
    let workflow = workflow_id.as_deref().map(Text);
    let user = user_id.as_deref().map(Text);
    let replayed = replay_of.as_deref().map(Text);
    let parent = parent_id.as_deref().map(Text);
    let most = limit_of(limit.saturating_add(1));
    let created: Values<'_> = &[&created_from, &created_to];
    let place: Values<'_> = &[&from, &at, &row, &most];
    let values = &*[place, created, &[&workflow, &user, &replayed, &parent]].concat();
    let rows = match status.map(status_code) {
        Some(status) => reading.rows(ENDED_AS, &[values, &[&status]].concat()).await?,
        None => reading.rows(ENDED, values).await?,
    };
    reading.decoded(rows, move |rows, defects| page_of_ends(rows, limit, defects)).await
}

fn page_of_ends(
    rows: &[Stored],
    limit: usize,
    defects: &Defects,
) -> Result<(Vec<Projection>, Option<Cursor>), Failure> {
    let (mut page, mut last, mut matched) = (Vec::new(), None, 0);
    for row in rows {
        if matched == limit || row.integer(PLACE)? > ENDS_SCANNED_MAX {
            return Ok((page, last));
        }
        last = Some(cursor_of(row, ENDED_AT)?);
        if row.value(MATCHES)? {
            matched += 1;
            page.extend(readable(std::slice::from_ref(row), defects)?);
        }
    }
    Ok((page, None))
}

/// Reads ends of a range, last ended first. Damaged rows are omitted.
pub(crate) async fn ends(
    reading: Reading,
    EndRange { status, period }: &EndRange,
    limit: usize,
) -> Result<Vec<ExecutionEnd>, Failure> {
    let values: Values<'_> =
        &[&status_code(*status), &period.start.0, &period.end.0, &limit_of(limit)];
    let rows = reading.rows(ENDS, values).await?;
    let decode = |rows: &[Stored], defects: &Defects| {
        defects.readable_rows(rows, |row| row.named("execution", 0), end_of)
    };
    reading.decoded(rows, decode).await
}

/// Reads starts of a range, the newest first. Damaged rows are omitted.
pub(crate) async fn starts(
    reading: Reading,
    StartRange { workflow_id, status }: &StartRange,
    limit: usize,
) -> Result<Vec<ExecutionStart>, Failure> {
    let workflow = Text(workflow_id.as_str());
    let values: Values<'_> = &[&workflow, &status_code(*status), &limit_of(limit)];
    let rows = reading.rows(STARTS, values).await?;
    let decode = |rows: &[Stored], defects: &Defects| {
        defects.readable_rows(rows, |row| row.named("execution", 0), start_of)
    };
    reading.decoded(rows, decode).await
}

fn readable(rows: &[Stored], defects: &Defects) -> Result<Vec<Projection>, Failure> {
    defects.readable_rows(rows, |row| row.named("execution", 1), projection_of)
}

fn cursor_of(row: &Stored, time: usize) -> Result<Cursor, Failure> {
    Ok(Cursor { at: row.time(time)?, row: row.integer(0)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_have_a_range_for_every_status() {
        for status in Status::ALL {
            let range = format!("status = {} ", status_code(status));
            for (sql, is_listed) in
                [(OF_ALL, true), (OF_WORKFLOW, true), (ENDED, status.is_terminal())]
            {
                assert_eq!(sql.contains(&range), is_listed, "{} in {sql}", status.as_str());
            }
        }
        assert_eq!(OF_ALL.matches("status = ").count(), Status::ALL.len());
    }

    #[test]
    fn ends_are_scanned_up_to_one_more_than_the_maximum() {
        for sql in [ENDED, ENDED_AS] {
            assert!(sql.contains(&format!("LIMIT {}", ENDS_SCANNED_MAX + 1)));
            assert!(sql.contains(&format!("place >= {ENDS_SCANNED_MAX} ")));
        }
    }
}
