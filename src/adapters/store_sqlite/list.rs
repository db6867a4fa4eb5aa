//! Lists of executions: which index serves which filter.
//!
//! Every page is a range of an index, or a merge of one range per status, read newest first and
//! only as far as the page goes.

use std::sync::LazyLock;

use greenroom_actors::ports::store::{Cursor, ExecutionFilter, Projection, Row, Status};
use rusqlite::{Result, Statement, ToSql};

use super::codec::{limit_of, status_code, time_of};
use super::defects::{Reading, named};
use super::reader::{bind, columns, projection_of};

/// Rows created at or after `:from` and before the place (`:before`, `:row`).
macro_rules! range {
    () => {
        " AND created >= :from AND (created, n) < (:before, :row)"
    };
}

macro_rules! newest_first {
    () => {
        " ORDER BY created DESC, n DESC LIMIT :limit"
    };
}
pub(super) use {newest_first, range};

const OF_STATUS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM executions INDEXED BY by_status WHERE status = :status",
    range!(),
    newest_first!()
);

const OF_WORKFLOW_AND_STATUS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM executions INDEXED BY by_workflow WHERE workflow = :workflow AND status = :status",
    range!(),
    newest_first!()
);

/// The other filters are checked on the user's own rows.
const OF_USER: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM executions INDEXED BY by_user WHERE user_id = :user",
    range!(),
    " AND (:workflow IS NULL OR workflow = :workflow) AND (:status IS NULL OR status = :status)",
    newest_first!()
);

static OF_ALL: LazyLock<String> = LazyLock::new(|| of_all(columns!()));

static OF_WORKFLOW: LazyLock<String> = LazyLock::new(|| of_workflow(columns!()));

/// Columns of all executions, newest first.
pub(super) fn of_all(columns: &str) -> String {
    merged(columns, |status| format!("INDEXED BY by_status WHERE status = {status}"))
}

/// Columns of the executions of a workflow, newest first.
pub(super) fn of_workflow(columns: &str) -> String {
    merged(columns, |status| {
        format!("INDEXED BY by_workflow WHERE workflow = :workflow AND status = {status}")
    })
}

/// One range per status, merged as they are read.
fn merged(columns: &str, range_of: impl Fn(i64) -> String) -> String {
    let ranges = Status::ALL.map(|status| {
        let range = range_of(status_code(status));
        format!(concat!("SELECT {} FROM executions {}", range!()), columns, range)
    });
    ranges.join(" UNION ALL ") + newest_first!()
}

/// A page, newest first, and where the next one begins. Rows that make no sense leave it shorter.
pub(super) fn list(
    reading: &Reading<'_>,
    filter: &ExecutionFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<(Vec<Projection>, Option<Cursor>)> {
    if limit == 0 {
        return Ok((Vec::new(), None));
    }
    let mut statement = reading.prepare_cached(statement_for(filter))?;
    bind_filter(&mut statement, filter, after, limit)?;
    let mut rows = statement.raw_query();
    let (mut page, mut looked_at, mut last) = (Vec::new(), 0, None);
    while let Some(row) = rows.next()? {
        if looked_at == limit {
            return Ok((page, last));
        }
        looked_at += 1;
        // of the order of the list, so both can be read
        last = Some(Cursor { created_at: time_of(row, 4)?, row: row.get(0)? });
        let name = || named("execution", row, 1);
        page.extend(reading.defects.readable(name, projection_of(row))?);
    }
    Ok((page, None))
}

fn statement_for(filter: &ExecutionFilter) -> &'static str {
    match (&filter.user_id, &filter.workflow_id, filter.status) {
        (Some(_), _, _) => OF_USER,
        (None, Some(_), Some(_)) => OF_WORKFLOW_AND_STATUS,
        (None, Some(_), None) => &OF_WORKFLOW,
        (None, None, Some(_)) => OF_STATUS,
        (None, None, None) => &OF_ALL,
    }
}

/// Gives the statement's parameters their values.
fn bind_filter(
    statement: &mut Statement<'_>,
    filter: &ExecutionFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<()> {
    let ExecutionFilter { workflow_id, status, user_id, from, to } = filter;
    let cursor = after.map_or((i64::MAX, Row::MAX), |cursor| (cursor.created_at.0, cursor.row));
    // No row has the smallest number, so this place is in front of all rows of that time.
    let end = to.map_or((i64::MAX, Row::MAX), |to| (to.0, Row::MIN));
    let (before, row) = cursor.min(end);
    let from = from.map_or(i64::MIN, |from| from.0);
    let status = status.map(status_code);
    // One more than asked for tells whether another page follows.
    let limit = limit_of(limit.saturating_add(1));
    let values: [(&str, &dyn ToSql); 7] = [
        (":workflow", workflow_id),
        (":status", &status),
        (":user", user_id),
        (":from", &from),
        (":before", &before),
        (":row", &row),
        (":limit", &limit),
    ];
    bind(statement, &values)
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn lists_of_every_shape_use_an_index() {
        for workflow_id in [None, Some("order".to_owned())] {
            for status in [None, Some(Status::Suspended)] {
                for user_id in [None, Some("u1".to_owned())] {
                    let workflow_id = workflow_id.clone();
                    let filter =
                        ExecutionFilter { workflow_id, status, user_id, from: None, to: None };
                    assert_uses_indexes(statement_for(&filter));
                }
            }
        }
    }
}
