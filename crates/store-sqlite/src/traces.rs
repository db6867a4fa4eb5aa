//! Queries of traces: lists of roots, newest first, and the record of one trace.

use std::sync::{Arc, LazyLock};

use greenroom_actors::domain::trace::{EntityType, RootRow, own_trace_id};
use greenroom_actors::ports::store::{
    Cursor, Read, Root, RootCursor, RootFilter, RootPage, Row, TraceQuery, TraceRecord, Traces,
};
use greenroom_actors::visibility::Visibility;
use greenroom_store_codec::execution_columns;
use greenroom_store_codec::roots::{Candidate, RootMerge, SCANNED_MAX};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, ToSql};

use super::SqliteStore;
use super::codec::{Stored, entry_of, limit_of, named, projection_of};
use super::defects::Reading;
use super::list::{newest_first, of_all, of_workflow, range};
use super::reader::{Lane, bind};
use super::trace_record::trace;

/// Columns of [`Candidate::of`] of an execution: its number twice.
macro_rules! place {
    () => {
        "n, n AS place, created, joined, workflow"
    };
}

static EXECUTIONS: LazyLock<String> = LazyLock::new(|| of_all(place!()));

static EXECUTIONS_OF_WORKFLOW: LazyLock<String> = LazyLock::new(|| of_workflow(place!()));

const EXECUTIONS_OF_USER: &str = concat!(
    "SELECT ",
    place!(),
    " FROM executions INDEXED BY by_user WHERE user_id = :user",
    range!(),
    newest_first!()
);

const GENERATIONS: &str = "SELECT n, n, started, joined, agent FROM generations
    WHERE n < :place ORDER BY n DESC";

const GENERATIONS_OF_AGENT: &str = "SELECT n, number, started, joined, agent
    FROM generations INDEXED BY generations_by_agent
    WHERE agent = :entity AND number < :place ORDER BY number DESC";

const GENERATIONS_OF_USER: &str = "SELECT n, n, started, joined, agent
    FROM generations INDEXED BY generations_by_root
    WHERE user_id = :user AND joined IS NOT 1 AND n < :place ORDER BY n DESC";

pub(super) const EXECUTION: &str =
    concat!("SELECT ", execution_columns!(), ", events FROM executions WHERE n = ?1");

/// Reads a generation without input, output and turns.
const BARE_GENERATION: &str = "SELECT n, id, agent, status, started, ended, CAST('null' AS BLOB),
    NULL, usage, error, user_id, conversation, execution, path, NULL, trace, around
    FROM generations WHERE n = ?1";

const TRACE_OF_EXECUTION: &str = "SELECT trace FROM executions WHERE n = ?1";

const TRACE_OF_GENERATION: &str = "SELECT trace, id FROM generations WHERE n = ?1";

impl Traces for SqliteStore {
    fn roots<'a>(
        &'a self,
        filter: &'a RootFilter,
        after: Option<RootCursor>,
        limit: usize,
    ) -> Read<'a, RootPage> {
        let filter = filter.clone();
        let query = move |reading: &Reading<'_>| roots(reading, &filter, after, limit);
        self.read_aside(Lane::Lists, || "the list of traces".to_owned(), query)
    }

    fn trace<'a>(&'a self, query: &'a TraceQuery) -> Read<'a, TraceRecord> {
        let wanted = query.clone();
        let record = format!("trace {}", wanted.trace_id);
        self.read_aside(Lane::Lists, || record, move |reading| trace(reading, &wanted))
    }

    fn trace_of(&self, root: RootRow) -> Read<'_, Option<Arc<str>>> {
        self.read(|| "the root of a trace".to_owned(), move |reading| trace_of(reading, root))
    }
}

