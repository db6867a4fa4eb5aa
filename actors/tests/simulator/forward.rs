//! Ports of the simulated store that go to the disk, at once or late.

use std::sync::Arc;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::RootRow;
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::ports::store::{
    ApprovedTools, Ask, AskContent, AskCursor, AskFilter, AskPage, AskRevision, Asks, Conversation,
    ConversationFilter, ConversationKey, ConversationPatch, Conversations, CountsOfUser, Cursor,
    Definitions, DueAsks, DueCursor, EndRange, Ended, EndedExecutions, EndedGenerations,
    ExecutionCount, ExecutionEnd, ExecutionFilter, ExecutionStart, Executions, FactCursor,
    GenerationEntry, GenerationPage, GenerationWrite, Generations, IdempotencyRecord, KnownTool,
    KnownTools, LogFilter, LogNumber, LogPage, Logs, MissingAsks, OpenAskCounts, PageSize, Portion,
    Projection, Read, Retention, RootCursor, RootFilter, RootPage, Row, StartRange,
    StoredContinuation, StoredExecution, StoredMessage, Timer, TraceQuery, TraceRecord, Traces,
    UserCursor, Written,
};
use serde_json::Value;

use crate::simulator::store::SimStore;

/// Implements a port by calling the disk and passing the result to [`SimStore::late`] or
/// [`SimStore::now`]; methods in brackets are taken as they are.
macro_rules! forward {
    ($port:ident [$($own:tt)*]
     $($how:ident $name:ident$(<$life:lifetime>)?($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        impl $port for SimStore {
            $($own)*
            $(fn $name$(<$life>)?(&$($life)? self, $($arg: $type),*) -> $out {
                self.$how(move || $port::$name(&*self.disk, $($arg),*))
            })*
        }
    };
}

forward! { Executions []
    late load<'a>(id: &'a ExecutionId) -> Read<'a, Option<StoredExecution>>;
    late describe<'a>(id: &'a ExecutionId) -> Read<'a, Option<Projection>>;
    late facts<'a>(id: &'a ExecutionId, after: u64, limit: usize) -> Read<'a, Vec<Recorded>>;
    late portion<'a>(id: &'a ExecutionId, from: FactCursor, bytes: usize) -> Read<'a, Portion>;
    late list<'a>(filter: &'a ExecutionFilter, after: Option<Cursor>, limit: usize)
        -> Read<'a, (Vec<Projection>, Option<Cursor>)>;
    late counts() -> Read<'_, Vec<ExecutionCount>>;
    late counts_of_user<'a>(user_id: &'a str, limit: usize) -> Read<'a, CountsOfUser>;
    late ends<'a>(range: &'a EndRange, limit: usize) -> Read<'a, Vec<ExecutionEnd>>;
    late starts<'a>(range: &'a StartRange, limit: usize) -> Read<'a, Vec<ExecutionStart>>;
    late running<'a>(slots: &'a SlotSet, after: Row, limit: usize)
        -> Read<'a, Vec<(Row, ExecutionId)>>;
    late timers_due<'a>(slots: &'a SlotSet, until: Timestamp, limit: usize)
        -> Read<'a, Vec<Timer>>;
    late timers_of<'a>(id: &'a ExecutionId) -> Read<'a, Vec<Timer>>;
    late idempotency<'a>(scope: &'a str, now: Timestamp) -> Read<'a, Option<IdempotencyRecord>>;
}

forward! { Asks [
    fn revise_ask(&self, revision: AskRevision) -> Written<bool> {
        self.queued(|disk| disk.revise_ask(revision))
    }
]
    late ask<'a>(id: &'a str) -> Read<'a, Option<Ask>>;
    late asks_of_generation<'a>(id: &'a str) -> Read<'a, Vec<Ask>>;
    late asks<'a>(filter: &'a AskFilter, after: Option<AskCursor>, limit: usize)
        -> Read<'a, AskPage>;
    late executions_without_asks(after: Row, limit: usize) -> Read<'_, Vec<(Row, ExecutionId)>>;
    now put_asks(missing: MissingAsks) -> Written<bool>;
    late ask_content<'a>(id: &'a str) -> Read<'a, AskContent>;
    late due_asks(now: Timestamp, after: Option<DueCursor>, limit: usize) -> Read<'_, DueAsks>;
    late open_ask_counts() -> Read<'_, OpenAskCounts>;
}

