//! Loads at random places of fresh memory.
//!
//! A chain ([`super::pointer_chase`]) returns to a line after all others. In a cache that
//! neighbours share, lines stay for some time; the size of the chain does not decide. There a chain
//! either hits or misses as a whole. A fast one stays in the cache, and one that was slowed down
//! once keeps missing. Random places have reuse distances of all lengths. So the share of misses,
//! and with it the time, follows smoothly what is left of the cache.
//!
//! Written in Rust, unlike the others. Reads are volatile. The additions and multiplications
//! between them cost little compared with a load that leaves the second level.

use super::cpu_time::timed;
use super::pages::Pages;
use pinwise_topology::Random;
use std::io;
use std::time::Duration;

/// Loads of one pass.
pub(super) const PASS: u64 = 64;
/// D. Knuth's linear congruential generator MMIX (TAOCP, volume 2, 3.3.4); the upper half of its
/// state is used.
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
const INCREMENT: u64 = 1_442_695_040_888_963_407;
/// Halvings of the interval in which the size is searched: to within 2 % of it.
const HALVINGS: usize = 6;
/// What a size is timed for, and warmed up for at least, while it is searched.
const LOOK: Duration = Duration::from_millis(10);

/// The memory, how much of it is in use, and where the generator stands.
#[derive(Debug)]
pub(super) struct RandomLoads {
    pages: Pages,
    line: usize,
    /// Lines in use, below 2^32.
    lines: u64,
    state: u64,
}

impl RandomLoads {
    /// At least `bytes` bytes, all in use, touched by the calling thread. A load takes the
    /// beginning of a `line` (8 bytes and more).
    pub(super) fn new(bytes: usize, line: usize, random: &mut Random) -> io::Result<Self> {
        let pages = Pages::touched(bytes)?;
        let lines = ((pages.length / line) as u64).min(u64::from(u32::MAX));
        Ok(Self { pages, line, lines, state: random.bits() })
    }

    /// `passes` passes; each load waits for the one before, since that decides where it goes.
    pub(super) fn follow(&mut self, passes: u64) {
        self.load::<true>(passes);
    }

    /// `passes` passes of loads that do not wait for each other: as many are under way as the core
    /// can.
    pub(super) fn scatter(&mut self, passes: u64) {
        self.load::<false>(passes);
    }

    fn load<const WAIT: bool>(&mut self, passes: u64) {
        let (start, line, lines) = (self.pages.start, self.line, self.lines);
        let mut state = self.state;
        for _ in 0..passes * PASS {
            // Both factors are below 2^32, and the place is below `lines`.
            let place = ((state >> 32) * lines) >> 32;
            // SAFETY: `lines` times `line` bytes are in the pages. A line holds at least eight
            // bytes. It begins at a multiple of its size from the start of a block.
            let word = unsafe { start.add(place as usize * line).cast::<u64>().read_volatile() };
            // The memory is all zeros, which the processor does not know.
            state = state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT).wrapping_add(if WAIT {
                word
            } else {
                0
            });
        }
        self.state = state;
    }

    /// Uses the number of lines at which a load takes the mean of two times. These are its times
    /// over `small` bytes and over all. Half of the loads then leave the cache that serves `small`.
    /// Alone on the machine, please. Everything stays in use if there is no step in between.
    pub(super) fn fit(&mut self, small: usize) {
        let all = self.lines;
        let least = ((small / self.line) as u64).clamp(1, all);
        let (fast, slow) = (self.time(least), self.time(all));
        let (mut low, mut high) = (least, all);
        if slow < 1.25 * fast {
            return;
        }
        for _ in 0..HALVINGS {
            // Sizes are apart by factors.
            let middle = ((low as f64 * high as f64).sqrt() as u64).clamp(low, high);
            if self.time(middle) < (fast + slow) / 2.0 { low = middle } else { high = middle }
        }
        self.lines = low;
    }

    /// Nanoseconds of a load over `lines` lines. It follows as many loads as there are lines, or
    /// [`LOOK`] if that is longer. If all lines take too long on a slow machine, it ends after ten
    /// times that.
    fn time(&mut self, lines: u64) -> f64 {
        self.lines = lines;
        let mut warm = Duration::ZERO;
        let mut loaded = 0;
        while warm < LOOK || (loaded < lines && warm < 10 * LOOK) {
            warm += timed(|| self.follow(256));
            loaded += 256 * PASS;
        }
        let mut spent = Duration::ZERO;
        let mut loads = 0;
        while spent < LOOK {
            spent += timed(|| self.follow(256));
            loads += 256 * PASS;
        }
        spent.as_nanos() as f64 / loads as f64
    }

    /// Bytes in use.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.lines as usize * self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microbenchmark::pages::BLOCK;

    #[test]
    fn loads_go_everywhere_and_nowhere_else() {
        let mut memory = RandomLoads::new(BLOCK, 64, &mut Random::new(1)).unwrap();
        assert_eq!(memory.bytes(), BLOCK);
        // What is loaded moves the generator. With a mark at every line the state after a pass is
        // that of this replay.
        for index in 0..BLOCK / 64 {
            // SAFETY: a line of the memory.
            unsafe { memory.pages.start.add(index * 64).cast::<u64>().write(index as u64) };
        }
        let (mut state, mut seen) = (memory.state, std::collections::HashSet::new());
        for _ in 0..200_000 / PASS * PASS {
            let place = ((state >> 32) * (BLOCK as u64 / 64)) >> 32;
            seen.insert(place);
            state = state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT).wrapping_add(place);
        }
        memory.follow(200_000 / PASS);
        assert_eq!(memory.state, state);
        // 200,000 throws at 32,768 lines miss each with probability e^-6.1.
        let all = BLOCK / 64;
        assert!(
            seen.len() > all * 99 / 100 && seen.iter().all(|&place| place < all as u64),
            "{}",
            seen.len()
        );
    }

    #[test]
    fn a_fit_stays_within_its_bounds() {
        let mut memory = RandomLoads::new(8 * BLOCK, 64, &mut Random::new(2)).unwrap();
        memory.fit(BLOCK);
        assert!((BLOCK..=8 * BLOCK).contains(&memory.bytes()), "{}", memory.bytes());
    }
}
