//! What belongs to a trace: executions and generations, found by its id.

use std::sync::Arc;

use super::{Cursor, GenerationEntry, GenerationRecord, Header, Projection, Read};
use crate::domain::fact::Recorded;
use crate::domain::time::Timestamp;
use crate::domain::trace::{Anchor, EntityType, RootRow, Trace};
use crate::visibility::Visibility;

/// Which traces a list shows, by their roots. All filters are combined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootFilter {
    pub entity_type: Option<EntityType>,
    pub entity_id: Option<String>,
    pub visibility: Visibility,
    /// Begun at or after.
    pub from: Option<Timestamp>,
}

/// The root of a trace.
#[derive(Debug, Clone, PartialEq)]
pub enum Root {
    Execution(Projection),
    /// Without its input and output.
    Generation(Box<GenerationRecord>),
}

impl Root {
    pub fn started_at(&self) -> Timestamp {
        match self {
            Self::Execution(projection) => projection.header.created_at,
            Self::Generation(record) => record.start_time,
        }
    }

    /// Set once it has ended.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match self {
            Self::Execution(projection) => projection.ended_at,
            Self::Generation(record) => record.end_time,
        }
    }

    pub fn trace_id(&self) -> &Arc<str> {
        match self {
            Self::Execution(projection) => &projection.header.trace.id,
            Self::Generation(record) => &record.trace.id,
        }
    }
}

/// A place in the list of roots, which is a merge of two lists: older ones than these follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RootCursor {
    /// None: from the newest execution on.
    pub execution: Option<Cursor>,
    /// The store's place of a generation in the list of this filter; none: from the newest on.
    pub generation: Option<i64>,
}

/// A page of roots, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RootPage {
    pub roots: Vec<Root>,
    /// Where the next page begins. A page may have fewer roots than asked for, even none, and
    /// still have a next one: what a page reads is bounded.
    pub next: Option<RootCursor>,
}

/// What is wanted of a trace. What is not wanted takes no room.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceQuery {
    pub trace_id: String,
    pub visibility: Visibility,
    /// Of this root alone, and of what is below it. Of many below, the oldest few thousand.
    pub anchor: Option<Anchor>,
    /// Facts, generations and turns in all.
    pub facts_max: usize,
}

impl TraceQuery {
    /// Whether what belongs to this user, in a trace like this, is wanted.
    pub fn admits(&self, user_id: Option<&str>, trace: &Trace) -> bool {
        *trace.id == *self.trace_id
            && self.visibility.reaches(user_id)
            && self.anchor.is_none_or(|anchor| anchor == trace.anchor)
    }
}

/// Everything recorded of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceRecord {
    /// With their facts, in the order of their creation.
    pub executions: Vec<(Arc<Header>, Vec<Recorded>)>,
    /// In the order of their numbers.
    pub generations: Vec<GenerationEntry>,
    /// Whether something was left out because of the limit.
    pub is_cut: bool,
}

/// Reads traces.
pub trait Traces: Send + Sync {
    /// Roots, newest first: executions and generations, each in the order of their own list (that
    /// of [`Executions::list`] and of numbers; of one agent, of its history), merged by when they
    /// began. The cost does not depend on how many are stored. What works for a step of a
    /// workflow is no root.
    ///
    /// [`Executions::list`]: super::Executions::list
    fn roots<'a>(
        &'a self,
        filter: &'a RootFilter,
        after: Option<RootCursor>,
        limit: usize,
    ) -> Read<'a, RootPage>;

    /// All that is wanted of a trace, oldest first; executions come before generations. Callers
    /// that send one traceparent several times begin several roots of one trace. A trace that
    /// nobody has begun is empty.
    fn trace<'a>(&'a self, query: &'a TraceQuery) -> Read<'a, TraceRecord>;

    /// The trace of what is stored there.
    fn trace_of(&self, root: RootRow) -> Read<'_, Option<Arc<str>>>;
}
