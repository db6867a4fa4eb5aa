//! The ports of the store that the simulation leaves as they are.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::RootRow;
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::ports::store::{
    AppendError, Conversation, ConversationFilter, ConversationKey, ConversationPatch,
    Conversations, Cursor, Ended, EndedExecutions, EndedGenerations, GenerationEntry,
    GenerationPage, GenerationWrite, Generations, LogFilter, LogNumber, LogPage, Logs, Read,
    Retention, RootCursor, RootFilter, RootPage, Row, StoredMessage, TraceQuery, TraceRecord,
    Traces, Written,
};

use crate::simulator::store::SimStore;

impl Generations for SimStore {
    fn next_generation_row(&self) -> Row {
        self.disk.next_generation_row()
    }

    fn record_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        self.queue_generation(write)
    }

    fn generation<'a>(&'a self, id: &'a str) -> Read<'a, Option<GenerationEntry>> {
        self.late(self.disk.generation(id))
    }

    fn generations<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        offset: u64,
        limit: usize,
    ) -> Read<'a, GenerationPage> {
        self.late(self.disk.generations(agent_id, user_id, offset, limit))
    }

    fn interrupt_working(&self, now: Timestamp) -> BoxFuture<'static, Result<(), AppendError>> {
        self.disk.interrupt_working(now)
    }
}

impl Conversations for SimStore {
    fn conversation<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Option<Conversation>> {
        self.disk.conversation(key)
    }

    fn conversations<'a>(
        &'a self,
        filter: &'a ConversationFilter,
        offset: u64,
        limit: usize,
    ) -> Read<'a, (Vec<Conversation>, u64)> {
        self.disk.conversations(filter, offset, limit)
    }

    fn messages<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<&'a str>,
        limit: usize,
    ) -> Read<'a, Vec<StoredMessage>> {
        self.disk.messages(key, before, limit)
    }

    fn search_messages<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        text: &'a str,
        limit: usize,
    ) -> Read<'a, Vec<(ConversationKey, StoredMessage)>> {
        self.disk.search_messages(agent_id, user_id, text, limit)
    }

    fn create_conversation(&self, conversation: Conversation) -> Written<()> {
        self.disk.create_conversation(conversation)
    }

    fn change_conversation(
        &self,
        key: ConversationKey,
        patch: ConversationPatch,
        at: Timestamp,
    ) -> Written<bool> {
        self.disk.change_conversation(key, patch, at)
    }

    fn delete_conversation(&self, key: ConversationKey) -> Written<bool> {
        self.disk.delete_conversation(key)
    }

    fn clone_conversation(
        &self,
        from: ConversationKey,
        to: Arc<str>,
        at: Timestamp,
    ) -> Written<bool> {
        self.disk.clone_conversation(from, to, at)
    }

    fn forget_user(&self, user_id: String) -> Written<u64> {
        self.disk.forget_user(user_id)
    }
}

impl Logs for SimStore {
    fn write_logs(
        &self,
        batch: Vec<Arc<LogRecord>>,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        self.disk.write_logs(batch)
    }

    fn logs<'a>(
        &'a self,
        filter: &'a LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Read<'a, LogPage> {
        self.disk.logs(filter, before, limit)
    }

    fn prune_logs(
        &self,
        before: Timestamp,
        rows_max: u64,
    ) -> BoxFuture<'static, Result<u64, AppendError>> {
        self.disk.prune_logs(before, rows_max)
    }

    fn log_count(&self) -> Read<'_, u64> {
        self.disk.log_count()
    }
}

impl Traces for SimStore {
    fn roots<'a>(
        &'a self,
        filter: &'a RootFilter,
        after: Option<RootCursor>,
        limit: usize,
    ) -> Read<'a, RootPage> {
        self.disk.roots(filter, after, limit)
    }

    fn trace<'a>(&'a self, query: &'a TraceQuery) -> Read<'a, TraceRecord> {
        self.disk.trace(query)
    }

    fn trace_of(&self, root: RootRow) -> Read<'_, Option<Arc<str>>> {
        self.disk.trace_of(root)
    }
}

impl Retention for SimStore {
    fn workflow_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        self.disk.workflow_after(name)
    }

    fn ended_executions<'a>(
        &'a self,
        sought: &'a EndedExecutions,
        limit: usize,
    ) -> Read<'a, Ended<Cursor>> {
        self.disk.ended_executions(sought, limit)
    }

    fn drop_executions(&self, rows: Vec<Row>) -> Written<u64> {
        self.disk.drop_executions(rows)
    }

    fn agent_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        self.disk.agent_after(name)
    }

    fn ended_generations<'a>(
        &'a self,
        sought: &'a EndedGenerations,
        limit: usize,
    ) -> Read<'a, Ended<u64>> {
        self.disk.ended_generations(sought, limit)
    }

    fn drop_generations(&self, rows: Vec<Row>) -> Written<u64> {
        self.disk.drop_generations(rows)
    }
}
