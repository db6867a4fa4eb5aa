//! Links between the servers of a cluster, over TCP.
//!
//! Each server dials every other one. Its requests travel on the connection that it has dialled,
//! and their answers come back on it. One thread drives all connections, so that actors never wait
//! for a socket; another one makes the answers.
//!
//! Both sides of a connection prove that they know the secret of the cluster before anything else
//! is read. Beyond one machine connections are encrypted, or the network must be trusted
//! explicitly.
//!
//! Everything that waits is limited: the requests of a connection by their size, the answers of an
//! exchange by what its reader has room for. A reader that stops holds up its own exchange alone.

mod accepted;
mod accepting;
mod answering;
mod asking;
mod complaints;
mod connection;
mod dialling;
mod error;
mod frame;
mod handshake;
mod limits;
mod links;
mod outbox;
mod peers;
mod settings;
mod shared;
#[cfg(test)]
mod tests;
mod tls;
mod window;

pub use self::dialling::PeerFigures;
pub use self::error::LinksError;
pub use self::links::{LinkListener, TcpLinks};
pub use self::peers::{Addresses, PeerAddress};
pub use self::settings::{LinkIdentity, LinkSecret, LinkSettings, LinkTimes, LinkTls};
