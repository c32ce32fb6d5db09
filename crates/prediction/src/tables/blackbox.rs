//! BlackBox: the predicted performance of any assignment, from the performance of instances alone
//! and the effect of co-runners on them.
//!
//! blackbox-scheduler.txt, section 3.1.2. An instance performs as it would alone on its contexts,
//! divided by the largest slowdown of its threads. The base time table has the former, the slowdown
//! table the latter. An assignment performs as the sum of its instances.

use crate::{BaseTable, CoreLocal, Predictor, SlowdownTable, ThreadKinds};
use pinwise_topology::Assignment;

/// The tables, and the workload they predict.
#[derive(Clone, Debug)]
pub struct BlackBox {
    thread_kinds: ThreadKinds,
    local: CoreLocal,
    /// By application.
    base: Vec<BaseTable>,
    slowdown: SlowdownTable,
}

impl BlackBox {
    /// A predictor of the workload `thread_kinds` from its tables: `base` by application, both over
    /// the domains of `local`.
    pub fn new(
        thread_kinds: ThreadKinds,
        local: CoreLocal,
        base: Vec<BaseTable>,
        slowdown: SlowdownTable,
    ) -> Self {
        Self { thread_kinds, local, base, slowdown }
    }

    /// The kinds of the threads.
    pub fn thread_kinds(&self) -> &ThreadKinds {
        &self.thread_kinds
    }

    /// Within what threads interfere.
    pub fn local(&self) -> &CoreLocal {
        &self.local
    }

    /// The base time table of an application.
    pub fn base(&self, application: usize) -> &BaseTable {
        &self.base[application]
    }

    /// Whether a base time table is a sample, with forecasts for the rest.
    pub(crate) fn is_sampled(&self) -> bool {
        self.base.iter().any(BaseTable::is_sampled)
    }

    /// The slowdown table.
    pub fn slowdown(&self) -> &SlowdownTable {
        &self.slowdown
    }

    /// The predicted performance of the threads on these leaves; `None` if a table lacks an
    /// entry it needs.
    ///
    /// # Panics
    /// If there are fewer leaves than threads, a leaf is absent, or a context holds too many
    /// threads.
    pub fn performance(&self, leaves: &[u32]) -> Option<f64> {
        let around = self.layouts_around(leaves);
        let mut sum = 0.0;
        for instance in self.thread_kinds.instances() {
            let placed = instance.threads.iter().map(|&thread| leaves[thread]).collect();
            let base = self.base[instance.application].performance(&Assignment::new(placed))?;
            let mut kept = f64::INFINITY;
            for &thread in &instance.threads {
                kept =
                    kept.min(self.slowdown.share(self.thread_kinds.kind(thread), around[thread])?);
            }
            sum += base * kept;
        }
        Some(sum)
    }

    /// The layout around every thread.
    pub(crate) fn layouts_around(&self, leaves: &[u32]) -> Vec<usize> {
        let per_context = self.local.per_context();
        let mut held = vec![0; self.local.contexts() as usize * per_context];
        let mut slot_of = vec![0; self.thread_kinds.threads()];
        for (thread, slot) in slot_of.iter_mut().enumerate() {
            let first = leaves[thread] as usize * per_context;
            let free = held[first..first + per_context].iter().position(|held| *held == 0);
            *slot = first + free.expect("a context holds no more threads than the space allows");
            held[*slot] = 1 + self.thread_kinds.kind(thread);
        }
        let mut around = vec![0; held.len()];
        for domain in 0..self.local.domains() {
            let slots = self.local.slots(domain);
            let held = &held[slots.clone()];
            if held.iter().any(|held| *held > 0) {
                self.slowdown.layouts().around(self.local.build(domain), held, &mut around[slots]);
            }
        }
        slot_of.iter().map(|slot| around[*slot]).collect()
    }
}

