//! Plans of the statements.

use rusqlite::Connection;

use super::super::reader::assert_uses_indexes;
use super::super::schema;
use super::*;

#[test]
fn asks_are_found_by_an_index() {
    for sql in [
        ONE,
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
