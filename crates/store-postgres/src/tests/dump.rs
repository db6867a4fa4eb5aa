//! Copies of whole stores: what is copied, and databases that are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use greenroom_actors::ports::meter::NoMeter;
use greenroom_store_codec::dump::{Failed, Kind, Record, Source as _, Target as _, Value};
use support::postgres::{self, Server};
use tokio_postgres::NoTls;

use super::Fresh;
use crate::dump::tables::{Table, occupied};
use crate::membership::Membership;
use crate::migration::Schema;
use crate::open::Use;
use crate::{DatabaseSource, DatabaseTarget, OpenError, PostgresSettings, PostgresStore};

/// Tables that no kind has: of servers, and what is derived.
const OTHERS: [&str; 5] = ["agents", "lanes", "meta", "nodes", "slots"];

fn settings(url: &str) -> PostgresSettings {
    PostgresSettings::new(url.parse().unwrap(), "test")
}

/// Returns the names in a statement that adds records: the table, and its columns.
fn written(kind: Kind) -> (String, BTreeSet<String>) {
    let statement = Table::of(kind).insert();
    let (_, insert) = statement.split_once("INSERT INTO ").unwrap();
    let (table, rest) = insert.split_once(" (").unwrap();
    let (columns, _) = rest.split_once(") OVERRIDING").unwrap();
    let mut columns: BTreeSet<_> =
        columns.split(',').map(|column| column.trim().to_owned()).collect();
    if kind == Kind::Messages {
        // given by the database, in the order in which they are added
        columns.insert("n".to_owned());
    }
    (table.to_owned(), columns)
}

#[tokio::test]
async fn every_column_of_every_table_is_copied() {
    let Some(fresh) = Fresh::open() else { return };
    let columns = fresh.sql(
        "SELECT table_name, column_name FROM information_schema.columns
            WHERE table_schema = current_schema()",
    );
    let mut tables = BTreeMap::<String, BTreeSet<String>>::new();
    for line in columns.lines() {
        let (table, column) = line.split_once('|').unwrap();
        tables.entry(table.to_owned()).or_default().insert(column.to_owned());
    }
    for other in OTHERS {
        assert!(tables.remove(other).is_some(), "{other}");
    }
    assert_eq!(Kind::ALL.map(written).into_iter().collect::<BTreeMap<_, _>>(), tables);
    assert_eq!(fresh.sql(&occupied()), "{}", "nothing is stored");
}

fn definition(hash: &str) -> Record {
    vec![Value::Text(hash.to_owned()), Value::Bytes(b"{}".to_vec())]
}

fn read(target: &mut DatabaseTarget, kind: Kind) -> Vec<Record> {
    let mut all = Vec::new();
    let receive = &mut |records: Vec<Record>| {
        all.extend(records);
        Ok::<_, Failed>(())
    };
    target.read(kind, receive).unwrap();
    all
}

#[test]
fn an_interrupted_copy_starts_over_and_no_server_opens_it() {
    let Some(url) = postgres::fresh_url() else { return };
    let mut target = DatabaseTarget::open(settings(&url)).unwrap();
    target.write(Kind::Definitions, vec![definition("a"), definition("b")]).unwrap();
    drop(target);
    let refusal = PostgresStore::open(settings(&url), Arc::new(NoMeter)).unwrap_err();
    assert!(matches!(refusal, OpenError::Incomplete), "{refusal}");
    let Err(refusal) = DatabaseSource::open(settings(&url)) else { panic!("it is incomplete") };
    assert!(matches!(refusal, OpenError::Incomplete), "{refusal}");

    let mut target = DatabaseTarget::open(settings(&url)).unwrap();
    assert_eq!(target.count(Kind::Definitions), Ok(0), "it starts over");
    target.write(Kind::Definitions, vec![definition("c")]).unwrap();
    target.derive().unwrap();
    assert_eq!(read(&mut target, Kind::Definitions), [definition("c")]);
    target.complete().unwrap();
    drop(target);
    drop(PostgresStore::open(settings(&url), Arc::new(NoMeter)).unwrap());
    let Err(refusal) = DatabaseTarget::open(settings(&url)) else { panic!("it is not empty") };
    assert!(
        matches!(&refusal, OpenError::NotEmpty { found, .. } if found == "definitions"),
        "{refusal}"
    );
}

#[tokio::test]
async fn databases_in_use_and_without_a_store_are_refused() {
    let Some(fresh) = Fresh::open() else { return };
    let in_use = |error: Option<OpenError>| {
        let error = error.unwrap();
        assert!(matches!(error, OpenError::InUse(_)), "{error}");
    };
    in_use(DatabaseSource::open(settings(&fresh.url)).err());
    in_use(DatabaseTarget::open(settings(&fresh.url)).err());
    assert_eq!(fresh.sql("SELECT incomplete FROM meta"), "f", "it is left alone");

    let server = Server::shared().unwrap();
    let url = server.fresh_url();
    let refusal = DatabaseSource::open(settings(&url)).err().unwrap();
    assert!(matches!(refusal, OpenError::Missing), "{refusal}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()";
    assert_eq!(server.answer(&url, tables).unwrap(), "0", "no tables are made");
}

#[test]
fn a_copy_whose_database_was_taken_over_writes_nothing() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    let mut target = DatabaseTarget::open(settings(&url)).unwrap();
    target.write(Kind::Definitions, vec![definition("a")]).unwrap();
    server.answer(&url, "DELETE FROM lanes").unwrap();
    // it may notice the loss before
    assert!(target.write(Kind::Definitions, vec![definition("b")]).is_err());
    assert!(target.derive().is_err());
    assert!(target.complete().is_err());
    assert_eq!(server.answer(&url, "SELECT hash FROM definitions").unwrap(), "a");
    assert_eq!(server.answer(&url, "SELECT incomplete FROM meta").unwrap(), "t");
}

#[tokio::test]
async fn a_server_that_waited_for_a_copy_does_not_use_what_it_left() {
    let Some(fresh) = Fresh::open() else { return };
    let Fresh { store, server, url, .. } = fresh;
    drop(store);
    let (mut client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    server.answer(&url, "UPDATE meta SET incomplete = true").unwrap();
    for (of, is_allowed) in [(Use::Serving, false), (Use::Reading, false), (Use::Filling, true)] {
        let joined = Membership::join(&mut client, &settings(&url), of, Schema::OWN).await;
        assert_eq!(joined.is_ok(), is_allowed, "{of:?}");
    }
}
