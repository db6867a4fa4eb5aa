//! The record of one trace: its executions and generations, up to a limit, without damaged ones.

use std::sync::Arc;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::trace::{RootRow, owner_of};
use greenroom_actors::ports::store::{
    GenerationEntry, Header, Row, TraceQuery, TraceRecord, TraceRecordBuilder, TracedFacts,
};
use greenroom_store_codec::generation_columns;
use greenroom_store_codec::records::EVENTS;
use greenroom_store_codec::roots::SCANNED_MAX;
use greenroom_store_codec::trace::BELOW;
use rusqlite::{OptionalExtension, Result, params};

use super::codec::{entry_of, json_of, limit_of, optional_json_of, projection_of};
use super::defects::Reading;
use super::history::add_later_steps;
use super::traces::{EXECUTION, user_of};

const CHUNKS: &str = "SELECT events FROM chunks WHERE execution = ?1 ORDER BY last, part";

const GENERATION: &str =
    concat!("SELECT ", generation_columns!(), " FROM generations WHERE n = ?1");

const OWN_EXECUTION: &str =
    "SELECT n, created FROM executions WHERE id = ?1 AND trace = ?2 AND joined IS NULL";

const JOINED_EXECUTIONS: &str = "SELECT n, created FROM executions
    INDEXED BY executions_by_trace WHERE trace = ?1 AND joined IS NOT NULL
        AND (?2 IS NULL OR user_id = ?2) AND (?3 IS NULL OR joined = ?3) ORDER BY n LIMIT ?4";

const OWN_GENERATION: &str = "SELECT n FROM generations WHERE id = ?1 AND trace IS NULL";

const JOINED_GENERATIONS: &str = "SELECT n FROM generations
    INDEXED BY generations_by_trace WHERE trace = ?1
        AND (?2 IS NULL OR user_id = ?2) AND (?3 IS NULL OR joined = ?3) ORDER BY n LIMIT ?4";

/// A record under construction.
struct Builder<'c> {
    reading: &'c Reading<'c>,
    query: &'c TraceQuery,
    record: TraceRecordBuilder,
}

pub(super) fn trace(reading: &Reading<'_>, query: &TraceQuery) -> Result<TraceRecord> {
    let TraceQuery { trace_id, visibility, anchor, most } = query;
    let transaction = reading.unchecked_transaction()?;
    let mut builder = Builder { reading, query, record: TraceRecordBuilder::new(*most) };
    let owner = owner_of(trace_id);
    let user = user_of(visibility);
    // an anchor selects one root and the rows below it
    let (place_below, root) = match anchor {
        None => (None, None),
        Some(anchor) => (Some(BELOW), anchor.root()),
    };
    // each row has at least one fact; rows of other roots are skipped
    let rows_max = limit_of(most.facts.saturating_add(1).max(anchor.map_or(0, |_| SCANNED_MAX)));
    let values = params![trace_id, user, place_below, rows_max];

    let place = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(1)?, row.get::<_, Row>(0)?));
    let mut statement = transaction.prepare_cached(OWN_EXECUTION)?;
    let own = statement.query_row(params![owner, trace_id], place).optional()?;
    let mut statement = transaction.prepare_cached(JOINED_EXECUTIONS)?;
    let joined = statement.query_map(values, place)?;
    let mut executions = own.into_iter().map(Ok).chain(joined).collect::<Result<Vec<_>>>()?;
    if let Some(RootRow::Execution(row)) = root {
        // before the rows below it
        executions.retain(|(_, known)| *known != row);
        executions.push((i64::MIN, row));
    }
    executions.sort_unstable();
    for (_, row) in executions {
        builder.add_execution(row)?;
    }

    let number = |row: &rusqlite::Row<'_>| row.get::<_, Row>(0);
    let mut statement = transaction.prepare_cached(OWN_GENERATION)?;
    let own = statement.query_row([owner], number).optional()?;
    let mut statement = transaction.prepare_cached(JOINED_GENERATIONS)?;
    let joined = statement.query_map(values, number)?;
    let mut generations = own.into_iter().map(Ok).chain(joined).collect::<Result<Vec<_>>>()?;
    if let Some(RootRow::Generation(row)) = root {
        generations.push(row);
    }
    generations.sort_unstable();
    generations.dedup();
    for row in generations {
        builder.add_generation(row)?;
    }
    Ok(builder.record.finish())
}

impl Builder<'_> {
    fn add_execution(&mut self, row: Row) -> Result<()> {
        if self.record.left().is_spent() {
            self.record.leave_out();
            return Ok(());
        }
        let name = || format!("execution number {row}");
        match self.reading.defects.readable(name, self.execution(row))? {
            Some(Some((header, traced))) => self.record.add_execution(header, traced),
            // excluded by the query
            Some(None) => {}
            None => self.record.leave_out(),
        }
        Ok(())
    }

    /// Reads an execution and as many of its facts as fit; `None` if the query excludes it.
    fn execution(&self, row: Row) -> Result<Option<(Arc<Header>, TracedFacts)>> {
        let mut statement = self.reading.prepare_cached(EXECUTION)?;
        let found = statement.query_row([row], |columns| {
            let header = projection_of(columns)?.header;
            if !self.query.admits(header.user_id.as_deref(), &header.trace) {
                return Ok(None);
            }
            let first: Option<Vec<Recorded>> = optional_json_of(columns, EVENTS)?;
            Ok(Some((header, first)))
        })?;
        let Some((header, first)) = found else { return Ok(None) };
        let mut traced = self.record.facts();
        let mut fits = traced.add(first.unwrap_or_default());
        let mut statement = self.reading.prepare_cached(CHUNKS)?;
        let mut chunks = statement.query([row])?;
        while fits && let Some(chunk) = chunks.next()? {
            fits = traced.add(json_of(chunk, 0)?);
        }
        Ok(Some((header, traced)))
    }

    fn add_generation(&mut self, row: Row) -> Result<()> {
        if self.record.left().is_spent() {
            self.record.leave_out();
            return Ok(());
        }
        let name = || format!("generation number {row}");
        match self.reading.defects.readable(name, self.generation(row))? {
            Some(Some(entry)) => self.record.add_generation(entry),
            // excluded by the query
            Some(None) => {}
            None => self.record.leave_out(),
        }
        Ok(())
    }

    /// Reads a generation with its turns; `None` if the query excludes it.
    fn generation(&self, row: Row) -> Result<Option<GenerationEntry>> {
        let mut statement = self.reading.prepare_cached(GENERATION)?;
        let GenerationEntry { record, mut steps } = statement.query_row([row], entry_of)?;
        if !self.query.admits(record.user_id.as_deref(), &record.trace) {
            return Ok(None);
        }
        add_later_steps(self.reading, row, &mut steps)?;
        Ok(Some(GenerationEntry { record, steps }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn records_of_traces_are_found_by_an_index() {
        for sql in [
            CHUNKS,
            GENERATION,
            OWN_EXECUTION,
            JOINED_EXECUTIONS,
            OWN_GENERATION,
            JOINED_GENERATIONS,
        ] {
            assert_uses_indexes(sql);
        }
    }
}
