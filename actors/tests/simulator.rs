//! Worlds by number: the real actors in virtual time, over a store that fails, with callers who do
//! not wait for each other, clocks that are set and processes that are killed.
//!
//! ```sh
//! GREENROOM_SEED=4711 cargo test -p greenroom-actors --test simulator -- --nocapture
//! GREENROOM_SEEDS=10000..20000 cargo test -p greenroom-actors --test simulator -- --nocapture
//! ```
//!
//! The first tells the story of one world, the second plays many. [`simulator::world`] says what
//! happens, [`simulator::checker`] and [`simulator::promises`] what must be true of it.

#[cfg(test)]
mod simulator {
    mod bodies;
    mod callers;
    mod checker;
    mod clock;
    mod definitions;
    mod dice;
    mod found;
    #[path = "../../domain/tests/machine/law.rs"]
    mod law;
    #[path = "../../domain/tests/machine/picture.rs"]
    mod picture;
    mod process;
    mod promises;
    mod readers;
    mod run;
    mod spans;
    mod stage;
    mod store;
    mod store_rest;
    mod world;
}
