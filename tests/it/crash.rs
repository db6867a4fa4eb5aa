//! What survives: the server is killed, drained and crowded, and everything that it has answered
//! is held against what it says afterwards.

mod backups;
mod crowd;
mod drain;
mod kills;
mod ledger;
mod pills;
mod promises;
mod rng;
mod stories;
