//! Incremental vacuum of the file.
//!
//! Later writes reuse free pages, so most of them can stay. If they are a large part of the file,
//! they are given back in small steps while the writer is idle, so that a request waits for one
//! step at most.

use rusqlite::{Connection, Result};

use super::job::Job;

/// Number of pages given back in one step: some milliseconds, since each moves a page.
const STEP: u32 = 128;

/// Number of free pages to keep, whatever the size of the file: 4 MB.
const SPARE: i64 = 1024;

/// Number of pages per free page from which on a vacuum starts.
const SHARE: i64 = 10;

/// Gives free pages back while there are too many.
pub(super) struct Vacuum {
    /// True if pages may have become free since the last step.
    is_due: bool,
    /// True while pages are given back, until fewer than [`SPARE`] are free.
    is_running: bool,
}

impl Default for Vacuum {
    fn default() -> Self {
        Self { is_due: true, is_running: false }
    }
}

impl Vacuum {
    /// Notes a committed batch: only changes delete many rows at once.
    pub(super) fn note(&mut self, batch: &[Job]) {
        self.is_due |= batch.iter().any(|job| matches!(job, Job::Change { .. }));
    }

    /// Makes one step if one is due; returns true if it did.
    pub(super) fn step(&mut self, connection: &Connection) -> Result<bool> {
        self.is_due = self.is_due && self.give_back(connection)?;
        Ok(self.is_due)
    }

    fn give_back(&mut self, connection: &Connection) -> Result<bool> {
        let free = number(connection, "freelist_count")?;
        if free < SPARE {
            self.is_running = false;
            return Ok(false);
        }
        self.is_running |= free > number(connection, "page_count")? / SHARE;
        if !self.is_running {
            return Ok(false);
        }
        let mut statement = connection.prepare(&format!("PRAGMA incremental_vacuum({STEP})"))?;
        let mut steps = statement.raw_query();
        // each row gives one page back
        while steps.next()?.is_some() {}
        drop(steps);
        drop(statement);
        // a file of an older version gives nothing back
        let moved = number(connection, "freelist_count")? < free;
        self.is_running &= moved;
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
    fn free_pages_are_given_back_in_small_steps_except_for_a_few() {
        let directory = tempfile::tempdir().unwrap();
        let connection = filled(&directory.path().join("a.db"), 4000);
        let mut vacuum = Vacuum::default();
        assert!(!vacuum.step(&connection).unwrap(), "nothing is free");
        connection.execute("DELETE FROM t WHERE n > 1000", []).unwrap();
        assert!(!vacuum.step(&connection).unwrap(), "no change was noted");
        vacuum.is_due = true;
        let (mut before, mut steps) = (free(&connection), 0);
        assert!(before > 2 * SPARE, "{before}");
        while vacuum.step(&connection).unwrap() {
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
    fn a_small_share_of_free_pages_is_kept_for_later_writes() {
        let directory = tempfile::tempdir().unwrap();
        let connection = filled(&directory.path().join("a.db"), 15_000);
        connection.execute("DELETE FROM t WHERE n > 13700", []).unwrap();
        assert!(free(&connection) > SPARE, "{}", free(&connection));
        assert!(!Vacuum::default().step(&connection).unwrap());
    }

    #[test]
    fn a_file_without_incremental_vacuum_is_left_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE old (n)").unwrap();
        let connection = filled(&path, 4000);
        connection.execute("DELETE FROM t", []).unwrap();
        let before = free(&connection);
        assert!(!Vacuum::default().step(&connection).unwrap(), "and not tried again");
        assert_eq!(free(&connection), before);
    }
}
