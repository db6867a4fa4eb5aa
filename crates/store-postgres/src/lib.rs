//! The store in a PostgreSQL database.
//!
//! One thread drives all connections, so that actors never wait for a socket. Two kinds of
//! connections write: lanes, which commit the appends of executions in batches (one statement and
//! one round trip each), and one for generations. Everything else uses a pool.
//!
//! Every lane has a row in the database that each of its commits updates. Another server takes
//! over by deleting those rows: from then on no execution and no generation of this server is
//! stored.
//!
//! A server has the database alone, or is one of several members that divide the executions by
//! slots.

mod acted;
mod address;
mod agents;
mod asked_users;
mod asks;
mod changes;
mod columns;
mod connector;
mod conversations;
mod counts;
mod decoders;
mod defects;
mod dump;
mod executions;
mod fault;
mod forget;
mod generations;
mod history;
mod journal;
mod key_purge;
mod known_tools;
mod lane;
mod list;
mod log_writes;
mod logs;
mod membership;
mod migration;
mod nodes;
mod numbers;
mod open;
mod pieces;
mod pool;
mod portions;
mod reader;
mod replication;
mod retention;
mod schema;
mod search;
mod settings;
mod shared;
mod store;
#[cfg(test)]
mod tests;
mod text;
mod trace_record;
mod traces;

pub use self::address::{Address, AddressError, Password, Tls};
pub use self::connector::problem_of_authorities;
pub use self::dump::{DatabaseSource, DatabaseTarget};
pub use self::membership::Lost;
pub use self::nodes::{LeaveError, Node, NodeReader, NodeState, Nodes};
pub use self::open::OpenError;
pub use self::settings::{ClusterSettings, PostgresDurability, PostgresSettings};
pub use self::store::PostgresStore;
