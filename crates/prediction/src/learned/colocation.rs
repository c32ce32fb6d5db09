//! A predictor learned from measurements alone: which kinds of threads share what.
//!
//! **Features.** Each level of the machine has a count for each pair of kinds. It counts the pairs
//! of threads of these kinds that share a domain, over all threads and within instances. If
//! contexts differ, there is a count of the threads of each kind on each sort. **Model.** The
//! logarithm of performance is linear in them (`learned/ridge.rs`): contention multiplies. It needs
//! no profile, and only the tree of the machine. A few hundred random runs suffice.
//!
//! **Limits.** It is right about the bulk of assignments, from which it learned. At the top, which
//! a search needs, it extrapolates. So it chooses what to measure, and is never itself the claim.

use crate::learned::levels::Levels;
use crate::learned::ridge::Ridge;
use crate::{Change, Instance, PredictedWalk, Predictor, ThreadKinds};
use pinwise_topology::SharingTree;
use std::borrow::Cow;

/// An instance of more threads is counted. In a smaller one, each two threads are compared.
const FEW: usize = 8;

/// Counts of what shares what. See the module.
#[derive(Clone, Debug)]
pub struct Colocation {
    thread_kinds: ThreadKinds,
    shared: Levels,
}

/// A [`Colocation`] with what each count is worth.
#[derive(Clone, Debug)]
pub struct Learned {
    colocation: Colocation,
    ridge: Ridge,
}

impl Colocation {
    /// The counts for the workload of `thread_kinds` on `tree`, which has contexts.
    pub fn new(thread_kinds: &ThreadKinds, tree: &SharingTree) -> Self {
        Self { thread_kinds: thread_kinds.clone(), shared: Levels::new(tree) }
    }

    /// The counts of an assignment, level by level (contexts first, then outermost to innermost).
    /// All pairs come first, then those within instances. Each is a triangle (kind 0 with 0, 1 with
    /// 0, 1 with 1, …). Kinds by sorts of contexts follow, if there are several.
    ///
    /// # Panics
    /// If there are fewer leaves than threads, or one does not exist.
    pub fn count(&self, leaves: &[u32]) -> Vec<f64> {
        let triangle = self.triangle();
        let mut counts = vec![0.0; self.width()];
        let every: Vec<usize> = (0..self.thread_kinds.threads()).collect();
        let mut held = self.nothing_held();
        for (level, counts) in self.shared.domains.iter().zip(counts.chunks_exact_mut(2 * triangle))
        {
            let (all, own) = counts.split_at_mut(triangle);
            self.pairs(&every, level, leaves, &mut held, |a, b, pairs| all[corner(a, b)] += pairs);
            for Instance { threads, .. } in self.thread_kinds.instances() {
                self.pairs(threads, level, leaves, &mut held, |a, b, pairs| {
                    own[corner(a, b)] += pairs;
                });
            }
        }
        let sorts = &mut counts[2 * triangle * self.shared.domains.len()..];
        if !sorts.is_empty() {
            (0..self.thread_kinds.threads())
                .for_each(|thread| sorts[self.sort(thread, leaves)] += 1.0);
        }
        counts
    }

    /// Pairs of kinds.
    fn triangle(&self) -> usize {
        let kinds = self.thread_kinds.kinds().len();
        kinds * (kinds + 1) / 2
    }

    /// How many counts there are.
    fn width(&self) -> usize {
        let sorts = if self.shared.sort_count > 1 {
            self.shared.sort_count * self.thread_kinds.kinds().len()
        } else {
            0
        };
        2 * self.triangle() * self.shared.domains.len() + sorts
    }

    /// The number among its kind and all sorts of the context that a thread is on.
    fn sort(&self, thread: usize, leaves: &[u32]) -> usize {
        self.shared.sorts[leaves[thread] as usize] * self.thread_kinds.kinds().len()
            + self.thread_kinds.kind(thread)
    }

