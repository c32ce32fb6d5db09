//! Draws labelled assignments uniformly at random. No draw is rejected. So the cost does not depend
//! on how full the machine gets.

use super::{Space, series};
use crate::{Assignment, Random};
use num_bigint::BigUint;

impl Space {
    /// Draws a labelled assignment uniformly.
    pub(super) fn sample_labelled(&self, random: &mut Random) -> Assignment {
        let contexts = self.tree.leaves().len();
        Assignment::new(match self.capacity() {
            capacity if capacity == self.threads => {
                (0..self.threads).map(|_| random.below(contexts as u64) as u32).collect()
            }
            1 => distinct(self.threads, contexts, random),
            _ => self.dealt(random),
        })
    }

    /// Draws how many threads every context holds, context by context. The weight is the number of
    /// ways to put the remaining threads on the remaining contexts. Then it deals the threads out
    /// in random order.
    fn dealt(&self, random: &mut Random) -> Vec<u32> {
        let prefixes = self.prefixes.get_or_init(|| {
            let one = series::up_to(self.capacity());
            let add = |ways: &series::PowerSeries| Some(series::product(ways, &one, self.threads));
            std::iter::successors(Some(series::up_to(0)), add)
                .take(self.tree.leaves().len() + 1)
                .collect()
        });
        let mut threads: Vec<usize> = (0..self.threads).collect();
        random.shuffle(&mut threads);
        let mut leaves = vec![0; self.threads];
        for context in (0..self.tree.leaves().len()).rev() {
            let remaining = threads.len();
            let mut draw = below(&prefixes[context + 1][remaining], random);
            // C(remaining, here) ways to choose who is here, times the ways of the others on the
            // contexts before.
            let mut choose = BigUint::from(1u32);
            let mut here = 0;
            loop {
                let weight = prefixes[context]
                    .get(remaining - here)
                    .map_or(BigUint::ZERO, |ways| &choose * ways);
                // The weights add up to the range of the draw, so this ends at the capacity at the
                // latest.
                if draw < weight || here == remaining {
                    break;
                }
                draw -= weight;
                choose = choose * (remaining - here) / (here + 1);
                here += 1;
            }
            threads.drain(remaining - here..).for_each(|thread| leaves[thread] = context as u32);
        }
        leaves
    }
}

/// `count` distinct numbers below `bound`, in random order: the first steps of a Fisher-Yates
/// shuffle.
fn distinct(count: usize, bound: usize, random: &mut Random) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..bound as u32).collect();
    for index in 0..count {
        let chosen = index + random.below((bound - index) as u64) as usize;
        numbers.swap(index, chosen);
    }
    numbers.truncate(count);
    numbers
}

/// A uniform number below `bound`, which must not be 0, by rejection of its highest bits.
fn below(bound: &BigUint, random: &mut Random) -> BigUint {
    let bits = bound.bits();
    loop {
        let words = (0..bits.div_ceil(64)).flat_map(|word| {
            let keep = (bits - word * 64).min(64);
            let drawn = random.bits() >> (64 - keep);
            [drawn as u32, (drawn >> 32) as u32]
        });
        let number = BigUint::new(words.collect());
        if number < *bound {
            return number;
        }
    }
}
