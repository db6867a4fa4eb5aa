//! Reasons for not opening a store, each with what to do.

use std::io;
use std::time::Duration;

use tokio_postgres::error::SqlState;

use crate::address::Address;
use crate::connector::{ConnectError, HostError, HostFault, certificate_problem};
use crate::fault::{Fault, fault_of, reason_of};
use crate::pool::Failure;

use super::names::{quoted, search_path_of};

/// Properties of a database for texts, for the end of the statement that creates it. The collation
/// fits every encoding, that of the server included.
const TEXTS: &str = "ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' TEMPLATE template0";

/// Failure to open a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No host answers; the text has the reason of each.
    #[error(
        "cannot connect to the database: {0}; check that PostgreSQL runs there and that this \
         machine may reach it"
    )]
    Unreachable(String),
    #[error(
        "{host} does not offer TLS; switch it on there (ssl = on), or append sslmode=disable to \
         the address of the store if you trust the network"
    )]
    TlsNotOffered { host: String },
    #[error(
        "the certificate of {host} is not trusted: {reason}; the host in the address must be in \
         the certificate, and its authority among those of this machine or in the file `ca` under \
         [store]"
    )]
    Untrusted { host: String, reason: String },
    /// The file of authorities.
    #[error("the certificates of `ca` under [store] cannot be used: {0}")]
    Authorities(String),
    #[error(
        "{host} asks for a password: set `password` under [store], or the environment variable \
         PGPASSWORD"
    )]
    PasswordMissing { host: String },
    /// A host has no room for connections; the text has the reason of each.
    #[error(
        "no host has room for a connection: {0}; raise max_connections there, or the limit of the \
         role or the database if it has one (ALTER ROLE or ALTER DATABASE … CONNECTION LIMIT)"
    )]
    Full(String),
    #[error(
        "{host} refuses the login: {reason}; check the user in the address, its password \
         (`password` under [store], or PGPASSWORD), and pg_hba.conf of the server"
    )]
    Login { host: String, reason: String },
    #[error(
        "{host} does not let {user} connect to the database {database}; let its owner run: GRANT \
         CONNECT ON DATABASE {} TO {}",
        quoted(database),
        quoted(user)
    )]
    MayNotConnect { host: String, database: String, user: String },
    #[error(
        "{host} refuses the connection: {reason}; check `options` in the address of the store, if \
         it has any, and the settings of the role and of the database there"
    )]
    Refused { host: String, reason: String },
    #[error(
        "{host} has no database {database}; create it: CREATE DATABASE {} OWNER {} {TEXTS}",
        quoted(database),
        quoted(user)
    )]
    UnknownDatabase { host: String, database: String, user: String },
    #[error("the server is PostgreSQL {0}; version 15 or newer is needed")]
    TooOld(String),
    /// No host accepts writes; the text has the reason of each.
    #[error(
        "no host accepts writes: {0}; name the primary server in the address, and see that \
         default_transaction_read_only is off"
    )]
    ReadOnly(String),
    #[error(
        "the database has the encoding {encoding}; it must be UTF8: create another one, and name it \
         in the address: {}",
        another(database, user)
    )]
    Encoding { encoding: String, database: String, user: String },
    #[error(
        "the database has LC_CTYPE {character_type}, with which letters beyond ASCII cannot be \
         searched for; create another one, and name it in the address: {}",
        another(database, user)
    )]
    CharacterType { character_type: String, database: String, user: String },
    #[error(
        "the server does not have the extension {0}; install the package of PostgreSQL's \
         additional modules (postgresql-contrib), or allow it in a managed service"
    )]
    ExtensionUnavailable(&'static str),
    #[error(
        "the role {user} may not create the extension {extension}; let a superuser run in this \
         database: CREATE EXTENSION {extension}"
    )]
    ExtensionRefused { extension: &'static str, user: String },
    #[error(
        "the extension {extension} is in the schema {schema}, which is not in the search_path of \
         the role; append it to the address of the store: {}", search_path_of(&[tables, schema])
    )]
    ExtensionHidden { extension: &'static str, schema: String, tables: String },
    #[error(
        "the extension {extension} is in the schema {schema}, which the role {user} may not use; \
         let its owner run: GRANT USAGE ON SCHEMA {} TO {}",
        quoted(schema),
        quoted(user)
    )]
    ExtensionClosed { extension: &'static str, schema: String, user: String },
    #[error(
        "the search_path of the role names no schema; name one that exists in the address of the \
         store: {}", search_path_of(&["public"])
    )]
    NoSearchPath,
    #[error(
        "the search_path names the schema {schema}, which does not exist; correct the address of \
         the store, or create the schema: CREATE SCHEMA {} AUTHORIZATION {}",
        quoted(schema),
        quoted(user)
    )]
    NoSchema { schema: String, user: String },
    #[error(
        "the search_path names the schema {schema}, which the role {user} may not use; correct the \
         address of the store, or let the owner of the schema run: GRANT USAGE, CREATE ON SCHEMA {} \
         TO {}",
        quoted(schema),
        quoted(user)
    )]
    SchemaClosed { schema: String, user: String },
    #[error(
        "the role {user} may not create tables in the schema {schema}; let its owner run: GRANT \
         CREATE ON SCHEMA {} TO {}",
        quoted(schema),
        quoted(user)
    )]
    MayNotCreate { schema: String, user: String },
    #[error(
        "the schema {schema} of the database has what another program put there ({found}), and is \
         left alone; name an empty database, or {}",
        another_schema(schema)
    )]
    Foreign { schema: String, found: String },
    #[error(
        "the database was written by a newer version: its schema is {found}, and this version \
         knows {known}; install the newer version, or restore a backup that is older"
    )]
    Newer { found: i32, known: i32 },
    #[error(
        "the tables of the database are of an older version: their schema is {found}, and this \
         version knows {known}; a server of this version migrates them when it starts"
    )]
    Older { found: i32, known: i32 },
    #[error(
        "durability = \"replicated\" needs a synchronous replica, and the server has none: set \
         synchronous_standby_names there, or durability = \"full\""
    )]
    NotReplicated,
    #[error(
        "the database is in use by {0}, which is running; stop it first, or give this server a \
         separate database"
    )]
    InUse(String),
    #[error(
        "the database is in use by {0}, which is running and has it alone; stop it first, or let \
         both be members (`listen` under [cluster])"
    )]
    InUseByOne(String),
    #[error(
        "the database is in use by several servers, of which {0} is running; stop them, or let \
         this server be one of them (`listen` under [cluster])"
    )]
    InUseByMembers(String),
    #[error(
        "the lease of {peer}, which is running, is {theirs:?}, and that of this server {own:?}; \
         give all members the same"
    )]
    Lease { peer: String, theirs: Duration, own: Duration },
    /// A server that is alive could not work on the tables after the migrations that are missing.
    #[error(
        "the tables have to be migrated, after which {0}, which is running, could not work on them; \
         first update it to a version before this one, or stop all servers of its version"
    )]
    OlderMember(String),
    #[error(
        "the tables have to be migrated, and another session has locked one of them for more than \
         two seconds, as a dump does; try again when it has ended (pg_locks and pg_stat_activity \
         show it)"
    )]
    Locked,
    #[error("the database has no store; check its address, or start a server, which makes one")]
    Missing,
    #[error(
        "the database is the target of a copy that was not completed; repeat `greenroom store \
         copy`, which starts over"
    )]
    Incomplete,
    /// The database has records of these kinds.
    #[error(
        "the schema {schema} of the database has a store that is not empty ({found}), and is left \
         alone; name an empty database, or {}",
        another_schema(schema)
    )]
    NotEmpty { schema: String, found: String },
    #[error("cannot start the thread of the connections: {0}")]
    Thread(#[source] io::Error),
    /// The database stopped, or the connection broke, before the store was open. Another attempt
    /// may succeed.
    #[error(
        "the database stopped answering: {0}; check that PostgreSQL runs there and that this \
         machine may reach it"
    )]
    Interrupted(String),
    #[error(
        "the role in the address of the store lacks a privilege: {0}; name the role that owns the \
         tables, or let that role run: GRANT ALL ON ALL TABLES IN SCHEMA … TO …; GRANT ALL ON ALL \
         SEQUENCES IN SCHEMA … TO …"
    )]
    Denied(String),
    #[error("cannot open the store in PostgreSQL: {0}")]
    Failed(String),
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) {
            return Self::Denied(reason_of(&error));
        }
        match fault_of(&error) {
            Fault::Outage | Fault::Conflict | Fault::Internal => {
                Self::Interrupted(reason_of(&error))
            }
            Fault::Setup | Fault::Request => Self::Failed(reason_of(&error)),
        }
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Database(error) => error.into(),
            Failure::NoConnection(reason) => Self::Interrupted(reason),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Returns the statement that creates a database beside one that cannot be used.