impl Predictor for BlackBox {
    /// An assignment that the tables know nothing of is predicted as 0, so that it is not chosen.
    fn predict(&self, leaves: &[u32]) -> f64 {
        self.performance(leaves).unwrap_or(0.0)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::interchangeable_threads::tests::workload;
    use crate::tables::core_local::tests::hybrid;
    use crate::{BaseSpace, Experiment};
    use pinwise_topology::{Alike, DomainKind, Machine, PerContext, Random, SharingTree, Space};
    use std::convert::Infallible;

    /// A processor that behaves exactly as BlackBox assumes. An instance loses by threads on other
    /// contexts of the core, and nothing by other cores. The loss depends on the kind of thread and
    /// of core, and on whether they share a pipe. Threads of an instance gain by being close and on
    /// the first kind of core.
    pub(crate) struct Obedient {
        pub(crate) thread_kinds: ThreadKinds,
        pub(crate) tree: SharingTree,
        pub(crate) level: DomainKind,
        pub(crate) local: CoreLocal,
        /// For each leaf, the first leaf of its pipe.
        pipe: Vec<u32>,
    }

    impl Obedient {
        pub(crate) fn new(shape: &str, level: DomainKind, instances: &str) -> Self {
            let tree = SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure);
            Self::on(tree, level, instances)
        }

        pub(crate) fn on(tree: SharingTree, level: DomainKind, instances: &str) -> Self {
            let local = CoreLocal::new(&tree, level, 1).unwrap();
            let pipe = |leaf: u32| {
                let domain = local.domain_of(leaf);
                let inner = local.builds()[local.build(domain)]
                    .arities()
                    .last()
                    .map_or(1, |slots| *slots as u32);
                let first = local.leaves(domain).start;
                first + (leaf - first) / inner * inner
            };
            let pipe = (0..tree.leaves().len() as u32).map(pipe).collect();
            Self { thread_kinds: ThreadKinds::new(&workload(instances)), tree, level, local, pipe }
        }

        /// For every instance: kinds and leaves of its threads.
        fn performances(&self, instances: &[Vec<(usize, u32)>]) -> Vec<f64> {
            let everyone: Vec<(usize, u32)> = instances.concat();
            let core = |leaf: &u32| self.local.domain_of(*leaf);
            let pipe = |leaf: &u32| self.pipe[*leaf as usize];
            // 0 for the kind of the first core, 1 for the next.
            let slow = |leaf: &u32| self.tree.core_kind(*leaf) as f64;
            let performance = |own: &Vec<(usize, u32)>| {
                let worst = own.iter().map(|(kind, leaf)| {
                    let others = everyone
                        .iter()
                        .filter(|(_, other)| other != leaf && core(other) == core(leaf));
                    let burden = others.map(|(other, place)| {
                        let near = if pipe(place) == pipe(leaf) { 1.0 } else { 0.3 };
                        (1.0 + slow(leaf))
                            * near
                            * (0.1 + 0.05 * (*other as f64) + 0.02 * (kind * other) as f64)
                    });
                    let burden: f64 = burden.sum();
                    1.0 + burden * burden
                });
                let apart = own.iter().flat_map(|(_, a)| own.iter().map(move |(_, b)| (a, b)));
                let far = apart.filter(|(a, b)| core(a) != core(b)).count() as f64;
                let close =
                    own.iter().zip(&own[1..]).filter(|((_, a), (_, b))| pipe(a) == pipe(b)).count()
                        as f64;
                // What distance costs is bounded, however many threads there are.
                let far = far * 6.0 / (own.len() * (own.len() - 1)).max(6) as f64;
                let slow: f64 = own.iter().map(|(_, leaf)| slow(leaf)).sum();
                (10.0 - 0.3 * far - 0.1 * close - 0.7 * slow) / worst.fold(1.0, f64::max)
            };
            instances.iter().map(performance).collect()
        }

        pub(crate) fn truth(&self, leaves: &[u32]) -> f64 {
            let own = |instance: &crate::Instance| {
                instance
                    .threads
                    .iter()
                    .map(|&thread| (self.thread_kinds.kind(thread), leaves[thread]))
                    .collect()
            };
            self.performances(&self.thread_kinds.instances().iter().map(own).collect::<Vec<_>>())
                .iter()
                .sum()
        }

        pub(crate) fn experiment(&self, experiment: &Experiment) -> f64 {
            let placed = |placed: &crate::PlacedInstance| {
                self.thread_kinds
                    .roster(placed.application)
                    .into_iter()
                    .zip(placed.leaves.iter().copied())
                    .collect()
            };
            self.performances(&experiment.instances.iter().map(placed).collect::<Vec<_>>())[0]
        }

        /// Profiles it. The performance alone always includes what the instance's threads do to
        /// each other. So the base table does too, as on any machine.
        pub(crate) fn profile(&self) -> BlackBox {
            let local = self.local.clone();
            let mut base = Vec::new();
            for application in 0..self.thread_kinds.applications() {
                let space = BaseSpace::new(&self.tree, &self.thread_kinds, application, 1).unwrap();
                let alone = |assignment: &Assignment| {
                    let leaves = assignment.leaves().to_vec();
                    let instances = vec![crate::PlacedInstance { application, leaves }];
                    Ok::<f64, Infallible>(self.experiment(&Experiment { instances }))
                };
                base.push(BaseTable::fill(space, alone).unwrap());
            }
            let mut slowdown = SlowdownTable::new(&self.thread_kinds, &local).unwrap();
            slowdown
                .fill(&self.thread_kinds, &local, |experiment| {
                    Ok::<f64, Infallible>(self.experiment(experiment))
                })
                .unwrap();
            BlackBox::new(self.thread_kinds.clone(), local, base, slowdown)
        }

        pub(crate) fn space(&self) -> Space {
            Space::new(self.tree.clone(), self.thread_kinds.threads(), PerContext::AtMost(1))
                .unwrap()
        }
    }

