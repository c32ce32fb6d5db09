//! The assignments that BlackBox predicts best, out of all there are, and a bound that none
//! exceeds.

mod climb;
pub(crate) mod incremental;
mod proof;
mod tie_breaking;
mod top_n;

pub(crate) use top_n::TopN;

use climb::climb;
use incremental::Incremental;
use proof::Proof;

use crate::{BlackBox, Predictor};
use pinwise_topology::{Assignment, PerContext, Random, Space};

/// What a search for the best predicted assignments found.
#[derive(Clone, Debug, PartialEq)]
pub struct Optima {
    /// The best found, best first: as many as were asked for, where there are that many. No two of
    /// them read the same entries of the tables for their instances. Of those that do, one is here.
    pub ranked: Vec<Predicted>,
    /// Proven: no assignment is predicted above this.
    pub upper: f64,
    /// Proven: no assignment outside this list is predicted better than the last in it. Assignments
    /// that read the same entries count as one.
    pub complete: bool,
    /// Steps of the local search and nodes of the proof: what it took.
    pub steps: u64,
}

/// An assignment and what it is predicted to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicted {
    /// The assignment, canonical in its space.
    pub assignment: Assignment,
    /// As [`BlackBox::performance`] gives it.
    pub performance: f64,
}

/// How far a search is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProofProgress {
    /// Steps and nodes so far.
    pub steps: u64,
    /// Contents of domains, and parts of them, that the proof has looked at so far. They take
    /// nearly all of its time.
    pub looked: u64,
    /// The best prediction found.
    pub best: f64,
    /// No prediction is above this.
    pub upper: f64,
}

impl Optima {
    /// The best predicted assignment found; `None` if the tables know of none.
    pub fn best(&self) -> Option<&Predicted> {
        self.ranked.first()
    }

    /// The best is at most this share of its performance below the best there is. It is 0 if proven
    /// to be the best.
    pub fn gap(&self) -> f64 {
        self.best().map_or(f64::INFINITY, |best| (self.upper / best.performance - 1.0).max(0.0))
    }

    /// Whether the best is proven to be that, but for rounding.
    pub fn is_exact(&self) -> bool {
        self.gap() < ROUNDING
    }
}

impl BlackBox {
    /// The `count` assignments of `space` predicted best. `go_on` is asked now and then; `false`
    /// ends the search with what was found and proven so far. Without that it ends when all is
    /// proven, or nothing more can be. The same seed gives the same result where `go_on` gives
    /// the same answers.
    ///
    /// # Panics
    /// If the space is of another workload or machine than the tables. Or if a context may hold
    /// more threads than the tables know of.
    pub fn optima(
        &self,
        space: &Space,
        count: usize,
        random: &mut Random,
        go_on: &mut dyn FnMut(&ProofProgress) -> bool,
    ) -> Optima {
        assert_eq!(
            space.threads(),
            self.thread_kinds().threads(),
            "the space of the workload that was profiled"
        );
        let room = PerContext::AtMost(self.local().per_context());
        assert_eq!(space.per_context(), room, "as many threads per context as the tables know of");
        let upper = self.ceiling();
        let mut top = TopN::new(count);
        let mut moving = Incremental::new(self, space.sample(random).leaves());
        let (mut steps, mut going) = (0, true);
        for _ in 0..RESTARTS {
            moving.place(space.sample(random).leaves());
            steps += climb(&mut moving, &mut top, random);
            let progress = ProofProgress { steps, looked: 0, best: top.best(), upper };
            going = go_on(&progress);
            if !going {
                break;
            }
        }
        let mut proof = Proof { upper, complete: false, nodes: 0 };
        // Nothing is proven of what is only forecast, but that it is below the ceiling.
        if going && !self.is_sampled() {
            let mut ask = |progress: &ProofProgress| {
                go_on(&ProofProgress { steps: steps + progress.steps, ..*progress })
            };
            if let Some(found) = proof::prove(self, upper, &mut top, &mut moving, &mut ask) {
                proof = found;
            }
        }
        let predicted = |leaves: Vec<u32>| {
            let assignment = space.canonical(&Assignment::new(leaves));
            Predicted { performance: self.predict(assignment.leaves()), assignment }
        };
        let ranked = top.into_leaves().map(predicted).collect();
        Optima { ranked, upper: proof.upper, complete: proof.complete, steps: steps + proof.nodes }
    }