forward! { Definitions []
    now put_definition<'a>(hash: &'a str, definition: &'a Value) -> Read<'a, ()>;
    late definition<'a>(hash: &'a str) -> Read<'a, Option<Value>>;
}

forward! { KnownTools []
    late known_tools<'a>(server: &'a str, tools: &'a [Arc<str>]) -> Read<'a, Vec<KnownTool>>;
    now see_tools(seen: Vec<KnownTool>, tools_max: usize) -> Written<()>;
    now accept_tool(accepted: KnownTool, replaced: Arc<str>) -> Written<bool>;
}

forward! { Generations [
    fn record_generation(&self, write: GenerationWrite) -> Written<()> {
        self.queued(|disk| disk.record_generation(write))
    }
    fn settle_generation(&self, revision: u64, write: GenerationWrite) -> Written<bool> {
        self.queued(move |disk| disk.settle_generation(revision, write))
    }
]
    now next_generation_row() -> Option<Row>;
    late generation<'a>(id: &'a str) -> Read<'a, Option<GenerationEntry>>;
    late generations<'a>(agent_id: &'a str, user_id: Option<&'a str>, offset: u64, size: PageSize)
        -> Read<'a, GenerationPage>;
    now interrupt_working(now: Timestamp) -> Written<()>;
    late continuation<'a>(id: &'a str) -> Read<'a, Option<StoredContinuation>>;
    late unfinished_of_user<'a>(user_id: &'a str, after: Option<&'a UserCursor>, limit: usize)
        -> Read<'a, Vec<(UserCursor, String)>>;
    late suspended_in<'a>(key: &'a ConversationKey) -> Read<'a, Vec<String>>;
    now adopt_interrupted(after: Row, limit: usize) -> Written<Vec<(Row, String)>>;
}

forward! { Conversations []
    now conversation<'a>(key: &'a ConversationKey) -> Read<'a, Option<Conversation>>;
    now approved_tools<'a>(key: &'a ConversationKey) -> Read<'a, ApprovedTools>;
    now conversations<'a>(filter: &'a ConversationFilter, offset: u64, size: PageSize)
        -> Read<'a, (Vec<Conversation>, u64)>;
    now messages<'a>(key: &'a ConversationKey, before: Option<&'a str>, size: PageSize)
        -> Read<'a, Vec<StoredMessage>>;
    now has_message<'a>(key: &'a ConversationKey, id: &'a str) -> Read<'a, bool>;
    now search_messages<'a>(agent_id: &'a str, user_id: Option<&'a str>, text: &'a str, size: PageSize)
        -> Read<'a, Vec<(ConversationKey, StoredMessage)>>;
    now create_conversation(conversation: Conversation) -> Written<()>;
    now change_conversation(key: ConversationKey, patch: ConversationPatch, at: Timestamp)
        -> Written<bool>;
    now delete_conversation(key: ConversationKey) -> Written<bool>;
    now clone_conversation(from: ConversationKey, to: Arc<str>, at: Timestamp) -> Written<bool>;
    now forget_user(user_id: String) -> Written<u64>;
}

forward! { Logs []
    now write_logs(batch: Vec<Arc<LogRecord>>) -> Written<()>;
    now logs<'a>(filter: &'a LogFilter, before: Option<LogNumber>, limit: usize) -> Read<'a, LogPage>;
    now prune_logs(before: Timestamp, rows_max: u64) -> Written<u64>;
    now log_count() -> Read<'_, u64>;
}

forward! { Traces []
    now roots<'a>(filter: &'a RootFilter, after: Option<RootCursor>, limit: usize)
        -> Read<'a, RootPage>;
    now trace<'a>(query: &'a TraceQuery) -> Read<'a, TraceRecord>;
    now trace_of(root: RootRow) -> Read<'_, Option<Arc<str>>>;
}

forward! { Retention []
    now workflow_after<'a>(name: &'a str) -> Read<'a, Option<Arc<str>>>;
    now ended_executions<'a>(sought: &'a EndedExecutions, limit: usize) -> Read<'a, Ended<Cursor>>;
    now drop_executions(rows: Vec<Row>) -> Written<u64>;
    now agent_after<'a>(name: &'a str) -> Read<'a, Option<Arc<str>>>;
    now ended_generations<'a>(sought: &'a EndedGenerations, limit: usize) -> Read<'a, Ended<u64>>;
    now drop_generations(rows: Vec<Row>) -> Written<u64>;
}
