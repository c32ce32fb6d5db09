//! The base time table: how one instance performs alone, for every way of placing its threads.
//!
//! blackbox-scheduler.txt, section 3.1.1, "Benefit from data and instructions sharing". With
//! nothing else on the machine, threads of one instance that share a core gain or lose by it. There
//! is one entry per different assignment of the instance. On the UltraSPARC T2, 3 threads have 11,
//! 4 have 49, and 6 have 1,526. Threads of an instance may have one role. Then assignments that
//! differ by an exchange of them perform the same, and are one experiment.

use crate::learned::levels::context_sorts;
use crate::tables::base_forecast::BaseForecast;
use crate::{CoreLocal, Learned, ThreadKinds};
use num_bigint::BigUint;
use pinwise_topology::{Assignment, PerContext, Random, SharingTree, Space, SpaceError};
use std::collections::BTreeMap;

/// Most assignments that are listed. An application of eight threads has 74,376 on the UltraSPARC
/// T2. Nobody measures more: at 2 s each, these take two days.
const MOST_LISTED: u32 = 100_000;

/// Most experiments of a table that is not listed: a sample.
pub(crate) const SAMPLED: usize = 300;

/// The assignments of one instance of one application, alone.
#[derive(Clone, Debug)]
pub struct BaseSpace {
    space: Space,
    /// The kind of each thread, sorted.
    roster: Vec<usize>,
    /// Whether no two threads are of one kind.
    distinct: bool,
    /// By leaf: the domains around it, outermost first, each as its first leaf; then the leaf.
    paths: Vec<Vec<usize>>,
    /// What sort of context each leaf is.
    sorts: Vec<usize>,
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
        let path = |leaf: u32| {
            let around = tree.around(leaf).into_iter().rev();
            let domains = around.map(|(_, leaves)| leaves.start as usize);
            domains.chain([leaf as usize]).collect()
        };
        Ok(Self {
            space,
            distinct: roster.windows(2).all(|two| two[0] != two[1]),
            roster,
            paths: (0..tree.leaves().len() as u32).map(path).collect(),
            sorts: context_sorts(tree),
        })
    }

    /// How many assignments differ if every thread is distinct: the paper's number.
    pub fn count(&self) -> BigUint {
        self.space.count()
    }

    /// Whether [`BaseSpace::experiments`] can be gone through: with every thread distinct, there
    /// are no more than 100,000 assignments.
    pub fn is_listed(&self) -> bool {
        self.count() <= BigUint::from(MOST_LISTED)
    }

    /// How many experiments fill the table: all, or the most of a sample.
    pub fn experiment_count(&self) -> usize {
        if self.is_listed() { self.experiments().count() } else { SAMPLED }
    }

    /// One assignment for each experiment: one of those that differ only by exchanges of
    /// interchangeable threads. Threads are in the order of [`crate::Instance::threads`].
    pub fn experiments(&self) -> impl Iterator<Item = Assignment> + '_ {
        self.space.classes().filter(|class| self.distinct || self.name(class) == *class)
    }

    /// What the table calls an assignment. All that differ only by swaps of alike domains and
    /// exchanges of interchangeable threads have one name.
    pub fn name(&self, assignment: &Assignment) -> Assignment {
        if self.distinct {
            return self.space.canonical(assignment);
        }
        let mut threads = self.by_leaf(assignment.leaves());
        self.arrange(0, &mut threads);
        // Threads of one kind are numbered as they now come.
        threads.sort_by_key(|(_, kind)| *kind);
        let leaves = threads.into_iter().map(|(leaf, _)| leaf).collect();
        self.space.canonical(&Assignment::new(leaves))
    }

    /// The leaf and kind of each thread, by leaf.
    fn by_leaf(&self, leaves: &[u32]) -> Vec<(u32, usize)> {
        let mut threads: Vec<(u32, usize)> =
            leaves.iter().copied().zip(self.roster.iter().copied()).collect();
        threads.sort_unstable();
        threads
    }

    /// Whether two leaves are in one domain at `depth`.
    fn together(&self, depth: usize, a: u32, b: u32) -> bool {
        self.paths[a as usize].get(depth) == self.paths[b as usize].get(depth)
    }

    /// Puts threads that share all domains above `depth` in an order that swaps of alike domains do
    /// not change: domains by what they hold.
    fn arrange(&self, depth: usize, threads: &mut [(u32, usize)]) {
        let parts = threads.chunk_by(|a, b| self.together(depth, a.0, b.0));
        let mut parts: Vec<Vec<(u32, usize)>> = parts.map(<[_]>::to_vec).collect();
        for part in &mut parts {
            if self.paths[part[0].0 as usize].len() > depth + 1 {
                self.arrange(depth + 1, part);
            }
        }
        parts.sort_by_cached_key(|part| self.shape_of_part(depth, part));
        threads.copy_from_slice(&parts.concat());
    }

    /// A number that assignments of one name have in common, and no others but by a chance of
    /// 2^-64. It takes less time than the name.
    pub(crate) fn shape(&self, leaves: &[u32]) -> u64 {
        self.shape_within(0, &self.by_leaf(leaves))
    }

    /// The shape of threads that share all domains above `depth`. A sum does not tell in which
    /// order they come.
    fn shape_within(&self, depth: usize, threads: &[(u32, usize)]) -> u64 {
        let parts = threads.chunk_by(|a, b| self.together(depth, a.0, b.0));
        parts.fold(depth as u64, |sum, part| {
            sum.wrapping_add(mixed(self.shape_of_part(depth, part)))
        })
    }

    /// The shape of threads in one domain at `depth`.
    fn shape_of_part(&self, depth: usize, part: &[(u32, usize)]) -> u64 {
        let leaf = part[0].0 as usize;
        if self.paths[leaf].len() > depth + 1 {
            return self.shape_within(depth + 1, part);
        }
        let kinds = part.iter().map(|(_, kind)| mixed(1 + *kind as u64));
        kinds.fold(self.sorts[leaf] as u64, u64::wrapping_add)
    }

    /// An assignment drawn by chance, by its name. How often a thread goes next to the last is
    /// drawn for each anew: some draws are spread over the machine, others crammed.
    pub fn draw(&self, random: &mut Random) -> Assignment {
        let tree = self.space.tree();
        let capacity = match self.space.per_context() {
            PerContext::AtMost(most) => most,
            PerContext::Any => self.roster.len(),
        };
        let closeness = random.unit();
        let mut room = vec![capacity; tree.leaves().len()];
        let mut order: Vec<usize> = (0..self.roster.len()).collect();
        random.shuffle(&mut order);
        let mut leaves = vec![0; self.roster.len()];
        for (placed, &thread) in order.iter().enumerate() {
            let beside = order[..placed].last().filter(|_| random.unit() < closeness);
            let domains =
                beside.map(|last| tree.around(leaves[*last])).unwrap_or_default().into_iter();
            let everywhere = 0..room.len() as u32;
            let free: Option<Vec<u32>> = domains
                .map(|(_, leaves)| leaves)
                .chain([everywhere])
                .map(|leaves| leaves.filter(|leaf| room[*leaf as usize] > 0).collect::<Vec<u32>>())
                .find(|free| !free.is_empty());
            // A space has room for every thread.
            let Some(free) = free else { continue };
            leaves[thread] = free[random.below(free.len() as u64) as usize];
            room[leaves[thread] as usize] -= 1;
        }
        self.name(&Assignment::new(leaves))
    }
}

