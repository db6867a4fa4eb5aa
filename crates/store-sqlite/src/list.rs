//! Lists of executions, with an index for every filter.
//!
//! Every page is a range of an index, or a merge of one range per status, read newest first and
//! only as far as the page goes. Lists by time of end follow the ends, and check other filters on
//! a limited number of rows.

use std::sync::LazyLock;

use greenroom_actors::ports::store::{
    Cursor, EndRange, ExecutionEnd, ExecutionFilter, ExecutionStart, IDS_SEARCHED_MAX,
    LIST_SEARCHED_MAX, Projection, StartRange, Status,
};
use greenroom_store_codec::lists::{PageRange, after_prefix, page_of_ids};
use greenroom_store_codec::records::{AROUND, DEFINITION, REPLAYED_FROM};
use greenroom_store_codec::{end_columns, execution_columns as columns, start_columns};
use rusqlite::{Result, Statement, ToSql};

use super::codec::{end_of, limit_of, named, projection_of, start_of, status_code, time_of};
use super::defects::Reading;
use super::reader::bind;

/// Selects rows created at or after `:from` and before the place (`:before`, `:row`).
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

/// Checks the other filters on the rows of the user.
const OF_USER: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM executions INDEXED BY by_user WHERE user_id = :user",
    range!(),
    " AND (:workflow IS NULL OR workflow = :workflow) AND (:status IS NULL OR status = :status)",
    newest_first!()
);

/// Checks the other filters on the few rows that replay the execution.
const OF_REPLAYS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM executions INDEXED BY replays WHERE replayed_from = :replay_of",
    range!(),
    " AND (:workflow IS NULL OR workflow = :workflow) AND (:status IS NULL OR status = :status)
      AND (:user IS NULL OR user_id = :user)",
    newest_first!()
);

/// Checks the other filters on the rows that the execution has started.
const OF_CHILDREN: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM executions INDEXED BY children WHERE parent = :parent",
    range!(),
    " AND (:workflow IS NULL OR workflow = :workflow) AND (:status IS NULL OR status = :status)
      AND (:user IS NULL OR user_id = :user)",
    newest_first!()
);

/// Selects the executions whose ids begin with a text, those with the greatest ids.
const OF_IDS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM executions WHERE id >= :begin AND id < :end ORDER BY id DESC LIMIT :limit"
);

/// Selects rows that ended at or after `:from` and before the place.
macro_rules! ended {
    () => {
        " AND ended >= :from AND (ended, n) < (:before, :row)"
    };
}

const ENDED_LAST_FIRST: &str = " ORDER BY ended DESC, n DESC LIMIT :limit";

static ENDED_AS: LazyLock<String> = LazyLock::new(|| {
    let range = "FROM executions INDEXED BY by_end WHERE status = :status";
    format!(concat!("SELECT {} {}", ended!(), "{}"), columns!(), range, ENDED_LAST_FIRST)
});

static ENDED: LazyLock<String> = LazyLock::new(|| {
    let ended = Status::ALL.into_iter().filter(|status| status.is_terminal());
    let ranges: Vec<_> = ended
        .map(|status| {
            let range = "FROM executions INDEXED BY by_end WHERE status =";
            let code = status_code(status);
            format!(concat!("SELECT {} {} {}", ended!()), columns!(), range, code)
        })
        .collect();
    ranges.join(" UNION ALL ") + ENDED_LAST_FIRST
});

const ENDS: &str = concat!(
    "SELECT ",
    end_columns!(),
    " FROM executions INDEXED BY by_end WHERE status = :status AND ended >= :from AND ended < :to",
    " ORDER BY ended DESC, n DESC LIMIT :limit"
);

const STARTS: &str = concat!(
    "SELECT ",
    start_columns!(),
    " FROM executions INDEXED BY by_workflow WHERE workflow = :workflow AND status = :status",
    " ORDER BY created DESC, n DESC LIMIT :limit"
);

/// Maximum number of rows that a page of ends scans: about ten milliseconds if none matches.
pub(super) const ENDS_SCANNED_MAX: usize = 5_000;