fn another(database: &str, user: &str) -> String {
    let (name, user) = (quoted(&format!("{database}_utf8")), quoted(user));
    format!("CREATE DATABASE {name} OWNER {user} {TEXTS}")
}

/// Returns the advice to use another schema: with an example, unless one is named already.
fn another_schema(schema: &str) -> String {
    if schema == "public" {
        let parameter = search_path_of(&["greenroom", "public"]);
        format!("another schema in its address, as in {parameter}")
    } else {
        "another schema in the search_path of its address".to_owned()
    }
}

/// Kind of a failure to connect.
enum Kind {
    /// The host does not answer, starts, stops or has no room.
    Absent,
    TlsNotOffered,
    Untrusted(String),
    PasswordMissing,
    Login,
    UnknownDatabase,
    MayNotConnect,
    /// For another reason, such as a setting that the server does not have.
    Refused,
}

fn kind_of(error: &tokio_postgres::Error) -> Kind {
    if let Some(reason) = certificate_problem(error) {
        return Kind::Untrusted(reason);
    }
    if let Some(state) = error.code() {
        return match *state {
            SqlState::INVALID_CATALOG_NAME => Kind::UnknownDatabase,
            _ if matches!(fault_of(error), Fault::Outage | Fault::Internal) => Kind::Absent,
            // 28 authorization
            _ if state.code().starts_with("28") => Kind::Login,
            // with the same code, settings that only superusers may change are refused
            SqlState::INSUFFICIENT_PRIVILEGE if !is_about_setting(error) => Kind::MayNotConnect,
            _ => Kind::Refused,
        };
    }
    // the kinds of the driver are private, and their texts are not
    let (kind, reason) = (error.to_string(), reason_of(error));
    match kind.as_str() {
        _ if reason.ends_with("server does not support TLS") => Kind::TlsNotOffered,
        "invalid configuration" if reason.ends_with("password missing") => Kind::PasswordMissing,
        "invalid configuration" | "authentication error" => Kind::Login,
        _ => Kind::Absent,
    }
}

