//! Databases that are refused, and are left as they were.

use greenroom_store_postgres::{PostgresDurability, PostgresSettings};
use support::postgres::Server;

use super::{advised, at_database, open, refused, run, settings, superuser};

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
    assert_eq!(run(server, &url, "SELECT program, schema FROM meta"), "greenroom|7");
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
         orders), and is left alone; name an empty database, or another schema in its address, as \
         in options=-c%20search_path%3Dgreenroom,public",
    );
    refused_unchanged(
        server,
        &["CREATE TABLE meta (n int); CREATE TABLE a (); CREATE TABLE b (); CREATE TABLE c ()"],
        "",
        "the schema public of the database has what another program put there (a, b, c, …)",
    );
    let newer = "CREATE TABLE meta (program text, schema int, schema_min int);
        INSERT INTO meta VALUES ('greenroom', 99, 99); GRANT SELECT ON meta TO greenroom";
    refused_unchanged(
        server,
        &[newer],
        "",
        "the database was written by a newer version: its schema is 99, and this version knows 7",
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
    assert_eq!(run(server, &url, "SELECT schema FROM mine.meta"), "7");
    run(server, &url, "DROP SCHEMA mine CASCADE; CREATE SCHEMA mine CREATE TABLE orders (n int)");
    run(server, &url, "GRANT USAGE ON SCHEMA mine TO greenroom");
    refused(
        settings(&mine, "a"),
        "the schema mine of the database has what another program put there (orders), and is left \
         alone; name an empty database, or another schema in the search_path of its address",
    );
}

#[test]
fn another_schema_than_the_one_that_is_named_is_not_used() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_database();
    let of = |path: &str| format!("{url}?options=-c%20search_path%3D{path}");
    for path in ["nope,public", "%22$user%22,nope,public", "nope"] {
        refused(
            settings(&of(path), "a"),
            "the search_path names the schema nope, which does not exist; correct the address of \
             the store, or create the schema: CREATE SCHEMA \"nope\" AUTHORIZATION \"greenroom\"",
        );
    }
    refused(settings(&of("%22%22"), "a"), "the search_path of the role names no schema; name one");
    assert_eq!(run(server, &url, TABLES), "0");
    let refusal = open(settings(&of("nope,public"), "a")).unwrap_err();
    server.answer(&url, &advised(&refusal)).unwrap();
    drop(open(settings(&of("nope,public"), "a")).unwrap());
    assert_eq!(run(server, &url, "SELECT schema FROM nope.meta"), "7");

    run(server, &url, "CREATE SCHEMA closed");
    let closed = of("closed,public");
    let refusal = open(settings(&closed, "a")).unwrap_err();
    let expected = "the search_path names the schema closed, which the role greenroom may not use;";
    assert!(refusal.to_string().starts_with(expected), "{refusal}");
    run(server, &url, &advised(&refusal));
    // the extensions were created in another schema
    let refusal = open(settings(&closed, "a")).unwrap_err();
    let expected = "the extension pg_trgm is in the schema nope, which is not in the search_path of \
         the role; append it to the address of the store: options=-c%20search_path%3Dclosed,nope";
    assert_eq!(refusal.to_string(), expected);
    let advised = format!("{url}?{}", advised(&refusal));
    drop(open(settings(&advised, "a")).unwrap());
    assert_eq!(run(server, &url, "SELECT schema FROM closed.meta"), "7");
}

#[test]
fn an_extension_in_a_schema_that_may_not_be_used_says_what_to_grant() {
    let Some(server) = Server::shared() else { return };
    let closed = "CREATE SCHEMA tools; CREATE EXTENSION pg_trgm SCHEMA tools";
    let url = format!("{}?options=-c%20search_path%3Dpublic,tools", prepared(server, &[closed]));
    run(server, &url, "GRANT CREATE ON SCHEMA public TO greenroom");
    let refusal = open(settings(&url, "a")).unwrap_err();
    let expected = "the extension pg_trgm is in the schema tools, which the role greenroom may not \
         use; let its owner run: GRANT USAGE ON SCHEMA \"tools\" TO \"greenroom\"";
    assert_eq!(refusal.to_string(), expected);
    run(server, &url, &advised(&refusal));
    drop(open(settings(&url, "a")).unwrap());
}

#[test]
fn tables_of_another_role_are_refused() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_database();
    drop(open(settings(&url, "a")).unwrap());
    server.sql("CREATE ROLE tenant LOGIN");
    refused(
        settings(&url.replace("greenroom@", "tenant@"), "a"),
        "the role in the address of the store lacks a privilege: permission denied for table meta \
         (SQLSTATE 42501); name the role that owns the tables, or let that role run: GRANT ALL ON",
    );
    let grant = "GRANT ALL ON ALL TABLES IN SCHEMA public TO tenant;
        GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO tenant";
    run(server, &url, grant);
    drop(open(settings(&url.replace("greenroom@", "tenant@"), "a")).unwrap());
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
    let latin = create("latin", "LATIN1", "C");
    let refusal = open(settings(&latin, "a")).unwrap_err();
    let expected = "the database has the encoding LATIN1; it must be UTF8: create another one, and \
         name it in the address: CREATE DATABASE \"latin_utf8\" OWNER \"greenroom\" ";
    assert!(refusal.to_string().starts_with(expected), "{refusal}");
    server.sql(&advised(&refusal));
    drop(open(settings(&at_database(&server.url(), "latin_utf8"), "a")).unwrap());
    let ascii = create("ascii", "UTF8", "C");
    let refusal = open(settings(&ascii, "a")).unwrap_err();
    let expected = "the database has LC_CTYPE C, with which letters beyond ASCII cannot be searched \
         for; create another one, and name it in the address: CREATE DATABASE \"ascii_utf8\" OWNER";
    assert!(refusal.to_string().starts_with(expected), "{refusal}");
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
         CREATE ON SCHEMA \"public\" TO \"greenroom\"",
    );
    let elsewhere = "CREATE SCHEMA tools; CREATE EXTENSION pg_trgm SCHEMA tools;
        GRANT USAGE ON SCHEMA tools TO greenroom";
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
