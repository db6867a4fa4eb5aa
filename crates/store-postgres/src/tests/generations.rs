//! Records of generations: their order, numbers, outages and takeovers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_actors::domain::message::{Part, Role};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
use greenroom_actors::ports::meter::NoMeter;
use greenroom_actors::ports::store::{
    AppendError, ApprovedTools, ContinuationChange, ConversationKey, ConversationWrite,
    Conversations as _, GenerationRecord, GenerationStatus, GenerationStep, GenerationWrite,
    Generations as _, Journal as _, PageSize, StoredMessage,
};
use support::PATIENCE;
use support::postgres::Server;
use support::proxy::{Proxy, Way};
use tokio_postgres::{Client, NoTls};

use super::Fresh;
use crate::{PostgresSettings, PostgresStore};

pub(super) fn working(id: &str) -> GenerationWrite {
    let record = GenerationRecord {
        id: id.to_owned(),
        agent_id: "clerk".to_owned(),
        status: GenerationStatus::Working,
        start_time: Timestamp(100),
        end_time: None,
        input: serde_json::json!("hi"),
        output: None,
        usage: None,
        error: None,
        user_id: None,
        conversation_id: None,
        origin: None,
        trace: Trace::of(id, EntityType::Agent, &Arc::from("clerk"), TraceOrigin::New),
    };
    GenerationWrite {
        row: 0,
        record,
        steps: Vec::new(),
        messages: None,
        continuation: ContinuationChange::Keep,
    }
}

pub(super) fn turn(number: u32, text: &str) -> (u32, Arc<GenerationStep>) {
    (number, Arc::new(GenerationStep { text: text.to_owned(), ..GenerationStep::default() }))
}

pub(super) fn key(id: &str) -> ConversationKey {
    ConversationKey { agent_id: Arc::from("clerk"), user_id: None, conversation_id: Arc::from(id) }
}

pub(super) fn messages(conversation: &str, ids: &[&str]) -> Option<ConversationWrite> {
    let message = |id: &&str| StoredMessage {
        id: (*id).to_owned(),
        role: Role::User,
        parts: vec![Part::Text { text: format!("text of {id}") }],
        created_at: Timestamp(100),
        generation_id: None,
    };
    let messages = ids.iter().map(message).collect();
    Some(ConversationWrite {
        key: key(conversation),
        cut_after: None,
        messages,
        approved_tools: ApprovedTools::new(),
        at: Timestamp(1),
    })
}

