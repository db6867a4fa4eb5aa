//! When the file gets smaller again.
//!
//! Pages that are free are used again by what is written next, so most of them need not go. Where
//! they are a large part of the file, they are given back in small steps while nobody wants to
//! write: whoever comes meanwhile waits for one step.

use rusqlite::{Connection, Result};

use super::job::Job;

/// Pages given back in one step, each of which costs a page to move: some milliseconds.
const STEP: u32 = 128;

/// Fewer free pages than this are left alone, whatever the size of the file: 4 MB.
const SPARE: i64 = 1024;

/// Of so many pages one may be free.
const SHARE: i64 = 10;

/// Gives pages back as long as there are too many free ones.
pub(super) struct Shrinking {
    /// Something may have become free since it was looked at.
    is_due: bool,
    /// What began goes on until fewer than the spare ones are left.
    is_at_it: bool,
}

impl Default for Shrinking {
    fn default() -> Self {
        Self { is_due: true, is_at_it: false }
    }
}

impl Shrinking {
    /// Hears of what was committed: only changes drop much at once.
    pub(super) fn note(&mut self, batch: &[Job]) {
        self.is_due |= batch.iter().any(|job| matches!(job, Job::Change { .. }));
    }

    /// Takes one step if there is one to take; tells whether it did.
    pub(super) fn step(&mut self, connection: &Connection) -> Result<bool> {
        self.is_due = self.is_due && self.give_back(connection)?;
        Ok(self.is_due)
    }

    fn give_back(&mut self, connection: &Connection) -> Result<bool> {
        let free = number(connection, "freelist_count")?;
        if free < SPARE {
            self.is_at_it = false;
            return Ok(false);
        }
        self.is_at_it |= free > number(connection, "page_count")? / SHARE;
        if !self.is_at_it {
            return Ok(false);
        }
        let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({STEP})"))?;
        let mut steps = statement.raw_query();
        // A page for each row.
        while steps.next()?.is_some() {}
        drop(steps);
        drop(statement);
        // A file of an older version gives nothing back.
        let moved = number(connection, "freelist_count")? < free;
        self.is_at_it &= moved;
        Ok(moved)
    }
}

fn number(connection: &Connection, pragma: &str) -> Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Durability, schema};
    use super::*;

    const PAGE: i64 = 4096;

    fn filled(path: &Path, pages: i64) -> Connection {
        let connection = schema::open_writer(path, Durability::Normal).unwrap();
        connection.execute_batch("CREATE TABLE t (n INTEGER PRIMARY KEY, b BLOB)").unwrap();
        let put = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < ?1)
            INSERT INTO t (b) SELECT zeroblob(?2) FROM s";
        connection.execute(put, [pages, PAGE - 100]).unwrap();
        connection
    }

    fn free(connection: &Connection) -> i64 {
        number(connection, "freelist_count").unwrap()
    }

    #[test]
    fn what_is_free_is_given_back_in_small_steps_but_for_a_few_pages() {
        let directory = tempfile::tempdir().unwrap();
        let connection = filled(&directory.path().join("a.db"), 4000);
        let mut shrinking = Shrinking::default();
        assert!(!shrinking.step(&connection).unwrap(), "nothing is free");
        connection.execute("DELETE FROM t WHERE n > 1000", []).unwrap();
        assert!(!shrinking.step(&connection).unwrap(), "it has heard of no change");
        shrinking.is_due = true;
        let (mut before, mut steps) = (free(&connection), 0);
        assert!(before > 2 * SPARE, "{before}");
        while shrinking.step(&connection).unwrap() {
            let now = free(&connection);
            assert!(before - now <= i64::from(STEP), "one step gave {} pages", before - now);
            before = now;
            steps += 1;
        }
        assert!(steps > 10, "{steps} steps");
        assert!(before < SPARE && before > SPARE - i64::from(STEP) - 1, "{before} are left");
        let check = "PRAGMA integrity_check";
        let verdict: String = connection.query_row(check, [], |row| row.get(0)).unwrap();
        assert_eq!(verdict, "ok");
        let kept: i64 = connection.query_row("SELECT count(*) FROM t", [], |r| r.get(0)).unwrap();
        assert_eq!(kept, 1000);
    }

    #[test]
    fn a_small_share_is_left_for_what_is_written_next() {
        let directory = tempfile::tempdir().unwrap();
        let connection = filled(&directory.path().join("a.db"), 15_000);
        connection.execute("DELETE FROM t WHERE n > 13700", []).unwrap();
        assert!(free(&connection) > SPARE, "{}", free(&connection));
        assert!(!Shrinking::default().step(&connection).unwrap());
    }

    #[test]
    fn a_file_of_an_older_version_is_left_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE old (n)").unwrap();
        let connection = filled(&path, 4000);
        connection.execute("DELETE FROM t", []).unwrap();
        let before = free(&connection);
        assert!(!Shrinking::default().step(&connection).unwrap(), "and not tried for ever");
        assert_eq!(free(&connection), before);
    }
}
