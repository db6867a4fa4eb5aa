//! A database has several members at a time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use greenroom_store_postgres::{ClusterSettings, DatabaseSource, PostgresSettings};
use support::postgres::Server;

use super::alone::loss_of;
use super::{open, refused, settings};

/// Lease that a server which is waited for has in any case.
const LEASE: Duration = Duration::from_secs(6);

/// Returns settings of a member.
fn member(url: &str, name: &str) -> PostgresSettings {
    member_with(url, name, LEASE)
}

fn member_with(url: &str, name: &str, lease: Duration) -> PostgresSettings {
    let cluster = Some(ClusterSettings { lease, address: None });
    PostgresSettings { cluster, ..settings(url, name) }
}

#[test]
fn members_share_a_database_and_leave_nothing_behind() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let [one, two] = ["one", "two"].map(|name| open(member(&url, name)).unwrap());
    assert_eq!(one.database_id(), two.database_id());
    let rows = "SELECT name, state, lease FROM nodes ORDER BY node";
    assert_eq!(server.answer(&url, rows).unwrap(), "one|0|6000\ntwo|0|6000");
    let owned = "UPDATE slots SET node = (SELECT min(node) FROM nodes) WHERE slot < 9";
    server.answer(&url, owned).unwrap();
    drop(one);
    let left = "SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM slots WHERE node > 0),
        (SELECT count(DISTINCT node) FROM lanes), map FROM meta";
    assert_eq!(server.answer(&url, left).unwrap(), "1|0|1|1", "its slots are free");
    assert!(two.lost().now_or_never().is_none());
    drop(two);
    drop(open(settings(&url, "alone")).expect("all have left"));
}

#[test]
fn members_and_a_server_that_has_the_database_alone_refuse_each_other() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let version = env!("CARGO_PKG_VERSION");
    let one = open(member(&url, "one")).unwrap();
    let expected = format!(
        "the database is in use by several servers, of which greenroom {version} (one) is running; \
         stop them, or let this server be one of them"
    );
    refused(settings(&url, "alone"), &expected);
    let copy = DatabaseSource::open(member(&url, "two")).map(drop).unwrap_err().to_string();
    assert!(copy.starts_with(&expected), "a copy is no member: {copy}");
    let expected = format!(
        "the lease of greenroom {version} (one), which is running, is 6s, and that of this server \
         9s; give"
    );
    refused(member_with(&url, "two", Duration::from_secs(9)), &expected);
    assert!(one.lost().now_or_never().is_none());
    drop(one);
    let alone = Arc::new(open(settings(&url, "alone")).unwrap());
    assert!(alone.members().is_none());
    let expected = format!(
        "the database is in use by greenroom {version} (alone), which is running and has it alone;"
    );
    refused(member(&url, "one"), &expected);
    assert!(alone.lost().now_or_never().is_none());
}

#[test]
fn a_member_that_starts_again_replaces_itself_at_once() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let other = open(member(&url, "other")).unwrap();
    let first = open(member(&url, "a")).unwrap();
    let owned = "UPDATE slots SET node = (SELECT max(node) FROM nodes) WHERE slot < 9";
    server.answer(&url, owned).unwrap();
    let second = open(member(&url, "a")).unwrap();
    let free = "SELECT count(*) FROM slots WHERE node IS NULL";
    assert_eq!(server.answer(&url, free).unwrap(), "4096", "those of the first one");
    let lost = loss_of(&first);
    let expected = "another server with the name of this one, greenroom ";
    assert!(lost.starts_with(expected), "{lost}");
    for store in [&other, &second] {
        assert!(store.lost().now_or_never().is_none());
    }
}

#[test]
fn members_that_were_killed_are_waited_for_by_a_server_that_needs_the_database_alone() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    drop(open(settings(&url, "a")).unwrap());
    let killed = "INSERT INTO nodes VALUES
            (1000, 'one', '0.0.1', 0, 77, 2000), (1001, 'two', '0.0.1', 1, 77, 2000);
        INSERT INTO lanes VALUES (1000, 0, 0, 0), (1001, 0, 0, 0);
        UPDATE slots SET node = 1000 + slot % 3";
    server.answer(&url, killed).unwrap();
    let member = open(member_with(&url, "b", Duration::from_secs(2))).unwrap();
    let slots = "SELECT count(*) FROM slots WHERE node IS NULL";
    assert_eq!(server.answer(&url, slots).unwrap(), "1365", "those of a server that is not known");
    drop(member);
    let store = open(settings(&url, "a")).unwrap();
    let rows = "SELECT (SELECT count(*) FROM nodes WHERE state < 2),
        (SELECT count(DISTINCT node) FROM lanes), (SELECT count(node) FROM slots)";
    assert_eq!(server.answer(&url, rows).unwrap(), "1|1|0");
    drop(store);
}
