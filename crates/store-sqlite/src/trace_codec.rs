//! Encoding of traces in rows of executions and generations.
//!
//! Most traces follow from the row itself: it started the trace, which is named after its id, and
//! its number is the anchor. Such a row has only nulls in these columns.

use std::sync::Arc;

use greenroom_actors::domain::trace::{Anchor, EntityType, RootRow, SpanId, Trace, own_trace_id};
use greenroom_actors::ports::store::{GenerationRecord, Header, Row};
use rusqlite::Result;
use serde::{Deserialize, Serialize};

use super::codec::optional_json_of;

/// Value of `joined` for a row that started a trace not named after its id: that of a caller, or if
/// the id is not a valid name.
const ROOT: i64 = 0;
/// Value of `joined` for a row below a span of this process.
pub(super) const BELOW: i64 = 1;

/// Trace columns of a new row.
#[derive(Debug, Default)]
pub(super) struct TraceColumns {
    /// Null if the trace is found by the id of the row, else [`ROOT`] or [`BELOW`]. SQLite stores
    /// both in the header of the row, so they are read without the columns before them.
    pub joined: Option<i64>,
    /// [`Around`] as JSON; null for [`Around::usual`].
    pub around: Option<Vec<u8>>,
}

/// Properties of a trace that are in no other column.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Around {
    #[serde(skip_serializing_if = "is_default")]
    anchor: Anchor,
    /// Parent span of a generation.
    #[serde(skip_serializing_if = "is_default")]
    parent_span: Option<SpanId>,
    /// `None` if it is the type of the row.
    #[serde(skip_serializing_if = "is_default")]
    root_type: Option<EntityType>,
    /// Root of a generation; `None` if it is its agent.
    #[serde(skip_serializing_if = "is_default")]
    root_id: Option<Arc<str>>,
    #[serde(skip_serializing_if = "is_default")]
    is_remote: bool,
    #[serde(skip_serializing_if = "is_default")]
    is_unsampled: bool,
    #[serde(skip_serializing_if = "is_default")]
    state: Option<Arc<str>>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Around {
    /// Returns the properties of a row that started its trace, which are not stored.
    fn usual(row: RootRow) -> Self {
        Self { anchor: Anchor::of(row), ..Self::default() }
    }

    fn of(trace: &Trace, own_type: EntityType) -> Self {
        Self {
            anchor: trace.anchor,
            parent_span: None,
            root_type: (trace.root_type != own_type).then_some(trace.root_type),
            root_id: None,
            is_remote: trace.is_remote,
            is_unsampled: trace.is_unsampled,
            state: trace.state.clone(),
        }
    }

    fn columns(self, row: RootRow, joined: Option<i64>) -> serde_json::Result<TraceColumns> {
        let is_usual = self == Self::usual(row);
        let around = (!is_usual).then(|| serde_json::to_vec(&self)).transpose()?;
        Ok(TraceColumns { joined, around })
    }

    fn read(row: &rusqlite::Row<'_>, column: usize, own: RootRow) -> Result<Self> {
        Ok(optional_json_of(row, column)?.unwrap_or_else(|| Self::usual(own)))
    }
}

fn joined(trace: &Trace, owner_id: &str, is_below: bool) -> Option<i64> {
    if is_below {
        Some(BELOW)
    } else if trace.is_named_after(owner_id) {
        None
    } else {
        Some(ROOT)
    }
}

pub(super) fn execution_columns(header: &Header, row: Row) -> serde_json::Result<TraceColumns> {
    let trace = &header.trace;
    let joined = joined(trace, header.id.as_str(), !trace.is_root());
    Around::of(trace, EntityType::Workflow).columns(RootRow::Execution(row), joined)
}

/// Decodes the trace of an execution from `trace`, `parent_span`, `root_workflow` and `around`,
/// which start at column `first`.
pub(super) fn execution_trace_of(row: &rusqlite::Row<'_>, n: Row, first: usize) -> Result<Trace> {
    let parent_span: Option<String> = row.get(first + 1)?;
    let around = Around::read(row, first + 3, RootRow::Execution(n))?;
    Ok(Trace {
        id: row.get(first)?,
        parent_span: parent_span.and_then(|id| id.parse().ok()),
        is_remote: around.is_remote,
        root_type: around.root_type.unwrap_or(EntityType::Workflow),
        root_id: row.get(first + 2)?,
        anchor: around.anchor,
        is_unsampled: around.is_unsampled,
        state: around.state,
    })
}

pub(super) fn generation_columns(
    record: &GenerationRecord,
    row: Row,
) -> serde_json::Result<TraceColumns> {
    let trace = &record.trace;
    let is_below = !trace.is_root() || record.origin.is_some();
    let root_id = (*trace.root_id != *record.agent_id).then(|| Arc::clone(&trace.root_id));
    let around =
        Around { parent_span: trace.parent_span, root_id, ..Around::of(trace, EntityType::Agent) };
    around.columns(RootRow::Generation(row), joined(trace, &record.id, is_below))
}

/// Decodes the trace of a generation from `trace`, which is null if named after its id, and
/// `around`, which start at column `first`.
pub(super) fn generation_trace_of(
    row: &rusqlite::Row<'_>,
    (n, id, agent): (Row, &str, &Arc<str>),
    first: usize,
) -> Result<Trace> {
    let name: Option<Arc<str>> = row.get(first)?;
    let around = Around::read(row, first + 1, RootRow::Generation(n))?;
    let root_type = around.root_type.unwrap_or(EntityType::Agent);
    let root_id = around.root_id.unwrap_or_else(|| Arc::clone(agent));
    Ok(Trace {
        id: name.unwrap_or_else(|| own_trace_id(id)),
        parent_span: around.parent_span,
        is_remote: around.is_remote,
        root_type,
        root_id,
        anchor: around.anchor,
        is_unsampled: around.is_unsampled,
        state: around.state,
    })
}
