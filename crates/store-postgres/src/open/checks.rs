//! Checks of the database before it is used, and its migration, in one transaction: a database that
//! fails a check is left as it was.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Transaction};

use super::OpenError;
use super::names::skipped;
use crate::dump::tables::occupied;
use crate::migration::{self, Schema, Tables};
use crate::schema;
use crate::settings::PostgresDurability;

/// Oldest version of PostgreSQL, as `server_version_num` has it.
const VERSION_MIN: i32 = 150_000;

/// Properties of the server, the database and the role.
const FACTS: &str = "SELECT current_setting('server_version_num')::int,
        current_setting('server_version'),
        current_setting('server_encoding'),
        (SELECT datctype::text FROM pg_database WHERE datname = current_database()),
        current_database()::text,
        current_user::text,
        current_setting('search_path'),
        current_schema()::text,
        coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
        current_setting('synchronous_standby_names')";

/// Schema of an extension, whether names without a schema lead to it, and whether it may be used.
const EXTENSION: &str = "SELECT n.nspname::text, n.nspname = ANY (current_schemas(true)),
        has_schema_privilege(n.oid, 'USAGE')
        FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = $1";

/// Tables, views and the like in the schema of the store that belong to no extension.
const RELATIONS: &str = "SELECT c.relname::text FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
          AND NOT EXISTS (SELECT FROM pg_depend d
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
        ORDER BY c.relname LIMIT 4";

/// Number of foreign tables that are named.
const NAMED_MAX: usize = 3;

/// Use that the database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// By a server.
    Serving,
    /// By a copy to another store.
    Reading,
    /// By a copy of another store.
    Filling,
}

struct Facts {
    version: i32,
    version_name: String,
    encoding: String,
    character_type: String,
    database: String,
    user: String,
    search_path: String,
    schema: Option<String>,
    may_create: bool,
    standbys: String,
}

impl Facts {
    async fn read(transaction: &Transaction<'_>) -> Result<Self, OpenError> {
        let row = transaction.query_one(FACTS, &[]).await?;
        Ok(Self {
            version: row.try_get(0)?,
            version_name: row.try_get(1)?,
            encoding: row.try_get(2)?,
            character_type: row.try_get(3)?,
            database: row.try_get(4)?,
            user: row.try_get(5)?,
            search_path: row.try_get(6)?,
            schema: row.try_get(7)?,
            may_create: row.try_get(8)?,
            standbys: row.try_get(9)?,
        })
    }

    /// Checks what neither extensions nor tables are needed for.
    fn check(&self) -> Result<(), OpenError> {
        if self.version < VERSION_MIN {
            return Err(OpenError::TooOld(self.version_name.clone()));
        }
        if self.encoding != "UTF8" {
            let (database, user) = (self.database.clone(), self.user.clone());
            return Err(OpenError::Encoding { encoding: self.encoding.clone(), database, user });
        }
        Ok(())
    }
}

/// Values that were made with the tables, and that no other database has.
pub(crate) struct Identity {
    /// Id of the database.
    pub(crate) database: String,
    /// Secret by which the servers of the database know each other.
    pub(crate) secret: Vec<u8>,
}

/// Checks the database and migrates its tables, under a lock, as far as the servers that it knows
/// can work on; returns what identifies the database.
pub(super) async fn prepare(
    client: &mut Client,
    durability: PostgresDurability,
    of: Use,
    own: Schema,
) -> Result<Identity, OpenError> {
    // dropping it undoes everything
    let transaction = client.transaction().await?;
    migration::lock(&transaction).await?;
    let facts = Facts::read(&transaction).await?;
    facts.check()?;
    let schema = schema_of(&facts, &transaction).await?;
    let found = find_tables(&transaction, schema).await?;
    match (found, of) {
        (None, Use::Reading) => return Err(OpenError::Missing),
        (None, Use::Serving | Use::Filling) => {}
        (Some(tables), _) => {
            allow_version(tables, of, own)?;
            allow(&transaction, of).await?;
        }
    }
    let found = found.unwrap_or_default();
    for extension in schema::EXTENSIONS {
        create(extension, schema, &facts.user, &transaction).await?;
    }
    check_letters(&transaction, &facts).await?;
    if found.version < own.version() && !facts.may_create {
        let (schema, user) = (schema.to_owned(), facts.user.clone());
        return Err(OpenError::MayNotCreate { schema, user });
    }
    if durability == PostgresDurability::Replicated && facts.standbys.is_empty() {
        return Err(OpenError::NotReplicated);
    }
    let known = migration::known_by_all(&transaction, found).await?;
    own.migrate(&transaction, found, known).await?;
    let own = transaction.query_one("SELECT cluster::text, secret FROM meta", &[]).await?;
    let identity = Identity { database: own.try_get(0)?, secret: own.try_get(1)? };
    transaction.commit().await?;
    Ok(identity)
}

/// Returns the schema of the tables. Refuses another one than that which the search_path names.
async fn schema_of<'f>(
    facts: &'f Facts,
    transaction: &Transaction<'_>,
) -> Result<&'f str, OpenError> {
    let in_use = facts.schema.as_deref();
    let schema = match (skipped(&facts.search_path, &facts.user, in_use), in_use) {
        (None, Some(in_use)) => return Ok(in_use),
        (Some(schema), _) if !schema.is_empty() => schema,
        (None | Some(_), _) => return Err(OpenError::NoSearchPath),
    };
    let exists = "SELECT FROM pg_namespace WHERE nspname = $1";
    let exists = transaction.query_opt(exists, &[&schema]).await?.is_some();
    let user = facts.user.clone();
    Err(match exists {
        true => OpenError::SchemaClosed { schema, user },
        false => OpenError::NoSchema { schema, user },
    })
}

