//! Durability: the server is killed, drained and overloaded, and its later answers are compared
//! with everything that it answered before.

mod approvals;
mod backups;
mod client;
#[cfg(feature = "postgres")]
mod cluster;
mod contest;
mod crowd;
mod drain;
mod kills;
mod leavers;
mod ledger;
mod outages;
mod pills;
mod promises;
mod rng;
mod saga;
mod stories;

/// Returns how much a drill does: the number in this environment variable, or what is enough for every
/// run of the tests.
fn amount(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().unwrap())
}
