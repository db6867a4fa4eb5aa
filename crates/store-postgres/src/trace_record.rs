//! The record of one trace: its executions and generations, up to a limit, without damaged ones.
//!
//! The places of its rows are read first, then their content, in parts of as many rows as the
//! limit probably has room for.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::try_join;
use greenroom_actors::domain::trace::{EntityType, RootRow, owner_of};
use greenroom_actors::ports::store::{Row, TraceQuery, TraceRecord, TraceRecordBuilder, TraceSize};
use greenroom_actors::visibility::Visibility;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::json::parse;
use greenroom_store_codec::numbers::limit_of;
use greenroom_store_codec::records::{EVENTS, projection_of};
use greenroom_store_codec::roots::SCANNED_MAX;
use greenroom_store_codec::trace::BELOW;
use greenroom_store_codec::{execution_columns, generation_columns};

use crate::columns::{Stored, bytes_of};
use crate::history::{later_turns, whole_columns, whole_entry_of};
use crate::pool::{Failure, Reading, Values};
use crate::text::Text;
use crate::traces::user_of;

/// Selects the places of executions: the owner of the trace, those that joined it, and a root.
///
/// The range of two columns has the same rows as `trace = …`, and each `coalesce` those of an `OR`.
/// But for those, PostgreSQL could expect few rows, and read and sort all of them.
pub(crate) const EXECUTION_PLACES: &str = "
    (SELECT n, created, last_seq FROM executions WHERE id = $1 AND trace = $2 AND joined IS NULL)
    UNION ALL
    (SELECT n, created, last_seq FROM executions
        WHERE trace <= $2 AND (trace, n) > ($2, 0) AND joined IS NOT NULL
            AND coalesce(user_id = $3, $3 IS NULL) AND coalesce(joined = $4::bigint, $4 IS NULL)
        ORDER BY trace, n LIMIT $5)
    UNION ALL
    (SELECT n, created, last_seq FROM executions WHERE n = $6)";

/// Selects the places of generations, in the same way.
pub(crate) const GENERATION_PLACES: &str = "
    (SELECT n, 0::bigint, 1::bigint FROM generations WHERE id = $1 AND trace IS NULL)
    UNION ALL
    (SELECT n, 0::bigint, 1::bigint FROM generations
        WHERE trace <= $2 AND (trace, n) > ($2, 0)
            AND coalesce(user_id = $3, $3 IS NULL) AND coalesce(joined = $4::bigint, $4 IS NULL)
        ORDER BY trace, n LIMIT $5)
    UNION ALL
    (SELECT n, 0::bigint, 1::bigint FROM generations WHERE n = $6)";

/// Reads executions with their facts, as many chunks as may fit: each has at least one fact, and
/// facts take more memory than their JSON has bytes.
pub(crate) const EXECUTION_CONTENT: &str = concat!(
    "SELECT ",
    execution_columns!(),
    ", events, ARRAY(SELECT events FROM
        (SELECT events, last, revision, sum(octet_length(events))
            OVER (ORDER BY last, revision ROWS UNBOUNDED PRECEDING) - octet_length(events) AS bytes
        FROM (SELECT events, last, revision FROM chunks WHERE execution = n
            ORDER BY last, revision LIMIT $2) first) sized
        WHERE bytes <= $3 ORDER BY last, revision)
    FROM executions WHERE n = ANY($1)"
);

/// Reads generations with all turns.
pub(crate) const GENERATION_CONTENT: &str = concat!(
    "SELECT ",
    whole_columns!(),
    " FROM generations g ",
    later_turns!(),
    " WHERE n = ANY($1)"
);

/// Index of the chunks, behind the columns of an execution.
const CHUNKS: usize = EVENTS + 1;

/// Maximum number of rows whose content is read at once.
const PART_MAX: usize = 64;

/// Size of the content of a part behind which the next one has one row, in bytes: rows of a trace
/// are often alike.
const PART_BYTES: usize = 4 << 20;

/// Place of an execution or a generation in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Executions are in the order of their creation.
    created: i64,
    row: Row,
    /// Number of facts or generations, about.
    size: u64,
}

pub(crate) async fn trace(reading: Reading, query: &TraceQuery) -> Result<TraceRecord, Failure> {
    let TraceQuery { trace_id, visibility, anchor, most } = query;
    if *visibility == Visibility::Nothing {
        return Ok(TraceRecord::default());
    }
    let owner = owner_of(trace_id);
    let (owner, name) = (owner.as_deref().map(Text), Text(trace_id.as_str()));
    let user = user_of(visibility).map(Text);
    // an anchor selects one root and the rows below it
    let below = anchor.map(|_| BELOW);
    let (execution, generation) = match anchor.and_then(|anchor| anchor.root()) {
        Some(RootRow::Execution(row)) => (Some(row), None),
        Some(RootRow::Generation(row)) => (None, Some(row)),
        None => (None, None),
    };
    // each row has at least one fact; rows of other roots are skipped
    let rows_max = limit_of(most.facts.saturating_add(1).max(anchor.map_or(0, |_| SCANNED_MAX)));
    let executions: Values<'_> = &[&owner, &name, &user, &below, &rows_max, &execution];
    let generations: Values<'_> = &[&owner, &name, &user, &below, &rows_max, &generation];
    let (executions, generations) = try_join(
        places(&reading, EXECUTION_PLACES, executions, execution),
        places(&reading, GENERATION_PLACES, generations, generation),
    )
    .await?;
    let record = TraceRecordBuilder::new(*most);
    let mut content = Content { reading, query: Arc::new(query.clone()), record };
    content.add(EntityType::Workflow, &executions).await?;
    content.add(EntityType::Agent, &generations).await?;
    Ok(content.record.finish())
}