    /// Passes two kinds, and how many pairs of their threads share a domain of a level, to `tell`.
    /// Only pairs of `threads` count. Kinds may repeat. `held` is zero before and after. It has a
    /// number for each domain of a level and each kind.
    fn pairs(
        &self,
        threads: &[usize],
        level: &[usize],
        leaves: &[u32],
        held: &mut [f64],
        mut tell: impl FnMut(usize, usize, f64),
    ) {
        let kinds = self.thread_kinds.kinds().len();
        let first = |thread: usize| level[leaves[thread] as usize] * kinds;
        // Each thread is paired with those before it.
        for &thread in threads {
            let kind = self.thread_kinds.kind(thread);
            let domain = &mut held[first(thread)..][..kinds];
            let present = domain.iter().enumerate().filter(|(_, held)| **held > 0.0);
            present.for_each(|(other, held)| tell(kind, other, *held));
            domain[kind] += 1.0;
        }
        for &thread in threads {
            held[first(thread) + self.thread_kinds.kind(thread)] = 0.0;
        }
    }

    /// What [`Colocation::pairs`] counts in.
    fn nothing_held(&self) -> Vec<f64> {
        vec![0.0; self.shared.most_domains * self.thread_kinds.kinds().len()]
    }

    /// Learns the worth of the counts from measurements: leaves of each thread, and the
    /// performance. Only performances above 0 count. `None` if these are too few or all alike.
    pub fn learn<'a>(
        &self,
        measured: impl IntoIterator<Item = (&'a [u32], f64)>,
    ) -> Option<Learned> {
        let usable = measured
            .into_iter()
            .filter(|(_, performance)| *performance > 0.0 && performance.is_finite());
        let (rows, values): (Vec<_>, Vec<_>) =
            usable.map(|(leaves, performance)| (self.count(leaves), performance.ln())).unzip();
        Some(Learned { colocation: self.clone(), ridge: Ridge::fit(&rows, &values)? })
    }
}

impl Learned {
    /// The leave-one-out error: root mean square of predicted / measured - 1, to first order.
    pub fn error(&self) -> f64 {
        self.ridge.error
    }
}

/// What pairs of threads are worth on a level that makes a difference.
struct WeighedLevel<'a> {
    /// By leaf.
    domains: &'a [usize],
    /// Where its domains begin among those of all levels.
    first: usize,
    /// By the kinds of two threads that share a domain.
    all: Cow<'a, [f64]>,
    /// The same for two threads of one instance; empty if there is only one instance. Its pairs are
    /// then all pairs.
    own: &'a [f64],
}

/// A walk from assignment to assignment. A step computes again what the domains are worth that it
/// changes, and the instances.
struct ColocationWalk<'a> {
    learned: &'a Learned,
    levels: Vec<WeighedLevel<'a>>,
    /// The worth of each sort of context, by sort and kind; empty if all are alike.
    sorts: &'a [f64],
    /// The instance of each thread.
    instance_of: Vec<usize>,
    /// Threads by level, domain and kind.
    held: Vec<f64>,
    /// What each domain of each level is worth.
    domains: Vec<f64>,
    /// What each instance is worth, for its partners and sorts of contexts.
    instances: Vec<f64>,
    /// See [`Colocation::pairs`].
    nothing_held: Vec<f64>,
    /// The last step, and where it changed what: what was there before.
    change: Option<Change>,
    domains_before: Vec<(usize, f64)>,
    instances_before: Vec<(usize, f64)>,
}

