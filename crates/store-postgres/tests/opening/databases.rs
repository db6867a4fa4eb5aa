//! Databases that are refused, and are left as they were.

use greenroom_store_postgres::{PostgresDurability, PostgresSettings};
use support::postgres::Server;

use super::{at_database, open, refused, run, settings, superuser};

/// Number of tables in all schemas.
const TABLES: &str = "SELECT count(*) FROM information_schema.tables
    WHERE table_schema NOT IN ('pg_catalog', 'information_schema')";

/// Number of extensions that an installation adds.
const EXTENSIONS: &str = "SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql'";

#[test]
fn an_empty_database_gets_tables_and_extensions_once() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_database();
    let first = open(settings(&url, "a")).unwrap();
    let id = first.database_id().to_owned();
    assert_eq!(id.len(), 36, "{id}");
    drop(first);
    let tables = run(server, &url, TABLES);
    assert_eq!(run(server, &url, EXTENSIONS), "2");
    assert_eq!(run(server, &url, "SELECT program, schema FROM meta"), "greenroom|1");
    let second = open(settings(&url, "b")).unwrap();
    assert_eq!(second.database_id(), id);
    assert_eq!(run(server, &url, TABLES), tables);
    drop(second);
    assert_eq!(run(server, &url, "SELECT count(*) FROM nodes"), "0", "they have left");
}

#[test]
fn stores_in_schemas_of_one_database_are_apart() {
    let Some(server) = Server::shared() else { return };
    let [one, two] = [server.fresh_url(), server.fresh_url()];
    let first = open(settings(&one, "a")).unwrap();
    let second = open(settings(&two, "b")).unwrap();
    assert_ne!(first.database_id(), second.database_id());
    for url in [one, two] {
        assert_eq!(server.answer(&url, "SELECT count(*) FROM nodes").unwrap(), "1");
    }
}

/// A fresh database after some SQL of the superuser; with `{db}` for its name.
fn prepared(server: &Server, sql: &[&str]) -> String {
    let url = server.fresh_database();
    let name = url.rsplit('/').next().unwrap();
    for statement in sql {
        run(server, &url, &statement.replace("{db}", name));
    }
    url
}

/// Opens a prepared database and expects a refusal that changes nothing.
#[track_caller]
fn refused_unchanged(server: &Server, sql: &[&str], parameters: &str, expected: &str) {
    let url = prepared(server, sql);
    let before = [TABLES, EXTENSIONS].map(|sql| run(server, &url, sql));
    let name = url.rsplit('/').next().unwrap();
    refused(settings(&format!("{url}{parameters}"), "a"), &expected.replace("{db}", name));
    let after = [TABLES, EXTENSIONS].map(|sql| run(server, &url, sql));
    assert_eq!(before, after, "{expected}");
}

#[test]
fn databases_of_others_and_of_newer_versions_are_left_alone() {
    let Some(server) = Server::shared() else { return };
    refused_unchanged(
        server,
        &["CREATE TABLE orders (n int); CREATE VIEW open_orders AS SELECT 1"],
        "",
        "the schema public of the database has what another program put there (open_orders, \
         orders), and is left alone; name an empty database, or another schema with",
    );
    refused_unchanged(
        server,
        &["CREATE TABLE meta (n int); CREATE TABLE a (); CREATE TABLE b (); CREATE TABLE c ()"],
        "",
        "the schema public of the database has what another program put there (a, b, c, …)",
    );
    let newer = "CREATE TABLE meta (program text, schema int);
        INSERT INTO meta VALUES ('greenroom', 99); GRANT SELECT ON meta TO greenroom";
    refused_unchanged(
        server,
        &[newer],
        "",
        "the database was written by a newer version: its schema is 99, and this version knows 1",
    );
}

#[test]
fn a_schema_of_its_own_makes_a_database_of_others_usable() {
    let Some(server) = Server::shared() else { return };
    let url = prepared(
        server,
        &["CREATE TABLE orders (n int)", "CREATE SCHEMA mine AUTHORIZATION greenroom"],
    );
    let mine = format!("{url}?options=-c%20search_path%3Dmine,public");
    drop(open(settings(&mine, "a")).unwrap());
    assert_eq!(run(server, &url, "SELECT schema FROM mine.meta"), "1");
    refused(
        settings(&format!("{url}?options=-c%20search_path%3Dnope"), "a"),
        "no schema of the search_path (nope) exists; create one",
    );
}

#[test]
fn databases_that_cannot_store_or_find_texts_are_refused() {
    let Some(server) = Server::shared() else { return };
    let create = |name: &str, encoding: &str, locale: &str| {
        let sql = format!(
            "CREATE DATABASE {name} OWNER greenroom ENCODING '{encoding}' LOCALE '{locale}'
             TEMPLATE template0"
        );
        server.sql(&sql);
        at_database(&server.url(), name)
    };
    refused(
        settings(&create("latin", "LATIN1", "C"), "a"),
        "the database has the encoding LATIN1; it must be UTF8: create another one with",
    );
    let ascii = create("ascii", "UTF8", "C");
    refused(
        settings(&ascii, "a"),
        "the database has LC_CTYPE C, with which letters beyond ASCII cannot be searched for",
    );
    assert_eq!(run(server, &ascii, TABLES), "0");
    assert_eq!(run(server, &ascii, EXTENSIONS), "0");
}

#[test]
fn a_role_without_privileges_is_refused() {
    let Some(server) = Server::shared() else { return };
    let foreign = "ALTER DATABASE {db} OWNER TO postgres";
    refused_unchanged(
        server,
        &[foreign, "GRANT CREATE ON SCHEMA public TO greenroom"],
        "",
        "the role greenroom may not create the extension pg_trgm; let a superuser run in this \
         database: CREATE EXTENSION pg_trgm",
    );
    let extensions = "CREATE EXTENSION pg_trgm; CREATE EXTENSION btree_gin";
    refused_unchanged(
        server,
        &[foreign, extensions],
        "",
        "the role greenroom may not create tables in the schema public; let its owner run: GRANT \
         CREATE ON SCHEMA public TO greenroom",
    );
    let elsewhere = "CREATE SCHEMA tools; CREATE EXTENSION pg_trgm SCHEMA tools";
    refused_unchanged(
        server,
        &[elsewhere],
        "",
        "the extension pg_trgm is in the schema tools, which is not in the search_path",
    );
    let url =
        prepared(server, &[foreign, extensions, "GRANT CREATE ON SCHEMA public TO greenroom"]);
    drop(open(settings(&url, "a")).unwrap());
    run(server, &url, "REVOKE CREATE ON SCHEMA public FROM greenroom");
    drop(open(settings(&url, "a")).expect("the tables are there"));
}

#[test]
fn replicated_needs_a_replica() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_database();
    let durability = PostgresDurability::Replicated;
    refused(
        PostgresSettings { durability, ..settings(&url, "a") },
        "durability = \"replicated\" needs a synchronous replica, and the server has none",
    );
    assert_eq!(run(server, &url, TABLES), "0");
}

#[test]
fn a_database_without_writes_is_refused() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_database();
    let name = url.rsplit('/').next().unwrap();
    run(server, &url, &format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    let port = server.port();
    refused(
        settings(&url, "a"),
        &format!("no host accepts writes: 127.0.0.1:{port}: it accepts no writes; name the"),
    );
    let sql = format!("ALTER DATABASE {name} RESET default_transaction_read_only");
    server.answer(&superuser(&server.url()), &sql).unwrap();
    drop(open(settings(&url, "a")).unwrap());
}
