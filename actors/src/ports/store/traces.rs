//! Traces: executions and generations, found by trace id.

use std::sync::Arc;

use super::{Cursor, GenerationEntry, GenerationRecord, Header, Projection, Read};
use crate::domain::fact::Recorded;
use crate::domain::footprint::of_fact;
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
    /// Maximum size of the record.
    pub most: TraceSize,
}

/// Size of the record of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceSize {
    /// Number of facts, generations and turns.
    pub facts: usize,
    /// Memory that they take, estimated, in bytes. The last one that fits may take more.
    pub bytes: u64,
}

impl TraceSize {
    /// Returns a size with this number of facts, whatever memory they take.
    pub fn of_facts(facts: usize) -> Self {
        Self { facts, bytes: u64::MAX }
    }

    /// Returns true if nothing fits any longer.
    pub fn is_spent(self) -> bool {
        self.facts == 0 || self.bytes == 0
    }

    /// Returns what is left when this much is taken.
    #[must_use]
    pub fn without(self, Self { facts, bytes }: Self) -> Self {
        Self { facts: self.facts.saturating_sub(facts), bytes: self.bytes.saturating_sub(bytes) }
    }

    /// Takes a fact, a generation or a turn from what is left; returns false if it does not fit.
    fn take(&mut self, bytes: u64) -> bool {
        let fits = !self.is_spent();
        if fits {
            *self = self.without(Self { facts: 1, bytes });
        }
        fits
    }
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
    /// Size, up to the limit.
    pub size: TraceSize,
    /// True if the limit cut something.
    pub is_cut: bool,
}

/// A record under construction, up to the limit of its query.
#[derive(Debug)]
pub struct TraceRecordBuilder {
    record: TraceRecord,
    most: TraceSize,
    left: TraceSize,
}

/// Facts of an execution, as many as fit into a record.
#[derive(Debug)]
pub struct TracedFacts {
    facts: Vec<Recorded>,
    left: TraceSize,
    is_cut: bool,
}

impl TraceRecordBuilder {
    /// Starts a record of up to this size.
    pub fn new(most: TraceSize) -> Self {
        Self { record: TraceRecord::default(), most, left: most }
    }

    /// Returns how much still fits.
    pub fn left(&self) -> TraceSize {
        self.left
    }

    /// Leaves out something that belongs to the trace.
    pub fn leave_out(&mut self) {
        self.record.is_cut = true;
    }

    /// Begins the facts of an execution, which count once they are added: one that turns out to be
    /// damaged takes no room.
    pub fn facts(&self) -> TracedFacts {
        TracedFacts { facts: Vec::new(), left: self.left, is_cut: false }
    }

    /// Adds an execution with the facts that fit. Leaves it out if nothing fits.
    pub fn add_execution(&mut self, header: Arc<Header>, traced: TracedFacts) {
        if self.left.is_spent() {
            return self.leave_out();
        }
        let TracedFacts { facts, left, is_cut } = traced;
        self.left = left;
        self.record.is_cut |= is_cut;
        self.record.executions.push((header, facts));
    }

    /// Adds a generation with as many of its turns as fit. Leaves it out if nothing fits.
    pub fn add_generation(&mut self, mut entry: GenerationEntry) {
        if !self.left.take(entry.record.memory_bytes()) {
            return self.leave_out();
        }
        let fitting = entry.steps.iter().take_while(|turn| self.left.take(turn.memory_bytes()));
        let fitting = fitting.count();
        self.record.is_cut |= entry.steps.len() > fitting;
        entry.steps.truncate(fitting);
        self.record.generations.push(entry);
    }

    /// Returns the record.
    pub fn finish(self) -> TraceRecord {
        let Self { record, most, left } = self;
        TraceRecord { size: most.without(left), ..record }
    }
}

impl TracedFacts {
    /// Adds as many facts as fit; returns true if all of them do.
    pub fn add(&mut self, facts: Vec<Recorded>) -> bool {
        for recorded in facts {
            if !self.left.take(of_fact(&recorded.fact)) {
                self.is_cut = true;
                return false;
            }
            self.facts.push(recorded);
        }
        true
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
