//! Spans of executions and generations, as observers get them: derived from what is recorded.

mod attributes;

use std::sync::Arc;

use actix::{Message, Recipient};
use serde_json::Value;

use crate::domain::ids::StepPath;
use crate::domain::principal::{Principal, strike};
use crate::domain::time::Timestamp;
pub use crate::domain::trace::{EntityType, SpanId, Trace};
use crate::observe::cut::Cut;
use crate::observe::log_record::LogRecord;
use crate::ports::model::Usage;
use crate::ports::store::{GenerationRecord, GenerationStep, Header};
use crate::visibility::Visibility;

pub use attributes::AttributeValue;
pub(crate) use attributes::CONTENT_BYTES_MAX;

/// A span that began or ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    pub phase: SpanPhase,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpanPhase {
    Started,
    Ended,
}

/// One span. Cheap to make and to clone: names and attributes are written when somebody reads
/// them.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub id: SpanId,
    pub parent: Option<SpanId>,
    /// Whose span it is.
    pub owner: Owner,
    pub start: Timestamp,
    /// Set once the span has ended.
    pub end: Option<Timestamp>,
    pub status: SpanStatus,
    pub work: SpanWork,
}

/// What a span belongs to.
#[derive(Debug, Clone, PartialEq)]
pub enum Owner {
    Execution(Arc<Header>),
    /// `input` and `output` of the record may be empty.
    Generation(Arc<GenerationRecord>),
}

/// What was done in a span.
#[derive(Debug, Clone, PartialEq)]
pub enum SpanWork {
    /// A whole execution. The values are content: shown when content is switched on.
    Workflow {
        input: Option<Arc<Value>>,
        output: Option<Arc<Value>>,
        replayed_by: Option<Arc<Principal>>,
        cancelled_by: Option<Arc<Principal>>,
    },
    /// One attempt of a step.
    Step { path: StepPath, attempt: u32, output: Option<Arc<Value>>, usage: Option<Box<Usage>> },
    /// A suspension: of a step, or of the whole execution by a hold.
    Wait {
        path: Option<StepPath>,
        reason: Arc<str>,
        /// Of the suspension, as far as it is known.
        id: Option<Arc<str>>,
        /// Who placed the hold.
        suspended_by: Option<Arc<Principal>>,
        resumed_by: Option<Arc<Principal>>,
        /// Whether its deadline passed and the definition answered.
        by_deadline: bool,
    },
    /// A whole generation.
    Agent { usage: Option<Usage> },
    /// One question to a model: the turn that it gave.
    Chat { number: u32, turn: Arc<GenerationStep> },
    /// A call of a tool: the `call`-th of the turn.
    Tool { call: usize, turn: Arc<GenerationStep> },
    /// What was read from a conversation before the first turn, or written to it at the end.
    Memory { operation: MemoryOperation },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryOperation {
    Read,
    Write,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanStatus {
    Unset,
    Ok,
    Error(Arc<str>),
}

/// OpenTelemetry's kinds, as far as there are such spans here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// It called another process.
    Client,
}

impl Span {
    /// Strikes a user who is to be forgotten.
    pub(crate) fn forget(&mut self, user: &str) {
        match &mut self.work {
            SpanWork::Workflow { replayed_by: one, cancelled_by: other, .. }
            | SpanWork::Wait { suspended_by: one, resumed_by: other, .. } => {
                strike(one, user);
                strike(other, user);
            }
            SpanWork::Step { .. }
            | SpanWork::Agent { .. }
            | SpanWork::Chat { .. }
            | SpanWork::Tool { .. }
            | SpanWork::Memory { .. } => {}
        }
    }

    pub fn trace(&self) -> &Trace {
        self.owner.trace()
    }

    /// The event of its beginning.
    pub fn started(self) -> SpanEvent {
        SpanEvent { phase: SpanPhase::Started, span: self }
    }

    /// The event of its end.
    pub fn ended(self, at: Timestamp, status: SpanStatus) -> SpanEvent {
        let span = Self { end: Some(at), status, ..self };
        SpanEvent { phase: SpanPhase::Ended, span }
    }
}

impl Owner {
    pub fn trace(&self) -> &Trace {
        match self {
            Self::Execution(header) => &header.trace,
            Self::Generation(record) => &record.trace,
        }
    }

    pub fn user_id(&self) -> Option<&str> {
        match self {
            Self::Execution(header) => header.user_id.as_deref(),
            Self::Generation(record) => record.user_id.as_deref(),
        }
    }

    pub fn conversation_id(&self) -> Option<&str> {
        match self {
            Self::Execution(header) => header.conversation_id.as_deref(),
            Self::Generation(record) => record.conversation_id.as_deref(),
        }
    }

    pub fn entity(&self) -> (EntityType, &str) {
        match self {
            Self::Execution(header) => (EntityType::Workflow, &header.workflow_id),
            Self::Generation(record) => (EntityType::Agent, &record.agent_id),
        }
    }
}

/// Which traces an observer wants; decided by the root of each trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObserverFilter {
    pub entity_type: Option<EntityType>,
    pub entity_id: Option<String>,
    /// A trace belongs to the user of its root, and so does all that is below it.
    pub visibility: Visibility,
}

/// Tells an observer what happened to one execution or generation in one commit.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct SpansObserved {
    pub spans: Arc<[SpanEvent]>,
    /// Earlier ones that found the observer's mailbox full, or the feed too far behind.
    pub missed: u64,
}

/// Tells an observer what was logged.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct LogsObserved {
    pub logs: Arc<[Arc<LogRecord>]>,
    /// As in [`SpansObserved`].
    pub missed: u64,
}

/// A listener of spans and logs: addresses with bounded mailboxes of their own.
#[derive(Clone)]
pub struct Observer {
    /// None: it wants no spans.
    pub spans: Option<Recipient<SpansObserved>>,
    /// None: it wants no logs.
    pub logs: Option<Recipient<LogsObserved>>,
    pub filter: ObserverFilter,
    pub cut: Cut,
}

impl Observer {
    /// Whether anybody hears what it is told.
    pub(crate) fn is_connected(&self) -> bool {
        self.spans.as_ref().is_some_and(Recipient::connected)
            || self.logs.as_ref().is_some_and(Recipient::connected)
    }
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("filter", &self.filter).finish_non_exhaustive()
    }
}

/// Names a registered observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObserverId(pub u64);
