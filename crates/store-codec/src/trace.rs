//! Encoding of traces in rows of executions and generations.
//!
//! Most traces follow from the row itself: it started the trace, which is named after its id, and
//! its number is the anchor. Such a row has only nulls in these columns.

use std::sync::Arc;

use greenroom_actors::domain::trace::{Anchor, EntityType, RootRow, SpanId, Trace, own_trace_id};
use greenroom_actors::ports::store::{GenerationRecord, Header, Row};
use serde::{Deserialize, Serialize};

use super::Damaged;
use super::json::parse;

/// Value of `joined` for a row that started a trace not named after its id: that of a caller, or if
/// the id is not a valid name.
pub const ROOT: i64 = 0;
/// Value of `joined` for a row below a span of this server.
pub const BELOW: i64 = 1;

/// Trace columns of a new row.
#[derive(Debug, Default)]
pub struct TraceColumns {
    /// Null if the trace is found by the id of the row, else [`ROOT`] or [`BELOW`].
    pub joined: Option<i64>,
    /// Properties that are in no other column, as JSON; null for those of a row that started its
    /// trace.
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
    #[serde(skip_serializing_if = "is_default")]
    via: Option<Arc<str>>,
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
            via: trace.via.clone(),
        }
    }

    fn columns(self, row: RootRow, joined: Option<i64>) -> serde_json::Result<TraceColumns> {
        let is_usual = self == Self::usual(row);
        let around = (!is_usual).then(|| serde_json::to_vec(&self)).transpose()?;
        Ok(TraceColumns { joined, around })
    }

    fn read(column: Option<&[u8]>, own: RootRow) -> Result<Self, Damaged> {
        column.map_or_else(|| Ok(Self::usual(own)), parse)
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

/// Encodes the trace of an execution with this row number.
pub fn execution_columns(header: &Header, row: Row) -> serde_json::Result<TraceColumns> {
    let trace = &header.trace;
    let joined = joined(trace, header.id.as_str(), !trace.is_root());
    Around::of(trace, EntityType::Workflow).columns(RootRow::Execution(row), joined)
}

/// Decodes the trace of an execution from its row number, the name of the trace, the parent span,
/// the root, and the column `around`.
pub fn execution_trace(
    row: Row,
    name: Arc<str>,
    parent_span: Option<SpanId>,
    root_id: Arc<str>,
    around: Option<&[u8]>,
) -> Result<Trace, Damaged> {
    let around = Around::read(around, RootRow::Execution(row))?;
    Ok(Trace {
        id: name,
        parent_span,
        is_remote: around.is_remote,
        root_type: around.root_type.unwrap_or(EntityType::Workflow),
        root_id,
        anchor: around.anchor,
        is_unsampled: around.is_unsampled,
        state: around.state,
        via: around.via,
    })
}

/// Encodes the trace of a generation with this row number.
pub fn generation_columns(record: &GenerationRecord, row: Row) -> serde_json::Result<TraceColumns> {
    let trace = &record.trace;
    let is_below = !trace.is_root() || record.origin.is_some();
    let root_id = (*trace.root_id != *record.agent_id).then(|| Arc::clone(&trace.root_id));
    let around =
        Around { parent_span: trace.parent_span, root_id, ..Around::of(trace, EntityType::Agent) };
    around.columns(RootRow::Generation(row), joined(trace, &record.id, is_below))
}

/// Decodes the trace of a generation from its row number, its id, its agent, the name of the
/// trace, which is `None` if named after the id, and the column `around`.
pub fn generation_trace(
    row: Row,
    id: &str,
    agent: &Arc<str>,
    name: Option<Arc<str>>,
    around: Option<&[u8]>,
) -> Result<Trace, Damaged> {
    let around = Around::read(around, RootRow::Generation(row))?;
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
        via: around.via,
    })
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::domain::trace::TraceOrigin;

    use super::*;

    const ID: &str = "0193f0c2-7a3b-7c4d-8e5f-000000000001";

    fn header(id: &str, trace: Trace) -> Header {
        Header {
            id: ExecutionId::trusted(id),
            workflow_id: "order".into(),
            definition_hash: "d".into(),
            user_id: None,
            conversation_id: None,
            parent: None,
            trace,
            created_at: Timestamp(1),
        }
    }

    /// Returns the trace of a new root with this row.
    fn begun(id: &str, row: RootRow) -> Trace {
        let trace = Trace::of(id, EntityType::Workflow, &"order".into(), TraceOrigin::New);
        Trace { anchor: Anchor::of(row), ..trace }
    }

    #[test]
    fn traces_of_executions_are_read_back() {
        let own = begun(ID, RootRow::Execution(7));
        let below = own.below(own.span(&["step"]));
        let of_agent =
            Trace { root_type: EntityType::Agent, root_id: "clerk".into(), ..below.clone() };
        let odd = Trace { is_unsampled: true, state: Some("a=b".into()), ..own.clone() };
        let through = Trace { via: Some("mcp:desk".into()), ..own.clone() };
        let named = begun("named by a caller", RootRow::Execution(7));
        for (id, trace, joined) in [
            (ID, own, None),
            ("child", below, Some(BELOW)),
            ("child", of_agent, Some(BELOW)),
            (ID, odd, None),
            (ID, through, None),
            ("named by a caller", named, Some(ROOT)),
        ] {
            let columns = execution_columns(&header(id, trace.clone()), 7).unwrap();
            assert_eq!(columns.joined, joined, "{trace:?}");
            let Trace { id: name, parent_span, root_id, .. } = trace.clone();
            let around = columns.around.as_deref();
            assert_eq!(execution_trace(7, name, parent_span, root_id, around).unwrap(), trace);
        }
    }

    #[test]
    fn a_usual_root_needs_no_columns() {
        let columns = execution_columns(&header(ID, begun(ID, RootRow::Execution(7))), 7).unwrap();
        assert_eq!((columns.joined, columns.around), (None, None));
    }

    #[test]
    fn a_damaged_trace_is_an_error() {
        let read = execution_trace(7, "t".into(), None, "order".into(), Some(b"{"));
        assert!(read.is_err());
    }
}
