//! The PostgreSQL that the servers write to, started by this program.

use std::str::FromStr;

use support::postgres::{Auth, Server};

use crate::family::Family;
use crate::{Outcome, machine};

/// Settings beside the defaults: every commit is synced to the disk, and no checkpoint falls into a
/// measurement. `auto_explain` does nothing before [`Database::explain`].
const SETTINGS: &[(&str, &str)] = &[
    ("fsync", "on"),
    ("shared_buffers", "256MB"),
    ("min_wal_size", "512MB"),
    ("max_wal_size", "4GB"),
    ("checkpoint_timeout", "30min"),
    ("autovacuum_naptime", "1min"),
    ("shared_preload_libraries", "auto_explain"),
];
/// Writes a log as large as what is kept of it, so that its files exist, as on any server that has
/// been in use.
const FILL_LOG: &str = "SELECT count(pg_logical_emit_message(false, '', repeat('x', 1048576)))
    FROM generate_series(1, 512)";
const DROP_OLDER: &str = "DO $$ DECLARE older name; BEGIN
    FOR older IN SELECT nspname FROM pg_namespace WHERE nspname LIKE 'fresh%' LOOP
        EXECUTE format('DROP SCHEMA %I CASCADE', older);
    END LOOP; END $$";
const LOG: &str = "SELECT pg_read_file(current_setting('data_directory') || '/../log')";

/// Technology that the servers store with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Sqlite,
    Postgres,
}

impl FromStr for Store {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            _ => Err(()),
        }
    }
}

/// A running PostgreSQL with its data in the folder for temporary files. Ends on drop.
pub(crate) struct Database {
    server: Server,
    processes: Family,
}

impl Database {
    pub(crate) fn start() -> Outcome<Self> {
        let server = Server::start_with(Auth::Trust, SETTINGS).ok_or("PostgreSQL is missing")?;
        let pid = server.sql("SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)");
        server.sql(FILL_LOG);
        Ok(Self { processes: Family { parent: pid.parse()? }, server })
    }

    /// Describes the server, and the disk that it writes to.
    pub(crate) fn describe(&self) -> Outcome<String> {
        let folder = self.server.sql("SHOW data_directory");
        let syncs = machine::describe_syncs(&std::env::temp_dir())?;
        let version = self.server.sql("SHOW server_version");
        Ok(format!("PostgreSQL {version} with fsync in {folder}; {syncs}"))
    }

    /// Returns the address of an empty schema, the only one, after a checkpoint.
    pub(crate) fn empty(&self) -> String {
        self.server.sql(DROP_OLDER);
        let url = self.server.fresh_url();
        self.server.sql("CHECKPOINT");
        url
    }

    /// Returns all its processes.
    pub(crate) fn processes(&self) -> Family {
        self.processes
    }

    /// Logs the plan of every statement, or of none.
    pub(crate) fn explain(&self, is_on: bool) {
        let above = if is_on { 0 } else { -1 };
        self.server.sql(&format!("ALTER SYSTEM SET auto_explain.log_min_duration = {above}"));
        self.server.sql("SELECT pg_reload_conf()");
    }

    pub(crate) fn log(&self) -> String {
        self.server.sql(LOG)
    }
}