impl<'a> ColocationWalk<'a> {
    fn new(learned: &'a Learned, leaves: &[u32]) -> Self {
        let colocation = &learned.colocation;
        let (kinds, threads) = (&colocation.thread_kinds, colocation.thread_kinds.threads());
        let (shared, triangle) = (&colocation.shared, colocation.triangle());
        let (pairs, sorts) = learned.ridge.weights.split_at(2 * triangle * shared.domains.len());
        let mut levels: Vec<WeighedLevel<'_>> = Vec::new();
        let mut first = 0;
        for (domains, weights) in shared.domains.iter().zip(pairs.chunks_exact(2 * triangle)) {
            // Nothing was learned of a level that never made a difference, such as one thread per
            // context.
            if weights.iter().any(|weight| *weight != 0.0) {
                let (all, own) = weights.split_at(triangle);
                levels.push(match kinds.instances() {
                    [_] => {
                        let both = all.iter().zip(own).map(|(all, own)| all + own).collect();
                        WeighedLevel { domains, first, all: Cow::Owned(both), own: &[] }
                    }
                    _ => WeighedLevel { domains, first, all: Cow::Borrowed(all), own },
                });
                first += domains.iter().max().map_or(0, |last| last + 1);
            }
        }
        let mut instance_of = vec![0; threads];
        for (number, instance) in kinds.instances().iter().enumerate() {
            instance.threads.iter().for_each(|thread| instance_of[*thread] = number);
        }
        let mut walk = Self {
            learned,
            levels,
            sorts,
            instance_of,
            held: vec![0.0; first * kinds.kinds().len()],
            domains: vec![0.0; first],
            instances: vec![0.0; kinds.instances().len()],
            nothing_held: colocation.nothing_held(),
            change: None,
            domains_before: Vec::new(),
            instances_before: Vec::new(),
        };
        (0..threads).for_each(|thread| walk.count(thread, leaves[thread], 1.0));
        for level in 0..walk.levels.len() {
            let WeighedLevel { domains, first, .. } = &walk.levels[level];
            let (domains, first) = (*domains, *first);
            let count = domains.iter().max().map_or(0, |last| last + 1);
            (0..count).for_each(|domain| walk.domains[first + domain] = walk.worth(level, domain));
        }
        for instance in 0..walk.instances.len() {
            walk.instances[instance] = walk.instance(instance, leaves);
        }
        walk
    }

    /// Adds a thread to what is on the domains around a leaf, `times` 1, or takes it away.
    fn count(&mut self, thread: usize, leaf: u32, times: f64) {
        let kinds = &self.learned.colocation.thread_kinds;
        for WeighedLevel { domains, first, .. } in &self.levels {
            let domain = first + domains[leaf as usize];
            self.held[domain * kinds.kinds().len() + kinds.kind(thread)] += times;
        }
    }

    /// What a domain is worth.
    fn worth(&self, level: usize, domain: usize) -> f64 {
        let WeighedLevel { first, all, .. } = &self.levels[level];
        let kinds = self.learned.colocation.thread_kinds.kinds().len();
        let held = &self.held[(first + domain) * kinds..][..kinds];
        let mut worth = 0.0;
        for (a, many) in held.iter().enumerate().filter(|(_, many)| **many > 0.0) {
            for (b, others) in held[..a].iter().enumerate() {
                worth += all[corner(a, b)] * many * others;
            }
            worth += all[corner(a, a)] * many * (many - 1.0) / 2.0;
        }
        worth
    }

    /// What an instance is worth.
    fn instance(&mut self, instance: usize, leaves: &[u32]) -> f64 {
        let colocation = &self.learned.colocation;
        let threads = &colocation.thread_kinds.instances()[instance].threads;
        let mut worth = 0.0;
        let levels = self.levels.iter().filter(|level| !level.own.is_empty());
        if threads.len() > FEW {
            for WeighedLevel { domains, own, .. } in levels {
                let held = &mut self.nothing_held;
                colocation.pairs(threads, domains, leaves, held, |a, b, pairs| {
                    worth += own[corner(a, b)] * pairs;
                });
            }
        } else {
            for (index, &a) in threads.iter().enumerate() {
                for &b in &threads[..index] {
                    let kinds = [a, b].map(|thread| colocation.thread_kinds.kind(thread));
                    for WeighedLevel { domains, own, .. } in levels.clone() {
                        if domains[leaves[a] as usize] == domains[leaves[b] as usize] {
                            worth += own[corner(kinds[0], kinds[1])];
                        }
                    }
                }
            }
        }
        if !self.sorts.is_empty() {
            for &thread in threads {
                worth += self.sorts[colocation.sort(thread, leaves)];
            }
        }
        worth
    }

    fn performance(&self) -> f64 {
        let all = self.domains.iter().chain(&self.instances).sum::<f64>();
        // Far outside of what was learned from, a prediction stays a number.
        (self.learned.ridge.intercept + all).clamp(-600.0, 600.0).exp()
    }
}

