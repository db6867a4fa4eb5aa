//! A seeded random number generator.

use std::hash::{BuildHasher, RandomState};

/// SplitMix64.
#[derive(Debug, Clone)]
pub(super) struct Rng(u64);

impl Rng {
    /// Seeds from `GREENROOM_SEED`, or randomly, and prints the seed.
    pub(super) fn new() -> Self {
        let asked = std::env::var("GREENROOM_SEED").ok().map(|text| text.parse().unwrap());
        let seed = asked.unwrap_or_else(|| RandomState::new().hash_one(0));
        println!("GREENROOM_SEED={seed}");
        Self(seed)
    }

    /// Returns an independent generator.
    pub(super) fn split(&mut self) -> Self {
        Self(self.next())
    }

    /// Returns a number below this one.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
