//! Layouts: the neighbourhoods of a thread within its core-local domain, numbered without gaps.
//!
//! **Terms.** A *content* is what a domain holds up to swaps of alike parts and of threads of one
//! kind. A slot holds nothing or a thread of one of K kinds: K + 1 contents. A domain of `a`
//! children holds a multiset of `a` of their contents. There are C(N + a - 1, a) if a child has N.
//! A *layout* is the neighbourhood of one thread. It has at each level the multiset of contents of
//! the siblings of its part. There are C(N + a - 2, a - 1) of these, multiplied over the levels. A
//! core of the UltraSPARC T2 has 2 pipes of 4 strands. There it is C(K + 3, 3) · C(K + 4, 4). K
//! times that is the number of experiments of blackbox-scheduler.txt, Table 1.
//!
//! **Numbering.** Take a multiset c1 <= c2 <= … of contents. Its number in the combinatorial number
//! system is the sum of C(ci + i - 1, i). See Knuth, The Art of Computer Programming 4A, 7.2.1.3,
//! exercise on multicombinations. Levels are combined as digits. So a table of slowdowns is a plain
//! array, filled and read by number. Where domains are of several builds, the numbers of one follow
//! those of the one before.

use crate::{Build, CoreLocal};
use std::ops::Range;

/// The layouts of the core-local domains of a machine for a number of kinds of threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layouts {
    kinds: usize,
    /// By build, the number of its first layout: the one that holds nobody.
    first: Vec<usize>,
    builds: Vec<Within>,
    count: usize,
}

/// The layouts within domains of one build.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Within {
    /// Innermost first.
    levels: Vec<LayoutLevel>,
    /// How many layouts.
    count: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LayoutLevel {
    arity: usize,
    /// How many contents a child has.
    contents: usize,
    /// Layouts of this level alone: what the siblings hold.
    siblings: usize,
    /// `below[i][c]` = C(c + i, i + 1), the multisets of size i + 1 of contents below c.
    below: Vec<Vec<usize>>,
}

/// More layouts than this are not numbered: a table of them could not be filled, nor kept in
/// memory.
const MOST: usize = 1 << 26;

impl Layouts {
    /// The layouts within the domains of `local` for threads of `kinds` kinds. `None` if there are
    /// more than 2^26 of them.
    pub fn new(local: &CoreLocal, kinds: usize) -> Option<Self> {
        let within = |build: &Build| Within::new(build.arities(), kinds);
        let builds: Vec<Within> = local.builds().iter().map(within).collect::<Option<_>>()?;
        let mut count = 0;
        let place = |build: &Within| {
            count += build.count;
            count - build.count
        };
        let first = builds.iter().map(place).collect();
        (count <= MOST).then_some(Self { kinds, first, builds, count })
    }

    /// Kinds of threads.
    pub fn kinds(&self) -> usize {
        self.kinds
    }

    /// How many layouts there are around one thread, in domains of all builds.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The numbers of the layouts in domains of one build (which must exist); the first is that of
    /// nobody around.
    pub fn of(&self, build: usize) -> Range<usize> {
        self.first[build]..self.first[build] + self.builds[build].count
    }

    /// The build of the domains that a layout is in.
    pub fn build(&self, layout: usize) -> usize {
        self.first.partition_point(|first| *first <= layout) - 1
    }

    /// Whether a layout is that of nobody around.
    pub fn is_alone(&self, layout: usize) -> bool {
        self.first[self.build(layout)] == layout
    }

    /// The layout around each slot of a domain of this build, whatever that slot itself holds.
    /// `held` has for each slot 0, or 1 + the kind of the thread on it. `around` is as long and
    /// receives the numbers.
    ///
    /// # Panics
    /// If there is no such build or kind, or a slice's length is not the number of slots.
    pub fn around(&self, build: usize, held: &[usize], around: &mut [usize]) {
        self.builds[build].around(held, around);
        around.iter_mut().for_each(|layout| *layout += self.first[build]);
    }

