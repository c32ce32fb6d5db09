//! Draws labelled assignments uniformly at random. No draw is rejected. So the cost does not depend
//! on how full the machine gets.

use super::Space;
use super::series::PowerSeries;
use crate::{Assignment, Random};
use num_bigint::BigUint;

/// In how many ways the first contexts hold threads.
#[derive(Clone, Debug)]
pub(super) struct Prefixes {
    /// By cell the coefficients of what a context may hold.
    one: Vec<Vec<usize>>,
    /// At `[i][r]`: in how many ways the threads of coefficient r can be placed on the first i
    /// contexts.
    ways: Vec<PowerSeries>,
}

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
        let all = self.tree.leaves().len() as u32;
        if !self.is_masked() {
            return random.below(u64::from(all)) as u32;
        }
        let leaves: Vec<u32> = (0..all).filter(|leaf| self.masks.may(thread, *leaf)).collect();
        leaves[random.below(leaves.len() as u64) as usize]
    }

    /// Draws how many threads of each kind every context holds, context by context. The weight is
    /// the number of ways to put the remaining threads on the remaining contexts. Then it deals the
    /// threads out in random order.
    fn dealt(&self, random: &mut Random) -> Vec<u32> {
        let degrees = self.degrees();
        let Prefixes { one, ways: prefixes } = self.prefixes.get_or_init(|| self.prefixes());
        let mut kinds = self.masks.threads.clone();
        kinds.iter_mut().for_each(|threads| random.shuffle(threads));
        let only = |thread| self.masks.only(thread).unwrap_or(0);
        let mut leaves: Vec<u32> = (0..self.threads).map(only).collect();
        let mut remaining = degrees.len() - 1;
        for context in (0..self.tree.leaves().len()).rev() {
            let mut draw = below(&prefixes[context + 1][remaining], random);
            let mut here = 0;
            for &index in &one[self.masks.cells[context]] {
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

    fn prefixes(&self) -> Prefixes {
        let (degrees, cells) = (self.degrees(), &self.masks.cells);
        let mut prefixes = Prefixes { one: Vec::new(), ways: vec![vec![BigUint::from(1u32)]] };
        for (context, &cell) in cells.iter().enumerate() {
            let leaf = self.masks.leaf(degrees, context, self.capacity());
            prefixes.ways.push(degrees.product(&prefixes.ways[context], &leaf));
            // Cells are numbered as they begin.
            if cell == prefixes.one.len() {
                let some = leaf.iter().enumerate().filter(|(_, ways)| ways.bits() > 0);
                prefixes.one.push(some.map(|(index, _)| index).collect());
            }
        }
        prefixes
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