/// Merges the lists of executions and generations, newest first.
fn roots(
    reading: &Reading<'_>,
    filter: &RootFilter,
    after: Option<RootCursor>,
    limit: usize,
) -> Result<RootPage> {
    let after = after.unwrap_or_default();
    if filter.visibility == Visibility::Nothing {
        return Ok(RootPage::default());
    }
    let transaction = reading.unchecked_transaction()?;
    let mut executions = executions_of(&transaction, filter, after.execution)?;
    let mut generations = generations_of(&transaction, filter, after.generation)?;
    let (mut executions, mut generations) = (executions.raw_query(), generations.raw_query());
    let mut merge = RootMerge::new(filter, after, limit);
    while let Some(list) = merge.wanted() {
        let rows = match list {
            EntityType::Workflow => &mut executions,
            EntityType::Agent => &mut generations,
        };
        let row = rows.next()?.map(|row| Candidate::of(&Stored(row), filter)).transpose()?;
        merge.add(list, row, row.is_none());
    }
    let (rows, next) = merge.finish();
    let mut roots = Vec::with_capacity(rows.len());
    for row in rows {
        let (sql, kind, n) = match row {
            RootRow::Execution(n) => (EXECUTION, "execution", n),
            RootRow::Generation(n) => (BARE_GENERATION, "generation", n),
        };
        let mut statement = transaction.prepare_cached(sql)?;
        let mut found = statement.query([n])?;
        let Some(columns) = found.next()? else { continue };
        let root = match row {
            RootRow::Execution(_) => projection_of(columns).map(Root::Execution),
            RootRow::Generation(_) => {
                entry_of(columns).map(|it| Root::Generation(Box::new(it.record)))
            }
        };
        roots.extend(reading.defects.readable(|| named(kind, columns, 1), root)?);
    }
    Ok(RootPage { roots, next })
}

pub(super) fn user_of(visibility: &Visibility) -> Option<&str> {
    match visibility {
        Visibility::Of(user) => Some(user),
        Visibility::Everything | Visibility::Nothing => None,
    }
}

fn executions_of<'c>(
    connection: &'c Connection,
    filter: &RootFilter,
    after: Option<Cursor>,
) -> Result<CachedStatement<'c>> {
    let mut statement = connection.prepare_cached(statement_of_executions(filter))?;
    let (before, row) = after.map_or((i64::MAX, Row::MAX), |cursor| (cursor.at.0, cursor.row));
    let values: [(&str, &dyn ToSql); 6] = [
        (":workflow", &filter.entity_id),
        (":user", &user_of(&filter.visibility)),
        (":from", &filter.from.map_or(i64::MIN, |from| from.0)),
        (":before", &before),
        (":row", &row),
        (":limit", &limit_of(SCANNED_MAX)),
    ];
    bind(&mut statement, &values)?;
    Ok(statement)
}

fn statement_of_executions(filter: &RootFilter) -> &'static str {
    match (user_of(&filter.visibility), &filter.entity_id) {
        (Some(_), _) => EXECUTIONS_OF_USER,
        (None, Some(_)) => &EXECUTIONS_OF_WORKFLOW,
        (None, None) => &EXECUTIONS,
    }
}

fn generations_of<'c>(
    connection: &'c Connection,
    filter: &RootFilter,
    after: Option<i64>,
) -> Result<CachedStatement<'c>> {
    let mut statement = connection.prepare_cached(statement_of_generations(filter))?;
    let values: [(&str, &dyn ToSql); 3] = [
        (":entity", &filter.entity_id),
        (":user", &user_of(&filter.visibility)),
        (":place", &after.unwrap_or(i64::MAX)),
    ];
    bind(&mut statement, &values)?;
    Ok(statement)
}

fn statement_of_generations(filter: &RootFilter) -> &'static str {
    match (user_of(&filter.visibility), &filter.entity_id) {
        (Some(_), _) => GENERATIONS_OF_USER,
        (None, Some(_)) => GENERATIONS_OF_AGENT,
        (None, None) => GENERATIONS,
    }
}

fn trace_of(connection: &Connection, root: RootRow) -> Result<Option<Arc<str>>> {
    match root {
        RootRow::Execution(row) => {
            let mut statement = connection.prepare_cached(TRACE_OF_EXECUTION)?;
            statement.query_row([row], |columns| columns.get(0)).optional()
        }
        RootRow::Generation(row) => {
            let mut statement = connection.prepare_cached(TRACE_OF_GENERATION)?;
            let name = |columns: &rusqlite::Row<'_>| match columns.get(0)? {
                Some(name) => Ok(name),
                None => Ok(own_trace_id(columns.get_ref(1)?.as_str()?)),
            };
            statement.query_row([row], name).optional()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn traces_are_found_by_an_index() {
        for sql in [EXECUTION, BARE_GENERATION, TRACE_OF_EXECUTION, TRACE_OF_GENERATION] {
            assert_uses_indexes(sql);
        }
    }

    #[test]
    fn roots_of_every_filter_are_found_by_an_index() {
        for entity_id in [None, Some("order".to_owned())] {
            for visibility in [Visibility::Everything, Visibility::Of("u1".into())] {
                let entity_id = entity_id.clone();
                let filter = RootFilter { entity_id, visibility, ..RootFilter::default() };
                assert_uses_indexes(statement_of_executions(&filter));
                assert_uses_indexes(statement_of_generations(&filter));
            }
        }
    }
}
