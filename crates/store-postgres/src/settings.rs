//! Settings of the store.

use std::time::Duration;

use tokio_postgres::Config;

/// Settings of a store in PostgreSQL.
#[derive(Clone)]
pub struct PostgresSettings {
    /// Where the database is, and as whom to connect.
    pub config: Config,
    /// Name of this server, which is shown in the database.
    pub name: String,
    pub durability: PostgresDurability,
    /// Number of connections that write executions.
    pub writers: usize,
    /// Maximum number of connections for reads.
    pub connections: usize,
    /// Time for which callers wait during an outage of the database.
    pub patience: Duration,
}

impl std::fmt::Debug for PostgresSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // `config` has the password
        f.debug_struct("PostgresSettings")
            .field("name", &self.name)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
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
