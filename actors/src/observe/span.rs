//! Spans of executions and generations, derived from records.

mod attributes;

use std::sync::Arc;

use actix::{Message, Recipient};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::fact::McpCall;
use crate::domain::ids::StepPath;
use crate::domain::principal::{Principal, strike};
use crate::domain::stored::present;
use crate::domain::time::Timestamp;
pub use crate::domain::trace::{EntityType, SpanId, Trace};
use crate::observe::disconnect::Disconnect;
use crate::observe::log_record::LogRecord;
use crate::ports::model::Usage;
use crate::ports::store::{GenerationRecord, GenerationStep, Header};
use crate::visibility::Visibility;

pub use attributes::AttributeValue;
pub(crate) use attributes::CONTENT_BYTES_MAX;

/// Start or end of a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpanEvent {
    pub phase: SpanPhase,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SpanPhase {
    Started,
    Ended,
}

/// A span. Cheap to create and to clone: names and attributes are computed on demand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Span {
    pub id: SpanId,
    pub parent: Option<SpanId>,
    /// Execution or generation of the span.
    pub owner: Owner,
    pub start: Timestamp,
    /// Set once the span has ended.
    pub end: Option<Timestamp>,
    pub status: SpanStatus,
    pub work: SpanWork,
}

/// Execution or generation that a span belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Owner {
    Execution(Arc<Header>),
    /// `input` and `output` of the record may be empty.
    Generation(Arc<GenerationRecord>),
}

/// Activity of a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SpanWork {
    /// A whole execution. Values are content, exported only if content is enabled.
    Workflow {
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        input: Option<Arc<Value>>,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        output: Option<Arc<Value>>,
        replayed_by: Option<Arc<Principal>>,
        cancelled_by: Option<Arc<Principal>>,
    },
    /// One attempt of a step.
    Step {
        path: StepPath,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
        output: Option<Arc<Value>>,
        usage: Option<Box<Usage>>,
        /// Newest request to an MCP server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mcp: Option<Box<McpCall>>,
    },
    /// A suspension: of a step, or of the whole execution by a hold.
    Wait {
        path: Option<StepPath>,
        reason: Arc<str>,
        /// Id of the suspension, if known.
        id: Option<Arc<str>>,
        /// Caller that paused the execution.
        suspended_by: Option<Arc<Principal>>,
        resumed_by: Option<Arc<Principal>>,
        /// True if the deadline passed and the definition's answer was used.
        by_deadline: bool,
    },
    /// A whole generation.
    Agent { usage: Option<Usage> },
    /// One question to a model, with its turn.
    Chat { number: u32, turn: Arc<GenerationStep> },
    /// A tool call: the `call`-th of the turn.
    Tool { call: usize, turn: Arc<GenerationStep> },
    /// Reading of a conversation before the first turn, or writing at the end.
    Memory { operation: MemoryOperation },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryOperation {
    Read,
    Write,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpanStatus {
    Unset,
    Ok,
    Error(Arc<str>),
}

/// Status of work that a caller, a parent or a won race ended, generations included.
pub(crate) const CANCELLED: &str = "cancelled";
/// Status of an attempt that a crash or shutdown interrupted.
pub(crate) const INTERRUPTED: &str = "interrupted";

/// OpenTelemetry's span kinds used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// A call to another process.
    Client,
}

impl Span {
    /// Erases a user.
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

    /// Returns the event of its start.
    pub fn started(self) -> SpanEvent {
        SpanEvent { phase: SpanPhase::Started, span: self }
    }

    /// Returns the event of its end.
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

/// Filter of an observer, applied to the root of each trace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserverFilter {
    pub entity_type: Option<EntityType>,
    pub entity_id: Option<String>,
    /// A trace belongs to the user of its root, including everything below.
    pub visibility: Visibility,
}

/// Spans of one execution or generation from one commit, for an observer.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct SpansObserved {
    pub spans: Arc<[SpanEvent]>,
    /// Number of earlier spans lost because the observer or the feed was behind.
    pub missed: u64,
}

/// Log records for an observer.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct LogsObserved {
    pub logs: Arc<[Arc<LogRecord>]>,
    /// As in [`SpansObserved`].
    pub missed: u64,
}

/// An observer of spans and logs. Its mailboxes are bounded.
#[derive(Clone)]
pub struct Observer {
    /// `None`: no spans.
    pub spans: Option<Recipient<SpansObserved>>,
    /// `None`: no logs.
    pub logs: Option<Recipient<LogsObserved>>,
    pub filter: ObserverFilter,
    pub disconnect: Disconnect,
}

impl Observer {
    /// Returns true while a mailbox is connected.
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

/// Id of a registered observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObserverId(pub u64);