/// Reads the places of rows, each once; that of the root comes before the executions below it.
async fn places(
    reading: &Reading,
    sql: &str,
    values: Values<'_>,
    root: Option<Row>,
) -> Result<Vec<Place>, Failure> {
    let rows = reading.rows(sql, values).await?;
    let place = |row: &Stored| {
        let (n, created) = (row.integer(0)?, row.integer(1)?);
        let created = if root == Some(n) { i64::MIN } else { created };
        Ok(Place { created, row: n, size: row.integer(2)?.unsigned_abs() })
    };
    let mut places = rows.iter().map(place).collect::<Result<Vec<_>, Failure>>()?;
    places.sort_unstable();
    places.dedup_by_key(|place| place.row);
    Ok(places)
}

/// A record under construction.
struct Content {
    reading: Reading,
    query: Arc<TraceQuery>,
    record: TraceRecordBuilder,
}

impl Content {
    /// Adds executions or generations.
    async fn add(&mut self, kind: EntityType, mut places: &[Place]) -> Result<(), Failure> {
        let mut rows_max = 1;
        while !places.is_empty() {
            let left = self.record.left();
            if left.is_spent() {
                self.record.leave_out();
                break;
            }
            let (part, rest) = places.split_at(part_of(places, left.facts, rows_max));
            places = rest;
            let rows: Vec<Row> = part.iter().map(|place| place.row).collect();
            let found = match kind {
                EntityType::Workflow => {
                    let chunks_max = limit_of(left.facts.saturating_add(1));
                    let bytes_max = i64::try_from(left.bytes).unwrap_or(i64::MAX);
                    let values: Values<'_> = &[&rows, &chunks_max, &bytes_max];
                    self.reading.rows(EXECUTION_CONTENT, values).await?
                }
                EntityType::Agent => self.reading.rows(GENERATION_CONTENT, &[&rows]).await?,
            };
            let bytes = bytes_of(&found);
            rows_max = if bytes > PART_BYTES { 1 } else { (rows_max * 4).min(PART_MAX) };
            let mut record =
                std::mem::replace(&mut self.record, TraceRecordBuilder::new(TraceSize::default()));
            let (query, defects) = (Arc::clone(&self.query), Arc::clone(&self.reading.defects));
            let decode = move || {
                let by_row: HashMap<Row, &Stored> =
                    found.iter().filter_map(|row| Some((row.integer(0).ok()?, row))).collect();
                // one that is missing was deleted meanwhile
                for (n, row) in rows.iter().filter_map(|n| Some((n, *by_row.get(n)?))) {
                    if record.left().is_spent() {
                        record.leave_out();
                        break;
                    }
                    let (kind, added) = match kind {
                        EntityType::Workflow => {
                            ("execution", add_execution(&query, row, &mut record))
                        }
                        EntityType::Agent => {
                            ("generation", add_generation(&query, row, &mut record))
                        }
                    };
                    if defects.readable(|| format!("{kind} number {n}"), added)?.is_none() {
                        record.leave_out();
                    }
                }
                Ok(record)
            };
            self.record = self.reading.decoders.decode(bytes, decode).await?;
        }
        Ok(())
    }
}

/// Returns the number of rows for whose content there is probably room: one at least, and at most
/// `rows_max`.
fn part_of(places: &[Place], left: usize, rows_max: usize) -> usize {
    let mut room = u64::try_from(left).unwrap_or(u64::MAX);
    let fits = |place: &&Place| {
        let fits = place.size <= room;
        room = room.saturating_sub(place.size);
        fits
    };
    places.iter().take(rows_max).take_while(fits).count().max(1)
}

/// Adds an execution to a record, unless the query excludes it.
fn add_execution(
    query: &TraceQuery,
    row: &Stored,
    record: &mut TraceRecordBuilder,
) -> Result<(), Failure> {
    let header = projection_of(row)?.header;
    if !query.admits(header.user_id.as_deref(), &header.trace) {
        return Ok(());
    }
    let mut traced = record.facts();
    let mut fits = traced.add(row.optional_json(EVENTS)?.unwrap_or_default());
    for chunk in row.pieces(CHUNKS)? {
        if !fits {
            break;
        }
        fits = traced.add(parse(chunk)?);
    }
    record.add_execution(header, traced);
    Ok(())
}

/// Adds a generation to a record, unless the query excludes it.
fn add_generation(
    query: &TraceQuery,
    row: &Stored,
    record: &mut TraceRecordBuilder,
) -> Result<(), Failure> {
    let entry = whole_entry_of(row)?;
    if query.admits(entry.record.user_id.as_deref(), &entry.record.trace) {
        record.add_generation(entry);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_room_for_its_rows() {
        let places = |sizes: &[u64]| -> Vec<Place> {
            sizes.iter().map(|size| Place { created: 0, row: 1, size: *size }).collect()
        };
        for (sizes, left, expected) in [
            (&[3, 3, 3][..], 9, 3),
            (&[3, 3, 3], 8, 2),
            (&[3, 3, 3], 1, 1),
            (&[0; 100], 1, PART_MAX),
        ] {
            let part = part_of(&places(sizes), left, PART_MAX);
            assert_eq!(part, expected, "{sizes:?} in {left}");
        }
        assert_eq!(part_of(&places(&[3, 3, 3]), 9, 2), 2, "no more than these");
    }
}
