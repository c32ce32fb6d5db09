//! The experiments that fill the tables, and how many there are.

use crate::{BaseSpace, CoreLocal, Layouts, ThreadKinds};
use num_bigint::BigUint;
use pinwise_measure::{PinnedInstance, Setting};
use pinwise_topology::{SharingTree, SpaceError};

/// Some instances on chosen contexts, with the rest of the machine free. The performance of the
/// first of them is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Experiment {
    /// The watched instance, then those that stress it.
    pub instances: Vec<PlacedInstance>,
}

/// One instance and its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlacedInstance {
    /// Which application of the [`ThreadKinds`].
    pub application: usize,
    /// The leaf of every thread, in the order of [`crate::Instance::threads`].
    pub leaves: Vec<u32>,
}

impl Experiment {
    /// The setting in which a testbed with the workload of `thread_kinds` can measure it.
    pub fn setting(&self, thread_kinds: &ThreadKinds) -> Setting {
        let part = |placed: &PlacedInstance| {
            let instance = thread_kinds
                .instances()
                .iter()
                .position(|instance| instance.application == placed.application)?;
            // From the order of the kinds to that of the workload.
            let threads = thread_kinds.instances()[instance].threads.iter().copied();
            let mut leaves: Vec<(usize, u32)> =
                threads.zip(placed.leaves.iter().copied()).collect();
            leaves.sort_unstable();
            Some(PinnedInstance {
                instance,
                leaves: leaves.into_iter().map(|(_, leaf)| leaf).collect(),
            })
        };
        Setting::Profile(self.instances.iter().filter_map(part).collect())
    }
}

/// How many experiments a profile takes: as published, and what is needed of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExperimentCount {
    /// Base time table, if every thread of an instance is distinct.
    pub base_published: BigUint,
    /// Slowdown table, if every thread of an instance is distinct.
    pub slowdown_published: BigUint,
    /// Base time tables with threads of one role interchangeable, of applications that are measured
    /// whole.
    pub base: usize,
    /// The same of the others: the most that a sample has.
    pub sample: usize,
    /// Slowdown table with threads of one role interchangeable, and only layouts that the workload
    /// has threads for. `None` if there are too many to enumerate.
    pub slowdown: Option<usize>,
}

impl ExperimentCount {
    /// For `thread_kinds` on `tree`, with interference taken within the domains of `local`.
    ///
    /// # Errors
    /// An instance that does not fit the machine.
    pub fn new(
        tree: &SharingTree,
        thread_kinds: &ThreadKinds,
        local: &CoreLocal,
    ) -> Result<Self, SpaceError> {
        let (mut base_published, mut base, mut sample, mut told_apart) = (BigUint::ZERO, 0, 0, 0);
        for application in 0..thread_kinds.applications() {
            let space = BaseSpace::new(tree, thread_kinds, application, local.per_context())?;
            base_published += space.count();
            let part = if space.is_listed() { &mut base } else { &mut sample };
            *part += space.experiment_count();
            told_apart += thread_kinds.roster(application).len();
        }
        let layouts = Layouts::new(local, thread_kinds.kinds().len());
        let around: BigUint =
            local.builds().iter().map(|build| layout_count(build.arities(), told_apart)).sum();
        Ok(Self {
            base_published,
            slowdown_published: around * told_apart,
            base,
            sample,
            slowdown: layouts.map(|layouts| reachable(thread_kinds, &layouts).len()),
        })
    }
}

/// The layouts around one thread, for any number of kinds: see [`Layouts`].
fn layout_count(arities: &[usize], kinds: usize) -> BigUint {
    let multisets = |contents: &BigUint, size: usize| {
        let ways =
            (1..=size).fold(BigUint::from(1u32), |ways, chosen| ways * (contents + (chosen - 1)));
        ways / (1..=size).fold(BigUint::from(1u32), |product, factor| product * factor)
    };
    let (mut contents, mut count) = (BigUint::from(kinds + 1), BigUint::from(1u32));
    for &arity in arities.iter().rev() {
        count *= multisets(&contents, arity - 1);
        contents = multisets(&contents, arity);
    }
    count
}

