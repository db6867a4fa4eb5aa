//! Migrations of the tables, also beside servers of older versions that use them.
//!
//! A migration that only adds is made at once, and older servers continue (expand). One that takes
//! away what older servers need is made when none of them is left, and keeps them from starting
//! (contract). Tables can so be of a newer version than a server that uses them.
//!
//! What beats read stays in all versions, so that a server which wakes up after it was counted as
//! gone can find that out.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Error, Transaction};

use crate::open::error::OpenError;
use crate::schema::STEPS;

/// Key of the advisory lock of migrations and of servers that start: `grnr` as a number.
const LOCK: i64 = 0x6772_6e72;

/// Limit of the wait for a table. Servers that use the tables wait as long.
const IMPATIENT: &str = "SET LOCAL lock_timeout = '2s'";

/// Keeps servers from beating during a migration, before anything else is locked.
const HOLD: &str = "LOCK TABLE nodes, meta IN ACCESS EXCLUSIVE MODE";

/// First version whose tables have the least version that a program must know, and the versions
/// that servers know.
const VERSIONS_KNOWN_SINCE: i32 = 3;

/// A migration from one version to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) sql: &'static str,
    /// Least version that a program must know to work on the tables afterwards.
    pub(crate) least: i32,
}

/// The versions of the tables that a program knows; step `i` leads from version `i` to `i + 1`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schema(&'static [Step]);

/// Version of tables that are there; 0 if there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tables {
    pub(crate) version: i32,
    /// Least version that a program must know.
    pub(crate) least: i32,
}

impl Schema {
    /// The versions that this build knows.
    pub(crate) const OWN: Self = Self(&STEPS);

    #[cfg(test)]
    pub(crate) const fn of(steps: &'static [Step]) -> Self {
        Self(steps)
    }

    /// Returns the version that the tables get.
    pub(crate) fn version(self) -> i32 {
        i32::try_from(self.0.len()).unwrap_or(i32::MAX)
    }

    /// Returns true if a server of this program can use these tables, or migrate them.
    pub(crate) fn works_on(self, tables: Tables) -> bool {
        tables.least <= self.version()
    }

    /// Returns the migrations that are missing.
    fn missing(self, tables: Tables) -> &'static [Step] {
        self.0.get(usize::try_from(tables.version).unwrap_or(0)..).unwrap_or_default()
    }

    /// Returns the least version that a server must know to stay while the missing migrations are
    /// made.
    pub(crate) fn least_beside(self, tables: Tables) -> i32 {
        self.missing(tables).iter().map(|step| step.least).max().unwrap_or(0)
    }

    /// Makes the missing migrations, up to the first one that a server could not stay beside that
    /// knows `known`; returns the tables as they are then. The caller holds the lock.
    pub(crate) async fn migrate(
        self,
        transaction: &Transaction<'_>,
        found: Tables,
        known: i32,
    ) -> Result<Tables, OpenError> {
        let made = self.missing(found).iter().take_while(|step| step.least <= known);
        let mut tables = found;
        let migrating = async {
            for step in made {
                if tables == found {
                    transaction.batch_execute(IMPATIENT).await?;
                    if found != Tables::default() {
                        transaction.batch_execute(HOLD).await?;
                    }
                }
                transaction.batch_execute(step.sql).await?;
                let (version, least) = (tables.version + 1, tables.least.max(step.least));
                tables = Tables { version, least };
            }
            note(transaction, found, tables).await
        };
        match migrating.await {
            Ok(()) => Ok(tables),
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                Err(OpenError::Locked)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Writes the version of the tables.
async fn note(transaction: &Transaction<'_>, found: Tables, tables: Tables) -> Result<(), Error> {
    if tables == found {
        return Ok(());
    }
    transaction.execute("UPDATE meta SET schema = $1", &[&tables.version]).await?;
    if tables.version >= VERSIONS_KNOWN_SINCE {
        transaction.execute("UPDATE meta SET schema_min = $1", &[&tables.least]).await?;
    }
    Ok(())
}

/// Takes the lock under which servers migrate the tables and register themselves, one at a time;
/// the end of the transaction releases it.
pub(crate) async fn lock(transaction: &Transaction<'_>) -> Result<(), Error> {
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map(drop)
}

/// Returns the version of the tables in the schema that new tables go to; `None` if it has no
/// tables of ours.
pub(crate) async fn find(transaction: &Transaction<'_>) -> Result<Option<Tables>, Error> {
    let has_meta = "SELECT count(*) = 2 FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = current_schema() AND c.relname = 'meta'
          AND a.attname IN ('program', 'schema')";
    if !transaction.query_one(has_meta, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    // as JSON, because tables of older versions do not have the column
    let version = "SELECT schema, coalesce((to_jsonb(meta) ->> 'schema_min')::int, 1)
        FROM meta WHERE program = 'greenroom'";
    let Some(row) = transaction.query_opt(version, &[]).await? else { return Ok(None) };
    Ok(Some(Tables { version: row.try_get(0)?, least: row.try_get(1)? }))
}

/// Returns the lowest of the versions that the servers know which were not declared gone, whether
/// they are alive or not.
pub(crate) async fn known_by_all(
    transaction: &Transaction<'_>,
    tables: Tables,
) -> Result<i32, Error> {
    if tables == Tables::default() {
        return Ok(i32::MAX);
    }
    let known = "SELECT min(coalesce((to_jsonb(n) ->> 'schema')::int, 1))
        FROM nodes n WHERE state < 2";
    let known: Option<i32> = transaction.query_one(known, &[]).await?.try_get(0)?;
    Ok(known.unwrap_or(i32::MAX))
}
