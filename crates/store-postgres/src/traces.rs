//! Queries of traces: lists of roots, newest first, and the root of a trace.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::try_join;
use greenroom_actors::domain::trace::{EntityType, RootRow, own_trace_id};
use greenroom_actors::ports::store::{
    Cursor, Read, Root, RootCursor, RootFilter, RootPage, Row, TraceQuery, TraceRecord, Traces,
};
use greenroom_actors::visibility::Visibility;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::execution_columns;
use greenroom_store_codec::lists::PageRange;
use greenroom_store_codec::numbers::limit_of;
use greenroom_store_codec::records::{entry_of, projection_of};
use greenroom_store_codec::roots::{Candidate, RootMerge};

use crate::columns::bytes_of;
use crate::list::{merged, range};
use crate::pool::{Failure, Reading, Values};
use crate::store::PostgresStore;
use crate::text::Text;
use crate::trace_record;

/// Columns of [`Candidate::of`] of an execution: its number twice.
macro_rules! place {
    () => {
        "n, n AS place, created, joined, workflow"
    };
}

pub(crate) const EXECUTIONS: &str = merged!(place!(), "");

pub(crate) const EXECUTIONS_OF_WORKFLOW: &str = merged!(place!(), "workflow = $5 AND ");

pub(crate) const EXECUTIONS_OF_USER: &str = range!(place!(), "user_id = $5");

/// Selects generations by their numbers, of which each server has blocks: they are in the order of
/// their start only among those of one server.
pub(crate) const GENERATIONS: &str = "SELECT n, n AS place, started, joined, agent
    FROM generations WHERE n < $1 ORDER BY n DESC LIMIT $2";

pub(crate) const GENERATIONS_OF_AGENT: &str =
    "SELECT n, number AS place, started, joined, agent FROM generations
    WHERE agent = $3 AND number < $1 ORDER BY number DESC LIMIT $2";

pub(crate) const GENERATIONS_OF_USER: &str = "SELECT n, n AS place, started, joined, agent
    FROM generations WHERE user_id = $3 AND joined IS DISTINCT FROM 1 AND n < $1
    ORDER BY n DESC LIMIT $2";

pub(crate) const EXECUTION_ROOTS: &str =
    concat!("SELECT ", execution_columns!(), " FROM executions WHERE n = ANY($1)");

/// Reads generations without input, output and turns.
pub(crate) const GENERATION_ROOTS: &str = "SELECT n, id, agent, status, started, ended,
        'null'::bytea, NULL::bytea, usage, error, user_id, conversation, execution, path,
        NULL::bytea, trace, around
    FROM generations WHERE n = ANY($1)";

pub(crate) const TRACE_OF_EXECUTION: &str = "SELECT trace, id FROM executions WHERE n = $1";

pub(crate) const TRACE_OF_GENERATION: &str = "SELECT trace, id FROM generations WHERE n = $1";

impl Traces for PostgresStore {
    fn roots<'a>(
        &'a self,
        filter: &'a RootFilter,
        after: Option<RootCursor>,
        limit: usize,
    ) -> Read<'a, RootPage> {
        let record = || "the list of traces".to_owned();
        self.shared.pool.read(record, move |it| roots(it, filter, after, limit))
    }

    fn trace<'a>(&'a self, query: &'a TraceQuery) -> Read<'a, TraceRecord> {
        let record = || format!("trace {}", query.trace_id);
        self.shared.pool.read(record, move |it| trace_record::trace(it, query))
    }

    fn trace_of(&self, root: RootRow) -> Read<'_, Option<Arc<str>>> {
        self.shared.pool.read(|| "the root of a trace".to_owned(), move |it| trace_of(it, root))
    }
}

/// Rows of one list that a statement reads at first, at least, and then.
const FIRST_MIN: usize = 16;
const THEN: usize = 1_000;

/// Merges the lists of executions and generations, newest first.
async fn roots(
    reading: Reading,
    filter: &RootFilter,
    after: Option<RootCursor>,
    limit: usize,
) -> Result<RootPage, Failure> {
    if filter.visibility == Visibility::Nothing {
        return Ok(RootPage::default());
    }
    let after = after.unwrap_or_default();
    let mut merge = RootMerge::new(filter, after, limit);
    let mut lists = Lists { reading: &reading, filter, next: after };
    let first = limit.saturating_add(1).clamp(FIRST_MIN, THEN);
    lists.read_both(&mut merge, first).await?;
    while let Some(list) = merge.wanted() {
        lists.read(&mut merge, list, THEN).await?;
    }
    let (rows, next) = merge.finish();
    Ok(RootPage { roots: bodies(reading, rows).await?, next })
}

/// The two lists, as far as they were read.
struct Lists<'r> {
    reading: &'r Reading,
    filter: &'r RootFilter,
    /// Position from which to continue.
    next: RootCursor,
}

