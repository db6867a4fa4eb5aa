//! Simulated worlds by seed: the real actors in virtual time, over a failing store, with concurrent
//! callers, clocks that are set, and crashes.
//!
//! ```sh
//! GREENROOM_SEED=4711 cargo test -p greenroom-actors --test simulator -- --nocapture
//! GREENROOM_SEEDS=10000..20000 cargo test -p greenroom-actors --test simulator -- --nocapture
//! ```
//!
//! The first command prints the story of one world, the second plays many. [`simulator::world`]
//! defines the events, [`simulator::checker`] and [`simulator::promises`] the invariants.

#[cfg(test)]
mod simulator {
    mod bodies;
    mod callers;
    mod checker;
    mod clock;
    mod definitions;
    mod dice;
    mod forward;
    #[path = "../../domain/tests/machine/law.rs"]
    mod law;
    #[path = "../../domain/tests/machine/picture.rs"]
    mod picture;
    mod process;
    mod promises;
    mod regressions;
    mod run;
    mod spans;
    mod stage;
    mod store;
    mod subscribers;
    mod world;
}
