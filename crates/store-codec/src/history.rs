//! Pages of an agent's history, whose numbers have holes after deletions.
//!
//! Generations of an agent are numbered 1, 2, 3, … Deletions leave holes, which are counted by
//! blocks of numbers. So a page at an offset is found without reading what is before it.

/// Numbers per block; also the maximum number of holes that a page skips one by one.
pub const BLOCK: i64 = 1024;

/// The start of a page, searched from the newest number downwards.
#[derive(Debug)]
pub struct PageStart {
    /// Number from which on nothing is skipped yet.
    number: i64,
    /// Generations still to skip.
    left: i64,
    skip: Option<i64>,
}

impl PageStart {
    /// Starts at the newest number of the agent; the page is `offset` generations older.
    pub fn new(newest: i64, offset: i64) -> Self {
        Self { number: newest, left: offset, skip: None }
    }

    /// Passes the next block with holes, newest first. Returns false if the start is before its
    /// end: no other block is needed.
    pub fn pass(&mut self, block: i64, holes: i64) -> bool {
        let (first, last) = (block * BLOCK, self.number.min(block * BLOCK + BLOCK - 1));
        // there are no holes between two blocks
        if self.left < self.number - last {
            return false;
        }
        self.left -= self.number - last;
        self.number = last;
        // numbers begin at 1, so the first block is one shorter
        let rows = last - first.max(1) + 1 - holes;
        if self.left < rows {
            self.skip = Some(self.left);
            return false;
        }
        self.left -= rows;
        self.number = first - 1;
        true
    }

    /// Returns the number to start from, downwards, and the rows to skip before the page: 0, or
    /// fewer than a block if the page begins in a block with holes.
    pub fn place(&self) -> (i64, i64) {
        match self.skip {
            Some(skip) => (self.number, skip),
            None => (self.number - self.left, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn pages_start_where_counting_would_find_them() {
        let newest = 5 * BLOCK + 7;
        let gone: BTreeSet<i64> = (1..=newest)
            .filter(|n| n % 5 == 0 && (n / BLOCK) % 2 == 0 || (BLOCK..BLOCK + 40).contains(n))
            .collect();
        let mut blocks: BTreeMap<i64, i64> = BTreeMap::new();
        for number in &gone {
            *blocks.entry(number / BLOCK).or_default() += 1;
        }
        let kept: Vec<i64> = (1..=newest).rev().filter(|n| !gone.contains(n)).collect();
        for offset in (0..kept.len()).step_by(7) {
            let mut start = PageStart::new(newest, offset as i64);
            for (block, holes) in blocks.iter().rev() {
                if !start.pass(*block, *holes) {
                    break;
                }
            }
            let (number, skip) = start.place();
            assert!(skip < BLOCK, "{offset}");
            let found = kept.iter().filter(|n| **n <= number).nth(skip as usize);
            assert_eq!(found, kept.get(offset), "{offset}");
        }
    }
}
