//! Reasons for not opening a store, each with what to do.

use std::io;

use tokio_postgres::error::SqlState;

use crate::address::Address;
use crate::connector::{ConnectError, HostError, HostFault, certificate_problem};
use crate::fault::{Fault, fault_of, reason_of};

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
    #[error(
        "{host} refuses the login: {reason}; check the user in the address, its password \
         (`password` under [store], or PGPASSWORD), and pg_hba.conf of the server"
    )]
    Login { host: String, reason: String },
    #[error(
        "{host} has no database {database}; create it: CREATE DATABASE {database} OWNER {user} \
         ENCODING 'UTF8' TEMPLATE template0"
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
        "the database has the encoding {0}; it must be UTF8: create another one with ENCODING \
         'UTF8' TEMPLATE template0"
    )]
    Encoding(String),
    #[error(
        "the database has LC_CTYPE {0}, with which letters beyond ASCII cannot be searched for; \
         create another one with LC_CTYPE 'C.UTF-8' TEMPLATE template0"
    )]
    CharacterType(String),
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
         the role; append it, as in options=-c%20search_path%3Dmine,{schema}"
    )]
    ExtensionHidden { extension: &'static str, schema: String },
    #[error(
        "no schema of the search_path ({0}) exists; create one: CREATE SCHEMA AUTHORIZATION \
         CURRENT_USER"
    )]
    NoSchema(String),
    #[error(
        "the role {user} may not create tables in the schema {schema}; let its owner run: GRANT \
         CREATE ON SCHEMA {schema} TO {user}"
    )]
    MayNotCreate { schema: String, user: String },
    #[error(
        "the schema {schema} of the database has what another program put there ({found}), and is \
         left alone; name an empty database, or another schema with \
         options=-c%20search_path%3Dgreenroom,public"
    )]
    Foreign { schema: String, found: String },
    #[error(
        "the database was written by a newer version: its schema is {found}, and this version \
         knows {known}; install the newer version, or restore a backup that is older"
    )]
    Newer { found: i32, known: i32 },
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
    #[error("the database has no store; check its address")]
    Missing,
    #[error(
        "the database is the target of a copy that was not completed; repeat `greenroom store \
         copy`, which starts over"
    )]
    Incomplete,
    /// The database has records of these kinds.
    #[error(
        "the database has a store that is not empty ({0}), and is left alone; name an empty \
         database, or a schema of its own with options=-c%20search_path%3Dgreenroom,public"
    )]
    NotEmpty(String),
    #[error("cannot start the thread of the connections: {0}")]
    Thread(#[source] io::Error),
    /// The database stopped, or the connection broke, before the store was open. Another attempt
    /// may succeed.
    #[error(
        "the database stopped answering: {0}; check that PostgreSQL runs there and that this \
         machine may reach it"
    )]
    Interrupted(String),
    #[error("cannot open the store in PostgreSQL: {0}")]
    Failed(String),
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        match fault_of(&error) {
            Fault::Outage | Fault::Conflict => Self::Interrupted(reason_of(&error)),
            Fault::Setup | Fault::Request => Self::Failed(reason_of(&error)),
        }
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
}

fn kind_of(error: &tokio_postgres::Error) -> Kind {
    if let Some(reason) = certificate_problem(error) {
        return Kind::Untrusted(reason);
    }
    if let Some(state) = error.code() {
        return match *state {
            SqlState::INVALID_CATALOG_NAME => Kind::UnknownDatabase,
            _ if fault_of(error) == Fault::Outage => Kind::Absent,
            _ => Kind::Login,
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

impl OpenError {
    /// Returns true if a later attempt may succeed though nothing is changed here.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::ReadOnly(_) | Self::Interrupted(_))
    }

    /// Returns the error for failures of all hosts: of the first one that answers, if there is one.
    pub(super) fn of_connecting(failures: ConnectError, address: &Address) -> Self {
        let all = failures.to_string();
        let is_read_only =
            failures.0.iter().any(|failure| matches!(failure.cause, HostFault::ReadOnly));
        let telling = failures.0.into_iter().find_map(|HostError { host, cause }| match cause {
            HostFault::NotReplicated => Some(Self::NotReplicated),
            HostFault::Failed(error) => Self::of_host(host, &error, address),
            HostFault::NoAnswer | HostFault::ReadOnly => None,
        });
        match telling {
            Some(error) => error,
            None if is_read_only => Self::ReadOnly(all),
            None => Self::Unreachable(all),
        }
    }

    fn of_host(host: String, error: &tokio_postgres::Error, address: &Address) -> Option<Self> {
        Some(match kind_of(error) {
            Kind::Absent => return None,
            Kind::TlsNotOffered => Self::TlsNotOffered { host },
            Kind::Untrusted(reason) => Self::Untrusted { host, reason },
            Kind::PasswordMissing => Self::PasswordMissing { host },
            Kind::Login => Self::Login { host, reason: reason_of(error) },
            Kind::UnknownDatabase => Self::UnknownDatabase {
                host,
                database: address.database().to_owned(),
                user: address.user().to_owned(),
            },
        })
    }
}
