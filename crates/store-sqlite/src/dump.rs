//! A store file as a whole: read to be copied to another store, or filled from one.
//!
//! A file is filled under another name, which no server opens, and takes its own once the copy was
//! checked. What an interrupted copy leaves is overwritten by the next one.

pub(super) mod statements;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use greenroom_store_codec::dump::{
    Batches, Failed, Kind, MESSAGE_PARTS, Receive, Record, Source, Target, Value,
};
use greenroom_store_codec::prepared::folded_text_of;
use rusqlite::types::{FromSqlError, ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params, params_from_iter};
use tempfile::TempPath;

use super::conversations::messages_of;
use super::files::{beside, folder_of, sync};
use super::guard::{self, Lock, OpenError};
use super::{Durability, schema};

/// Maximum number of a memory: the numbers of its messages have it in their upper half.
const MEMORY_MAX: i64 = i32::MAX as i64;

/// A store that a copy reads. Locked against servers.
#[derive(Debug)]
pub struct FileSource {
    path: PathBuf,
    connection: Connection,
    _lock: Lock,
}

impl FileSource {
    /// Opens the store at a path, as a server does: it is migrated if it is of an older version, and
    /// refused if another process uses it.
    pub fn open(path: &Path) -> Result<Self, Failed> {
        let path = guard::resolved(path).map_err(|error| failed(&error))?;
        if !path.is_file() {
            return Err(Failed(format!("there is no store at {}", path.display())));
        }
        let lock = guard::lock(&path).map_err(|error| failed(&error))?;
        guard::inspect(&path).map_err(|error| failed(&error))?;
        let refused = |error: rusqlite::Error| failed(&guard::refusal(&path, &error));
        let mut connection = schema::open_writer(&path, Durability::Full).map_err(refused)?;
        schema::migrate(&mut connection).map_err(refused)?;
        Ok(Self { path, connection, _lock: lock })
    }
}

impl Source for FileSource {
    fn count(&mut self, kind: Kind) -> Result<u64, Failed> {
        count(&self.connection, &self.path, kind)
    }

    fn read(&mut self, kind: Kind, receive: &mut Receive<'_>) -> Result<(), Failed> {
        read(&self.connection, &self.path, kind, receive)
    }
}

/// A new store that a copy fills.
#[derive(Debug)]
pub struct FileTarget {
    path: PathBuf,
    /// `None` once complete.
    filling: Option<Filling>,
    _lock: Lock,
}

#[derive(Debug)]
struct Filling {
    connection: Connection,
    /// Removed if it does not take its own name.
    partial: TempPath,
}

impl FileTarget {
    /// Creates an empty store, to be at a path where nothing is yet. The path is locked against
    /// servers meanwhile.
    pub fn create(path: &Path) -> Result<Self, Failed> {
        // also refuses a dangling link
        if path.symlink_metadata().is_ok() {
            let exists = "exists; a copy overwrites nothing: name another file, or remove this one";
            return Err(Failed(format!("{} {exists}", path.display())));
        }
        let lock = guard::lock(path).map_err(|error| failed(&error))?;
        let partial = beside(path, ".copying");
        let not_written = |error: &dyn std::error::Error| not_written(path, error);
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(not_written(&error));
            }
            Ok(()) | Err(_) => {}
        }
        let connection = create(&partial).map_err(|error| not_written(&error))?;
        let partial = TempPath::try_from_path(partial).map_err(|error| not_written(&error))?;
        let filling = Some(Filling { connection, partial });
        Ok(Self { path: path.into(), filling, _lock: lock })
    }

    fn filling(&mut self) -> Result<(&Path, &mut Filling), Failed> {
        let filling = self.filling.as_mut();
        let filling = filling.ok_or_else(|| Failed("the copy is complete".to_owned()))?;
        Ok((&self.path, filling))
    }
}

impl Source for FileTarget {
    fn count(&mut self, kind: Kind) -> Result<u64, Failed> {
        let (path, filling) = self.filling()?;
        count(&filling.connection, path, kind)
    }

    fn read(&mut self, kind: Kind, receive: &mut Receive<'_>) -> Result<(), Failed> {
        let (path, filling) = self.filling()?;
        read(&filling.connection, path, kind, receive)
    }
}

impl Target for FileTarget {
    fn write(&mut self, kind: Kind, records: Vec<Record>) -> Result<(), Failed> {
        let (path, filling) = self.filling()?;
        let written = filling.connection.unchecked_transaction().and_then(|transaction| {
            for record in &records {
                insert(&transaction, kind, record)?;
            }
            transaction.commit()
        });
        written.map_err(|error| Failed(format!("{kind}: {}", not_written(path, &error))))
    }

