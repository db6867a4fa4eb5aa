//! A database has one server at a time.

use std::process::Stdio;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use greenroom_actors::ports::store::Journal as _;
use greenroom_store_postgres::PostgresStore;
use support::eventually;
use support::postgres::Server;

use super::{open, refused, settings};

/// Waits until a store is lost; returns why.
pub(super) fn loss_of(store: &PostgresStore) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.lost()).to_string()
}

#[test]
fn a_second_server_is_refused_until_the_first_has_left() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let first = open(settings(&url, "first")).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    refused(
        settings(&url, "second"),
        &format!(
            "the database is in use by greenroom {version} (first), which is running; stop it \
             first, or give this server a separate database"
        ),
    );
    assert!(first.lost().now_or_never().is_none());
    drop(first);
    let nodes = server.answer(&url, "SELECT count(*) FROM nodes").unwrap();
    assert_eq!(nodes, "0", "one that has left is not waited for");
    drop(open(settings(&url, "second")).unwrap());
}

#[test]
fn a_server_of_the_same_name_takes_over_at_once() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let first = open(settings(&url, "a")).unwrap();
    let second = open(settings(&url, "a")).expect("a beat that is waited for would refuse it");
    let lost = loss_of(&first);
    let expected = "another server with the name of this one, greenroom ";
    assert!(lost.starts_with(expected), "{lost}");
    assert!(second.lost().now_or_never().is_none());
    drop(first);
    let rows = "SELECT name, state FROM nodes ORDER BY node";
    assert_eq!(server.answer(&url, rows).unwrap(), "a|2\na|0");
}

#[test]
fn a_killed_server_of_another_name_is_waited_for() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    drop(open(settings(&url, "a")).unwrap());
    let killed = "INSERT INTO nodes VALUES (1000, 'killed', '0.0.1', 0, 77);
        INSERT INTO lanes VALUES (1000, 0, 0, 0)";
    server.answer(&url, killed).unwrap();
    let begun = Instant::now();
    let store = open(settings(&url, "a")).unwrap();
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_secs(6), "{waited:?}");
    let state = "SELECT state, (SELECT count(*) FROM lanes WHERE node = 1000) FROM nodes
        WHERE node = 1000";
    assert_eq!(server.answer(&url, state).unwrap(), "2|0");
    drop(store);
}

#[test]
fn a_server_that_fails_to_open_leaves_nothing_to_wait_for() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    drop(open(settings(&url, "a")).unwrap());
    server.answer(&url, "DROP SEQUENCE generation_rows").unwrap();
    refused(settings(&url, "a"), "cannot open the store in PostgreSQL: ");
    let rows = "SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM lanes)";
    assert_eq!(server.answer(&url, rows).unwrap(), "0|0");
}

#[test]
fn a_server_that_hangs_inside_a_transaction_holds_none_up() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    drop(open(settings(&url, "a")).unwrap());
    let hung = "INSERT INTO nodes VALUES (1000, 'a', '0.0.1', 0, 77);
        INSERT INTO lanes VALUES (1000, 0, 0, 0)";
    server.answer(&url, hung).unwrap();
    let named = format!("{url}&application_name=greenroom/1000/0/1");
    let hang = "BEGIN; UPDATE lanes SET batch = 1 WHERE node = 1000; SELECT pg_sleep(60)";
    let mut hanging = server.psql(&named, hang).stderr(Stdio::null()).spawn().unwrap();
    let sleeps = "SELECT count(*) FROM pg_stat_activity
        WHERE wait_event = 'PgSleep' AND application_name = 'greenroom/1000/0/1'";
    eventually("the open transaction", || (server.sql(sleeps) == "1").then_some(()));
    drop(open(settings(&url, "a")).unwrap());
    assert!(!hanging.wait().unwrap().success(), "its connection was ended");
    let rows = "SELECT count(*) FROM lanes WHERE node = 1000";
    assert_eq!(server.answer(&url, rows).unwrap(), "0");
}

#[test]
fn beats_continue_after_an_outage() {
    let Some(server) = Server::start() else { return };
    let url = server.fresh_url();
    let store = open(settings(&url, "a")).unwrap();
    let beat = || server.answer(&url, "SELECT beat FROM nodes").unwrap().parse::<u32>().unwrap();
    eventually("a beat", || (beat() > 0).then_some(()));
    server.stop_immediate();
    eventually("a beat that fails", || (!store.is_writable()).then_some(()));
    server.start_again();
    let before = beat();
    eventually("another beat", || (beat() > before).then_some(()));
    assert!(store.lost().now_or_never().is_none(), "an outage is no loss");
}

#[test]
fn a_server_whose_row_is_gone_has_lost_the_database() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let store = open(settings(&url, "a")).unwrap();
    server.answer(&url, "DELETE FROM nodes").unwrap();
    let lost = loss_of(&store);
    assert_eq!(lost, "the database no longer knows this server (a)");
}