/// Checks that tables can be used in a way: whole by servers and to be read, empty or incomplete to
/// be filled.
pub(crate) async fn allow(transaction: &Transaction<'_>, of: Use) -> Result<(), OpenError> {
    let incomplete = transaction.query_one("SELECT incomplete FROM meta", &[]).await?.try_get(0)?;
    match (of, incomplete) {
        (Use::Serving | Use::Reading, true) => Err(OpenError::Incomplete),
        (Use::Serving | Use::Reading, false) | (Use::Filling, true) => Ok(()),
        (Use::Filling, false) => {
            let found = transaction.query_one(&occupied(), &[]).await?;
            let found: Vec<String> = found.try_get(0)?;
            if found.is_empty() {
                return Ok(());
            }
            let schema = transaction.query_one("SELECT current_schema()::text", &[]).await?;
            Err(OpenError::NotEmpty { schema: schema.try_get(0)?, found: found.join(", ") })
        }
    }
}

/// Checks that this program knows enough of the tables: a server what it needs, a copy everything.
pub(crate) fn allow_version(tables: Tables, of: Use, own: Schema) -> Result<(), OpenError> {
    let known = own.version();
    let is_allowed = match of {
        Use::Serving => own.works_on(tables),
        Use::Reading | Use::Filling => tables.version <= known,
    };
    if is_allowed { Ok(()) } else { Err(OpenError::Newer { found: tables.version, known }) }
}

/// Returns the version of the tables; refuses tables of another program.
async fn find_tables(
    transaction: &Transaction<'_>,
    schema: &str,
) -> Result<Option<Tables>, OpenError> {
    if let Some(found) = migration::find(transaction).await? {
        return Ok(Some(found));
    }
    let relations = transaction.query(RELATIONS, &[]).await?;
    let mut names = Vec::new();
    for relation in relations.iter().take(NAMED_MAX) {
        names.push(relation.try_get::<_, String>(0)?);
    }
    if names.is_empty() {
        return Ok(None);
    }
    let more = if relations.len() > NAMED_MAX { ", …" } else { "" };
    let found = format!("{}{more}", names.join(", "));
    Err(OpenError::Foreign { schema: schema.to_owned(), found })
}

/// Creates an extension unless it is there; the schema is that of the tables.
async fn create(
    extension: &'static str,
    tables: &str,
    user: &str,
    transaction: &Transaction<'_>,
) -> Result<(), OpenError> {
    if let Some(row) = transaction.query_opt(EXTENSION, &[&extension]).await? {
        let schema: String = row.try_get(0)?;
        let (is_found, may_be_used) = (row.try_get(1)?, row.try_get(2)?);
        return match (is_found, may_be_used) {
            (true, _) => Ok(()),
            (false, true) => {
                Err(OpenError::ExtensionHidden { extension, schema, tables: tables.to_owned() })
            }
            (false, false) => {
                Err(OpenError::ExtensionClosed { extension, schema, user: user.to_owned() })
            }
        };
    }
    let create = format!("CREATE EXTENSION {extension}");
    transaction.batch_execute(&create).await.map_err(|error| match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => {
            OpenError::ExtensionRefused { extension, user: user.to_owned() }
        }
        // there is no file of that name, or a managed service does not offer it
        Some(&(SqlState::UNDEFINED_FILE | SqlState::FEATURE_NOT_SUPPORTED)) => {
            OpenError::ExtensionUnavailable(extension)
        }
        _ => error.into(),
    })
}

/// Checks that the index of texts finds letters beyond ASCII.
async fn check_letters(transaction: &Transaction<'_>, facts: &Facts) -> Result<(), OpenError> {
    let letters = "SELECT show_trgm('ä') <> '{}'";
    let are_found: bool = transaction.query_one(letters, &[]).await?.try_get(0)?;
    if are_found {
        return Ok(());
    }
    let Facts { character_type, database, user, .. } = facts;
    Err(OpenError::CharacterType {
        character_type: character_type.clone(),
        database: database.clone(),
        user: user.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_extension_that_the_server_lacks_is_named() {
        let Some(url) = support::postgres::fresh_url() else { return };
        let (mut client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let transaction = client.transaction().await.unwrap();
        let refused = create("no_such_extension", "s", "ann", &transaction).await.unwrap_err();
        let expected = "the server does not have the extension no_such_extension; install";
        assert!(refused.to_string().starts_with(expected), "{refused}");
    }

    fn facts(version: i32, encoding: &str) -> Facts {
        Facts {
            version,
            version_name: format!("{}.{}", version / 10_000, version % 10_000),
            encoding: encoding.to_owned(),
            character_type: "C.UTF-8".to_owned(),
            database: "shop".to_owned(),
            user: "ann".to_owned(),
            search_path: "mine".to_owned(),
            schema: Some("mine".to_owned()),
            may_create: true,
            standbys: String::new(),
        }
    }

    #[test]
    fn servers_before_15_and_other_encodings_are_refused() {
        let refusal = |facts: Facts| facts.check().err().map(|error| error.to_string());
        assert_eq!(refusal(facts(150_000, "UTF8")), None);
        assert_eq!(refusal(facts(190_001, "UTF8")), None);
        for (facts, expected) in [
            (facts(140_012, "UTF8"), "the server is PostgreSQL 14.12; version 15"),
            (facts(150_000, "LATIN1"), "the database has the encoding LATIN1;"),
        ] {
            let refusal = refusal(facts).unwrap_or_default();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
    }
}
