//! A database as a whole: read to be copied to another store, or filled from one.
//!
//! A copy holds the database like a server, so that none uses it meanwhile. While it fills the
//! tables, they are marked as incomplete: no server opens them, and another copy starts over. Each
//! of its writes requires a row that a takeover deletes, so one that was paused adds nothing to what
//! the next one writes.

mod rows;
mod session;
pub(crate) mod tables;

use std::collections::HashMap;
use std::mem;

use greenroom_store_codec::dump::{Failed, Kind, Receive, Record, Source, Target, Value};
use tokio_postgres::Statement;

use self::rows::columns;
use self::session::Session;
use self::tables::Table;
use crate::open::Use;
use crate::{OpenError, PostgresSettings};

/// A database that a copy reads.
pub struct DatabaseSource(Session);

impl DatabaseSource {
    /// Opens the store in a database, as a server does: its tables are migrated if they are of an
    /// older version, and it is refused if a server uses it. Blocks.
    pub fn open(settings: PostgresSettings) -> Result<Self, OpenError> {
        Session::open(settings, Use::Reading).map(Self)
    }
}

impl Source for DatabaseSource {
    fn count(&mut self, kind: Kind) -> Result<u64, Failed> {
        self.0.count(kind)
    }

    fn read(&mut self, kind: Kind, receive: &mut Receive<'_>) -> Result<(), Failed> {
        self.0.read(kind, receive)
    }
}

/// A database that a copy fills.
pub struct DatabaseTarget {
    session: Session,
    /// The kind that is written, with its statement.
    prepared: Option<(Kind, Statement)>,
    places: Places,
}

impl DatabaseTarget {
    /// Opens a database without a store, or with one that is empty or incomplete, and creates the
    /// tables. Blocks.
    pub fn open(settings: PostgresSettings) -> Result<Self, OpenError> {
        let session = Session::open(settings, Use::Filling)?;
        Ok(Self { session, prepared: None, places: Places::default() })
    }

    /// Returns the statement that adds records of a kind.
    fn statement(&mut self, kind: Kind) -> Result<Statement, Failed> {
        match &self.prepared {
            Some((prepared, statement)) if *prepared == kind => Ok(statement.clone()),
            Some(_) | None => {
                let statement = self.session.prepare(kind, Table::of(kind).insert())?;
                self.prepared = Some((kind, statement.clone()));
                Ok(statement)
            }
        }
    }
}

impl Source for DatabaseTarget {
    fn count(&mut self, kind: Kind) -> Result<u64, Failed> {
        self.session.count(kind)
    }

    fn read(&mut self, kind: Kind, receive: &mut Receive<'_>) -> Result<(), Failed> {
        self.session.read(kind, receive)
    }
}

impl Target for DatabaseTarget {
    fn write(&mut self, kind: Kind, mut records: Vec<Record>) -> Result<(), Failed> {
        let statement = self.statement(kind)?;
        for record in &mut records {
            tables::complete(kind, record, &mut self.places);
        }
        self.session.write(kind, statement, columns(Table::of(kind).types(), records))
    }

    fn derive(&mut self) -> Result<(), Failed> {
        self.session.derive()
    }

    fn complete(&mut self) -> Result<(), Failed> {
        self.session.complete()
    }
}

/// Numbers of the last messages of the conversations of a memory.
#[derive(Debug, Default)]
struct Places {
    memory: Option<i64>,
    last: HashMap<Option<i64>, i64>,
}

impl Places {
    /// Returns the place of a message in its conversation. Messages come memory by memory.
    fn next(&mut self, memory: &Value, conversation: &Value) -> i64 {
        if mem::replace(&mut self.memory, memory.as_integer()) != self.memory {
            self.last.clear();
        }
        let last = self.last.entry(conversation.as_integer()).or_default();
        *last += 1;
        *last
    }
}
