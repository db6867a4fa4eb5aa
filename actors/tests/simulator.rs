//! Simulated worlds by seed: the real actors in virtual time, over a failing store, with concurrent
//! callers, clocks that are set, and crashes. A world has one process at a time, or two to four
//! processes that share the store and are connected by links.
//!
//! ```sh
//! GREENROOM_SEED=4711 cargo test -p greenroom-actors --test simulator in_every_world -- --nocapture
//! GREENROOM_SEEDS=10000..20000 cargo test -p greenroom-actors --test simulator in_every_cluster -- --nocapture
//! ```
//!
//! The first command prints the story of one world, the second plays many worlds of several
//! processes. [`simulator::world`] and [`simulator::cluster::world`] define the events,
//! [`simulator::checker`], [`simulator::promises`] and [`simulator::cluster::laws`] the invariants.

#[cfg(test)]
mod simulator {
    mod approvals;
    mod bodies;
    mod callers;
    mod checker;
    mod clock;
    mod cluster;
    mod compensations;
    mod definitions;
    mod dice;
    mod due;
    mod forward;
    #[path = "../../domain/tests/machine/law.rs"]
    mod law;
    #[path = "../../domain/tests/machine/picture.rs"]
    mod picture;
    mod process;
    mod promises;
    mod regressions;
    mod requests;
    mod run;
    mod spans;
    mod stage;
    mod store;
    mod subscribers;
    mod world;
}
