//! The base time table: how one instance performs alone, for every way of placing its threads.
//!
//! blackbox-scheduler.txt, section 3.1.1, "Benefit from data and instructions sharing". With
//! nothing else on the machine, threads of one instance that share a core gain or lose by it. There
//! is one entry per different assignment of the instance. On the UltraSPARC T2, 3 threads have 11,
//! 4 have 49, and 6 have 1,526. Threads of an instance may have one role. Then assignments that
//! differ by an exchange of them perform the same, and are one experiment.

use crate::ThreadKinds;
use num_bigint::BigUint;
use pinwise_topology::{Assignment, PerContext, SharingTree, Space, SpaceError};
use std::collections::BTreeMap;

/// Exchanges of threads, times assignments, that are gone through to find those that are one
/// experiment.
const MOST_EXCHANGES: u64 = 20_000_000;

/// The assignments of one instance of one application, alone.
#[derive(Clone, Debug)]
pub struct BaseSpace {
    space: Space,
    /// All orders in which threads of one kind can take each other's places.
    exchanges: Vec<Vec<usize>>,
}

impl BaseSpace {
    /// For `application` of `thread_kinds` on `tree`, at most `per_context` threads on a context.
    ///
    /// # Errors
    /// An instance that does not fit.
    pub fn new(
        tree: &SharingTree,
        thread_kinds: &ThreadKinds,
        application: usize,
        per_context: usize,
    ) -> Result<Self, SpaceError> {
        let roster = thread_kinds.roster(application);
        let space = Space::new(tree.clone(), roster.len(), PerContext::AtMost(per_context))?;
        let exchanges = exchanges(&roster);
        let affordable = space.count() * exchanges.len() <= BigUint::from(MOST_EXCHANGES);
        let identity = || vec![(0..roster.len()).collect()];
        Ok(Self { space, exchanges: if affordable { exchanges } else { identity() } })
    }

    /// How many assignments differ if every thread is distinct: the paper's number.
    pub fn count(&self) -> BigUint {
        self.space.count()
    }

    /// How many experiments [`BaseSpace::experiments`] gives, counted without listing them if every
    /// thread is distinct.
    pub fn experiment_count(&self) -> BigUint {
        if self.exchanges.len() == 1 { self.count() } else { self.experiments().count().into() }
    }

    /// One assignment for each experiment. It is the first of those that differ only by exchanges
    /// of interchangeable threads. Threads are in the order of [`crate::Instance::threads`].
    pub fn experiments(&self) -> impl Iterator<Item = Assignment> + '_ {
        self.space.classes().filter(|class| self.exchanges.len() == 1 || self.name(class) == *class)
    }

    /// What the table calls an assignment: the first of all that perform the same.
    pub fn name(&self, assignment: &Assignment) -> Assignment {
        let exchanged = |order: &Vec<usize>| {
            let leaves = order.iter().map(|&thread| assignment.leaves()[thread]).collect();
            self.space.canonical(&Assignment::new(leaves))
        };
        // There is always the order that exchanges nothing.
        self.exchanges
            .iter()
            .map(exchanged)
            .min()
            .unwrap_or_else(|| self.space.canonical(assignment))
    }
}

/// Performance of one instance alone, by assignment.
#[derive(Clone, Debug)]
pub struct BaseTable {
    space: BaseSpace,
    values: BTreeMap<Assignment, f64>,
    best: f64,
}

impl BaseTable {
    /// A table filled by `performance` of each experiment; higher is better.
    ///
    /// # Errors
    /// The first that `performance` gives.
    pub fn fill<E>(
        space: BaseSpace,
        mut performance: impl FnMut(&Assignment) -> Result<f64, E>,
    ) -> Result<Self, E> {
        let mut values = BTreeMap::new();
        for experiment in space.experiments() {
            let value = performance(&experiment)?;
            values.insert(experiment, value);
        }
        Ok(Self::of(space, values))
    }

    /// A table of the performances of experiments.
    pub(crate) fn of(space: BaseSpace, values: BTreeMap<Assignment, f64>) -> Self {
        let best = values.values().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { space, values, best }
    }

    /// The entries that `keep` picks.
    pub(crate) fn only(&self, keep: impl Fn(&Assignment) -> bool) -> Self {
        let kept = self
            .values
            .iter()
            .filter(|(name, _)| keep(name))
            .map(|(name, value)| (name.clone(), *value));
        Self::of(self.space.clone(), kept.collect())
    }

