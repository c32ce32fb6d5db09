//! A chain of dependent loads over fresh memory: each entry holds the address of the next.
//!
//! The chain visits blocks of 2 MiB in the order of their addresses. Within a block it visits every
//! line once, in random order, so no prefetcher can follow it. One huge page holds what is visited
//! together. When the chain returns to a block, all other blocks have been visited since. So a
//! cache smaller than the chain misses.

use super::kernel;
use super::pages::{BLOCK, Pages};
use pinwise_topology::Random;
use std::io;

/// A chain of pointers over fresh memory, and the place where the next load goes.
#[derive(Debug)]
pub(super) struct PointerChain {
    _pages: Pages,
    at: *const u8,
    /// Entries in the chain.
    pub(super) length: usize,
}

impl PointerChain {
    /// A chain over at least `bytes` bytes, touched by the calling thread. It has one entry each
    /// `line` bytes (a power of two from 8 to a block).
    pub(super) fn new(bytes: usize, line: usize, random: &mut Random) -> io::Result<Self> {
        let pages = Pages::new(bytes)?;
        // Whole blocks, or one that is not full.
        let (blocks, lines) = if bytes < BLOCK {
            (1, bytes.div_ceil(line).max(2))
        } else {
            (pages.length / BLOCK, BLOCK / line)
        };
        let next = cycle(lines, random);
        for block in 0..blocks {
            for (index, &next) in next.iter().enumerate() {
                // Line 0 is where a block is entered; whatever leads back to it leads on to the
                // next block.
                let target = if next == 0 {
                    (block + 1) % blocks * BLOCK
                } else {
                    block * BLOCK + next as usize * line
                };
                let (entry, target) = (
                    pages.start.wrapping_add(block * BLOCK + index * line),
                    pages.start.wrapping_add(target),
                );
                // SAFETY: `index` and `next` are below `lines`, so that both addresses are in the
                // mapping, and aligned.
                unsafe { entry.cast::<*const u8>().write(target) };
            }
        }
        Ok(Self { at: pages.start, _pages: pages, length: blocks * lines })
    }

    /// Loads `passes` (at least 1) times the entries of one pass.
    pub(super) fn follow(&mut self, passes: u64) {
        // SAFETY: `at` is an entry of the chain. Every entry holds the address of another, and the
        // pages live as long.
        self.at = unsafe { kernel::chase(self.at, passes) };
    }
}

/// What follows what in a random cycle through `0..count`, all of them in one (S. Sattolo, "An
/// algorithm to generate a random cyclic permutation", Information Processing Letters 22, 1986).
fn cycle(count: usize, random: &mut Random) -> Vec<u32> {
    // A block has at most 2^18 lines.
    let mut next: Vec<u32> = (0..count as u32).collect();
    for last in (1..count).rev() {
        next.swap(last, random.below(last as u64) as usize);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn a_cycle_visits_everything_once(count in 2usize..500, seed: u64) {
            let next = cycle(count, &mut Random::new(seed));
            let mut seen = HashSet::new();
            let mut at = 0;
            while seen.insert(at) {
                at = next[at] as usize;
            }
            prop_assert_eq!((at, seen.len()), (0, count));
        }
    }

    /// The addresses a chain visits until it comes back, relative to its beginning.
    fn visited(chain: &PointerChain) -> Vec<usize> {
        let mut offsets = Vec::new();
        let mut at = chain.at;
        loop {
            offsets.push(at as usize - chain.at as usize);
            // SAFETY: `at` is an entry of the chain.
            at = unsafe { at.cast::<*const u8>().read() };
            if at == chain.at || offsets.len() > chain.length {
                return offsets;
            }
        }
    }

    #[test]
    fn a_chain_covers_its_bytes_line_by_line_and_block_by_block() {
        let small = PointerChain::new(2048, 16, &mut Random::new(1)).unwrap();
        let mut offsets = visited(&small);
        offsets.sort_unstable();
        assert_eq!(offsets, (0..2048).step_by(16).collect::<Vec<_>>());

        let large = PointerChain::new(3 * BLOCK - 1, 64, &mut Random::new(1)).unwrap();
        let offsets = visited(&large);
        assert_eq!(offsets.len(), 3 * BLOCK / 64);
        assert_eq!(offsets.iter().collect::<HashSet<_>>().len(), offsets.len());
        let blocks: Vec<usize> = offsets.iter().map(|offset| offset / BLOCK).collect();
        assert!(blocks.is_sorted(), "a block is left only when all of it was visited");
    }

    #[test]
    fn the_machine_code_follows_the_chain() {
        if !kernel::PRESENT {
            return pinwise_synthetic::not_judged("this architecture has no machine code here");
        }
        let mut chain = PointerChain::new(64 * 64, 64, &mut Random::new(3)).unwrap();
        let beginning = chain.at;
        // One pass is 64 loads, and the chain has 64 entries.
        chain.follow(1);
        assert_eq!(chain.at, beginning);
        let longer = PointerChain::new(65 * 64, 64, &mut Random::new(3)).unwrap();
        let order = visited(&longer);
        let mut longer = longer;
        let beginning = longer.at as usize;
        longer.follow(1);
        assert_eq!(longer.at as usize - beginning, order[64]);
    }
}
