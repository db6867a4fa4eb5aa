//! Commits whose wait for replicas is canceled.

use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::meter::NoMeter;
use greenroom_actors::ports::store::{
    Conversation, ConversationPatch, Conversations as _, GenerationWrite,
};
use support::eventually;
use support::postgres::Server;

use super::generations::{key, messages, record, working};
use crate::{PostgresSettings, PostgresStore};

/// A server whose commits can be made to wait for a replica that does not exist.
pub(crate) struct Replicated {
    pub(crate) server: Server,
}

/// Connections of a lane.
pub(crate) const FIRST_LANE: &str = "^greenroom/\\d+/0/";
const LANE_OF_GENERATIONS: &str = "^greenroom/\\d+/-2/";
const POOL: &str = "^greenroom/\\d+/pool$";
const BEATS: &str = "^greenroom/\\d+/beat$";

impl Replicated {
    /// Starts the server, whose commits do not wait yet.
    pub(crate) fn start() -> Option<Self> {
        let server = Server::start()?;
        // of no consequence: connections ask for the warnings that they need
        server.sql("ALTER ROLE ALL SET client_min_messages = error");
        Some(Self { server })
    }

    /// Makes commits wait from now on. A store must be open.
    pub(crate) fn demand_a_replica(&self) {
        self.set("nobody_there");
        self.wait_of(BEATS, "");
    }

    /// Lets all commits succeed, and those that wait.
    pub(crate) fn demand_none(&self) {
        self.set("");
    }

    fn set(&self, names: &str) {
        let set = format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'");
        self.server.sql(&set);
        self.server.sql("SELECT pg_reload_conf()");
    }

    /// Waits until a connection of this name waits for replicas; not as it did before.
    pub(crate) fn wait_of(&self, name: &str, before: &str) -> String {
        let wait = format!(
            "SELECT pid, query_start FROM pg_stat_activity
            WHERE application_name ~ '{name}' AND wait_event = 'SyncRep' LIMIT 1"
        );
        eventually("a wait for replicas", || {
            let wait = self.server.sql(&wait);
            (!wait.is_empty() && wait != before).then_some(wait)
        })
    }

    /// Cancels the wait of a connection of this name, and waits for the next one.
    pub(crate) fn cancel(&self, name: &str, wait: &str) -> String {
        self.act("pg_cancel_backend", wait);
        self.wait_of(name, wait)
    }

    /// Ends a connection that waits, and waits for the next one of this name that does.
    pub(crate) fn terminate(&self, name: &str, wait: &str) -> String {
        self.act("pg_terminate_backend", wait);
        self.wait_of(name, wait)
    }

    fn act(&self, function: &str, wait: &str) {
        let (pid, _) = wait.split_once('|').unwrap();
        assert_eq!(self.server.sql(&format!("SELECT {function}({pid})")), "t");
    }
}

fn open(replicated: &Replicated) -> (PostgresStore, String) {
    let url = replicated.server.fresh_url();
    let settings = PostgresSettings::new(url.parse().unwrap(), "test");
    (PostgresStore::open(settings, Arc::new(NoMeter)).unwrap(), url)
}

#[tokio::test]
async fn a_generation_is_recorded_when_a_replica_has_it() {
    let Some(replicated) = Replicated::start() else { return };
    let (store, url) = open(&replicated);
    record(&store, working("g1")).await.unwrap();
    replicated.demand_a_replica();
    for (id, messages) in [("g2", None), ("g3", messages("c", &["m"]))] {
        let write = GenerationWrite { messages, ..working(id) };
        let mut recording = Box::pin(record(&store, write));
        let wait = replicated.wait_of(LANE_OF_GENERATIONS, "");
        let wait = replicated.cancel(LANE_OF_GENERATIONS, &wait);
        let stored = format!("SELECT count(*) FROM generations WHERE id = '{id}'");
        assert_eq!(replicated.server.answer(&url, &stored).unwrap(), "1");
        replicated.cancel(LANE_OF_GENERATIONS, &wait);
        assert_eq!((&mut recording).now_or_never(), None, "no replica has it");
        replicated.demand_none();
        recording.await.unwrap();
        replicated.demand_a_replica();
    }
    replicated.demand_none();
}

#[tokio::test]
async fn a_change_of_a_conversation_is_done_when_a_replica_has_it() {
    let Some(replicated) = Replicated::start() else { return };
    let (store, url) = open(&replicated);
    let conversation = Conversation {
        key: key("c"),
        title: None,
        metadata: serde_json::Map::new(),
        working_memory: None,
        created_at: Timestamp(1),
        updated_at: Timestamp(1),
    };
    store.create_conversation(conversation).await.unwrap();
    replicated.demand_a_replica();
    let title = Some(Some("new".to_owned()));
    let patch = ConversationPatch { title, ..ConversationPatch::default() };
    let mut changing = store.change_conversation(key("c"), patch, Timestamp(2));
    assert_eq!((&mut changing).now_or_never(), None, "it has started");
    let wait = replicated.wait_of(POOL, "");
    let wait = replicated.cancel(POOL, &wait);
    let title = "SELECT title FROM conversations";
    assert_eq!(replicated.server.answer(&url, title).unwrap(), "new");
    replicated.cancel(POOL, &wait);
    assert_eq!((&mut changing).now_or_never(), None, "no replica has it");
    replicated.demand_none();
    assert_eq!(changing.await, Ok(true));
}
