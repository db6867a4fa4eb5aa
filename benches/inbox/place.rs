//! The place of the store, and the server over it.

use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;

use greenroom_actors::ports::meter::NoMeter;
use greenroom_actors::ports::store::Store as StorePort;
use greenroom_store_postgres::{PostgresDurability, PostgresSettings, PostgresStore};
use greenroom_store_sqlite::{Durability, SqliteStore};
use support::postgres;
use support::server::Server;
use tempfile::TempDir;

use crate::{Outcome, token};

const CONFIG: &str = include_str!("server.toml");
/// The file of the store with SQLite.
const FILE: &str = "inbox.db";
/// Settings beside the defaults: every commit is synced to the disk, and no checkpoint falls into a
/// measurement.
const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("shared_buffers", "256MB"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "30min"),
];
const BYTES: &str = "SELECT pg_database_size('greenroom')";

/// Technology of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Sqlite,
    Postgres,
}

impl FromStr for Store {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            _ => Err(format!("unknown store {text}")),
        }
    }
}

/// An empty folder, and a database if the store is in one. Removed on drop.
pub(crate) struct Place {
    folder: TempDir,
    database: Option<Database>,
}

struct Database {
    server: postgres::Server,
    url: String,
}

impl Place {
    pub(crate) fn new(store: Store) -> Outcome<Self> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?;
        let database = match store {
            Store::Sqlite => None,
            Store::Postgres => {
                let server = postgres::Server::start_with(postgres::Auth::Trust, SETTINGS)
                    .ok_or("PostgreSQL is missing")?;
                Some(Database { url: server.fresh_url(), server })
            }
        };
        Ok(Self { folder, database })
    }

    /// Opens the store to fill it; a power loss may undo that.
    pub(crate) fn open(&self) -> Outcome<Arc<dyn StorePort>> {
        let Some(Database { url, .. }) = &self.database else {
            let path = self.folder.path().join(FILE);
            return Ok(Arc::new(SqliteStore::open(&path, Durability::Normal)?));
        };
        let settings = PostgresSettings {
            durability: PostgresDurability::Normal,
            ..PostgresSettings::new(url.parse()?, "inbox")
        };
        Ok(Arc::new(PostgresStore::open(settings, Arc::new(NoMeter))?))
    }

    /// Does at once what a database does some time after it was filled.
    pub(crate) fn tidy(&self) -> Outcome<()> {
        if let Some(Database { server, url }) = &self.database {
            server.answer(url, "VACUUM ANALYZE")?;
            server.sql("CHECKPOINT");
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> Outcome<u64> {
        match &self.database {
            Some(Database { server, .. }) => Ok(server.sql(BYTES).parse()?),
            None => Ok(std::fs::metadata(self.folder.path().join(FILE))?.len()),
        }
    }

    /// Starts the server with authentication by token.
    pub(crate) fn start(&self) -> Outcome<Server> {
        let file = format!("sqlite://{FILE}");
        let url = self.database.as_ref().map_or(&file, |database| &database.url);
        let config = format!("{CONFIG}\n[store]\nurl = \"{url}\"\n");
        std::fs::write(self.folder.path().join("config.toml"), config)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.current_dir(self.folder.path()).env(token::SECRET_VARIABLE, token::SECRET);
        Ok(Server::start(command))
    }
}
