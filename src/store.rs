//! A store of one's own, for [`Greenroom::store`](crate::Greenroom::store).
//!
//! A [`Store`] implements the traits of this module: [`Journal`] for writes of executions,
//! [`Executions`] for reading them, and one trait each for asks, definitions, generations,
//! conversations, traces, logs and retention. Methods that others suffice for have defaults, which a
//! store with an index replaces.
//!
//! [`conformance`] has the rules as tests; a store that passes them can run a server:
//!
//! ```
//! use std::sync::Arc;
//!
//! use greenroom::store::{MemoryStore, conformance};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() {
//!     conformance::run(async || Arc::new(MemoryStore::new())).await;
//! }
//! ```

pub use greenroom_actors::domain::assignment::AskRules;
pub use greenroom_actors::domain::fact::Recorded;
pub use greenroom_actors::domain::ids::ExecutionId;
pub use greenroom_actors::domain::slot::SlotSet;
pub use greenroom_actors::domain::time::Timestamp;
pub use greenroom_actors::domain::trace::{Anchor, EntityType, RootRow, Trace};
pub use greenroom_actors::observe::log_record::LogRecord;
pub use greenroom_actors::ports::conformance;
pub use greenroom_actors::ports::crash_marks::{
    CRASH_MARK_SLOTS, Crash, CrashMark, CrashMarks, MarkedWork, NoCrashMarks, count_crashes,
};
pub use greenroom_actors::ports::memory::{MemoryCrashMarks, MemoryStore};
pub use greenroom_actors::ports::store::{
    ASK_PREFIX, ASK_REASON_BYTES_MAX, Acknowledgement, AnswerKey, Append, AppendError,
    ApprovedTools, Ask, AskAnswer, AskChange, AskContent, AskCursor, AskFilter, AskKind, AskPage,
    AskRevision, AskState, AskSubject, AskedCall, AskedOf, AskedStep, AskedWith, Asks, Claim,
    CommitSink, ContinuationChange, Conversation, ConversationFilter, ConversationKey,
    ConversationPatch, ConversationWrite, Conversations, CountsOfUser, Cursor, Definitions,
    DueAsks, DueCursor, EndRange, Ended, EndedExecutions, EndedGenerations, ExecutionCount,
    ExecutionEnd, ExecutionFilter, ExecutionStart, Executions, FactCursor, Failure,
    GenerationEntry, GenerationPage, GenerationRecord, GenerationStatus, GenerationStep,
    GenerationWrite, Generations, Header, IDS_SEARCHED_MAX, IdempotencyRecord, Journal,
    LIST_SEARCHED_MAX, LogFilter, LogNumber, LogPage, Logs, Mark, MissingAsks, NewAsk,
    OpenAskCounts, Period, Portion, Projection, ROW_ERROR_BYTES_MAX, Read, ReadError, ReplayedFrom,
    Retention, Root, RootCursor, RootFilter, RootPage, Row, SCANNED_MESSAGES_MAX,
    SEARCHED_CHARS_MAX, SOUGHT_CHARS_MAX, STORED_DEPTH_MAX, Snapshot, StartRange, Status,
    StepOrigin, Store, StoredContinuation, StoredExecution, StoredMessage, Ticket, Timer,
    TimerChange, TimerKey, TraceQuery, TraceRecord, TraceRecordBuilder, TraceSize, TracedFacts,
    Traces, TurnError, TurnErrorKind, TurnTiming, UserCursor, Written, is_too_short_for_index,
    read_stored, sought_text,
};