    /// The performance of the instance alone on these contexts, threads in the order of
    /// [`crate::Instance::threads`]. `None` for an assignment that the space does not have.
    pub fn performance(&self, assignment: &Assignment) -> Option<f64> {
        self.named(&self.name(assignment))
    }

    /// What the table calls an assignment.
    pub(crate) fn name(&self, assignment: &Assignment) -> Assignment {
        self.space.name(assignment)
    }

    /// All entries: threads in the order of [`crate::Instance::threads`], and the performance.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Assignment, f64)> {
        self.values.iter().map(|(name, value)| (name, *value)).filter(|(_, value)| !value.is_nan())
    }

    /// The performance by what the table calls an assignment.
    pub(crate) fn named(&self, name: &Assignment) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// The best it can do alone.
    pub fn best(&self) -> f64 {
        self.best
    }
}

/// The orders that exchange only equal entries of `roster`, which is sorted; the one that exchanges
/// nothing comes first.
fn exchanges(roster: &[usize]) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    let mut start = 0;
    for group in roster.chunk_by(|a, b| a == b) {
        let members: Vec<usize> = (start..start + group.len()).collect();
        start += group.len();
        let arranged = permutations(&members);
        orders = orders
            .iter()
            .flat_map(|order| arranged.iter().map(move |part| [&order[..], part].concat()))
            .collect();
        // Beyond this nobody goes through them; the caller sees that there are too many.
        if orders.len() as u64 > MOST_EXCHANGES / 100 {
            return vec![(0..roster.len()).collect()];
        }
    }
    orders
}

fn permutations(members: &[usize]) -> Vec<Vec<usize>> {
    if members.len() < 2 || members.len() > 8 {
        return vec![members.to_vec()];
    }
    let with_first = |index: usize| {
        let mut rest = members.to_vec();
        let first = rest.remove(index);
        permutations(&rest).into_iter().map(move |rest| [&[first], &rest[..]].concat())
    };
    (0..members.len()).flat_map(with_first).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchangeable_threads::tests::workload;
    use pinwise_topology::{Alike, Machine, Random};
    use std::convert::Infallible;

    fn space(threads: &str) -> BaseSpace {
        let tree = SharingTree::new(&Machine::model("ultrasparc-t2").unwrap(), Alike::ByStructure);
        BaseSpace::new(&tree, &ThreadKinds::new(&workload(threads)), 0, 1).unwrap()
    }

    #[test]
    fn the_counts_are_those_of_the_published_table() {
        for (threads, published) in
            [("RPT", 11), ("ABCD", 49), ("ABCDEF", 1_526), ("ABCDEFGH", 74_376)]
        {
            assert_eq!(space(threads).count(), BigUint::from(published as u32));
        }
        assert_eq!(space("ABCDEF").experiments().count(), 1_526);
    }

    #[test]
    fn threads_of_one_role_make_fewer_experiments_and_the_same_table() {
        // By hand: three workers in one, two or three pipes have the shapes {3}, {2,1} and {1,1,1}.
        // Shape {3} has 1 experiment. Shape {2,1} has 2: the third is in the other pipe or another
        // core. Shape {1,1,1} has 2: two pipes of a core and one more, or three cores. In all 5.
        assert_eq!(space("WWW").experiments().count(), 5);
        let workers = space("RWW");
        let mut asked = 0;
        let table = BaseTable::fill(workers.clone(), |assignment| {
            asked += 1;
            // Symmetric in the two workers, which come second and third.
            let [r, a, b] = [0, 1, 2].map(|thread| assignment.leaf(thread) / 4);
            Ok::<f64, Infallible>(
                (usize::from(r == a) + usize::from(r == b)) as f64
                    + 3.0 * f64::from(u8::from(a == b)),
            )
        })
        .unwrap();
        assert!(asked < 11, "{asked}");
        let mut random = Random::new(1);
        for _ in 0..200 {
            let some = workers.space.sample(&mut random);
            let exchanged = Assignment::new([0, 2, 1].map(|thread| some.leaves()[thread]).to_vec());
            assert_eq!(table.performance(&some), table.performance(&exchanged));
            let [r, a, b] = [0, 1, 2].map(|thread| some.leaf(thread) / 4);
            let truth = f64::from(u8::from(r == a))
                + f64::from(u8::from(r == b))
                + 3.0 * f64::from(u8::from(a == b));
            assert_eq!(table.performance(&some), Some(truth));
        }
        assert_eq!(table.best(), 5.0);
    }
}
