//! Traces: executions and generations, found by trace id.

use std::sync::Arc;

use super::{Cursor, GenerationEntry, GenerationRecord, Header, Projection, Read};
use crate::domain::fact::Recorded;
use crate::domain::time::Timestamp;
use crate::domain::trace::{Anchor, EntityType, RootRow, Trace};
use crate::visibility::Visibility;

/// Filter of a list of traces, by their roots. All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootFilter {
    pub entity_type: Option<EntityType>,
    pub entity_id: Option<String>,
    pub visibility: Visibility,
    /// Earliest start, inclusive.
    pub from: Option<Timestamp>,
}

/// Root of a trace.
#[derive(Debug, Clone, PartialEq)]
pub enum Root {
    Execution(Projection),
    /// Without input and output.
    Generation(Box<GenerationRecord>),
}

impl Root {
    pub fn started_at(&self) -> Timestamp {
        match self {
            Self::Execution(projection) => projection.header.created_at,
            Self::Generation(record) => record.start_time,
        }
    }

    /// Returns the end time, once it has ended.
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

/// Position in the list of roots, which is a merge of two lists; older roots follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RootCursor {
    /// `None`: from the newest execution on.
    pub execution: Option<Cursor>,
    /// Position of a generation in the list of this filter; `None`: from the newest on.
    pub generation: Option<i64>,
}

/// A page of roots, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RootPage {
    pub roots: Vec<Root>,
    /// Position of the next page. A page may be short or even empty and still have a next one,
    /// because the number of rows read is bounded.
    pub next: Option<RootCursor>,
}

/// Query of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceQuery {
    pub trace_id: String,
    pub visibility: Visibility,
    /// Restricts the trace to this root and its descendants; of many, the oldest few thousand.
    pub anchor: Option<Anchor>,
    /// Maximum number of facts, generations and turns in total.
    pub facts_max: usize,
}

impl TraceQuery {
    /// Returns true if the query matches an execution or generation with this user and trace.
    pub fn admits(&self, user_id: Option<&str>, trace: &Trace) -> bool {
        *trace.id == *self.trace_id
            && self.visibility.allows(user_id)
            && self.anchor.is_none_or(|anchor| anchor == trace.anchor)
    }
}

/// Recorded content of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceRecord {
    /// Executions with facts, in the order of creation.
    pub executions: Vec<(Arc<Header>, Vec<Recorded>)>,
    /// Generations in the order of their rows.
    pub generations: Vec<GenerationEntry>,
    /// True if the limit cut something.
    pub is_cut: bool,
}

/// A record under construction, up to the limit of its query.
#[derive(Debug)]
pub struct TraceRecordBuilder {
    record: TraceRecord,
    /// Number of facts, generations and turns that still fit.
    left: usize,
}

impl TraceRecordBuilder {
    /// Starts a record of up to `facts_max` facts, generations and turns.
    pub fn new(facts_max: usize) -> Self {
        Self { record: TraceRecord::default(), left: facts_max }
    }

    /// Returns the number of facts, generations and turns that still fit.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Leaves out something that belongs to the trace.
    pub fn leave_out(&mut self) {
        self.record.is_cut = true;
    }

    /// Adds an execution with as many of its facts as fit. Leaves it out if nothing fits.
    pub fn add_execution(&mut self, header: Arc<Header>, mut facts: Vec<Recorded>) {
        if self.left == 0 {
            return self.leave_out();
        }
        self.record.is_cut |= facts.len() > self.left;
        facts.truncate(self.left);
        self.left -= facts.len();
        self.record.executions.push((header, facts));
    }

    /// Adds a generation with as many of its turns as fit. Leaves it out if nothing fits.
    pub fn add_generation(&mut self, mut entry: GenerationEntry) {
        let Some(left) = self.left.checked_sub(1) else { return self.leave_out() };
        self.record.is_cut |= entry.steps.len() > left;
        entry.steps.truncate(left);
        self.left = left - entry.steps.len();
        self.record.generations.push(entry);
    }

    /// Returns the record.
    pub fn finish(self) -> TraceRecord {
        self.record
    }
}

/// Reads of traces.
pub trait Traces: Send + Sync {
    /// Returns roots, newest first: executions and generations, each in the order of its list
    /// (that of [`Executions::list`] and of rows; for one agent, of its history), merged by start
    /// time. The cost does not depend on the number of stored rows. Generations of workflow steps
    /// are not roots.
    ///
    /// [`Executions::list`]: super::Executions::list
    fn roots<'a>(
        &'a self,
        filter: &'a RootFilter,
        after: Option<RootCursor>,
        limit: usize,
    ) -> Read<'a, RootPage>;

    /// Returns the matching content of a trace, oldest first, executions before generations. A
    /// trace has several roots if callers send one traceparent several times. An unknown trace is
    /// empty.
    fn trace<'a>(&'a self, query: &'a TraceQuery) -> Read<'a, TraceRecord>;

    /// Returns the trace id of a stored root.
    fn trace_of(&self, root: RootRow) -> Read<'_, Option<Arc<str>>>;
}
