//! The bare server's group commits, in SQLite or in PostgreSQL.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::{Connection, Statement, params};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::lanes::Lanes;
use crate::records::{Record, Row};

/// Maximum number of requests in one transaction.
pub(crate) const BATCH_MAX: usize = 512;

const TABLE: &str = "CREATE TABLE facts (
    owner TEXT NOT NULL,
    seq   INTEGER NOT NULL,
    kind  TEXT NOT NULL,
    body  TEXT NOT NULL,
    PRIMARY KEY (owner, seq)
) WITHOUT ROWID";

/// Handle of the threads that commit.
#[derive(Clone)]
pub(crate) enum Commits {
    /// One thread puts all queued requests into one transaction.
    Sqlite(Sender<Job>),
    Postgres(Arc<Lanes>),
}

pub(crate) struct Job {
    owner: Arc<str>,
    rows: Vec<Row>,
    done: oneshot::Sender<()>,
}

impl Commits {
    /// Opens a new SQLite file.
    pub(crate) fn in_file(path: &Path) -> rusqlite::Result<Self> {
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
        Ok(Self::Sqlite(queue))
    }

    /// Opens the tables that greenroom has made in a PostgreSQL.
    pub(crate) fn in_database(url: &str) -> Result<Self, Box<dyn Error>> {
        Ok(Self::Postgres(Arc::new(Lanes::open(url)?)))
    }

    /// Returns a new id.
    pub(crate) fn new_id(&self) -> Arc<str> {
        let id = match self {
            Self::Sqlite(_) => Uuid::new_v4(),
            Self::Postgres(lanes) => lanes.new_id(),
        };
        id.to_string().into()
    }

    /// Waits until the record is durable; false if the store failed.
    pub(crate) async fn add(&self, record: Record) -> bool {
        match self {
            Self::Sqlite(queue) => {
                let (done, is_done) = oneshot::channel();
                let job = Job { rows: record.change.rows(), owner: record.id, done };
                queue.send(job).is_ok() && is_done.await.is_ok()
            }
            Self::Postgres(lanes) => lanes.add(record).await,
        }
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