/// Queues a record without waiting.
pub(super) fn record(
    store: &PostgresStore,
    write: GenerationWrite,
) -> impl Future<Output = Result<(), AppendError>> + use<> {
    let row = store.next_generation_row().unwrap();
    let recording = store.record_generation(GenerationWrite { row, ..write });
    async { tokio::time::timeout(PATIENCE, recording).await.expect("an answer") }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// Waits until a query returns true.
async fn until(client: &Client, sql: &str) {
    let waiting = async {
        while !client.query_one(sql, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect(sql);
}

/// The lane of generations of a schema, which has the lock of its row, waits for another lock.
const IS_WAITING: &str = "SELECT EXISTS (SELECT FROM pg_stat_activity a
    JOIN pg_locks l ON l.pid = a.pid AND l.relation = 'lanes'::regclass
    WHERE a.application_name LIKE 'greenroom/%/-2/%' AND a.wait_event_type = 'Lock')";

async fn texts(store: &PostgresStore, id: &str) -> Vec<String> {
    let entry = store.generation(id).await.unwrap().unwrap();
    entry.steps.into_iter().map(|step| step.text).collect()
}

async fn ids(store: &PostgresStore, conversation: &str) -> Vec<String> {
    let found = store.messages(&key(conversation), None, PageSize::of(1000)).await.unwrap();
    found.into_iter().map(|message| message.id).collect()
}

#[tokio::test]
async fn records_that_are_queued_together_keep_their_order() {
    let Some(lab) = Fresh::open() else { return };
    let mut recording = Vec::new();
    // the first run of each is begun again, so that a wrong order leaves wrong turns
    for i in 0..30 {
        let id = format!("g{i}");
        for (number, text) in [(0, "old"), (1, "old"), (0, "new"), (1, "next")] {
            let write = GenerationWrite { steps: vec![turn(number, text)], ..working(&id) };
            recording.push(record(&lab.store, write));
        }
        let mut ended = working(&id);
        ended.record.status = GenerationStatus::Completed;
        ended.record.end_time = Some(Timestamp(200));
        ended.messages = messages(&format!("c{}", i % 3), &[&id]);
        recording.push(record(&lab.store, ended));
    }
    assert!(join_all(recording).await.into_iter().all(|result| result == Ok(())));
    let page = lab.store.generations("clerk", None, 0, PageSize::of(100)).await.unwrap();
    assert_eq!(page.total, 30);
    let newest_first: Vec<_> = (0..30).rev().map(|i| format!("g{i}")).collect();
    let found: Vec<_> = page.entries.iter().map(|entry| entry.record.id.clone()).collect();
    assert_eq!(found, newest_first);
    assert_eq!(lab.sql("SELECT min(number), max(number), count(*) FROM generations"), "1|30|30");
    for entry in page.entries {
        assert_eq!(entry.record.status, GenerationStatus::Completed);
        assert_eq!(entry.steps.iter().map(|it| &*it.text).collect::<Vec<_>>(), ["new", "next"]);
    }
    for remainder in 0..3 {
        let expected: Vec<_> = (0..10).map(|i| format!("g{}", i * 3 + remainder)).collect();
        assert_eq!(ids(&lab.store, &format!("c{remainder}")).await, expected);
    }
    let found =
        lab.store.search_messages("clerk", None, "text of", PageSize::of(100)).await.unwrap();
    let found: Vec<_> = found.into_iter().map(|(_, message)| message.id).collect();
    assert_eq!(found, newest_first, "also across conversations");
}

#[tokio::test]
async fn numbers_have_no_gap_while_others_write() {
    let Some(lab) = Fresh::open() else { return };
    assert_eq!(record(&lab.store, working("g1")).await, Ok(()));
    let other = connect(&lab.url).await;
    let begin = "BEGIN; UPDATE agents SET last = last + 1 WHERE agent = 'clerk'";
    other.batch_execute(begin).await.unwrap();
    let waiting = ["g3", "g4"].map(|id| record(&lab.store, working(id)));
    until(&connect(&lab.url).await, IS_WAITING).await;
    let add = "INSERT INTO generations (n, number, started, node, status, id, agent, input)
        SELECT 1000000, last, 1, 0, 0, 'g2', 'clerk', 'null' FROM agents; COMMIT";
    other.batch_execute(add).await.unwrap();
    assert!(join_all(waiting).await.into_iter().all(|result| result == Ok(())));
    let numbers = "SELECT string_agg(id || '=' || number, ' ' ORDER BY number) FROM generations";
    assert_eq!(lab.sql(numbers), "g1=1 g2=2 g3=3 g4=4");
}

#[tokio::test]
async fn a_broken_connection_repeats_what_it_did_not_commit() {
    let Some(lab) = Fresh::open() else { return };
    assert_eq!(record(&lab.store, working("g1")).await, Ok(()));
    let other = connect(&lab.url).await;
    for (id, messages) in [("g2", None), ("g3", messages("c1", &["m1", "m2"]))] {
        other.batch_execute("BEGIN; SELECT FROM agents FOR UPDATE").await.unwrap();
        let recording = record(&lab.store, GenerationWrite { messages, ..working(id) });
        let watcher = connect(&lab.url).await;
        until(&watcher, IS_WAITING).await;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_locks
            WHERE relation = 'lanes'::regclass AND pid <> pg_backend_pid()";
        watcher.query(end, &[]).await.unwrap();
        other.batch_execute("COMMIT").await.unwrap();
        assert_eq!(recording.await, Ok(()), "{id}");
    }
    let numbers = "SELECT string_agg(id || '=' || number, ' ' ORDER BY number) FROM generations";
    assert_eq!(lab.sql(numbers), "g1=1 g2=2 g3=3");
    assert_eq!(ids(&lab.store, "c1").await, ["m1", "m2"]);
    assert_eq!(lab.sql("SELECT next FROM conversations"), "3", "places are used once");
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_acknowledged_and_not_repeated() {
    let Some(server) = Server::shared() else { return };
    let direct = server.fresh_url();
    let proxy = Proxy::to(server.port());
    let address = proxy.through(&direct).parse().unwrap();
    let settings = PostgresSettings::new(address, "test");
    let store = PostgresStore::open(settings, Arc::new(NoMeter)).unwrap();
    // three: before the second and the third, the lane lets its plans be made again
    for id in ["g1", "g2", "g3"] {
        assert_eq!(record(&store, working(id)).await, Ok(()));
    }
    proxy.blackhole(Way::ToClient);
    let recording = record(&store, working("g4"));
    let watcher = connect(&direct).await;
    until(&watcher, "SELECT EXISTS (SELECT FROM generations WHERE id = 'g4')").await;
    proxy.cut();
    proxy.resume();
    assert_eq!(recording.await, Ok(()));
    let writes = "SELECT batch = 4 AND session = 2 FROM lanes WHERE lane = -2";
    assert!(watcher.query_one(writes, &[]).await.unwrap().get::<_, bool>(0));
    assert_eq!(record(&store, working("g5")).await, Ok(()));
    assert_eq!(store.generations("clerk", None, 0, PageSize::of(9)).await.unwrap().total, 5);
}

#[tokio::test]
async fn nothing_is_recorded_after_a_takeover() {
    let Some(lab) = Fresh::open() else { return };
    assert_eq!(record(&lab.store, working("g1")).await, Ok(()));
    lab.sql("DELETE FROM lanes");
    let with_messages = GenerationWrite { messages: messages("c1", &["m1"]), ..working("g2") };
    assert_eq!(record(&lab.store, with_messages).await, Err(AppendError::Lost));
    assert_eq!(record(&lab.store, working("g3")).await, Err(AppendError::Lost));
    let stored = "SELECT (SELECT count(*) FROM generations), (SELECT last FROM agents),
        (SELECT count(*) FROM messages), (SELECT count(*) FROM conversations)";
    assert_eq!(lab.sql(stored), "1|1|0|0");
}

#[tokio::test]
async fn a_record_at_fault_is_refused_alone() {
    let Some(lab) = Fresh::open() else { return };
    lab.sql("ALTER TABLE generations ADD CHECK (id <> 'bad')");
    let with = |id: &str| GenerationWrite { messages: messages("c1", &[id]), ..working(id) };
    let recording = ["g1", "bad", "g2", "bad", "g3"].map(|id| record(&lab.store, with(id)));
    let results: Vec<_> = join_all(recording).await.iter().map(Result::is_ok).collect();
    assert_eq!(results, [true, false, true, false, true]);
    assert_eq!(ids(&lab.store, "c1").await, ["g1", "g2", "g3"]);
    assert_eq!(lab.sql("SELECT last FROM agents"), "3");
}

#[tokio::test]
async fn a_large_record_that_exceeds_the_time_limit_is_refused_alone() {
    let Some(lab) = Fresh::open() else { return };
    lab.sql(
        "CREATE FUNCTION cancel() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION USING ERRCODE = 'query_canceled'; END $$;
         CREATE TRIGGER cancel BEFORE INSERT ON generations FOR EACH ROW
            WHEN (octet_length(new.input) > 1000000) EXECUTE FUNCTION cancel()",
    );
    let recording = ["g1", "large", "g2"].map(|id| {
        let mut write = working(id);
        if id == "large" {
            write.record.input = serde_json::json!("a".repeat(2 * 1024 * 1024));
        }
        record(&lab.store, write)
    });
    let results: Vec<_> = join_all(recording).await.iter().map(Result::is_ok).collect();
    assert_eq!(results, [true, false, true]);
    assert!(lab.store.is_writable());
}

#[tokio::test]
async fn only_generations_of_ended_processes_are_interrupted() {
    let Some(lab) = Fresh::open() else { return };
    for id in ["own", "of the living", "of the dead", "of the gone"] {
        assert_eq!(record(&lab.store, working(id)).await, Ok(()));
    }
    lab.sql(
        "INSERT INTO nodes (node, name, version, state, beat) VALUES
            (1001, 'living', '', 0, 0), (1002, 'dead', '', 2, 0);
         UPDATE generations SET node = 1001 WHERE id = 'of the living';
         UPDATE generations SET node = 1002 WHERE id = 'of the dead';
         UPDATE generations SET node = 1003 WHERE id = 'of the gone'",
    );
    assert_eq!(lab.store.interrupt_working(Timestamp(5)).await, Ok(()));
    let working = "SELECT string_agg(id, ', ') FROM generations WHERE status = 0";
    assert_eq!(lab.sql(working), "of the living");
    assert_eq!(texts(&lab.store, "own").await, Vec::<String>::new());
    let entry = lab.store.generation("of the dead").await.unwrap().unwrap();
    assert_eq!(entry.record.error.as_deref(), Some("interrupted by a restart"));
    assert_eq!(entry.record.end_time, Some(Timestamp(5)));
}

/// Returns the write of a working generation with a continuation.
fn continued(id: &str, body: &str) -> GenerationWrite {
    let continuation = ContinuationChange::Put { body: Arc::from(body), asks: Vec::new() };
    GenerationWrite { continuation, ..working(id) }
}

/// Queues a record whose continuation must have a revision, without waiting.
fn settle(
    store: &PostgresStore,
    revision: u64,
    write: GenerationWrite,
) -> impl Future<Output = Result<bool, AppendError>> + use<> {
    let row = store.next_generation_row().unwrap();
    let settling = store.settle_generation(revision, GenerationWrite { row, ..write });
    async { tokio::time::timeout(PATIENCE, settling).await.expect("an answer") }
}

#[tokio::test]
async fn records_at_another_revision_are_refused_alone() {
    let Some(lab) = Fresh::open() else { return };
    for id in ["s0", "s1", "s2", "s3"] {
        assert_eq!(record(&lab.store, continued(id, "first")).await, Ok(()));
    }
    let others = (0..10).map(|i| record(&lab.store, working(&format!("g{i}"))));
    let others: Vec<_> = others.collect();
    let settling = [("s0", 1), ("s1", 2), ("s2", 0), ("s3", 1)]
        .map(|(id, revision)| settle(&lab.store, revision, continued(id, "second")));
    let with_messages = GenerationWrite { messages: messages("c1", &["m1"]), ..working("m") };
    let with_messages = record(&lab.store, with_messages);
    assert_eq!(join_all(settling).await, [Ok(true), Ok(false), Ok(false), Ok(true)]);
    assert!(join_all(others).await.into_iter().all(|result| result == Ok(())));
    assert_eq!(with_messages.await, Ok(()));
    assert_eq!(ids(&lab.store, "c1").await, ["m1"]);
    let bodies = "SELECT string_agg(body || revision, ' ' ORDER BY generation) FROM continuations";
    assert_eq!(lab.sql(bodies), "second2 first1 first1 second2");
}

#[tokio::test]
async fn a_settlement_whose_answer_is_lost_is_made_once() {
    let Some(server) = Server::shared() else { return };
    let direct = server.fresh_url();
    let proxy = Proxy::to(server.port());
    let address = proxy.through(&direct).parse().unwrap();
    let settings = PostgresSettings::new(address, "test");
    let store = PostgresStore::open(settings, Arc::new(NoMeter)).unwrap();
    assert_eq!(record(&store, continued("g1", "first")).await, Ok(()));
    // lets the commit wait, after all statements were answered
    let other = connect(&direct).await;
    let wait = "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            PERFORM pg_advisory_xact_lock(72701); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON continuations
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait();
        SELECT pg_advisory_lock(72701)";
    other.batch_execute(wait).await.unwrap();
    let settling = settle(&store, 1, continued("g1", "second"));
    let watcher = connect(&direct).await;
    until(&watcher, IS_WAITING).await;
    proxy.blackhole(Way::ToClient);
    other.batch_execute("SELECT pg_advisory_unlock(72701)").await.unwrap();
    until(&watcher, "SELECT EXISTS (SELECT FROM continuations WHERE body = 'second')").await;
    proxy.cut();
    proxy.resume();
    assert_eq!(settling.await, Ok(true));
    let stored = store.continuation("g1").await.unwrap().unwrap();
    assert_eq!((stored.revision, &*stored.body), (2, "second"));
}

#[tokio::test]
async fn only_generations_of_ended_processes_are_adopted() {
    let Some(lab) = Fresh::open() else { return };
    for id in ["own", "of the living", "of the dead", "of the gone"] {
        assert_eq!(record(&lab.store, continued(id, "{}")).await, Ok(()));
    }
    lab.sql(
        "INSERT INTO nodes (node, name, version, state, beat) VALUES
            (1001, 'living', '', 0, 0), (1002, 'dead', '', 2, 0);
         UPDATE generations SET node = 1001 WHERE id = 'of the living';
         UPDATE generations SET node = 1002 WHERE id = 'of the dead';
         UPDATE generations SET node = 1003 WHERE id = 'of the gone'",
    );
    let (mut adopted, mut after) = (Vec::new(), 0);
    while let Some((row, id)) = lab.store.adopt_interrupted(after, 1).await.unwrap().pop() {
        after = row;
        adopted.push(id);
    }
    assert_eq!(adopted, ["own", "of the dead", "of the gone"]);
    let others = "SELECT string_agg(id, ', ') FROM generations WHERE node > 1000";
    assert_eq!(lab.sql(others), "of the living");
}