/// The entries of a slowdown table, kind and layout, that the workload has threads for. A thread's
/// co-runners are the other threads.
pub(crate) fn reachable(thread_kinds: &ThreadKinds, layouts: &Layouts) -> Vec<(usize, usize)> {
    let counts = thread_kinds.counts();
    let mut entries = Vec::new();
    for layout in 0..layouts.count() {
        let mut used = vec![0; counts.len()];
        for held in layouts.example(layout).into_iter().filter(|held| *held > 0) {
            used[held - 1] += 1;
        }
        let enough = |target: usize| {
            (0..counts.len()).all(|kind| used[kind] + usize::from(kind == target) <= counts[kind])
        };
        entries.extend(
            (0..counts.len()).filter(|target| enough(*target)).map(|target| (target, layout)),
        );
    }
    entries.sort_unstable();
    entries
}

/// The experiment for one entry of the slowdown table. A thread of `kind` is in the first domain of
/// its build with `layout` around it. The rest of its instance is alone, each thread in another
/// domain, as far as there are domains. Stressing threads come as whole instances; those not in the
/// layout are put where they disturb least. Among equally empty domains, those built like the first
/// come first. The slowdown is that of threads on one kind of cores, as long as there are some.
/// `None` if they do not fit on the machine.
pub(crate) fn stress(
    thread_kinds: &ThreadKinds,
    local: &CoreLocal,
    layouts: &Layouts,
    kind: usize,
    layout: usize,
) -> Option<Experiment> {
    let build = layouts.build(layout);
    let home = (0..local.domains()).find(|domain| local.build(*domain) == build)?;
    let mut floor = Floor {
        local,
        build,
        load: vec![0; local.domains()],
        watched: vec![false; local.domains()],
    };
    floor.load[home] = local.slots(home).len();
    floor.watched[home] = true;
    let context = |slot: usize| local.context(local.slots(home).start + slot).0;
    let target = thread_kinds.kinds().get(kind)?.application;
    let mut waiting: Vec<Vec<u32>> = vec![Vec::new(); thread_kinds.kinds().len()];
    for (slot, held) in
        layouts.example(layout).into_iter().enumerate().filter(|(_, held)| *held > 0)
    {
        waiting[held - 1].push(context(slot));
    }
    let mut targeted = false;
    let mut place = |other: &usize| {
        if *other == kind && !std::mem::replace(&mut targeted, true) {
            return Some(context(0));
        }
        floor.alone()
    };
    let leaves = thread_kinds.roster(target).iter().map(&mut place).collect::<Option<_>>()?;
    let mut instances = vec![PlacedInstance { application: target, leaves }];
    for application in 0..thread_kinds.applications() {
        let roster = thread_kinds.roster(application);
        while roster.iter().any(|kind| !waiting[*kind].is_empty()) {
            let leaves = roster
                .iter()
                .map(|kind| waiting[*kind].pop().or_else(|| floor.aside()))
                .collect::<Option<_>>()?;
            instances.push(PlacedInstance { application, leaves });
        }
    }
    Some(Experiment { instances })
}

/// Which domains have room.
struct Floor<'a> {
    local: &'a CoreLocal,
    /// The build of domains that are taken first, among equally empty ones.
    build: usize,
    load: Vec<usize>,
    /// Holds a thread of the watched instance.
    watched: Vec<bool>,
}