static OF_ALL: LazyLock<String> = LazyLock::new(|| of_all(columns!()));

static OF_WORKFLOW: LazyLock<String> = LazyLock::new(|| of_workflow(columns!()));

/// Builds the statement for all executions, newest first.
pub(super) fn of_all(columns: &str) -> String {
    merged(columns, |status| format!("INDEXED BY by_status WHERE status = {status}"))
}

/// Builds the statement for the executions of a workflow, newest first.
pub(super) fn of_workflow(columns: &str) -> String {
    merged(columns, |status| {
        format!("INDEXED BY by_workflow WHERE workflow = :workflow AND status = {status}")
    })
}

/// Builds a statement that merges one range per status as they are read.
fn merged(columns: &str, range_of: impl Fn(i64) -> String) -> String {
    let ranges = Status::ALL.map(|status| {
        let range = range_of(status_code(status));
        format!(concat!("SELECT {} FROM executions {}", range!()), columns, range)
    });
    ranges.join(" UNION ALL ") + newest_first!()
}

/// Reads a page, newest first, and the cursor of the next one. Damaged rows are omitted.
pub(super) fn list(
    reading: &Reading<'_>,
    filter: &ExecutionFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<(Vec<Projection>, Option<Cursor>)> {
    if limit == 0 || filter.is_of_none() {
        return Ok((Vec::new(), None));
    }
    if let Some(begin) = filter.ids() {
        return list_of_ids(reading, begin, filter, after, limit);
    }
    let (status, most) = match filter.error {
        // others have none
        Some(_) => (filter.status.or(Some(Status::Error)), LIST_SEARCHED_MAX),
        None if filter.is_search() => (filter.status, LIST_SEARCHED_MAX),
        None => (filter.status, limit),
    };
    let range_filter = ExecutionFilter { status, ..filter.clone() };
    let mut statement = reading.prepare_cached(statement_for(&range_filter))?;
    let range = PageRange::of(filter.from, filter.to, after);
    bind_filter(&mut statement, &range_filter, range, most)?;
    let mut rows = statement.raw_query();
    let (mut page, mut looked_at, mut last) = (Vec::new(), 0, None);
    while let Some(row) = rows.next()? {
        if looked_at == most || page.len() == limit {
            return Ok((page, last));
        }
        looked_at += 1;
        // both are in the index, so they are readable
        last = Some(Cursor { at: time_of(row, 4)?, row: row.get(0)? });
        if filter.is_search() && !may_match(filter, row)? {
            continue;
        }
        let name = || named("execution", row, 1);
        let execution = reading.defects.readable(name, projection_of(row))?;
        page.extend(execution.filter(|execution| filter.admits(execution)));
    }
    Ok((page, None))
}

/// Reads a page of the executions whose ids begin with a text, newest first.
fn list_of_ids(
    reading: &Reading<'_>,
    begin: &str,
    filter: &ExecutionFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<(Vec<Projection>, Option<Cursor>)> {
    let mut statement = reading.prepare_cached(OF_IDS)?;
    let (end, most) = (after_prefix(begin), limit_of(IDS_SEARCHED_MAX));
    let values: [(&str, &dyn ToSql); 3] = [(":begin", &begin), (":end", &end), (":limit", &most)];
    bind(&mut statement, &values)?;
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let name = || named("execution", row, 1);
        if let Some(execution) = reading.defects.readable(name, projection_of(row))? {
            found.push((row.get(0)?, execution));
        }
    }
    Ok(page_of_ids(found, filter, after, limit))
}

/// Reads a page by time of end, newest first, and the cursor of the next one. The page may be
/// shorter than `limit` although more follow.
pub(super) fn list_of_ends(
    reading: &Reading<'_>,
    filter: &ExecutionFilter,
    after: Option<Cursor>,
    limit: usize,
) -> Result<(Vec<Projection>, Option<Cursor>)> {
    let is_of_none = filter.status.is_some_and(|status| !status.is_terminal());
    if limit == 0 || is_of_none {
        return Ok((Vec::new(), None));
    }
    let sql = if filter.status.is_some() { &*ENDED_AS } else { &*ENDED };
    let mut statement = reading.prepare_cached(sql)?;
    let (from, to) = (filter.ended_from, filter.ended_to);
    let place = PageRange::of(from, to, after);
    bind_filter(&mut statement, filter, place, ENDS_SCANNED_MAX)?;
    let mut rows = statement.raw_query();
    let (mut page, mut looked_at, mut last) = (Vec::new(), 0, None);
    while let Some(row) = rows.next()? {
        if page.len() == limit || looked_at == ENDS_SCANNED_MAX {
            return Ok((page, last));
        }
        looked_at += 1;
        // both are in the index, so they are readable
        last = Some(Cursor { at: time_of(row, 6)?, row: row.get(0)? });
        if matches(filter, row)? {
            let name = || named("execution", row, 1);
            page.extend(reading.defects.readable(name, projection_of(row))?);
        }
    }
    Ok((page, None))
}

/// Reads ends of a range, last ended first. Damaged rows are omitted.
pub(super) fn ends(
    reading: &Reading<'_>,
    range: &EndRange,
    limit: usize,
) -> Result<Vec<ExecutionEnd>> {
    let mut statement = reading.prepare_cached(ENDS)?;
    let (status, period) = (status_code(range.status), &range.period);
    let values: [(&str, &dyn ToSql); 4] = [
        (":status", &status),
        (":from", &period.start.0),
        (":to", &period.end.0),
        (":limit", &limit_of(limit)),
    ];
    bind(&mut statement, &values)?;
    let mut rows = statement.raw_query();
    let name = |row: &rusqlite::Row<'_>| named("execution", row, 0);
    reading.defects.readable_rows(&mut rows, name, end_of)
}

/// Reads starts of a range, the newest first. Damaged rows are omitted.
pub(super) fn starts(
    reading: &Reading<'_>,
    StartRange { workflow_id, status }: &StartRange,
    limit: usize,
) -> Result<Vec<ExecutionStart>> {
    let mut statement = reading.prepare_cached(STARTS)?;
    let (status, limit) = (status_code(*status), limit_of(limit));
    let range: [(&str, &dyn ToSql); 3] =
        [(":workflow", workflow_id), (":status", &status), (":limit", &limit)];
    bind(&mut statement, &range)?;
    let mut rows = statement.raw_query();
    let name = |row: &rusqlite::Row<'_>| named("execution", row, 0);
    reading.defects.readable_rows(&mut rows, name, start_of)
}

/// Returns true if a row may match a search, as far as its small columns tell: a suspension can be
/// large.
fn may_match(filter: &ExecutionFilter, row: &rusqlite::Row<'_>) -> Result<bool> {
    let text = |column| row.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from);
    let (id, definition) = (text(1)?, text(DEFINITION)?);
    let begins = |begin: &str| id.is_some_and(|id| id.starts_with(begin));
    // a trace without it was begun here, through the usual door
    let has_door = filter.via.is_none() || row.get_ref(AROUND)?.as_bytes_or_null()?.is_some();
    Ok(has_door
        && filter.id_prefix.as_deref().is_none_or(begins)
        && filter.definition_hash.as_deref().is_none_or(|wanted| definition == Some(wanted)))
}