    /// Whether no core holds two threads of one instance. Then the base table is free of their
    /// effect on each other, and the prediction has to be exact.
    fn apart(obedient: &Obedient, leaves: &[u32]) -> bool {
        obedient.thread_kinds.instances().iter().all(|instance| {
            let mut cores: Vec<usize> = instance
                .threads
                .iter()
                .map(|&thread| obedient.local.domain_of(leaves[thread]))
                .collect();
            cores.sort_unstable();
            cores.windows(2).all(|pair| pair[0] != pair[1])
        })
    }

    #[test]
    fn a_processor_that_keeps_to_the_model_is_predicted_exactly() {
        let regular = [
            ("8x2x4", DomainKind::Package, "RPT RPT RPT"),
            ("8x2x4", DomainKind::Package, "RPT RPT AB AB"),
            ("4x2", DomainKind::Core, "RW RW RW"),
            ("2x3x2", DomainKind::Core, "RWW RWW"),
        ];
        let regular = regular.map(|(shape, level, instances)| {
            (shape, instances, Obedient::new(shape, level, instances))
        });
        let hybrid = ["RPT RPT", "RW RW AB"].map(|instances| {
            ("hybrid", instances, Obedient::on(hybrid(4, 2), DomainKind::L2, instances))
        });
        for (shape, instances, obedient) in regular.into_iter().chain(hybrid) {
            let blackbox = obedient.profile();
            let (space, mut random, mut exact) = (obedient.space(), Random::new(1), 0);
            for _ in 0..3000 {
                let leaves = space.sample(&mut random);
                let (truth, predicted) = (
                    obedient.truth(leaves.leaves()),
                    blackbox.performance(leaves.leaves()).unwrap(),
                );
                if apart(&obedient, leaves.leaves()) {
                    assert!(
                        (predicted / truth - 1.0).abs() < 1e-12,
                        "{shape} {instances}: {predicted} {truth}"
                    );
                    exact += 1;
                } else {
                    // Co-runners of the same instance count in both tables: the prediction is too
                    // low then, never too high.
                    assert!(predicted <= truth * (1.0 + 1e-12), "{predicted} {truth}");
                }
            }
            assert!(exact > 50, "{shape} {instances}: {exact}");
        }
    }

    #[test]
    fn what_was_not_measured_is_not_predicted() {
        let obedient = Obedient::new("4x2", DomainKind::Core, "RW RW");
        let full = obedient.profile();
        let empty = SlowdownTable::new(full.thread_kinds(), full.local()).unwrap();
        let blackbox =
            BlackBox::new(full.thread_kinds.clone(), full.local.clone(), full.base.clone(), empty);
        assert_eq!(blackbox.performance(&[0, 2, 4, 6]), None);
        assert_eq!(blackbox.predict(&[0, 2, 4, 6]), 0.0);
    }
}