impl Floor<'_> {
    /// A place for a further thread of the watched instance.
    fn alone(&mut self) -> Option<u32> {
        let domain = self.emptiest(|_| true)?;
        self.watched[domain] = true;
        Some(self.take(domain))
    }

    /// A place for a thread that only keeps a stressing one going. It is not next to the watched
    /// instance while there is another.
    fn aside(&mut self) -> Option<u32> {
        let domain = self.emptiest(|watched| !watched).or_else(|| self.emptiest(|_| true))?;
        Some(self.take(domain))
    }

    fn emptiest(&self, fits: impl Fn(bool) -> bool) -> Option<usize> {
        let free = |domain: &usize| {
            self.load[*domain] < self.local.slots(*domain).len() && fits(self.watched[*domain])
        };
        let order = |domain: &usize| (self.load[*domain], self.local.build(*domain) != self.build);
        (0..self.load.len()).filter(free).min_by_key(order)
    }

    /// The next context of a domain, spread over its parts: neighbours come last.
    fn take(&mut self, domain: usize) -> u32 {
        let build = &self.local.builds()[self.local.build(domain)];
        let size = build.size();
        let turn = self.load[domain] % size;
        self.load[domain] += 1;
        // Contexts in the order that alternates between the outermost parts.
        let parts = build
            .arities()
            .first()
            .copied()
            .filter(|parts| size.is_multiple_of(*parts))
            .unwrap_or(1);
        let spread = (turn % parts) * (size / parts) + turn / parts;
        self.local.leaves(domain).start + spread as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchangeable_threads::tests::workload;
    use crate::tables::core_local::tests::hybrid;
    use pinwise_topology::{Alike, DomainKind, Machine};
    use std::collections::BTreeSet;

    fn t2() -> SharingTree {
        SharingTree::new(&Machine::model("ultrasparc-t2").unwrap(), Alike::ByStructure)
    }

    fn count(instances: &str) -> ExperimentCount {
        let (tree, thread_kinds) = (t2(), ThreadKinds::new(&workload(instances)));
        ExperimentCount::new(
            &tree,
            &thread_kinds,
            &CoreLocal::new(&tree, DomainKind::Core, 1).unwrap(),
        )
        .unwrap()
    }

    #[test]
    fn the_published_table_is_reproduced() {
        let Some(path) = pinwise_synthetic::published("blackbox_experiments.csv") else { return };
        let text = std::fs::read_to_string(path).unwrap();
        let mut compared = 0;
        for line in
            text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        {
            let fields: Vec<&str> = line.split(',').collect();
            let threads: usize = fields[0].parse().unwrap();
            let count = count(&"ABCDEFGH"[..threads]);
            assert_eq!(count.base_published.to_string(), fields[1], "{line}");
            assert_eq!(count.slowdown_published.to_string(), fields[2], "{line}");
            compared += 1;
        }
        assert_eq!(compared, 3, "{text}");
    }

    #[test]
    fn roles_and_the_threads_there_are_make_fewer() {
        let eight = count(&["RPT"; 8].join(" "));
        assert_eq!(
            (eight.base_published.to_string(), eight.slowdown_published.to_string()),
            ("11".into(), "2100".into())
        );
        // 7 other threads fit around the target, and there are 8 of each role: nothing is out of
        // reach.
        assert_eq!((eight.base, eight.slowdown), (11, Some(2100)));
        let two = count("RPT RPT");
        assert!(two.slowdown.unwrap() < 500, "{two:?}");
        let workers = count("RWWT RWWT RWWT RWWT");
        assert_eq!(
            (workers.base_published.to_string(), workers.slowdown_published.to_string()),
            ("49".into(), "9800".into())
        );
        assert!(workers.base < 49 && workers.slowdown.unwrap() < 2100, "{workers:?}");
        // Two applications: base tables add up, the slowdown table is over all their threads.
        let both = count("RPT RPT AB");
        assert_eq!(
            (both.base_published.to_string(), both.slowdown_published.to_string()),
            ("14".into(), "35280".into())
        );
    }

    #[test]
    fn an_experiment_has_the_layout_around_its_target_and_the_rest_elsewhere() {
        let (tree, thread_kinds) = (t2(), ThreadKinds::new(&workload(&["RPT"; 8].join(" "))));
        let local = CoreLocal::new(&tree, DomainKind::Core, 1).unwrap();
        let layouts = Layouts::new(&local, 3).unwrap();
        for (kind, layout) in reachable(&thread_kinds, &layouts) {
            let experiment = stress(&thread_kinds, &local, &layouts, kind, layout).unwrap();
            let mut held = vec![0; 8];
            let mut leaves = BTreeSet::new();
            for (number, instance) in experiment.instances.iter().enumerate() {
                for (thread, &leaf) in instance.leaves.iter().enumerate() {
                    assert!(leaves.insert(leaf), "two threads on one context: {experiment:?}");
                    let is_target = number == 0 && thread == kind;
                    assert!(number > 0 || is_target == (leaf < 8), "{experiment:?}");
                    if leaf < 8 && !is_target {
                        held[leaf as usize] = 1 + thread;
                    }
                }
            }
            let mut around = vec![0; 8];
            layouts.around(0, &held, &mut around);
            assert_eq!(around[0], layout);
            let cores: BTreeSet<u32> =
                experiment.instances[0].leaves.iter().map(|leaf| leaf / 8).collect();
            assert_eq!(cores.len(), 3, "the watched instance is spread over cores: {experiment:?}");
        }
    }

    #[test]
    fn on_unlike_cores_a_thread_is_watched_on_each_kind() {
        let (tree, thread_kinds) = (hybrid(4, 3), ThreadKinds::new(&workload("RPT RPT RPT")));
        let local = CoreLocal::new(&tree, DomainKind::L2, 1).unwrap();
        let layouts = Layouts::new(&local, 3).unwrap();
        let entries = reachable(&thread_kinds, &layouts);
        // The neighbour of the thread on its core is nothing or a kind: 4. The other three contexts
        // of its cluster hold anything but three more of the same kind. There are only two more, so
        // 20 - 1.
        assert_eq!(entries.len(), 3 * (4 + 20 - 1));
        assert_eq!(
            ExperimentCount::new(&tree, &thread_kinds, &local).unwrap().slowdown,
            Some(entries.len())
        );
        for (kind, layout) in entries {
            let experiment = stress(&thread_kinds, &local, &layouts, kind, layout).unwrap();
            let home = local.domain_of(experiment.instances[0].leaves[kind]);
            assert_eq!(local.build(home), layouts.build(layout));
            let mut held = vec![0; local.leaves(home).len()];
            for (number, instance) in experiment.instances.iter().enumerate() {
                for (thread, &leaf) in instance
                    .leaves
                    .iter()
                    .enumerate()
                    .filter(|(_, leaf)| local.domain_of(**leaf) == home)
                {
                    let is_target = number == 0 && thread == kind;
                    assert!(is_target || number > 0, "{experiment:?}");
                    held[(leaf - local.leaves(home).start) as usize] =
                        if is_target { 0 } else { 1 + thread };
                }
            }
            let mut around = vec![0; held.len()];
            layouts.around(local.build(home), &held, &mut around);
            assert_eq!(around[0], layout);
            let rest = experiment.instances[0]
                .leaves
                .iter()
                .map(|leaf| local.build(local.domain_of(*leaf)));
            assert!(
                rest.eq([layouts.build(layout); 3]),
                "there are three domains of each build: {experiment:?}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_no_experiment() {
        let tree = SharingTree::new(&Machine::from_shape("2x2").unwrap(), Alike::ByStructure);
        let thread_kinds = ThreadKinds::new(&workload("RPT RPT"));
        let local = CoreLocal::new(&tree, DomainKind::Core, 1).unwrap();
        let layouts = Layouts::new(&local, 3).unwrap();
        assert!(
            stress(&thread_kinds, &local, &layouts, 0, 1).is_none(),
            "six threads on four contexts"
        );
        assert!(stress(&thread_kinds, &local, &layouts, 0, 0).is_some());
    }
}