/// Returns true if a row matches the filters other than status and time of end.
fn matches(filter: &ExecutionFilter, row: &rusqlite::Row<'_>) -> Result<bool> {
    let ExecutionFilter { workflow_id, user_id, from, to, replay_of, parent_id, .. } = filter;
    let created = time_of(row, 4)?;
    let is = |column, wanted: &Option<String>| -> Result<bool> {
        let Some(wanted) = wanted else { return Ok(true) };
        Ok(row.get_ref(column)?.as_str_or_null()? == Some(wanted))
    };
    Ok(from.is_none_or(|from| from <= created)
        && to.is_none_or(|to| created < to)
        && is(2, workflow_id)?
        && is(9, user_id)?
        && is(11, parent_id)?
        && is(REPLAYED_FROM, replay_of)?)
}

fn statement_for(filter: &ExecutionFilter) -> &'static str {
    if filter.replay_of.is_some() {
        return OF_REPLAYS;
    }
    if filter.parent_id.is_some() {
        return OF_CHILDREN;
    }
    match (&filter.user_id, &filter.workflow_id, filter.status) {
        (Some(_), _, _) => OF_USER,
        (None, Some(_), Some(_)) => OF_WORKFLOW_AND_STATUS,
        (None, Some(_), None) => &OF_WORKFLOW,
        (None, None, Some(_)) => OF_STATUS,
        (None, None, None) => &OF_ALL,
    }
}

