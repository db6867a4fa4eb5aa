//! The bare server's group commit: one thread puts all queued requests into one transaction.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::{Connection, Statement, params};
use tokio::sync::oneshot;

/// Most requests in one transaction.
const BATCH_MAX: usize = 512;

const TABLE: &str = "CREATE TABLE facts (
    owner TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    kind  TEXT NOT NULL,
    body  TEXT NOT NULL,
    PRIMARY KEY (owner, seq)
) WITHOUT ROWID";

/// A small row under the key of its request.
pub(crate) struct Row {
    pub(crate) seq: i64,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

struct Job {
    owner: Arc<str>,
    rows: Vec<Row>,
    done: oneshot::Sender<()>,
}

/// Handle of the thread that commits.
#[derive(Clone)]
pub(crate) struct Commits {
    queue: Sender<Job>,
}

impl Commits {
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(path)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update_and_check(None, "wal_autocheckpoint", 4000, |_| Ok(()))?;
        connection.execute(TABLE, [])?;
        let (queue, jobs) = channel();
        std::thread::spawn(move || {
            if let Err(error) = write(&connection, &jobs) {
                log::error!("the store failed: {error}");
            }
        });
        Ok(Self { queue })
    }

    /// Waits until the rows are durable; false if the store failed.
    pub(crate) async fn add(&self, owner: Arc<str>, rows: Vec<Row>) -> bool {
        let (done, is_done) = oneshot::channel();
        self.queue.send(Job { owner, rows, done }).is_ok() && is_done.await.is_ok()
    }
}

fn write(connection: &Connection, jobs: &Receiver<Job>) -> rusqlite::Result<()> {
    let mut begin = connection.prepare("BEGIN IMMEDIATE")?;
    let mut insert =
        connection.prepare("INSERT INTO facts (owner, seq, kind, body) VALUES (?1, ?2, ?3, ?4)")?;
    let mut commit = connection.prepare("COMMIT")?;
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while let Ok(first) = jobs.recv() {
        batch.push(first);
        batch.extend(jobs.try_iter().take(BATCH_MAX - 1));
        begin.execute([])?;
        for job in &batch {
            insert_all(&mut insert, job)?;
        }
        commit.execute([])?;
        for job in batch.drain(..) {
            // the request may have been dropped
            let _ = job.done.send(());
        }
    }
    Ok(())
}

fn insert_all(insert: &mut Statement<'_>, job: &Job) -> rusqlite::Result<()> {
    for row in &job.rows {
        insert.execute(params![job.owner, row.seq, row.kind, row.body])?;
    }
    Ok(())
}
