//! Draws labelled assignments uniformly at random. No draw is rejected. So the cost does not depend
//! on how full the machine gets.

use super::Space;
use crate::{Assignment, Random};
use num_bigint::BigUint;

impl Space {
    /// Draws a labelled assignment uniformly.
    pub(super) fn sample_labelled(&self, random: &mut Random) -> Assignment {
        let contexts = self.tree.leaves().len();
        Assignment::new(match self.capacity() {
            capacity if capacity == self.threads => {
                (0..self.threads).map(|thread| self.anywhere(thread, random)).collect()
            }
            1 if !self.is_masked() => distinct(self.threads, contexts, random),
            _ => self.dealt(random),
        })
    }

    /// One of the leaves where a thread may be.
    fn anywhere(&self, thread: usize, random: &mut Random) -> u32 {
        let may = |leaf: &u32| self.masks.may(thread, *leaf);
        let leaves: Vec<u32> = (0..self.tree.leaves().len() as u32).filter(may).collect();
        match leaves[..] {
            [only] if self.is_masked() => only,
            _ => leaves[random.below(leaves.len() as u64) as usize],
        }
    }

    /// Draws how many threads of each kind every context holds, context by context. The weight is
    /// the number of ways to put the remaining threads on the remaining contexts. Then it deals the
    /// threads out in random order.
    fn dealt(&self, random: &mut Random) -> Vec<u32> {
        let (degrees, contexts) = (self.degrees(), self.tree.leaves().len());
        let one = |context| self.masks.leaf(degrees, context, self.capacity());
        let prefixes = self.prefixes.get_or_init(|| {
            let mut prefixes = vec![vec![BigUint::from(1u32)]];
            for context in 0..contexts {
                prefixes.push(degrees.product(&prefixes[context], &one(context)));
            }
            prefixes
        });
        let mut kinds = self.masks.threads.clone();
        kinds.iter_mut().for_each(|threads| random.shuffle(threads));
        let only = |thread| self.masks.only(thread).unwrap_or(0);
        let mut leaves: Vec<u32> = (0..self.threads).map(only).collect();
        let mut remaining = degrees.len() - 1;
        for context in (0..contexts).rev() {
            let mut draw = below(&prefixes[context + 1][remaining], random);
            let mut here = 0;
            for (index, _) in one(context).iter().enumerate().filter(|(_, ways)| ways.bits() > 0) {
                if !degrees.within(index, remaining) {
                    continue;
                }
                here = index;
                let weight = prefixes[context]
                    .get(remaining - here)
                    .map_or(BigUint::ZERO, |ways| degrees.choose(remaining, here) * ways);
                // The weights add up to the range of the draw, so this ends at the last at the
                // latest.
                if draw < weight {
                    break;
                }
                draw -= weight;
            }
            for (threads, &count) in kinds.iter_mut().zip(degrees.of(here)) {
                let left = threads.len() - count;
                threads.drain(left..).for_each(|thread| leaves[thread] = context as u32);
            }
            remaining -= here;
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
