//! How evenly a run with equal pieces of work ends, by number of threads.
//!
//! A run has 128 files, frames or options, dealt out evenly. It ends when the last thread with the
//! most pieces does. With 25 threads, three have six pieces and the others five. So the run takes
//! six turns, as with 22.
//!
//! Threads beyond the contexts take turns. Fair turns decide how much is left over at the end. If
//! all threads get the same share of the contexts, 32 and 64 threads end alike. These have four and
//! two pieces each. Shares may also differ by chance, as those of run queues of different lengths
//! do (T. Li, D. Baumberger, S. Hahn, "Efficient and scalable multiprocessor fair scheduling using
//! distributed weighted round-robin", PPoPP 2009). Then the last of 32 threads have more left to do
//! alone than the last of 64. Many small shares end more evenly than few large ones. Nobody knows
//! which case applies, so both count as equally likely.

use pinwise_topology::Random;

/// The speed over the whole run as a share of that in the middle, from 0 to 1. There is one value
/// for each of the two ways of taking turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evenness {
    /// All threads get the same share of the contexts.
    fair: f64,
    /// Their shares differ by chance.
    unfair: f64,
}

/// Relative standard deviation of the shares that differ by chance. None is less than half of their
/// mean.
const CHANCE: f64 = 0.1;
/// Draws of shares that the mean is taken of.
const DRAWS: usize = 32;
/// Their seed: a replayed search says the same.
const SEED: u64 = 0x91ec_e500;

impl Evenness {
    /// The evenness if the number of pieces is unknown.
    pub(crate) const EVEN: Self = Self { fair: 1.0, unfair: 1.0 };

    /// The evenness of `pieces` dealt out to `threads` on `contexts`; each at least 1.
    pub(crate) fn new(pieces: u32, threads: u32, contexts: u32) -> Self {
        let ideal = f64::from(pieces) / f64::from(threads.min(contexts));
        let mut random = Random::new(SEED);
        let mut share = || (1.0 + CHANCE * random.normal()).max(0.5);
        let unfair =
            (0..DRAWS).map(|_| duration(pieces, threads, contexts, &mut share)).sum::<f64>()
                / DRAWS as f64;
        Self {
            fair: ideal / duration(pieces, threads, contexts, &mut || 1.0),
            unfair: ideal / unfair,
        }
    }

    /// Logarithm of the share, expected.
    pub(crate) fn mean(&self) -> f64 {
        (self.fair.ln() + self.unfair.ln()) / 2.0
    }

    /// The distance, in the logarithm, of equal and of random shares from the mean of the two.
    pub(crate) fn deviation(&self) -> f64 {
        (self.fair.ln() - self.unfair.ln()) / 2.0
    }
}