impl Lists<'_> {
    /// Reads the first rows of the lists that the filter has, in one round trip.
    async fn read_both(&mut self, merge: &mut RootMerge, size: usize) -> Result<(), Failure> {
        if let Some(kind) = self.filter.entity_type {
            return self.read(merge, kind, size).await;
        }
        let (executions, generations) =
            try_join(self.executions(size), self.generations(size)).await?;
        self.add(merge, EntityType::Workflow, executions, size);
        self.add(merge, EntityType::Agent, generations, size);
        Ok(())
    }

    /// Reads the next rows of a list.
    async fn read(
        &mut self,
        merge: &mut RootMerge,
        list: EntityType,
        size: usize,
    ) -> Result<(), Failure> {
        let rows = match list {
            EntityType::Workflow => self.executions(size).await?,
            EntityType::Agent => self.generations(size).await?,
        };
        self.add(merge, list, rows, size);
        Ok(())
    }

    fn add(&mut self, merge: &mut RootMerge, list: EntityType, rows: Vec<Candidate>, size: usize) {
        if let Some(Candidate { row, place, at, .. }) = rows.last().copied() {
            match list {
                EntityType::Workflow => self.next.execution = Some(Cursor { at, row }),
                EntityType::Agent => self.next.generation = Some(place),
            }
        }
        let is_last = rows.len() < size;
        merge.add(list, rows, is_last);
    }

    async fn executions(&self, size: usize) -> Result<Vec<Candidate>, Failure> {
        let PageRange { from, before: (at, row) } =
            PageRange::of(self.filter.from, None, self.next.execution);
        let (user, entity, limit) = (self.user(), self.entity(), limit_of(size));
        let range: Values<'_> = &[&from, &at, &row, &limit];
        let (sql, own): (_, Values<'_>) = match (&user, &entity) {
            (Some(_), _) => (EXECUTIONS_OF_USER, &[&user]),
            (None, Some(_)) => (EXECUTIONS_OF_WORKFLOW, &[&entity]),
            (None, None) => (EXECUTIONS, &[]),
        };
        let rows = self.reading.rows(sql, &[range, own].concat()).await?;
        rows.iter().map(|row| Candidate::of(row, self.filter)).collect()
    }

    async fn generations(&self, size: usize) -> Result<Vec<Candidate>, Failure> {
        let before = self.next.generation.unwrap_or(i64::MAX);
        let (user, entity, limit) = (self.user(), self.entity(), limit_of(size));
        let range: Values<'_> = &[&before, &limit];
        let (sql, own): (_, Values<'_>) = match (&user, &entity) {
            (Some(_), _) => (GENERATIONS_OF_USER, &[&user]),
            (None, Some(_)) => (GENERATIONS_OF_AGENT, &[&entity]),
            (None, None) => (GENERATIONS, &[]),
        };
        let rows = self.reading.rows(sql, &[range, own].concat()).await?;
        rows.iter().map(|row| Candidate::of(row, self.filter)).collect()
    }

    fn user(&self) -> Option<Text<&str>> {
        user_of(&self.filter.visibility).map(Text)
    }

    fn entity(&self) -> Option<Text<&str>> {
        self.filter.entity_id.as_deref().map(Text)
    }
}

/// Reads roots by their rows, in this order. Damaged ones, and those that were deleted meanwhile,
/// are omitted.
async fn bodies(reading: Reading, roots: Vec<RootRow>) -> Result<Vec<Root>, Failure> {
    let (mut executions, mut generations) = (Vec::new(), Vec::new());
    for root in &roots {
        match root {
            RootRow::Execution(row) => executions.push(*row),
            RootRow::Generation(row) => generations.push(*row),
        }
    }
    let read = async |sql, rows: Vec<Row>| match rows.is_empty() {
        true => Ok(Vec::new()),
        false => reading.rows(sql, &[&rows]).await,
    };
    let (executions, generations) =
        try_join(read(EXECUTION_ROOTS, executions), read(GENERATION_ROOTS, generations)).await?;
    let bytes = bytes_of(&executions) + bytes_of(&generations);
    let Reading { client, defects, decoders } = reading;
    drop(client);
    decoders
        .decode(bytes, move || {
            let (mut of_executions, mut of_generations) = (HashMap::new(), HashMap::new());
            for row in &executions {
                let root = projection_of(row).map(Root::Execution);
                let root = defects.readable(|| row.named("execution", 1), root)?;
                of_executions.extend(row.integer(0).ok().zip(root));
            }
            for row in &generations {
                let root = entry_of(row).map(|it| Root::Generation(Box::new(it.record)));
                let root = defects.readable(|| row.named("generation", 1), root)?;
                of_generations.extend(row.integer(0).ok().zip(root));
            }
            let body = |root| match root {
                RootRow::Execution(row) => of_executions.remove(&row),
                RootRow::Generation(row) => of_generations.remove(&row),
            };
            Ok(roots.into_iter().filter_map(body).collect())
        })
        .await
}

/// Returns the user whose content is visible; `None` if that of all is.
pub(crate) fn user_of(visibility: &Visibility) -> Option<&str> {
    match visibility {
        Visibility::Of(user) => Some(user),
        Visibility::Everything | Visibility::Nothing => None,
    }
}

async fn trace_of(reading: Reading, root: RootRow) -> Result<Option<Arc<str>>, Failure> {
    let row = match root {
        RootRow::Execution(row) => reading.row(TRACE_OF_EXECUTION, &[&row]).await?,
        RootRow::Generation(row) => reading.row(TRACE_OF_GENERATION, &[&row]).await?,
    };
    let Some(row) = row else { return Ok(None) };
    match row.optional_shared(0)? {
        Some(name) => Ok(Some(name)),
        // named after the id
        None => Ok(Some(own_trace_id(&row.text(1)?))),
    }
}
