//! Queries of traces: lists of roots, newest first, and the record of one trace.

use std::sync::{Arc, LazyLock};

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, RootRow, own_trace_id};
use greenroom_actors::ports::store::{
    Cursor, Read, Root, RootCursor, RootFilter, RootPage, Row, TraceQuery, TraceRecord, Traces,
};
use greenroom_actors::visibility::Visibility;
use greenroom_store_codec::execution_columns;
use greenroom_store_codec::trace::BELOW;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Rows, ToSql};

use super::SqliteStore;
use super::codec::{entry_of, limit_of, named, projection_of, time_of};
use super::defects::Reading;
use super::list::{newest_first, of_all, of_workflow, range};
use super::reader::{Lane, bind};
use super::trace_record::trace;

/// Maximum number of rows that a page of roots scans: about ten milliseconds if none matches.
pub(super) const SCANNED_MAX: usize = 5_000;

/// Columns of [`List::look`] of an execution: its number twice.
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

/// A row that may be a root.
#[derive(Debug, Clone, Copy)]
struct Place {
    row: Row,
    /// Position in its list.
    place: i64,
    at: Timestamp,
}

/// One of the two lists, read no further than needed.
#[derive(Default)]
struct List<'s> {
    /// `None` once all rows are read.
    rows: Option<Rows<'s>>,
    /// The next root, if it is known.
    head: Option<Place>,
    /// The last row that was returned or skipped.
    passed: Option<Place>,
}

impl<'s> List<'s> {
    fn new(statement: &'s mut Option<CachedStatement<'_>>) -> Self {
        Self { rows: statement.as_mut().map(|it| it.raw_query()), head: None, passed: None }
    }

    /// Reads up to the next root, if any. Returns false if `left`, the number of rows that may
    /// still be scanned, is used up.
    fn look(&mut self, filter: &RootFilter, left: &mut usize) -> Result<bool> {
        while self.head.is_none()
            && let Some(rows) = &mut self.rows
        {
            if *left == 0 {
                return Ok(false);
            }
            *left -= 1;
            let Some(row) = rows.next()? else {
                self.rows = None;
                break;
            };
            let found = Place { row: row.get(0)?, place: row.get(1)?, at: time_of(row, 2)? };
            let is_root = row.get::<_, Option<i64>>(3)? != Some(BELOW);
            let entity = row.get_ref(4)?.as_str()?;
            let matches = is_root
                && filter.from.is_none_or(|from| found.at >= from)
                && filter.entity_id.as_deref().is_none_or(|wanted| wanted == entity);
            *(if matches { &mut self.head } else { &mut self.passed }) = Some(found);
        }
        Ok(true)
    }

    fn take(&mut self) -> Option<Place> {
        let head = self.head.take();
        self.passed = head.or(self.passed);
        head
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
    let mut of_workflows = executions_of(&transaction, filter, after.execution)?;
    let mut of_agents = generations_of(&transaction, filter, after.generation)?;
    let (mut executions, mut generations) =
        (List::new(&mut of_workflows), List::new(&mut of_agents));
    let (mut roots, mut left) = (Vec::new(), SCANNED_MAX);
    let is_cut = loop {
        if !executions.look(filter, &mut left)? || !generations.look(filter, &mut left)? {
            break true;
        }
        let is_workflow = match (&executions.head, &generations.head) {
            (None, None) => break false,
            _ if roots.len() == limit => break true,
            (Some(execution), Some(generation)) => execution.at >= generation.at,
            (execution, _) => execution.is_some(),
        };
        let head = if is_workflow { executions.take() } else { generations.take() };
        let Some(Place { row, .. }) = head else { break false };
        let (sql, kind) = match is_workflow {
            true => (EXECUTION, "execution"),
            false => (BARE_GENERATION, "generation"),
        };
        let mut statement = transaction.prepare_cached(sql)?;
        let mut found = statement.query([row])?;
        let Some(columns) = found.next()? else { continue };
        let root = match is_workflow {
            true => projection_of(columns).map(Root::Execution),
            false => entry_of(columns).map(|it| Root::Generation(Box::new(it.record))),
        };
        roots.extend(reading.defects.readable(|| named(kind, columns, 1), root)?);
    };
    let execution = executions.passed.map(|it| Cursor { at: it.at, row: it.row });
    let generation = generations.passed.map(|it| it.place);
    let next = RootCursor {
        execution: execution.or(after.execution),
        generation: generation.or(after.generation),
    };
    Ok(RootPage { roots, next: is_cut.then_some(next) })
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
) -> Result<Option<CachedStatement<'c>>> {
    if filter.entity_type == Some(EntityType::Agent) {
        return Ok(None);
    }
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
    Ok(Some(statement))
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
) -> Result<Option<CachedStatement<'c>>> {
    if filter.entity_type == Some(EntityType::Workflow) {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(statement_of_generations(filter))?;
    let values: [(&str, &dyn ToSql); 3] = [
        (":entity", &filter.entity_id),
        (":user", &user_of(&filter.visibility)),
        (":place", &after.unwrap_or(i64::MAX)),
    ];
    bind(&mut statement, &values)?;
    Ok(Some(statement))
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