    /// A domain with the layout of number `layout` around its first slot. Each slot has 0, or 1 +
    /// the kind of the thread on it. The first slot is left empty.
    pub fn example(&self, layout: usize) -> Vec<usize> {
        let build = self.build(layout);
        self.builds[build].example(layout - self.first[build])
    }
}

impl Within {
    /// For a domain of `arities`, outermost first; the last counts slots.
    fn new(arities: &[usize], kinds: usize) -> Option<Self> {
        let (mut contents, mut count) = (kinds + 1, 1usize);
        let mut levels = Vec::with_capacity(arities.len());
        for (depth, &arity) in arities.iter().rev().enumerate() {
            let siblings = multisets(contents, arity - 1)?;
            count = count.checked_mul(siblings).filter(|count| *count <= MOST)?;
            // The contents of the outermost domain are no one's siblings.
            let outermost = depth + 1 == arities.len();
            let most = if outermost { arity - 1 } else { arity };
            let below = (1..=most)
                .map(|size| (0..contents).map(|c| multisets(c, size)).collect())
                .collect::<Option<_>>()?;
            levels.push(LayoutLevel { arity, contents, siblings, below });
            contents = if outermost { 0 } else { multisets(contents, arity)? };
        }
        Some(Self { levels, count })
    }

    /// See [`Layouts::around`].
    fn around(&self, held: &[usize], around: &mut [usize]) {
        let mut contents = held.to_vec();
        let mut siblings = Vec::new();
        let (mut width, mut weight) = (1, 1);
        around.fill(0);
        for (depth, level) in self.levels.iter().enumerate() {
            let outermost = depth + 1 == self.levels.len();
            let mut outer = Vec::with_capacity(contents.len() / level.arity);
            for (domain, children) in contents.chunks(level.arity).enumerate() {
                for child in 0..level.arity {
                    siblings.clear();
                    siblings.extend(children[..child].iter().chain(&children[child + 1..]));
                    siblings.sort_unstable();
                    let number = weight * level.number(&siblings);
                    let first = (domain * level.arity + child) * width;
                    around[first..first + width].iter_mut().for_each(|layout| *layout += number);
                }
                if !outermost {
                    siblings.clear();
                    siblings.extend(children);
                    siblings.sort_unstable();
                    outer.push(level.number(&siblings));
                }
            }
            weight *= level.siblings;
            width *= level.arity;
            contents = outer;
        }
    }

    /// See [`Layouts::example`].
    fn example(&self, layout: usize) -> Vec<usize> {
        let mut rest = layout;
        let mut held = vec![0];
        for (depth, level) in self.levels.iter().enumerate() {
            let siblings = level.members(rest % level.siblings, level.arity - 1);
            rest /= level.siblings;
            for content in siblings {
                held.extend(self.spread(depth, content));
            }
        }
        held
    }

    /// The slots of a child at `depth` with a content.
    fn spread(&self, depth: usize, content: usize) -> Vec<usize> {
        match depth.checked_sub(1) {
            None => vec![content],
            Some(inner) => {
                let level = &self.levels[inner];
                level
                    .members(content, level.arity)
                    .into_iter()
                    .flat_map(|child| self.spread(inner, child))
                    .collect()
            }
        }
    }
}

impl LayoutLevel {
    /// The number of a sorted multiset of contents.
    fn number(&self, sorted: &[usize]) -> usize {
        sorted.iter().zip(&self.below).map(|(&content, below)| below[content]).sum()
    }

    /// The multiset of `size` contents with a number, sorted.
    fn members(&self, mut number: usize, size: usize) -> Vec<usize> {
        let mut members = vec![0; size];
        for (member, below) in members.iter_mut().zip(&self.below[..size]).rev() {
            // The largest content with no more multisets below it than are left.
            *member =
                below[..self.contents].partition_point(|count| *count <= number).saturating_sub(1);
            number -= below[*member];
        }
        members
    }
}