/// Bits mixed so that each depends on all. See Steele, Lea and Flood, Fast Splittable Pseudorandom
/// Number Generators, OOPSLA 2014, figure 14.
fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Performance of one instance alone, by assignment.
#[derive(Clone, Debug)]
pub struct BaseTable {
    space: BaseSpace,
    values: BTreeMap<Assignment, f64>,
    best: f64,
    /// For what was not measured, if only a sample was.
    forecast: Option<BaseForecast>,
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
        Self { space, values, best, forecast: None }
    }

    /// The same with what `learned` forecasts, times `factor`, for what was not measured. No
    /// forecast is above `factor` times the best measured.
    pub(crate) fn forecast(self, learned: Learned, factor: f64) -> Self {
        let measured =
            self.values.iter().map(|(name, value)| (self.space.shape(name.leaves()), *value));
        let forecast = BaseForecast::new(learned, factor, measured.collect());
        Self { forecast: Some(forecast), ..self }
    }

    /// The shape of an assignment and its performance, if this is a sample.
    pub(crate) fn sampled(&self, leaves: &[u32]) -> Option<(u64, Option<f64>)> {
        let forecast = self.forecast.as_ref()?;
        let shape = self.space.shape(leaves);
        Some((shape, forecast.performance(shape, leaves, self.best)))
    }

    /// Whether an assignment that is not among the entries may have a performance.
    pub(crate) fn is_sampled(&self) -> bool {
        self.forecast.is_some()
    }

    /// The table of the assignments over the most core-local domains.
    pub(crate) fn spread(&self, local: &CoreLocal) -> Self {
        let domains = |name: &Assignment| local.domains_of(name.leaves()).len();
        let most = self.entries().map(|(name, _)| domains(name)).max().unwrap_or_default();
        let kept = self.values.iter().filter(|(name, _)| domains(name) == most);
        let kept = kept.map(|(name, value)| (name.clone(), *value)).collect();
        let forecast = self.forecast.clone().map(|forecast| forecast.within(local.clone(), most));
        Self { forecast, ..Self::of(self.space.clone(), kept) }
    }

    /// The performance of the instance alone on these contexts, threads in the order of
    /// [`crate::Instance::threads`]. `None` for an assignment that the space does not have.
    pub fn performance(&self, assignment: &Assignment) -> Option<f64> {
        match self.sampled(assignment.leaves()) {
            Some((_, performance)) => performance,
            None => self.named(&self.name(assignment)),
        }
    }

    /// What the table calls an assignment.
    pub(crate) fn name(&self, assignment: &Assignment) -> Assignment {
        self.space.name(assignment)
    }

    /// All entries that were measured: threads in the order of [`crate::Instance::threads`], and
    /// the performance.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Assignment, f64)> {
        self.values.iter().map(|(name, value)| (name, *value)).filter(|(_, value)| !value.is_nan())
    }

    /// The performance measured, by what the table calls an assignment.
    pub(crate) fn named(&self, name: &Assignment) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// The best it can do alone, as far as it was measured. No entry or forecast is above it.
    pub fn best(&self) -> f64 {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchangeable_threads::tests::workload;
    use pinwise_topology::{Alike, Machine, Random};
    use std::collections::BTreeSet;
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

    #[test]
    fn swaps_of_alike_domains_and_threads_keep_the_name() {
        let many = space("RPPPPPPPPPPT");
        assert!(!many.is_listed() && many.experiment_count() == SAMPLED);
        let mut random = Random::new(3);
        let mut names = BTreeSet::new();
        for _ in 0..200 {
            let some = many.draw(&mut random);
            assert_eq!(many.name(&some), some, "what is drawn is named");
            names.insert(some.clone());
            let mut cores: Vec<u32> = (0..8).collect();
            random.shuffle(&mut cores);
            let (pipe, strand) = (random.below(2) as u32, random.below(4) as u32);
            let swapped =
                |leaf: &u32| cores[*leaf as usize / 8] * 8 + ((leaf % 8) ^ (4 * pipe + strand));
            let mut leaves: Vec<u32> = some.leaves().iter().map(swapped).collect();
            // Kinds are sorted by role: the P come first.
            random.shuffle(&mut leaves[..10]);
            assert_eq!(many.name(&Assignment::new(leaves.clone())), some);
            assert_eq!(many.shape(&leaves), many.shape(some.leaves()));
        }
        let shapes: BTreeSet<u64> = names.iter().map(|name| many.shape(name.leaves())).collect();
        assert!(names.len() > 150 && shapes.len() == names.len(), "{}", names.len());
        // Some are crammed, some spread.
        let cores = |name: &Assignment| {
            name.leaves().iter().map(|leaf| leaf / 8).collect::<BTreeSet<u32>>().len()
        };
        let used: BTreeSet<usize> = names.iter().map(cores).collect();
        assert_eq!(used, (2..=8).collect());
    }
}
