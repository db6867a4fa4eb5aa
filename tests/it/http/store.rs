//! Files that are no valid store: the server refuses them and leaves them unchanged.

use serde_json::json;

use super::site::{CONFIG, Site};
use crate::program::Programs;
use support::server::{Home, Server};
use support::store::Store;

/// Starts on an unusable file; expects a refusal with this text and an unchanged file.
fn refused(home: &Home, expected: &str) {
    let files = || {
        ["store.db", "store.db-wal"].map(|name| std::fs::read(home.path(name)).unwrap_or_default())
    };
    let before = files();
    refused_beside_others(home, expected);
    assert!(before == files(), "the file was changed: {expected}");
}

fn refused_beside_others(home: &Home, expected: &str) {
    let output = home.run(home.greenroom(&[]));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let line = stderr.lines().find(|line| line.starts_with("greenroom: ")).unwrap_or_default();
    assert!(line.contains("store.db") && line.contains(expected), "{expected}: {stderr}");
}

/// Creates a directory with a store of two executions.
fn used() -> Home {
    let site = Site::on(Store::Sqlite, "");
    site.execute("add", "a1", &json!({ "n": 1 }));
    site.execute("approval", "s1", &json!({ "who": "ann" }));
    let Site { home, mut server } = site;
    server.signal("TERM");
    assert!(server.ended().success());
    home
}

fn sql(home: &Home, statement: &str) {
    let connection = rusqlite::Connection::open(home.path("store.db")).unwrap();
    connection.execute_batch(statement).unwrap();
}

#[test]
fn a_second_process_is_refused() {
    let site = Site::on(Store::Sqlite, "");
    refused_beside_others(&site.home, "is in use by another process");
    site.execute("add", "a1", &json!({ "n": 1 }));
}

#[test]
fn the_lock_ends_with_its_process() {
    let site = Site::on(Store::Sqlite, "").after_a_kill();
    site.execute("add", "a1", &json!({ "n": 1 }));
}

#[test]
fn after_an_orderly_end_the_store_is_one_file() {
    let (used, copy) = (used(), Home::on(Store::Sqlite, CONFIG));
    std::fs::copy(used.path("store.db"), copy.path("store.db")).unwrap();
    let server = Server::start(copy.greenroom(&[]));
    assert_eq!(server.state("approval", "s1")["status"], "suspended");
    assert_eq!(server.state("add", "a1")["result"], json!({ "n": 4 }));
}

#[test]
fn a_store_that_is_gone_is_begun_anew_with_a_warning() {
    let home = used();
    std::fs::remove_file(home.path("store.db")).unwrap();
    let server = Server::start(home.greenroom(&[]));
    let line = server.says("is not there, though its lock is: a new one is made");
    assert!(line.contains("store.db"), "{line}");
}

#[test]
fn files_of_other_programs_are_left_unchanged() {
    let home = Home::on(Store::Sqlite, CONFIG);
    home.write("store.db", "dear diary");
    refused(&home, "is not a SQLite database; it was left as it is");
    std::fs::write(home.path("store.db"), vec![0; 8192]).unwrap();
    refused(&home, "is not a SQLite database; it was left as it is");
    std::fs::remove_file(home.path("store.db")).unwrap();
    sql(&home, "CREATE TABLE diary (text TEXT); INSERT INTO diary VALUES ('dear');");
    refused(&home, "is a database of another program (application id 0)");
    sql(&home, "PRAGMA application_id = 7;");
    refused(&home, "is a database of another program (application id 7)");
}

#[test]
fn a_store_of_another_schema_is_left_unchanged() {
    let newer = "was written by a newer greenroom (schema 99, this one knows";
    for (change, refusal) in
        [("PRAGMA user_version = 99;", newer), ("DROP TABLE executions;", "is damaged")]
    {
        let home = used();
        sql(&home, change);
        refused(&home, refusal);
    }
}

#[test]
fn a_damaged_store_is_left_unchanged() {
    let home = used();
    let path = home.path("store.db");
    let whole = std::fs::read(&path).unwrap();
    let write = |bytes: &[u8]| std::fs::write(&path, bytes).unwrap();

    write(&whole[..whole.len() / 2]);
    refused(&home, "is damaged");
    write(&whole[..50]);
    refused(&home, "is not a SQLite database");
    write(&[&[0; 100], &whole[100..]].concat());
    refused(&home, "is not a SQLite database");
    // garbage in place of tables
    let mut bytes = whole.clone();
    bytes[4096..].fill(0x5a);
    write(&bytes);
    refused(&home, "is damaged");
    // a log without a database
    std::fs::remove_file(&path).unwrap();
    std::fs::write(home.path("store.db-wal"), b"leftover").unwrap();
    refused(&home, "there is a write-ahead log (-wal) and no database");

    std::fs::remove_file(home.path("store.db-wal")).unwrap();
    write(&whole);
    let server = Server::start(home.greenroom(&[]));
    assert_eq!(server.state("approval", "s1")["status"], "suspended");
}

#[test]
fn an_impossible_path_is_named() {
    let home = Home::on(Store::Sqlite, CONFIG);
    std::fs::create_dir(home.path("store.db")).unwrap();
    refused(&home, "it is a directory");
    let home = Home::on(Store::Sqlite, CONFIG);
    home.write("c.toml", "server.port = 0\nstore.url = \"sqlite://no/such/store.db\"\n");
    let output = home.run(home.greenroom(&["--config", "c.toml"]));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("the directory no/such does not exist"), "{stderr}");
}

#[test]
fn memory_forgets() {
    let home = Home::new("");
    home.write("m.toml", &format!("server.port = 0\nstore.url = \"memory:\"\n{CONFIG}"));
    let start = || Server::start(home.greenroom(&["--config", "m.toml"]));
    let server = start();
    let body = json!({ "input": { "n": 1 }, "options": { "executionId": "a1" } });
    server.post("/workflows/add/execute", &body).data();
    assert_eq!(server.state("add", "a1")["status"], "completed");
    server.kill();
    assert_eq!(start().get("/workflows/add/executions/a1/state").status, 404);
    assert!(!home.path("store.db").exists());
}
