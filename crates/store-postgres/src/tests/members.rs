//! Members of one database, one of which is fenced, or does not answer.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::slot::{SlotSet, slot_of};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::{LogLevel, LogRecord};
use greenroom_actors::ports::conformance::{Bench, Draft, step_started};
use greenroom_actors::ports::members::{Members, View};
use greenroom_actors::ports::meter::NoMeter;
use greenroom_actors::ports::store::{
    AppendError, Executions as _, IdempotencyRecord, Journal as _, Logs as _,
};
use support::PATIENCE;
use support::postgres::Server;
use support::proxy::{Proxy, Way};
use tokio_postgres::{Client, NoTls};

use crate::{ClusterSettings, PostgresSettings, PostgresStore};

/// Two members of a database in a new schema. The first one has all slots.
struct Pair {
    one: Arc<PostgresStore>,
    bench: Bench,
    two: Arc<PostgresStore>,
    of_one: Arc<dyn Members>,
    of_two: Arc<dyn Members>,
    server: &'static Server,
    url: String,
    /// Connections of the first member go through it.
    proxy: Proxy,
}

fn member(url: &str, name: &str) -> Arc<PostgresStore> {
    let settings = PostgresSettings::new(url.parse().unwrap(), name);
    let cluster = Some(ClusterSettings { lease: Duration::from_millis(1200), address: None });
    let patience = Duration::from_secs(8);
    let settings = PostgresSettings { cluster, writers: 1, connections: 2, patience, ..settings };
    Arc::new(PostgresStore::open(settings, Arc::new(NoMeter)).unwrap())
}

impl Pair {
    async fn open() -> Option<Self> {
        let server = Server::shared()?;
        let url = server.fresh_url();
        let proxy = Proxy::to(server.port());
        let (one, two) = (member(&proxy.through(&url), "one"), member(&url, "two"));
        let (of_one, of_two) = (one.members().unwrap(), two.members().unwrap());
        let all = SlotSet::all();
        assert_eq!(of_one.claim(&all).await.unwrap(), all);
        Some(Self { bench: Bench::new(one.clone()), one, two, of_one, of_two, server, url, proxy })
    }

