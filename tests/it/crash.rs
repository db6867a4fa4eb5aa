//! Durability: the server is killed, drained and overloaded, and its later answers are compared
//! with everything that it answered before.

mod backups;
mod client;
#[cfg(feature = "postgres")]
mod cluster;
mod crowd;
mod drain;
mod kills;
mod ledger;
mod outages;
mod pills;
mod promises;
mod rng;
mod stories;