/// Returns true if a refusal comes from the code of the server that changes settings.
fn is_about_setting(error: &tokio_postgres::Error) -> bool {
    let routine = error.as_db_error().and_then(|error| error.routine());
    routine.is_some_and(|routine| routine.contains("set_config"))
}

impl OpenError {
    /// Returns true if a later attempt may succeed though nothing is changed here.
    pub(super) fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::Full(_)
                | Self::ReadOnly(_)
                | Self::Interrupted(_)
                | Self::Locked
        )
    }

    /// Returns the error for failures of all hosts: of the first one that answers, if there is one.
    pub(crate) fn of_connecting(failures: ConnectError, address: &Address) -> Self {
        let all = failures.to_string();
        let is_read_only =
            failures.0.iter().any(|failure| matches!(failure.cause, HostFault::ReadOnly));
        let is_full = failures.0.iter().any(|failure| failure.cause.is_full());
        let telling = failures.0.into_iter().find_map(|HostError { host, cause }| match cause {
            HostFault::NotReplicated => Some(Self::NotReplicated),
            HostFault::Failed(error) => Self::of_host(host, &error, address),
            HostFault::NoAnswer | HostFault::ReadOnly => None,
        });
        match telling {
            Some(error) => error,
            None if is_full => Self::Full(all),
            None if is_read_only => Self::ReadOnly(all),
            None => Self::Unreachable(all),
        }
    }

    fn of_host(host: String, error: &tokio_postgres::Error, address: &Address) -> Option<Self> {
        let (database, user) = (address.database().to_owned(), address.user().to_owned());
        Some(match kind_of(error) {
            Kind::Absent => return None,
            Kind::TlsNotOffered => Self::TlsNotOffered { host },
            Kind::Untrusted(reason) => Self::Untrusted { host, reason },
            Kind::PasswordMissing => Self::PasswordMissing { host },
            Kind::Login => Self::Login { host, reason: reason_of(error) },
            Kind::UnknownDatabase => Self::UnknownDatabase { host, database, user },
            Kind::MayNotConnect => Self::MayNotConnect { host, database, user },
            Kind::Refused => Self::Refused { host, reason: reason_of(error) },
        })
    }
}
