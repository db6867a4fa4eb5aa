//! Plans of the statements.

use rusqlite::{Connection, StatementStatus};
use tempfile::TempDir;

use super::super::reader::assert_uses_indexes;
use super::super::{Durability, schema};
use super::*;

#[test]
fn asks_are_found_by_an_index() {
    for sql in [
        ONE,
        RULES,
        CONTENT,
        OF_GENERATION,
        DUE,
        OPEN_ALL,
        OPEN_OF_WORKFLOW,
        OPEN_OF_AGENT,
        OPEN_OF_USER,
        CLOSED_ALL,
        CLOSED_OF_WORKFLOW,
        CLOSED_OF_AGENT,
        CLOSED_OF_USER,
        WITHOUT,
    ] {
        assert_uses_indexes(sql);
    }
}

#[test]
fn open_asks_are_counted_without_closed_ones() {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::migrate(&mut connection).unwrap();
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {COUNT}")).unwrap();
    let scan: String = statement.query_row([], |row| row.get(3)).unwrap();
    assert_eq!(scan, "SCAN asks USING INDEX asks_open");
}

#[test]
fn statements_are_compiled_once() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.db");
    let mut connection = schema::open_writer(&path, Durability::Normal).unwrap();
    schema::migrate(&mut connection).unwrap();
    for connection in [connection, schema::open_reader(&path).unwrap()] {
        let mut one = connection.prepare(ONE).unwrap();
        let mut without = connection.prepare(WITHOUT).unwrap();
        for value in 0..4 {
            assert!(!one.exists([format!("step:{value}")]).unwrap());
            assert!(!without.exists([value, value + 10]).unwrap());
        }
        for statement in [one, without] {
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        }
    }
}
