//! Settings of the store.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;

use crate::address::{Address, Password};

/// Settings of a store in PostgreSQL.
#[derive(Debug, Clone)]
pub struct PostgresSettings {
    pub address: Address,
    /// Password of the role; precedes that of the address.
    pub password: Option<Password>,
    /// PEM file of the authorities that the database's certificate is checked against; `None`: those
    /// that the machine trusts.
    pub authorities: Option<PathBuf>,
    /// Name of this server among those of the database. A server that opens the store replaces one
    /// of the same name at once, even if that one runs.
    pub name: String,
    pub durability: PostgresDurability,
    /// Number of connections that write executions.
    pub writers: usize,
    /// Maximum number of connections for reads.
    pub connections: usize,
    /// Time for which reads wait during an outage of the database, and for which opening does.
    pub patience: Duration,
    /// Shares the database with other members; `None`: this server has it alone.
    pub cluster: Option<ClusterSettings>,
}

/// Settings of a server that shares the database with others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterSettings {
    /// Time for which one beat shows that a server is alive, the same for all members.
    pub lease: Duration,
    /// Address at which the other members reach this one, as `host:port`.
    pub address: Option<String>,
}

impl PostgresSettings {
    /// Returns the default settings.
    pub fn new(address: Address, name: impl Into<String>) -> Self {
        Self {
            address,
            password: None,
            authorities: None,
            name: name.into(),
            durability: PostgresDurability::Full,
            writers: 2,
            connections: 8,
            patience: RuntimeLimits::default().store_patience,
            cluster: None,
        }
    }
}

/// Guarantee of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PostgresDurability {
    /// As the server is configured (`synchronous_commit`); by default, every commit is synced to
    /// its disk.
    #[default]
    Full,
    /// A crash of the server may undo the last commits.
    Normal,
    /// Every commit is on a second server as well, which the server must be configured for.
    Replicated,
}

impl fmt::Display for PostgresDurability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Replicated => "replicated",
        })
    }
}