/// Binds the parameters of a statement.
fn bind_filter(
    statement: &mut Statement<'_>,
    filter: &ExecutionFilter,
    PageRange { from, before: (before, row) }: PageRange,
    limit: usize,
) -> Result<()> {
    let ExecutionFilter { workflow_id, status, user_id, replay_of, parent_id, .. } = filter;
    let status = status.map(status_code);
    // one more, to detect another page
    let limit = limit_of(limit.saturating_add(1));
    let values: [(&str, &dyn ToSql); 9] = [
        (":workflow", workflow_id),
        (":status", &status),
        (":user", user_id),
        (":replay_of", replay_of),
        (":parent", parent_id),
        (":from", &from),
        (":before", &before),
        (":row", &row),
        (":limit", &limit),
    ];
    bind(statement, &values)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::ports::meter::NoMeter;
    use rusqlite::Connection;

    use super::super::defects::Defects;
    use super::super::reader::assert_uses_indexes;
    use super::super::schema;
    use super::*;

    #[test]
    fn a_page_of_ends_scans_a_limited_number_of_rows() {
        let mut connection = Connection::open_in_memory().unwrap();
        schema::migrate(&mut connection).unwrap();
        let rows = ENDS_SCANNED_MAX + 1;
        connection
            .execute_batch(&format!(
                "WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < {rows})
                 INSERT INTO executions (n, id, workflow, status, created, updated, ended, last_seq,
                    definition, trace, root_workflow)
                 SELECT n, 'e' || n, 'order', 4, n, n, n, 1, 'd', 't', 'order' FROM row"
            ))
            .unwrap();
        let defects = Defects::new(Arc::new(NoMeter));
        let reading = Reading { connection: &connection, defects: &defects };
        let page = |workflow: &str, after| {
            let workflow_id = Some(workflow.to_owned());
            let ended_from = Some(Timestamp(0));
            let filter = ExecutionFilter { workflow_id, ended_from, ..ExecutionFilter::default() };
            let (page, next) = list_of_ends(&reading, &filter, after, 10).unwrap();
            assert!(page.is_empty());
            next
        };
        let next = page("refund", None);
        assert_eq!(next, Some(Cursor { at: Timestamp(2), row: 2 }), "one row is left");
        assert_eq!(page("refund", next), None);
    }

    #[test]
    fn lists_with_every_filter_use_an_index() {
        for workflow_id in [None, Some("order".to_owned())] {
            for status in [None, Some(Status::Suspended)] {
                for user_id in [None, Some("u1".to_owned())] {
                    for replay_of in [None, Some("e1".to_owned())] {
                        let (workflow_id, user_id) = (workflow_id.clone(), user_id.clone());
                        let filter = ExecutionFilter {
                            workflow_id,
                            status,
                            user_id,
                            replay_of,
                            ..ExecutionFilter::default()
                        };
                        assert_uses_indexes(statement_for(&filter));
                    }
                }
            }
        }
        let parent_id = Some("e1".to_owned());
        let children = ExecutionFilter { parent_id, ..ExecutionFilter::default() };
        assert_uses_indexes(statement_for(&children));
        assert_uses_indexes(OF_IDS);
        assert_uses_indexes(&ENDED);
        assert_uses_indexes(&ENDED_AS);
        assert_uses_indexes(ENDS);
        assert_uses_indexes(STARTS);
    }
}