    async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        client
    }

    fn sql(&self, sql: &str) -> String {
        self.server.answer(&self.url, sql).unwrap()
    }

    /// Waits until a query gives a text.
    async fn until(&self, client: &Client, sql: &str, expected: &str) {
        let sql = format!("SELECT x::text FROM ({sql}) AS t (x)");
        let waiting = async {
            while client.query_one(&sql, &[]).await.unwrap().get::<_, String>(0) != expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(waited.is_ok(), "never {expected:?}: {sql}");
    }

    /// Waits for a view of the second member.
    async fn view(&self, wanted: impl Fn(&View) -> bool) -> Arc<View> {
        let mut views = self.of_two.views();
        let viewing = views.wait_for(|view| view.as_ref().is_some_and(|view| wanted(view)));
        let view = tokio::time::timeout(PATIENCE, viewing).await.expect("the view").unwrap();
        view.clone().unwrap()
    }

    /// Fences the first member, with whichever beat it has.
    async fn fence(of_two: Arc<dyn Members>, one: Arc<dyn Members>) {
        let fencing = async {
            let mut views = of_two.views();
            loop {
                views.changed().await.unwrap();
                let view = views.borrow_and_update().clone().unwrap();
                let seen = view.members.iter().find(|it| it.node == one.own()).unwrap();
                if of_two.fence(seen.node, seen.beat).await.unwrap() {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, fencing).await.expect("the fence");
    }

    /// Takes all slots for the second member, and continues an execution there.
    async fn take_over(&mut self, draft: &Draft) {
        let all = SlotSet::all();
        assert_eq!(self.of_two.claim(&all).await.unwrap(), all);
        let stored = self.two.load(&draft.header.id).await.unwrap().unwrap();
        assert_eq!((stored.revision, stored.projection), (draft.revision, draft.projection()));
        let mut bench = Bench::new(self.two.clone());
        let next = bench.continuation(draft, vec![step_started(draft.last_seq + 1)]);
        bench.take(&next).await;
    }

    async fn loss_of_one(&self) -> String {
        let lost = tokio::time::timeout(PATIENCE, self.one.lost()).await.expect("the loss");
        lost.to_string()
    }
}

#[tokio::test]
async fn a_fence_waits_for_an_open_append_whose_rows_are_there_then() {
    let Some(mut pair) = Pair::open().await else { return };
    let first = pair.bench.creation("a");
    pair.bench.take(&first).await;
    let mut next = pair.bench.continuation(&first, vec![step_started(2)]);
    next.idempotency = Some(IdempotencyRecord {
        scope: Arc::from("k"),
        body_hash: Arc::from("h"),
        execution: first.header.id.clone(),
        after_seq: 2,
        expires_at: Timestamp(5000),
    });
    let [lock, client] = [pair.client().await, pair.client().await];
    let take = "BEGIN; INSERT INTO idempotency VALUES ('k', 'h', 'x', 1, 5000)";
    lock.batch_execute(take).await.unwrap();
    pair.one.append(next.append());
    // the statement holds the row of the lane as soon as it waits for the key
    let node = pair.of_one.own();
    let is_held =
        format!("SELECT count(*) FROM lanes WHERE node = {node} AND lane = 0 AND xmax <> 0");
    pair.until(&client, &is_held, "1").await;
    let fencing = tokio::spawn(Pair::fence(pair.of_two.clone(), pair.of_one.clone()));
    let waits = format!(
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'
            AND application_name = 'greenroom/{}/pool' AND query LIKE 'DELETE FROM lanes%'",
        pair.of_two.own()
    );
    pair.until(&client, &waits, "true").await;
    lock.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(pair.bench.outcome().await.result, Ok(()), "it was stored in time");
    fencing.await.unwrap();
    let late = pair.bench.continuation(&next, vec![step_started(3)]);
    assert_eq!(pair.bench.append(&late).await, Err(AppendError::Lost));
    pair.take_over(&next).await;
}

#[tokio::test]
async fn an_append_that_comes_during_an_open_fence_stores_nothing() {
    let Some(mut pair) = Pair::open().await else { return };
    let first = pair.bench.creation("a");
    pair.bench.take(&first).await;
    let [fence, client] = [pair.client().await, pair.client().await];
    let node = pair.of_one.own();
    let cut = format!(
        "BEGIN; SELECT FROM nodes WHERE node = {node} FOR UPDATE;
        UPDATE nodes SET state = 2 WHERE node = {node}; DELETE FROM lanes WHERE node = {node};
        UPDATE slots SET node = NULL WHERE node = {node}; UPDATE meta SET map = map + 1"
    );
    fence.batch_execute(&cut).await.unwrap();
    let next = pair.bench.continuation(&first, vec![step_started(2)]);
    pair.one.append(next.append());
    let waits = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
            AND application_name LIKE 'greenroom/{node}/0/%'"
    );
    pair.until(&client, &waits, "1").await;
    fence.batch_execute("COMMIT").await.unwrap();
    assert_eq!(pair.bench.outcome().await.result, Err(AppendError::Lost));
    assert_eq!(pair.sql("SELECT count(*) FROM chunks"), "0");
    pair.take_over(&first).await;
    let lost = pair.loss_of_one().await;
    assert!(
        lost.starts_with("the other servers of the database count this one (one) as"),
        "{lost}"
    );
}

#[tokio::test]
async fn a_paused_member_is_fenced_in_spite_of_its_open_transaction() {
    let Some(mut pair) = Pair::open().await else { return };
    let first = pair.bench.creation("a");
    pair.bench.take(&first).await;
    // paused between two statements: generations with messages are stored by several
    let node = pair.of_one.own();
    let named = format!("{}&application_name=greenroom/{node}/-2/1", pair.url);
    let hang = format!(
        "BEGIN; UPDATE lanes SET batch = batch WHERE node = {node} AND lane = -2;
        SELECT pg_sleep(60)"
    );
    let mut hanging = pair.server.psql(&named, &hang).stderr(Stdio::null()).spawn().unwrap();
    let client = pair.client().await;
    let sleeps = format!(
        "SELECT count(*) FROM pg_stat_activity
            WHERE wait_event = 'PgSleep' AND application_name = 'greenroom/{node}/-2/1'"
    );
    pair.until(&client, &sleeps, "1").await;
    pair.proxy.blackhole(Way::ToServer);
    let next = pair.bench.continuation(&first, vec![step_started(2)]);
    pair.one.append(next.append());
    Pair::fence(pair.of_two.clone(), pair.of_one.clone()).await;
    assert!(!hanging.wait().unwrap().success(), "its connection was ended");
    pair.take_over(&first).await;
    pair.proxy.resume();
    assert_eq!(pair.bench.outcome().await.result, Err(AppendError::Lost));
    let lost = pair.loss_of_one().await;
    assert!(lost.contains("count this one (one) as gone"), "{lost}");
    assert_eq!(pair.sql("SELECT revision FROM executions"), "1", "that of the other member");
}

#[tokio::test]
async fn slots_whose_change_has_no_answer_are_claimed_again() {
    let Some(mut pair) = Pair::open().await else { return };
    let draft = pair.bench.creation("a");
    let slot: SlotSet = [slot_of(&draft.header.id)].into_iter().collect();
    let taker = pair.of_two.own();
    let client = pair.client().await;
    client.batch_execute("BEGIN; SELECT FROM meta FOR UPDATE").await.unwrap();
    let giving = pair.of_one.give(&slot, taker);
    assert_eq!(pair.bench.append(&draft).await, Err(AppendError::Lost), "from the call on");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(giving.await.unwrap(), slot);
    pair.view(|view| view.owners.slots_of(Some(taker)) == slot).await;
    // as a claim whose answer was lost
    pair.sql(&format!("UPDATE slots SET node = {taker}"));
    let mut all_others = SlotSet::all();
    for slot in slot.iter() {
        all_others.remove(slot);
    }
    assert_eq!(pair.of_two.claim(&SlotSet::all()).await.unwrap(), all_others);
}

#[tokio::test]
async fn a_giving_without_an_answer_is_settled_later() {
    let Some(mut pair) = Pair::open().await else { return };
    let draft = pair.bench.creation("a");
    pair.bench.take(&draft).await;
    let slot: SlotSet = [slot_of(&draft.header.id)].into_iter().collect();
    let (one, two) = (pair.of_one.own(), pair.of_two.own());
    let client = pair.client().await;
    // each attempt to change the owner waits until it is given up
    client.batch_execute("BEGIN; SELECT FROM slots FOR UPDATE").await.unwrap();
    let given = tokio::time::timeout(PATIENCE, pair.of_one.give(&slot, two)).await;
    assert!(given.expect("an answer").is_err(), "the patience is over");
    let mut views = pair.of_one.views();
    let is_open = |view: &Option<Arc<View>>| {
        view.as_ref().is_some_and(|view| view.owners.slots_of(None) == slot)
    };
    tokio::time::timeout(PATIENCE, views.wait_for(is_open)).await.expect("the view").unwrap();
    let next = pair.bench.continuation(&draft, vec![step_started(2)]);
    assert_eq!(pair.bench.append(&next).await, Err(AppendError::Lost), "it is of none");
    client.batch_execute("ROLLBACK").await.unwrap();
    let is_whole = |view: &Option<Arc<View>>| {
        view.as_ref().is_some_and(|view| view.owners.slots_of(Some(one)).is_all())
    };
    tokio::time::timeout(PATIENCE, views.wait_for(is_whole)).await.expect("the view").unwrap();
    pair.bench.take(&next).await;
}

#[tokio::test]
async fn the_owners_are_read_again_on_another_connection() {
    let Some(mut pair) = Pair::open().await else { return };
    let draft = pair.bench.creation("a");
    pair.bench.take(&draft).await;
    let (one, two) = (pair.of_one.own(), pair.of_two.own());
    pair.view(|view| view.owners.slots_of(Some(one)).is_all()).await;
    let mut views = pair.of_one.views();
    let has_claimed = |view: &Option<Arc<View>>| {
        view.as_ref().is_some_and(|view| view.owners.slots_of(Some(one)).is_all())
    };
    tokio::time::timeout(PATIENCE, views.wait_for(has_claimed)).await.expect("the view").unwrap();
    // as a failover that undoes a claim, and with it the number of the map
    pair.sql(&format!("UPDATE slots SET node = {two}"));
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name ~ '^greenroom/\\d+/beat' AND datname = current_database()";
    pair.sql(kill);
    pair.view(|view| view.owners.slots_of(Some(two)).is_all()).await;
    let is_known = |view: &Option<Arc<View>>| {
        view.as_ref().is_some_and(|view| view.owners.slots_of(Some(one)).is_empty())
    };
    tokio::time::timeout(PATIENCE, views.wait_for(is_known)).await.expect("the view").unwrap();
    let next = pair.bench.continuation(&draft, vec![step_started(2)]);
    assert_eq!(pair.bench.append(&next).await, Err(AppendError::Lost));
    assert!(!pair.one.shared.membership.has_housework());
    assert!(pair.two.shared.membership.has_housework());
}

#[tokio::test]
async fn one_member_deletes_the_old_log_records_of_all() {
    let Some(pair) = Pair::open().await else { return };
    let record = LogRecord {
        at: Timestamp(0),
        level: LogLevel::Info,
        target: Arc::from("test"),
        message: "old".to_owned(),
        attributes: Vec::new(),
        scope: Arc::default(),
    };
    pair.two.write_logs(vec![Arc::new(record)]).await.unwrap();
    assert_eq!(pair.two.prune_logs(Timestamp(1), 100).await, Ok(0), "slot 0 is not its own");
    assert_eq!(pair.one.prune_logs(Timestamp(1), 100).await, Ok(1));
}