impl PredictedWalk for ColocationWalk<'_> {
    fn step(&mut self, leaves: &[u32], change: Change) -> f64 {
        let Change { thread, other, from, to } = change;
        self.domains_before.clear();
        self.instances_before.clear();
        self.change = Some(change);
        for (thread, from, to) in [(Some(thread), from, to), (other, to, from)] {
            let Some(thread) = thread else { continue };
            self.count(thread, from, -1.0);
            self.count(thread, to, 1.0);
        }
        for level in 0..self.levels.len() {
            let WeighedLevel { domains, first, .. } = &self.levels[level];
            let (domains, first) = (*domains, *first);
            let [left, joined] = [from, to].map(|leaf| domains[leaf as usize]);
            for domain in [left, joined].into_iter().filter(|_| left != joined) {
                let worth = self.worth(level, domain);
                let before = std::mem::replace(&mut self.domains[first + domain], worth);
                self.domains_before.push((first + domain, before));
            }
        }
        let moved = self.instance_of[thread];
        let other = other.map(|other| self.instance_of[other]).filter(|other| *other != moved);
        for instance in [Some(moved), other].into_iter().flatten() {
            let worth = self.instance(instance, leaves);
            let before = std::mem::replace(&mut self.instances[instance], worth);
            self.instances_before.push((instance, before));
        }
        self.performance()
    }

    fn back(&mut self) {
        if let Some(Change { thread, other, from, to }) = self.change.take() {
            for (thread, from, to) in [(Some(thread), to, from), (other, from, to)] {
                let Some(thread) = thread else { continue };
                self.count(thread, from, -1.0);
                self.count(thread, to, 1.0);
            }
        }
        self.domains_before.drain(..).for_each(|(domain, before)| self.domains[domain] = before);
        let before = self.instances_before.drain(..);
        before.for_each(|(instance, before)| self.instances[instance] = before);
    }
}

impl Predictor for Learned {
    fn predict(&self, leaves: &[u32]) -> f64 {
        ColocationWalk::new(self, leaves).performance()
    }

    fn walk<'a>(&'a self, leaves: &[u32]) -> Box<dyn PredictedWalk + 'a> {
        Box::new(ColocationWalk::new(self, leaves))
    }
}