    /// No assignment can be predicted above this. Every instance then performs as well as it can
    /// alone, with the best share kept.
    fn ceiling(&self) -> f64 {
        let best = |instance: &crate::Instance| {
            let kinds = self.thread_kinds().roster(instance.application);
            let kept =
                kinds.iter().map(|kind| self.slowdown().best(*kind)).fold(f64::INFINITY, f64::min);
            self.base(instance.application).best() * kept
        };
        self.thread_kinds().instances().iter().map(best).sum()
    }
}

/// A gap below this is rounding: sums of the same numbers differ by their order.
const ROUNDING: f64 = 1e-9;
/// Walks of the local search.
const RESTARTS: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchangeable_threads::tests::workload;
    use crate::tables::blackbox::tests::Obedient;
    use crate::tables::core_local::tests::hybrid;
    use crate::{BaseSpace, BaseTable, CoreLocal, SlowdownTable, ThreadKinds};
    use pinwise_topology::{Alike, DomainKind, Machine, SharingTree};
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    /// The predictions of all assignments, one for each description, best first.
    fn enumerated(blackbox: &BlackBox, space: &Space) -> Vec<f64> {
        let mut known = BTreeSet::new();
        let mut moving = None;
        let mut predictions = Vec::new();
        for class in space.classes() {
            let moving = moving.get_or_insert_with(|| Incremental::new(blackbox, class.leaves()));
            moving.place(class.leaves());
            if known.insert(moving.description()) {
                predictions.push(blackbox.predict(class.leaves()));
            }
        }
        predictions.sort_by(|a, b| b.total_cmp(a));
        predictions
    }

    /// Tables of random numbers, some as they might be measured, some missing.
    fn random_tables(
        shape: &str,
        level: DomainKind,
        per_context: usize,
        instances: &str,
        seed: u64,
    ) -> (BlackBox, Space) {
        let tree = SharingTree::new(&Machine::from_shape(shape).unwrap(), Alike::ByStructure);
        random_tables_on(tree, level, per_context, instances, seed)
    }

    fn random_tables_on(
        tree: SharingTree,
        level: DomainKind,
        per_context: usize,
        instances: &str,
        seed: u64,
    ) -> (BlackBox, Space) {
        let thread_kinds = ThreadKinds::new(&workload(instances));
        let local = CoreLocal::new(&tree, level, per_context).unwrap();
        let mut random = Random::new(seed);
        let mut base = Vec::new();
        for application in 0..thread_kinds.applications() {
            let space = BaseSpace::new(&tree, &thread_kinds, application, per_context).unwrap();
            base.push(
                BaseTable::fill(space, |_| {
                    Ok::<f64, Infallible>(1e6 * (1.0 + 0.3 * random.unit()))
                })
                .unwrap(),
            );
        }
        let mut slowdown = SlowdownTable::new(&thread_kinds, &local).unwrap();
        for kind in 0..thread_kinds.kinds().len() {
            for layout in 0..slowdown.layouts().count() {
                let company =
                    slowdown.layouts().example(layout).iter().filter(|held| **held > 0).count();
                let share = (1.0 - 0.12 * company as f64 + 0.2 * (random.unit() - 0.5)).max(0.05);
                let missing = random.below(60) == 0;
                // A quarter saturates: ties are where counting goes wrong.
                slowdown.set(
                    kind,
                    layout,
                    if missing {
                        f64::NAN
                    } else if random.below(4) == 0 {
                        0.8
                    } else {
                        share
                    },
                );
            }
        }
        let space =
            Space::new(tree, thread_kinds.threads(), PerContext::AtMost(per_context)).unwrap();
        (BlackBox::new(thread_kinds, local, base, slowdown), space)
    }

    /// Holds what is found against all there is.
    fn check(blackbox: &BlackBox, space: &Space, count: usize, what: &str) -> Optima {
        let truth = enumerated(blackbox, space);
        let optima = blackbox.optima(space, count, &mut Random::new(1), &mut |_| true);
        let found: Vec<f64> = optima.ranked.iter().map(|predicted| predicted.performance).collect();
        let near = |a: &f64, b: &f64| (a / b - 1.0).abs() < 1e-9;
        let known: Vec<f64> = truth.into_iter().filter(|prediction| *prediction > 0.0).collect();
        assert!(optima.upper >= known[0] * (1.0 - 1e-9), "{what}: {} {}", optima.upper, known[0]);
        if optima.complete {
            assert_eq!(found.len(), known.len().min(count), "{what}");
            assert!(
                found.iter().zip(&known).all(|(a, b)| near(a, b)),
                "{what}: {found:?} {known:?}"
            );
            assert!(optima.is_exact(), "{what}: {optima:?}");
        }
        optima
    }

    #[test]
    fn the_best_of_all_are_found_and_proven() {
        for (shape, level, instances) in [
            ("8x2x4", DomainKind::Package, "RPT RPT"),
            ("8x2x4", DomainKind::Package, "RPT RPT R"),
            ("4x2", DomainKind::Core, "RW RW RW"),
            ("6x3", DomainKind::Core, "RWW RW"),
            ("4x4", DomainKind::Core, "RPT AB"),
        ] {
            let obedient = Obedient::new(shape, level, instances);
            let optima =
                check(&obedient.profile(), &obedient.space(), 5, &format!("{shape} {instances}"));
            assert!(optima.complete, "{shape} {instances}: {optima:?}");
        }
    }

    #[test]
    fn where_the_domains_differ_in_place_the_bound_still_holds() {
        // Cores of one package are nearer each other than those of two. So which cores they are is
        // more than a domain's content shows.
        for (shape, instances) in [("2x3x2", "RWW RW"), ("2x2x2", "RPT AB"), ("3x2x2", "RW RW")] {
            let obedient = Obedient::new(shape, DomainKind::Core, instances);
            check(&obedient.profile(), &obedient.space(), 5, &format!("{shape} {instances}"));
        }
    }

    #[test]
    fn it_holds_for_any_tables() {
        for seed in 0..5 {
            for (shape, level, per_context, instances) in [
                ("3x2x2", DomainKind::Package, 1, "AB AB AB"),
                ("4x3", DomainKind::Core, 1, "ABB ABB"),
                ("3x4", DomainKind::Core, 1, "AB AB C C"),
                ("3x2", DomainKind::Core, 2, "AB AB A"),
                ("4x1", DomainKind::Core, 3, "ABC ABC"),
                ("5", DomainKind::Core, 1, "AB AB"),
            ] {
                let (blackbox, space) = random_tables(shape, level, per_context, instances, seed);
                let optima = check(&blackbox, &space, 4, &format!("{shape} {instances} {seed}"));
                assert!(optima.complete, "{shape} {instances} {seed}: {optima:?}");
            }
        }
    }

    #[test]
    fn domains_of_several_builds_are_gone_through_as_those_of_one() {
        for (fast, clusters, instances) in [
            (2, 1, "AB AB"),
            (3, 2, "AB AB"),
            (2, 1, "RPT RPT"),
            (1, 1, "AB AB C"),
            (0, 2, "AB AB"),
            (4, 0, "AB AB C"),
        ] {
            for seed in 0..5 {
                let tree = hybrid(fast, clusters);
                let level = CoreLocal::usual_level(&tree, 4);
                let (blackbox, space) = random_tables_on(tree, level, 1, instances, seed);
                let what = format!("{fast} fast, {clusters} clusters, {instances}, {seed}");
                let optima = check(&blackbox, &space, 4, &what);
                assert!(optima.complete, "{what}: {optima:?}");
            }
            // Up to two threads on a context.
            let (blackbox, space) =
                random_tables_on(hybrid(fast, clusters), DomainKind::Core, 2, "AB AB", 7);
            check(
                &blackbox,
                &space,
                4,
                &format!("{fast} fast, {clusters} clusters, two to a context"),
            );
        }
        let obedient = Obedient::on(hybrid(4, 2), DomainKind::L2, "RPT RPT");
        let optima = check(&obedient.profile(), &obedient.space(), 5, "obedient");
        assert!(optima.complete, "{optima:?}");
    }

    #[test]
    fn the_proof_alone_claims_no_more_than_it_went_through() {
        // Without the local search before it, on domains that differ in place and on domains that
        // do not.
        let mut complete = 0;
        for seed in 0..20 {
            for (shape, instances) in [
                ("2x2x2", "AB"),
                ("2x2x1", "AB C"),
                ("2x3x1", "AB C"),
                ("3x2", "AB AB"),
                ("hybrid", "AB C"),
            ] {
                let (blackbox, space) = match shape {
                    "hybrid" => random_tables_on(hybrid(2, 1), DomainKind::L2, 1, instances, seed),
                    _ => random_tables(shape, DomainKind::Core, 1, instances, seed),
                };
                let truth = enumerated(&blackbox, &space);
                for count in [1, 3, 10] {
                    let mut top = TopN::new(count);
                    let mut moving =
                        Incremental::new(&blackbox, space.sample(&mut Random::new(seed)).leaves());
                    let proof = proof::prove(
                        &blackbox,
                        blackbox.ceiling(),
                        &mut top,
                        &mut moving,
                        &mut |_| true,
                    )
                    .unwrap();
                    assert!(proof.upper >= truth[0] * (1.0 - 1e-9), "{shape} {instances} {seed}");
                    if proof.complete {
                        complete += 1;
                        let known = truth.iter().filter(|prediction| **prediction > 0.0);
                        let found: Vec<f64> =
                            top.places.iter().map(|(predicted, _)| *predicted).collect();
                        let near = found
                            .iter()
                            .zip(known.clone())
                            .all(|(a, b)| (a / b - 1.0).abs() < 1e-9);
                        assert!(
                            near && found.len() == known.count().min(count),
                            "{shape} {instances} {seed}, {count}: {found:?} of {truth:?}"
                        );
                    }
                }
            }
        }
        assert!(complete > 60, "{complete}");
    }

    #[test]
    fn it_ends_when_its_caller_asks() {
        let obedient =
            Obedient::new("8x2x4", DomainKind::Package, "RPT RPT RPT RPT RPT RPT RPT RPT");
        let blackbox = obedient.profile();
        let mut asked = 0;
        let optima = blackbox.optima(&obedient.space(), 3, &mut Random::new(1), &mut |progress| {
            asked += 1;
            assert!(progress.best <= progress.upper);
            false
        });
        assert!(asked == 1 && optima.ranked.len() == 3 && optima.gap() > 0.0, "{optima:?}");
    }

    #[test]
    fn it_ends_in_the_midst_of_listing_what_domains_may_hold() {
        let obedient = Obedient::new("4x2x2", DomainKind::Package, "RPT RPT");
        let (blackbox, mut asked) = (obedient.profile(), 0);
        let optima = blackbox.optima(&obedient.space(), 1, &mut Random::new(1), &mut |_| {
            asked += 1;
            asked < RESTARTS + 3
        });
        assert!(asked == RESTARTS + 3 && !optima.complete, "{optima:?}");
        assert_eq!(optima.upper, blackbox.ceiling());
    }
}