/// How long a run takes, in units of one piece alone on a context. The contexts are divided in
/// proportion to `share`, which is called once for each thread and is above 0. A thread runs on one
/// context at a time. What its share would give it beyond that goes to the others, in proportion
/// again.
fn duration(pieces: u32, threads: u32, contexts: u32, share: &mut impl FnMut() -> f64) -> f64 {
    let (each, over) = (pieces / threads, pieces % threads);
    let work = |thread: u32| f64::from(each + u32::from(thread < over));
    // The threads that take turns: the work of a share of 1 at their end, and their share. The next
    // to end is the last.
    let mut turns: Vec<(f64, f64)> = (0..threads.min(pieces))
        .map(|thread| {
            let share = share();
            (work(thread) / share, share)
        })
        .collect();
    turns.sort_by(|one, other| other.0.total_cmp(&one.0));
    let greatest = turns.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let mut shares: f64 = turns.iter().map(|(_, share)| share).sum();
    // When those end that have a context of their own. They keep their share: with fewer threads
    // left, each gets more.
    let mut own: Vec<f64> = Vec::new();
    let (mut done, mut time) = (0.0, 0.0);
    loop {
        let free = contexts as usize - own.len();
        let enough = turns.len() <= free;
        // The part of a context that a share of 1 gets.
        let rate = free as f64 / shares;
        if enough || rate * greatest >= 1.0 {
            let before = turns.len();
            turns.retain(|&(end, share)| {
                let whole = enough || rate * share >= 1.0;
                if whole {
                    own.push(time + (end - done) * share);
                    shares -= share;
                }
                !whole
            });
            if turns.len() < before {
                continue;
            }
        }
        let Some(&(end, share)) = turns.last() else { return own.into_iter().fold(time, f64::max) };
        let next = time + (end - done) / rate;
        match own.iter().enumerate().min_by(|one, other| one.1.total_cmp(other.1)) {
            Some((place, &first)) if first < next => {
                own.swap_remove(place);
                done += (first - time) * rate;
                time = first;
            }
            _ => {
                turns.pop();
                shares -= share;
                (done, time) = (end, next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(threads: u32) -> Evenness {
        Evenness::new(128, threads, 24)
    }

    /// 128 pieces, as in the paper's section II.B: 24 threads take as long as 22 do, 32 do four
    /// each.
    #[test]
    fn pieces_that_do_not_divide_are_counted() {
        let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
        for threads in [1, 16, 17, 22, 24] {
            let expected = 128.0 / f64::from(threads) / f64::from(128u32.div_ceil(threads));
            let even = of(threads);
            assert!(
                near(even.fair, expected) && near(even.unfair, expected),
                "{threads}: no turns, no unfair ones"
            );
        }
        // All contexts at work to the end; 25 threads: five turns of 25 on 24 contexts, and three
        // more pieces.
        assert!(near(of(32).fair, 1.0) && near(of(64).fair, 1.0));
        assert!(near(of(25).fair, 128.0 / 24.0 / (5.0 * 25.0 / 24.0 + 1.0)));
    }

    #[test]
    fn many_small_shares_end_more_evenly_than_few_large_ones() {
        let [few, some, many] = [32, 64, 128].map(|threads| of(threads).unfair);
        assert!(few < some && some < many && few > 0.85 && many > 0.95, "{few} {some} {many}");
        assert!(
            (of(32).mean() + of(32).deviation()).exp() > 0.999
                && of(32).deviation() > of(64).deviation()
        );
    }

    /// The same by its definition. Each span between two ends has as much for a share of 1 as
    /// leaves no context without work.
    fn defined(pieces: u32, shares: &[f64], contexts: u32) -> f64 {
        let threads = shares.len() as u32;
        let work = |thread: u32| f64::from(pieces / threads + u32::from(thread < pieces % threads));
        let mut left: Vec<(f64, f64)> = shares
            .iter()
            .zip(0..)
            .map(|(&share, thread)| (work(thread), share))
            .filter(|(work, _)| *work > 0.0)
            .collect();
        let mut time = 0.0;
        while !left.is_empty() {
            let busy = f64::from(contexts).min(left.len() as f64);
            let (mut low, mut high) = (0.0, 1e6);
            for _ in 0..100 {
                let middle: f64 = (low + high) / 2.0;
                let granted: f64 = left.iter().map(|(_, share)| (share * middle).min(1.0)).sum();
                if granted < busy { low = middle } else { high = middle }
            }
            let span = left
                .iter()
                .map(|(work, share)| work / (share * high).min(1.0))
                .fold(f64::MAX, f64::min);
            time += span;
            left.iter_mut().for_each(|(work, share)| *work -= span * (*share * high).min(1.0));
            left.retain(|(work, _)| *work > 1e-9);
        }
        time
    }

    /// 25 threads are on 24 contexts, and the first of them has 1.4 times the share of the others.
    /// It has one context, not 1.38, for its six pieces.
    #[test]
    fn no_thread_has_more_than_a_context() {
        let mut shares = std::iter::once(1.4).chain(std::iter::repeat(1.0));
        // Six for it, five for each of the others, which are done by then with 23 contexts for 24.
        let time = duration(126, 25, 24, &mut || shares.next().unwrap_or(1.0));
        assert!((time - 6.0).abs() < 1e-9, "{time}");
        let mut shares = std::iter::once(1.4).chain(std::iter::repeat(1.0));
        let time = duration(125, 25, 24, &mut || shares.next().unwrap_or(1.0));
        // After five turns of the first, the others have 5 / 24 of a piece left, on a context each.
        assert!((time - (5.0 + 5.0 / 24.0)).abs() < 1e-9, "{time}");
    }

    proptest! {
        /// No run is faster than all contexts at work all the time, or than the longest share of
        /// one thread. And the result equals its definition.
        #[test]
        fn no_run_is_shorter_than_its_work(
            pieces in 1u32..300,
            contexts in 1u32..40,
            shares in prop::collection::vec(0.5f64..2.0, 1..100),
            alike in any::<bool>(),
        ) {
            let shares: Vec<f64> = if alike { vec![1.0; shares.len()] } else { shares };
            let threads = shares.len() as u32;
            let mut each = shares.iter().copied();
            let time = duration(pieces, threads, contexts, &mut || each.next().unwrap_or(1.0));
            let least = f64::from(pieces) / f64::from(threads.min(contexts));
            prop_assert!(time >= least.max(f64::from(pieces.div_ceil(threads))) - 1e-6, "{time}");
            prop_assert!(time <= f64::from(pieces) + 1e-6, "{time}");
            let defined = defined(pieces, &shares, contexts);
            prop_assert!((time - defined).abs() < 1e-6 * time, "{time}, by definition {defined}");
        }
    }
}