/// The place of a pair of kinds in a triangle.
fn corner(a: usize, b: usize) -> usize {
    let (more, less) = (a.max(b), a.min(b));
    more * (more + 1) / 2 + less
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchangeable_threads::tests::workload;
    use crate::predictor::tests::walks_as_it_predicts;
    use pinwise_topology::{Alike, Assignment, CpuSet, Machine, PerContext, Random, Space};

    fn tree(shape: &str) -> SharingTree {
        SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure)
    }

    #[test]
    fn counts_are_the_same_for_all_that_perform_the_same() {
        let tree = tree("2x2x2");
        let colocation = Colocation::new(&ThreadKinds::new(&workload("RP RP")), &tree);
        let space = Space::new(tree, 4, PerContext::Any).unwrap();
        let mut random = Random::new(3);
        for _ in 0..200 {
            let some = space.sample(&mut random);
            // The same seen from the other end of the machine.
            let mirrored: Vec<u32> = some.leaves().iter().map(|leaf| 7 - leaf).collect();
            assert_eq!(colocation.count(some.leaves()), colocation.count(&mirrored));
        }
        // Both R are on context 0, both P on context 2. Pairs by level (context, core, package),
        // all and of one instance.
        let counts = colocation.count(&[0, 2, 0, 2]);
        // Kinds are P and R: PP, RP, RR. Packages are 4 contexts wide, levels come outermost first
        // after the contexts.
        assert_eq!(counts[..6], [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(counts[6..12], [1.0, 4.0, 1.0, 0.0, 2.0, 0.0]);
        assert_eq!(counts[12..], [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn a_walk_predicts_what_a_prediction_is() {
        // With contexts of two sorts, too.
        let some = CpuSet::parse_list("0-4,6").unwrap();
        let machine = Machine::from_shape("2x4").unwrap();
        for tree in [tree("2x2x2"), SharingTree::over(&machine, &some, Alike::ByStructure)] {
            let colocation = Colocation::new(&ThreadKinds::new(&workload("RPT RPT")), &tree);
            let space = Space::new(tree, 6, PerContext::AtMost(2)).unwrap();
            let mut random = Random::new(3);
            let drawn: Vec<_> = (0..60).map(|_| space.sample(&mut random)).collect();
            let law = |leaves: &[u32]| 10.0 + f64::from(leaves[0] + 2 * leaves[4]);
            let rows = drawn.iter().map(|drawn| (drawn.leaves(), law(drawn.leaves())));
            walks_as_it_predicts(&colocation.learn(rows).unwrap(), &space, &mut random);
        }
    }

    #[test]
    fn large_instances_are_worth_what_their_counts_are() {
        // One instance, whose pairs are all pairs, and two that are counted.
        for threads in ["RRRPPPTTTRPT", "RRRRRPPPPP RRRRRPPPPP"] {
            let tree = tree("2x2x2");
            let colocation = Colocation::new(&ThreadKinds::new(&workload(threads)), &tree);
            let count = colocation.thread_kinds.threads();
            let space = Space::new(tree, count, PerContext::Any).unwrap();
            let mut random = Random::new(3);
            let drawn: Vec<_> = (0..80).map(|_| space.sample(&mut random)).collect();
            let law = |leaves: &[u32]| 10.0 + f64::from(leaves[0] + 2 * leaves[4]);
            let rows = drawn.iter().map(|drawn| (drawn.leaves(), law(drawn.leaves())));
            let learned = colocation.learn(rows).unwrap();
            for drawn in &drawn {
                let counts = colocation.count(drawn.leaves());
                let worth = counts.iter().zip(&learned.ridge.weights).map(|(n, each)| n * each);
                let direct = (learned.ridge.intercept + worth.sum::<f64>()).exp();
                let walked = learned.predict(drawn.leaves());
                assert!((walked / direct - 1.0).abs() < 1e-9, "{threads}: {walked} {direct}");
            }
            walks_as_it_predicts(&learned, &space, &mut random);
        }
    }

    #[test]
    fn a_law_of_the_counts_is_learned_from_random_runs() {
        let tree = tree("4x2x2");
        let thread_kinds = ThreadKinds::new(&workload("RPT RPT"));
        let colocation = Colocation::new(&thread_kinds, &tree);
        let space = Space::new(tree, 6, PerContext::AtMost(1)).unwrap();
        let mut random = Random::new(4);
        let law = |leaves: &[u32]| {
            let core = |thread: usize| leaves[thread] / 2;
            let clashes =
                f64::from(u8::from(core(0) == core(3))) + f64::from(u8::from(core(1) == core(4)));
            100.0 * (-0.3 * clashes + 0.1 * f64::from(u8::from(core(0) == core(1)))).exp()
        };
        let drawn: Vec<Assignment> = (0..400).map(|_| space.sample(&mut random)).collect();
        let (learn, held_out) = drawn.split_at(300);
        let learned = colocation
            .learn(learn.iter().map(|drawn| (drawn.leaves(), law(drawn.leaves()))))
            .unwrap();
        let worst = held_out
            .iter()
            .map(|drawn| (learned.predict(drawn.leaves()) / law(drawn.leaves()) - 1.0).abs());
        // R with P of the same instance counts for either instance. These are the only assignments
        // that it cannot distinguish.
        assert!(worst.fold(0.0, f64::max) < 0.12, "error {}", learned.error());
        assert!(learned.error() < 0.05);
        assert!(colocation.learn([(drawn[0].leaves(), 1.0)]).is_none());
        for drawn in held_out {
            let counts = colocation.count(drawn.leaves());
            let sum: f64 = counts
                .iter()
                .zip(&learned.ridge.weights)
                .map(|(count, weight)| count * weight)
                .sum();
            assert!(
                (learned.predict(drawn.leaves()) / (learned.ridge.intercept + sum).exp() - 1.0)
                    .abs()
                    < 1e-9
            );
        }
    }
}