    fn derive(&mut self) -> Result<(), Failed> {
        // indexes and the search are kept by each write
        Ok(())
    }

    fn complete(&mut self) -> Result<(), Failed> {
        let Self { path, filling, .. } = self;
        let Some(Filling { connection, partial, .. }) = filling.take() else { return Ok(()) };
        let not_written = |error: &dyn std::error::Error| not_written(path, error);
        connection.close().map_err(|(_, error)| not_written(&error))?;
        sync(&partial).map_err(|error| not_written(&error))?;
        partial.persist_noclobber(&*path).map_err(|refused| not_written(&refused.error))?;
        sync(folder_of(path)).map_err(|error| not_written(&error))
    }
}

/// Creates the file, without a log: nothing in it counts until it is complete.
fn create(path: &Path) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "page_size", 4096)?;
    schema::give_pages_back(&connection)?;
    connection.pragma_update_and_check(None, "journal_mode", "OFF", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    schema::migrate(&mut connection)?;
    Ok(connection)
}

fn count(connection: &Connection, path: &Path, kind: Kind) -> Result<u64, Failed> {
    let count = format!("SELECT count(*) FROM ({})", statements::select(kind));
    let count = connection.query_row(&count, [], |row| row.get::<_, i64>(0));
    let count = count.map_err(|error| not_read(path, kind, &error))?;
    Ok(u64::try_from(count).unwrap_or_default())
}

fn read(
    connection: &Connection,
    path: &Path,
    kind: Kind,
    receive: &mut Receive<'_>,
) -> Result<(), Failed> {
    let not_read = |error: rusqlite::Error| not_read(path, kind, &error);
    let mut statement = connection.prepare(statements::select(kind)).map_err(not_read)?;
    let mut rows = statement.query([]).map_err(not_read)?;
    let mut batches = Batches::new(kind);
    while let Some(row) = rows.next().map_err(not_read)? {
        let values = (0..kind.types().len()).map(|column| value_of(row.get_ref(column)?));
        let record = values.collect::<rusqlite::Result<Record>>().map_err(not_read)?;
        batches.add(record).map_or(Ok(()), &mut *receive)?;
    }
    batches.rest().map_or(Ok(()), receive)
}

fn value_of(value: ValueRef<'_>) -> rusqlite::Result<Value> {
    match value {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) => Ok(Value::Integer(number)),
        ValueRef::Text(_) => Ok(Value::Text(value.as_str()?.to_owned())),
        ValueRef::Blob(bytes) => Ok(Value::Bytes(bytes.to_vec())),
        // no table has such a column
        ValueRef::Real(_) => Err(FromSqlError::InvalidType.into()),
    }
}

/// A value as a parameter.
struct Parameter<'v>(&'v Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self.0 {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(*number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

fn insert(connection: &Connection, kind: Kind, record: &Record) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(statements::insert(kind))?;
    if kind != Kind::Messages {
        return statement.execute(params_from_iter(record.iter().map(Parameter))).map(drop);
    }
    let [Value::Integer(memory), values @ .., Value::Integer(place)] = &record[..] else {
        return Err(FromSqlError::InvalidType.into());
    };
    let n = number_of(*memory, *place)?;
    let number = Value::Integer(n);
    statement.execute(params_from_iter([&number].into_iter().chain(values).map(Parameter)))?;
    let text = record.get(MESSAGE_PARTS).and_then(Value::as_bytes).map(folded_text_of);
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        connection.prepare_cached(statements::PUT_TEXT)?.execute(params![n, text])?;
    }
    Ok(())
}

/// Returns the number of a message by its memory and its place in it.
fn number_of(memory: i64, place: i64) -> rusqlite::Result<i64> {
    let (first, last) = messages_of(memory);
    if (0..=MEMORY_MAX).contains(&memory) && (1..=last - first).contains(&place) {
        return Ok(first + place);
    }
    Err(FromSqlError::OutOfRange(memory).into())
}

fn failed(error: &OpenError) -> Failed {
    Failed(error.to_string())
}

fn not_read(path: &Path, kind: Kind, error: &rusqlite::Error) -> Failed {
    Failed(format!("cannot read the {kind} of {}: {error}", path.display()))
}

fn not_written(path: &Path, error: &dyn std::error::Error) -> Failed {
    Failed(format!("cannot write {}: {error}", path.display()))
}
