//! How a fixed number of equal pieces of work divides among threads.
//!
//! A run of 128 files, frames or options that are dealt out evenly ends when the last thread with the most pieces does: with 25 threads three
//! have six, the others five, and the run takes six turns as with 22. Threads beyond the contexts take turns, and how fair these are decides what
//! is left over at the end. Where all threads get the same share of the contexts, 32 and 64 threads, four and two pieces each, end alike. Where shares
//! differ by chance, as those of run queues do that are seldom of one length (T. Li, D. Baumberger, S. Hahn, "Efficient and scalable multiprocessor
//! fair scheduling using distributed weighted round-robin", PPoPP 2009), the last threads of 32 have more left to do, alone, than those of
//! 64: many small shares end more evenly than few large ones. Which it will be is not known; both are taken to be as likely.

use crate::belief::normal;
use pinwise_topology::Random;

/// The share of the speed in the middle of a run that is left over the whole run, from 0 to 1, in the two ways turns may be taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evenness {
    /// All threads get the same share of the contexts.
    fair: f64,
    /// Their shares differ by chance.
    unfair: f64,
}

/// Standard deviation of the shares that differ by chance, relative to their mean; none is less than half of that.
const CHANCE: f64 = 0.1;
/// Draws of shares that the mean is taken of.
const DRAWS: usize = 32;
/// Their seed: a replayed search says the same.
const SEED: u64 = 0x91ec_e500;

impl Evenness {
    /// Where nothing is known of pieces.
    pub(crate) const EVEN: Self = Self { fair: 1.0, unfair: 1.0 };

    /// Of `pieces` dealt out to `threads` on `contexts`; each at least 1.
    pub(crate) fn new(pieces: u32, threads: u32, contexts: u32) -> Self {
        let ideal = f64::from(pieces) / f64::from(threads.min(contexts));
        let mut random = Random::new(SEED);
        let mut share = || (1.0 + CHANCE * normal(&mut random)).max(0.5);
        let unfair = (0..DRAWS).map(|_| duration(pieces, threads, contexts, &mut share)).sum::<f64>() / DRAWS as f64;
        Self { fair: ideal / duration(pieces, threads, contexts, &mut || 1.0), unfair: ideal / unfair }
    }

    /// Logarithm of the share, expected.
    pub(crate) fn mean(&self) -> f64 {
        (self.fair.ln() + self.unfair.ln()) / 2.0
    }

    /// By how much that of equal shares is above it, and the other one below.
    pub(crate) fn deviation(&self) -> f64 {
        (self.fair.ln() - self.unfair.ln()) / 2.0
    }
}

/// How long a run takes, in the time of a piece alone on a context, when the contexts are divided in proportion to `share`, asked for once for
/// each thread. Once there are no more threads than contexts each has its own.
fn duration(pieces: u32, threads: u32, contexts: u32, share: &mut impl FnMut() -> f64) -> f64 {
    let (each, over) = (pieces / threads, pieces % threads);
    let work = |thread: u32| f64::from(each + u32::from(thread < over));
    let mut working: Vec<(f64, f64)> = (0..threads.min(pieces)).map(|thread| (work(thread), share())).collect();
    // In the order in which they end: work over share.
    working.sort_by(|one, other| (one.0 / one.1).total_cmp(&(other.0 / other.1)));
    let mut shares: f64 = working.iter().map(|(_, share)| share).sum();
    // What a share of 1 has done by then, and when.
    let (mut done, mut time) = (0.0, 0.0);
    for (ended, &(work, share)) in working.iter().enumerate() {
        if working.len() - ended <= contexts as usize {
            let left = working[ended..].iter().map(|(work, share)| work - share * done);
            return time + left.fold(0.0, f64::max);
        }
        time += (work / share - done) * shares / f64::from(contexts);
        done = work / share;
        shares -= share;
    }
    time
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(threads: u32) -> Evenness {
        Evenness::new(128, threads, 24)
    }

    /// 128 pieces, as in the paper's section II.B: 24 threads take as long as 22 do, 32 do four each.
    #[test]
    fn pieces_that_do_not_divide_are_counted() {
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        for threads in [1, 16, 17, 22, 24] {
            let expected = 128.0 / f64::from(threads) / f64::from(128u32.div_ceil(threads));
            let even = of(threads);
            assert!(near(even.fair, expected) && near(even.unfair, expected), "{threads}: no turns, no unfair ones");
        }
        // All contexts at work to the end; 25 threads: five turns of 25 on 24 contexts, and three more pieces.
        assert!(near(of(32).fair, 1.0) && near(of(64).fair, 1.0));
        assert!(near(of(25).fair, 128.0 / 24.0 / (5.0 * 25.0 / 24.0 + 1.0)));
    }

    #[test]
    fn many_small_shares_end_more_evenly_than_few_large_ones() {
        let [few, some, many] = [32, 64, 128].map(|threads| of(threads).unfair);
        assert!(few < some && some < many && few > 0.85 && many > 0.95, "{few} {some} {many}");
        assert!((of(32).mean() + of(32).deviation()).exp() > 0.999 && of(32).deviation() > of(64).deviation());
    }

    proptest! {
        /// Nobody is faster than all contexts at work all the time, nor than the longest share of one thread.
        #[test]
        fn no_run_with_equal_shares_is_shorter_than_its_work(pieces in 1u32..300, threads in 1u32..100, contexts in 1u32..40) {
            let time = duration(pieces, threads, contexts, &mut || 1.0);
            let least = f64::from(pieces) / f64::from(threads.min(contexts));
            prop_assert!(time >= least.max(f64::from(pieces.div_ceil(threads))) - 1e-6, "{time}");
            prop_assert!(time <= f64::from(pieces) + 1e-6, "{time}");
        }
    }
}
