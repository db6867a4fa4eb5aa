//! Content of a store, as the ports return it.

use std::collections::BTreeMap;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::RootRow;
use greenroom_actors::ports::store::{
    Ask, AskContent, AskFilter, Conversation, ConversationFilter, ExecutionCount, ExecutionFilter,
    GenerationPage, IdempotencyRecord, LogFilter, LogPage, PageSize, Projection, Row, Store,
    StoredContinuation, StoredMessage, Timer,
};
use greenroom_actors::visibility::Visibility;
use serde_json::Value;

use super::fill::definition;

/// Everything that a filled store returns.
#[derive(Debug, PartialEq)]
pub(super) struct Content {
    executions: Vec<Execution>,
    counts: Vec<ExecutionCount>,
    /// Open ones, and closed ones.
    asks: [Vec<Ask>; 2],
    due: Vec<Ask>,
    contents: [AskContent; 2],
    continuation: Option<StoredContinuation>,
    key: Option<IdempotencyRecord>,
    definition: Option<Value>,
    history: GenerationPage,
    conversations: (Vec<Conversation>, u64),
    messages: BTreeMap<String, Vec<StoredMessage>>,
    found: Vec<StoredMessage>,
    logs: Vec<LogPage>,
    /// Traces of the rows of generations, which keep their numbers.
    traces: Vec<Option<std::sync::Arc<str>>>,
}

#[derive(Debug, PartialEq)]
struct Execution {
    row: Row,
    revision: u64,
    projection: Projection,
    snapshot: Option<(u64, Vec<u8>)>,
    facts_after: Vec<Recorded>,
    facts: Vec<Recorded>,
    timers: Vec<Timer>,
}

impl Content {
    /// Returns true if there is something of everything.
    pub(super) fn is_rich(&self) -> bool {
        let has = |each: &dyn Fn(&Execution) -> bool| self.executions.iter().any(each);
        has(&|it| it.snapshot.is_some())
            && has(&|it| it.timers.len() == 2)
            && has(&|it| it.facts.len() > it.facts_after.len())
            && self.asks.iter().all(|asks| !asks.is_empty())
            && self.due.len() == 1
            && self.contents[0].answer.is_some()
            && self.continuation.is_some()
            && self.key.is_some()
            && self.definition.is_some()
            && self.history.entries.iter().any(|it| it.steps.len() == 2)
            && self.conversations.1 == 2
            && self.messages.values().any(|messages| messages.len() > 3)
            && !self.found.is_empty()
            && self.logs.len() > 1
            && self.traces.iter().any(Option::is_some)
    }
}

pub(super) async fn content(store: &dyn Store) -> Content {
    let filter = ExecutionFilter::default();
    let (listed, _) = store.list(&filter, None, 100).await.unwrap();
    let mut executions = Vec::new();
    for projection in listed {
        executions.push(execution(store, projection).await);
    }
    let all = ConversationFilter::default();
    let conversations = store.conversations(&all, 0, PageSize::of(100)).await.unwrap();
    let mut messages = BTreeMap::new();
    for conversation in &conversations.0 {
        let name = conversation.key.conversation_id.to_string();
        messages.insert(
            name,
            store.messages(&conversation.key, None, PageSize::of(100)).await.unwrap(),
        );
    }
    let found = store.search_messages("clerk", Some("u1"), "e", PageSize::of(100)).await.unwrap();
    let mut traces = Vec::new();
    for row in 1..10 {
        traces.push(store.trace_of(RootRow::Generation(row)).await.unwrap());
    }
    Content {
        executions,
        counts: store.counts().await.unwrap(),
        asks: [asks(store, true).await, asks(store, false).await],
        due: store.due_asks(Timestamp(1600), None, 10).await.unwrap().asks,
        contents: [
            store.ask_content("answered").await.unwrap(),
            store.ask_content("claimed").await.unwrap(),
        ],
        continuation: store.continuation("g3").await.unwrap(),
        key: store.idempotency("start u1 key", Timestamp(0)).await.unwrap(),
        definition: definition(store, "d1").await,
        history: store.generations("clerk", None, 0, PageSize::of(100)).await.unwrap(),
        conversations,
        messages,
        found: found.into_iter().map(|(_, message)| message).collect(),
        logs: logs(store).await,
        traces,
    }
}

async fn asks(store: &dyn Store, is_open: bool) -> Vec<Ask> {
    let filter = AskFilter { is_open, ..AskFilter::default() };
    store.asks(&filter, None, 100).await.unwrap().asks
}

async fn execution(store: &dyn Store, projection: Projection) -> Execution {
    let id = &projection.header.id;
    let stored = store.load(id).await.unwrap().expect("it is listed");
    assert_eq!(stored.projection, projection);
    let mut timers = store.timers_of(id).await.unwrap();
    timers.sort_by(|a, b| a.key.cmp(&b.key));
    Execution {
        row: stored.row,
        revision: stored.revision,
        facts: store.facts(id, 0, 1000).await.unwrap(),
        projection,
        snapshot: stored.snapshot,
        facts_after: stored.facts,
        timers,
    }
}

/// Reads all log records; pages have the numbers of the records.
async fn logs(store: &dyn Store) -> Vec<LogPage> {
    let filter = LogFilter { visibility: Visibility::Everything, ..LogFilter::default() };
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = store.logs(&filter, before, 500).await.unwrap();
        before = page.older;
        pages.push(page);
        if before.is_none() {
            return pages;
        }
    }
}
