//! The only source of randomness. It is our own, so that a seed gives the same story forever.

/// `SplitMix64`.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Returns independent dice for one purpose, unaffected by other rolls.
    pub(crate) fn about(seed: u64, what: &str) -> Self {
        // FNV-1a
        let mixed = what.bytes().fold(0xcbf2_9ce4_8422_2325_u64 ^ seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut dice = Self(mixed);
        Self(dice.roll())
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns 0 to `bound - 1`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.roll().checked_rem(bound).unwrap_or(0)
    }

    /// Returns a number of the range, both bounds included.
    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        let index = self.below(among.len() as u64);
        among[usize::try_from(index).unwrap()].clone()
    }

    /// Returns a duration, with all orders of magnitude equally likely.
    pub(crate) fn millis(&mut self, most: u64) -> u64 {
        let scale = self.between(0, u64::from(most.max(1).ilog2()) + 1);
        self.below(1 << scale).min(most)
    }
}