/// C(contents + size - 1, size), the number of multisets; `None` above 2^53.
fn multisets(contents: usize, size: usize) -> Option<usize> {
    let mut count = 1u128;
    for chosen in 1..=size as u128 {
        count = count * (contents as u128 + chosen - 1) / chosen;
        if count > 1 << 53 {
            return None;
        }
    }
    usize::try_from(count).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// The slot's surroundings spelled out: at each level the sorted contents of the siblings.
    /// Independent of any numbering.
    fn spelled(arities: &[usize], held: &[usize], slot: usize) -> Vec<Vec<String>> {
        fn content(arities: &[usize], held: &[usize]) -> String {
            let Some((arity, inner)) = arities.split_first() else { return held[0].to_string() };
            let mut children: Vec<String> =
                held.chunks(held.len() / arity).map(|child| content(inner, child)).collect();
            children.sort();
            format!("({})", children.join(" "))
        }
        let Some((arity, inner)) = arities.split_first() else { return Vec::new() };
        let width = held.len() / arity;
        let own = slot / width;
        let mut siblings: Vec<String> = (0..*arity)
            .filter(|child| *child != own)
            .map(|child| content(inner, &held[child * width..][..width]))
            .collect();
        siblings.sort();
        let mut levels = spelled(inner, &held[own * width..][..width], slot % width);
        levels.push(siblings);
        levels
    }

    #[test]
    fn the_counts_are_those_of_the_published_table() {
        for (kinds, published) in [(4, 9_800), (6, 105_840), (8, 653_400)] {
            let layouts = Within::new(&[2, 4], kinds).unwrap();
            assert_eq!(kinds * layouts.count, published, "{kinds} kinds");
        }
        // For 32 threads the paper prints 4.7e8, which its own rule does not give.
        assert_eq!(
            32 * Within::new(&[2, 4], 32).map_or(0, |layouts| layouts.count),
            0,
            "too many to number"
        );
        assert_eq!(32 * multisets(33, 3).unwrap() * multisets(33, 4).unwrap(), 12_337_063_200);
        assert_eq!(Within::new(&[], 3).unwrap().count, 1);
    }

    #[test]
    fn every_number_has_an_example_that_has_this_number() {
        for (arities, kinds) in
            [(&[2, 4][..], 3), (&[2], 4), (&[], 2), (&[3, 2], 2), (&[2, 2, 2], 2), (&[1, 3], 2)]
        {
            let layouts = Within::new(arities, kinds).unwrap();
            let mut around = vec![0; arities.iter().product()];
            for layout in 0..layouts.count {
                let held = layouts.example(layout);
                assert_eq!(held.len(), around.len());
                layouts.around(&held, &mut around);
                assert_eq!((held[0], around[0]), (0, layout), "{arities:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn two_slots_have_one_number_exactly_if_they_have_one_surrounding(
            (arities, held) in prop::sample::select(vec![
                vec![2, 4], vec![3], vec![2, 2, 2], vec![4, 2], vec![2, 3, 2],
            ])
                .prop_flat_map(|arities| {
                    let slots: usize = arities.iter().product();
                    let held = prop::collection::vec(0..3usize, slots);
                    (Just(arities), prop::collection::vec(held, 1..40))
                })
        ) {
            let layouts = Within::new(&arities, 2).unwrap();
            let mut by_number = BTreeMap::new();
            let mut spellings = BTreeSet::new();
            let mut around = vec![0; arities.iter().product()];
            for domain in &held {
                layouts.around(domain, &mut around);
                for (slot, number) in around.iter().enumerate() {
                    let spelling = spelled(&arities, domain, slot);
                    prop_assert!(*number < layouts.count);
                    prop_assert_eq!(
                        by_number.entry(*number).or_insert_with(|| spelling.clone()),
                        &spelling
                    );
                    spellings.insert(spelling);
                }
            }
            prop_assert_eq!(by_number.len(), spellings.len());
        }
    }
}
