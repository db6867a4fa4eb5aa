//! Servers of different versions over one database. The versions of the future are those of this
//! build with one migration more.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::ports::conformance::{Bench, step_started};
use greenroom_actors::ports::meter::NoMeter;
use greenroom_actors::ports::store::Journal as _;
use support::PATIENCE;
use support::postgres::Server;
use tokio_postgres::NoTls;

use crate::migration::{Schema, Step};
use crate::schema::STEPS;
use crate::{ClusterSettings, DatabaseSource, OpenError, PostgresSettings, PostgresStore};

/// Version of the tables that this build knows.
const VERSION: i32 = STEPS.len() as i32;

/// Adds something that this version does not know.
const ADDING: [Step; STEPS.len() + 1] = followed_by(Step {
    sql: "ALTER TABLE executions ADD COLUMN later int NOT NULL DEFAULT 7",
    least: 1,
});
/// Takes away what this version needs.
const TAKING: [Step; STEPS.len() + 1] =
    followed_by(Step { sql: "ALTER TABLE executions DROP COLUMN around", least: VERSION + 1 });

/// Returns the steps of this build and one more.
const fn followed_by(last: Step) -> [Step; STEPS.len() + 1] {
    let mut steps = [last; STEPS.len() + 1];
    let mut number = 0;
    while number < STEPS.len() {
        steps[number] = STEPS[number];
        number += 1;
    }
    steps
}

fn settings(url: &str, name: &str) -> PostgresSettings {
    let cluster = Some(ClusterSettings { lease: Duration::from_millis(1200), address: None });
    let settings = PostgresSettings::new(url.parse().unwrap(), name);
    PostgresSettings { cluster, writers: 1, connections: 2, ..settings }
}

fn open(steps: &'static [Step], url: &str, name: &str) -> Result<Arc<PostgresStore>, OpenError> {
    let store = PostgresStore::open_as(Schema::of(steps), settings(url, name), Arc::new(NoMeter));
    store.map(Arc::new)
}

async fn loss_of(store: &PostgresStore) -> String {
    tokio::time::timeout(PATIENCE, store.lost()).await.expect("the loss").to_string()
}

#[tokio::test]
async fn a_server_works_on_tables_to_which_a_newer_one_has_added() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let older = open(&STEPS, &url, "older").unwrap();
    let members = older.members().unwrap();
    assert_eq!(members.claim(&SlotSet::all()).await.unwrap(), SlotSet::all());
    let mut bench = Bench::new(older.clone());
    let first = bench.creation("a");
    bench.take(&first).await;

    let _newer = open(&ADDING, &url, "newer").unwrap();
    let ask = |sql: &str| server.answer(&url, sql).unwrap();
    let version = format!("{}|1", VERSION + 1);
    assert_eq!(ask("SELECT schema, schema_min FROM meta"), version);
    let mut views = members.views();
    let seen = views.wait_for(|view| view.as_ref().is_some_and(|view| view.has_newer_tables));
    tokio::time::timeout(PATIENCE, seen).await.expect("the view").unwrap();
    let next = bench.continuation(&first, vec![step_started(2)]);
    bench.take(&next).await;
    let second = bench.creation("b");
    bench.take(&second).await;
    // and starts again
    drop((bench, members, views));
    older.close();
    let older = open(&STEPS, &url, "older").unwrap();
    assert_eq!(ask("SELECT schema, schema_min FROM meta"), version, "nothing is undone");
    assert_eq!(
        ask("SELECT name, schema FROM nodes ORDER BY node"),
        format!("newer|{}\nolder|{VERSION}", VERSION + 1)
    );
    // a copy would lack what it does not know
    let copied = DatabaseSource::open(settings(&url, "copy")).err().unwrap();
    assert!(matches!(copied, OpenError::Newer { found, known } if found == known + 1), "{copied}");
    drop(older);
}

#[tokio::test]
async fn nothing_is_taken_away_that_a_server_needs_which_is_alive() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let ask = |sql: &str| server.answer(&url, sql).unwrap();
    let older = open(&STEPS, &url, "older").unwrap();
    let newer = open(&TAKING, &url, "newer").err().unwrap().to_string();
    let expected = format!("greenroom {} (older), which is running,", env!("CARGO_PKG_VERSION"));
    assert!(newer.contains(&expected), "{newer}");
    assert_eq!(
        ask("SELECT schema, schema_min FROM meta"),
        format!("{VERSION}|1"),
        "nothing was changed"
    );
    older.close();

    // a restart with the newer version, of a server that was killed
    let killed = format!(
        "INSERT INTO nodes (node, name, version, state, beat, lease, schema)
        VALUES (nextval('node_seq'), 'newer', '0.0.1', 0, 77, 1200, {VERSION})"
    );
    ask(&killed);
    let newer = open(&TAKING, &url, "newer").unwrap();
    assert_eq!(ask("SELECT schema, schema_min FROM meta"), format!("{0}|{0}", VERSION + 1));
    let older = open(&STEPS, &url, "older").err().unwrap();
    let OpenError::Newer { found, known } = older else { panic!("{older}") };
    assert_eq!((found, known), (VERSION + 1, VERSION));
    drop(newer);
}

#[tokio::test]
async fn a_server_ends_that_is_too_old_for_the_tables() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let member = open(&STEPS, &url, "member").unwrap();
    server.answer(&url, "UPDATE meta SET schema = 9, schema_min = 9").unwrap();
    let expected = "the tables of the database are of version 9, which this server (member) is too \
        old for; install the version of the servers that use it";
    assert_eq!(loss_of(&member).await, expected);
}

#[tokio::test]
async fn a_migration_does_not_wait_long_for_a_table() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let older = open(&STEPS, &url, "older").unwrap();
    let (dump, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    dump.batch_execute("BEGIN; SELECT count(*) FROM executions").await.unwrap();
    let opening = {
        let patience = Duration::from_millis(100);
        let settings = PostgresSettings { patience, ..settings(&url, "newer") };
        let open = || PostgresStore::open_as(Schema::of(&ADDING), settings, Arc::new(NoMeter));
        tokio::task::spawn_blocking(open)
    };
    let refused = opening.await.unwrap().err().unwrap();
    assert!(matches!(refused, OpenError::Locked), "{refused}");
    dump.batch_execute("COMMIT").await.unwrap();
    open(&ADDING, &url, "newer").unwrap();
    drop(older);
}
