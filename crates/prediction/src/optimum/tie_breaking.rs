//! Which of the assignments that are predicted alike to measure.
//!
//! For an instance, the prediction uses only the thread that co-runners slow down most. Hence many
//! assignments are predicted alike. Their predictions differ less than repeated measurements of the
//! profile. They differ when they run. Co-runners only slow down. So of assignments predicted
//! alike, the one whose threads have the fewest co-runners of other instances comes first. Nearer
//! co-runners count for more. The base time table already has co-runners within an instance.
//!
//! The product of the tables is an assumption. The base table contains the effect of an instance's
//! threads on each other without co-runners. The slowdown table contains the cost of co-runners
//! while these threads are apart. A gain alone may be lost with co-runners, and both tables contain
//! the slowdown within an instance. Two sorts of assignments need no assumption, because one of the
//! tables was measured that way. *Spread* instances use as many domains as they can
//! ([`BlackBox::spread`]). *Secluded* instances have domains to themselves and do what the base
//! table says. Some of the assignments to measure are the best of these, as long as they are not
//! predicted much worse.

use crate::optimum::Predicted;
use crate::{BlackBox, Predictor};
use pinwise_topology::{Assignment, Space};
use std::collections::{BTreeMap, BTreeSet};

/// Predictions that differ by no more than this share are alike. From 0.3 to 1 %, the choice for
/// six threads is the same for eight of the nine IPFwd programs.
const ALIKE: f64 = 0.005;
/// This many of the best predicted are compared with others like them that have fewer co-runners.
const RELIEVED: usize = 6;
/// Spread assignments are measured where they are predicted no worse than the best by this share.
const BELIEVED: f64 = 0.1;

/// What a prediction reads of the tables, by instance. It is the application, what the base table
/// calls its assignment, and the layout around each thread.
type Reads = Vec<(usize, Assignment, Vec<usize>)>;

impl BlackBox {
    /// The `count` assignments to measure. The best predicted comes first, then the best secluded
    /// one if the base tables promise no less of it. Then `spread` and `ranked` alternate. These
    /// are the [`crate::Optima`] of [`BlackBox::spread`] and of these tables; assignments predicted
    /// like the best of either follow it.
    pub fn selected(
        &self,
        space: &Space,
        ranked: &[Predicted],
        spread: &[Predicted],
        count: usize,
    ) -> Vec<Predicted> {
        let best = ranked.first().map_or(0.0, |best| best.performance);
        let secluded =
            self.secluded(space).filter(|(alone, _)| *alone >= best).map(|(_, secluded)| secluded);
        let tables = self.spread();
        let mut first = self.preferred(space, ranked, count).into_iter();
        let believed = |one: &Predicted| one.performance >= best * (1.0 - BELIEVED);
        let mut second = tables.preferred(space, spread, count).into_iter().filter(believed);
        let mut turns: Vec<Predicted> = first.next().into_iter().chain(secluded).collect();
        loop {
            let turn = [second.next(), first.next()];
            if turn.iter().all(Option::is_none) {
                break;
            }
            turns.extend(turn.into_iter().flatten());
        }
        let mut seen = BTreeSet::new();
        turns
            .into_iter()
            .filter(|one| seen.insert(self.reads(one.assignment.leaves())))
            .take(count)
            .collect()
    }

    /// The best assignment found whose instances have core-local domains to themselves. Also what
    /// the base tables say that they do there. `None` if there are too few domains.
    fn secluded(&self, space: &Space) -> Option<(f64, Predicted)> {
        let local = self.local();
        let mut there = vec![0; local.builds().len()];
        (0..local.domains()).for_each(|domain| there[local.build(domain)] += 1);
        // By application and number of domains of each build, the best entry.
        let mut ways: Vec<BTreeMap<Vec<usize>, (f64, &Assignment)>> =
            vec![BTreeMap::new(); self.thread_kinds().applications()];
        for (application, ways) in ways.iter_mut().enumerate() {
            for (name, value) in self.base(application).entries() {
                let mut taken = vec![0; there.len()];
                local
                    .domains_of(name.leaves())
                    .into_iter()
                    .for_each(|domain| taken[local.build(domain)] += 1);
                let way = ways.entry(taken).or_insert((value, name));
                if value > way.0 {
                    *way = (value, name);
                }
            }
        }
        // By number of domains taken, the best choice for the instances so far.
        type Choices<'a> = BTreeMap<Vec<usize>, (f64, Vec<&'a Assignment>)>;
        let mut chosen = Choices::from([(vec![0; there.len()], (0.0, Vec::new()))]);
        for instance in self.thread_kinds().instances() {
            let mut more = Choices::new();
            for (taken, (sum, names)) in &chosen {
                for (number, (value, name)) in &ways[instance.application] {
                    let taken: Vec<usize> =
                        taken.iter().zip(number).map(|(taken, number)| taken + number).collect();
                    let (fits, sum) = (
                        taken.iter().zip(&there).all(|(taken, there)| taken <= there),
                        sum + value,
                    );
                    if fits && more.get(&taken).is_none_or(|(best, _)| sum > *best) {
                        more.insert(taken, (sum, names.iter().copied().chain([*name]).collect()));
                    }
                }
            }
            chosen = more;
        }
        let (_, names) = chosen.into_values().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (mut leaves, mut sum) = (vec![0; self.thread_kinds().threads()], 0.0);
        let mut free: Vec<usize> = (0..local.domains()).collect();
        for (instance, name) in self.thread_kinds().instances().iter().zip(names) {
            let mut own = BTreeMap::new();
            for domain in local.domains_of(name.leaves()) {
                let next =
                    free.iter().position(|free| local.build(*free) == local.build(domain))?;
                own.insert(domain, local.leaves(free.remove(next)).start);
            }
            let place = |leaf: &u32| {
                let domain = local.domain_of(*leaf);
                own[&domain] + leaf - local.leaves(domain).start
            };
            let placed: Vec<u32> = name.leaves().iter().map(place).collect();
            instance.threads.iter().zip(&placed).for_each(|(thread, leaf)| leaves[*thread] = *leaf);
            // Which domains they are may matter.
            sum += self.base(instance.application).performance(&Assignment::new(placed))?;
        }
        let assignment = space.canonical(&Assignment::new(leaves));
        Some((sum, Predicted { performance: self.predict(assignment.leaves()), assignment }))
    }

    /// The same tables for assignments whose instances are spread over as many core-local domains
    /// as they can be. Others are predicted as 0.
    pub fn spread(&self) -> Self {
        let applications = 0..self.thread_kinds().applications();
        let bases =
            applications.map(|application| self.base(application).spread(self.local())).collect();
        Self::new(self.thread_kinds().clone(), self.local().clone(), bases, self.slowdown().clone())
    }

    /// Takes `count` assignments of those that are `ranked`, or predicted like the best of them:
    /// those with fewer co-runners first.
    fn preferred(&self, space: &Space, ranked: &[Predicted], count: usize) -> Vec<Predicted> {
        let Some(best) = ranked.first() else { return Vec::new() };
        let floor = best.performance * (1.0 - ALIKE);
        let alike = ranked.iter().filter(|ranked| ranked.performance >= floor).take(RELIEVED);
        let relieved: Vec<Predicted> =
            alike.map(|ranked| self.relieved(space, ranked, floor)).collect();
        let mut seen = BTreeSet::new();
        let all = relieved.into_iter().chain(ranked.iter().cloned());
        let mut left: Vec<(u32, Predicted)> = all
            .filter(|one| seen.insert(self.reads(one.assignment.leaves())))
            .map(|one| (self.company(one.assignment.leaves()), one))
            .collect();
        left.sort_by(|(_, a), (_, b)| b.performance.total_cmp(&a.performance));
        let mut preferred = Vec::new();
        while preferred.len() < count {
            let Some((_, best)) = left.first() else { break };
            let floor = best.performance * (1.0 - ALIKE);
            let alike = left.iter().take_while(|(_, one)| one.performance >= floor).enumerate();
            let Some((next, _)) = alike.min_by_key(|(place, (company, _))| (*company, *place))
            else {
                break;
            };
            preferred.push(left.remove(next).1);
        }
        preferred
    }

    /// Makes moves of threads that leave fewer co-runners, or as many and predict better. The
    /// prediction must not fall below `floor`.
    fn relieved(&self, space: &Space, from: &Predicted, floor: f64) -> Predicted {
        let mut leaves = from.assignment.leaves().to_vec();
        let contexts = self.local().contexts();
        let (mut company, mut performance) = (self.company(&leaves), from.performance);
        let moves = leaves.len() * contexts as usize;
        let (mut looked, mut since) = (0, 0);
        while since < moves {
            let (thread, to) =
                (looked / contexts as usize % leaves.len(), (looked % contexts as usize) as u32);
            (looked, since) = (looked + 1, since + 1);
            let away = leaves[thread];
            if away == to {
                continue;
            }
            // Where there is no room, a thread from there takes the place.
            let there = leaves.iter().filter(|leaf| **leaf == to).count();
            let full = there >= self.local().per_context();
            let other = leaves.iter().position(|leaf| *leaf == to).filter(|_| full);
            let change = |leaves: &mut Vec<u32>, there: u32, back: u32| {
                leaves[thread] = there;
                other.into_iter().for_each(|other| leaves[other] = back);
            };
            change(&mut leaves, to, away);
            let now = self.company(&leaves);
            let predicted = if now <= company { self.predict(&leaves) } else { 0.0 };
            if predicted >= floor && (now < company || predicted > performance) {
                (company, performance, since) = (now, predicted, 0);
            } else {
                change(&mut leaves, away, to);
            }
        }
        let assignment = space.canonical(&Assignment::new(leaves));
        Predicted { performance: self.predict(assignment.leaves()), assignment }
    }

    /// Covers all pairs of threads of different instances in one core-local domain. Counts the
    /// levels of the machine that they share there.
    fn company(&self, leaves: &[u32]) -> u32 {
        // The numbers of the parts that a thread is in, from the domain inwards. Those of different
        // domains or parts differ.
        let parts = |leaf: &u32| {
            let domain = self.local().domain_of(*leaf);
            let (first, build) = (
                self.local().leaves(domain).start,
                &self.local().builds()[self.local().build(domain)],
            );
            let mut width = build.size() as u32;
            let mut parts = vec![(domain, 0)];
            for arity in build.arities() {
                width /= *arity as u32;
                // The slots of one context are interchangeable.
                parts.extend((leaf - first).checked_div(width).map(|part| (domain, part)));
            }
            parts
        };
        let parts: Vec<Vec<(usize, u32)>> = leaves.iter().map(parts).collect();
        let mut instance_of = vec![0; leaves.len()];
        for (number, instance) in self.thread_kinds().instances().iter().enumerate() {
            instance.threads.iter().for_each(|thread| instance_of[*thread] = number);
        }
        let mut company = 0;
        for a in 0..leaves.len() {
            for b in (0..a).filter(|b| instance_of[a] != instance_of[*b]) {
                let shared = parts[a].iter().zip(&parts[b]).take_while(|(a, b)| a == b);
                company += shared.count() as u32;
            }
        }
        company
    }

    fn reads(&self, leaves: &[u32]) -> Reads {
        let around = self.layouts_around(leaves);
        let read = |instance: &crate::Instance| {
            let placed =
                Assignment::new(instance.threads.iter().map(|thread| leaves[*thread]).collect());
            let layouts = instance.threads.iter().map(|thread| around[*thread]).collect();
            (instance.application, self.base(instance.application).name(&placed), layouts)
        };
        let mut reads: Reads = self.thread_kinds().instances().iter().map(read).collect();
        reads.sort_unstable();
        reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::blackbox::tests::Obedient;
    use crate::tables::core_local::tests::hybrid;
    use pinwise_topology::{DomainKind, Random};

    #[test]
    fn of_assignments_predicted_alike_the_one_with_least_company_comes_first() {
        let obedient = Obedient::new("4x2x2", DomainKind::Package, "RPT RPT");
        let blackbox = obedient.profile();
        // Domains of 2 parts of 2: threads of two instances on one part share two levels, in one
        // domain one.
        assert_eq!(blackbox.company(&[0, 4, 8, 1, 12, 10]), 2 + 1);
        assert_eq!(blackbox.company(&[0, 1, 2, 4, 5, 6]), 0, "its own company is not counted");
        let (space, mut random) = (obedient.space(), Random::new(1));
        let ranked = blackbox.optima(&space, 40, &mut random, &mut |_| true).ranked;
        let preferred = blackbox.preferred(&space, &ranked, 10);
        let floor = ranked[0].performance * (1.0 - ALIKE);
        let least = space
            .classes()
            .filter(|class| blackbox.predict(class.leaves()) >= floor)
            .map(|class| blackbox.company(class.leaves()))
            .min();
        assert_eq!(Some(blackbox.company(preferred[0].assignment.leaves())), least);
        assert!(preferred.len() == 10 && preferred.iter().all(|one| one.performance > 0.0));
        let told: BTreeSet<Reads> =
            preferred.iter().map(|one| blackbox.reads(one.assignment.leaves())).collect();
        assert_eq!(told.len(), preferred.len(), "no two read the same");
    }

    /// Whether no two threads of an instance are in one domain, and whether no two of different
    /// instances are.
    fn sort(blackbox: &BlackBox, leaves: &[u32]) -> (bool, bool) {
        let (mut spread, mut secluded) = (true, true);
        for a in 0..leaves.len() {
            for b in 0..a {
                if blackbox.local().domain_of(leaves[a]) == blackbox.local().domain_of(leaves[b]) {
                    let own = blackbox
                        .thread_kinds()
                        .instances()
                        .iter()
                        .any(|one| one.threads.contains(&a) && one.threads.contains(&b));
                    spread &= !own;
                    secluded &= own;
                }
            }
        }
        (spread, secluded)
    }

    #[test]
    fn what_assumes_nothing_is_among_the_selected() {
        assumes_nothing(&Obedient::new("4x2x2", DomainKind::Package, "RPT RPT"));
        assumes_nothing(&Obedient::on(hybrid(3, 2), DomainKind::L2, "RPT RPT"));
    }

    fn assumes_nothing(obedient: &Obedient) {
        let (blackbox, space) = (obedient.profile(), obedient.space());
        let find = |blackbox: &BlackBox| {
            blackbox.optima(&space, 20, &mut Random::new(1), &mut |_| true).ranked
        };
        let (ranked, spread) = (find(&blackbox), find(&blackbox.spread()));
        let best = |wanted: &dyn Fn((bool, bool)) -> bool, value: &dyn Fn(&[u32]) -> f64| {
            let all = space.classes().filter(|class| wanted(sort(&blackbox, class.leaves())));
            all.map(|class| value(class.leaves())).fold(0.0, f64::max)
        };
        assert!(spread.iter().all(|one| sort(&blackbox, one.assignment.leaves()).0));
        assert_eq!(
            spread[0].performance,
            best(&|(spread, _)| spread, &|leaves| blackbox.predict(leaves))
        );
        let alone = |leaves: &[u32]| -> f64 {
            let placed = |one: &crate::Instance| {
                Assignment::new(one.threads.iter().map(|thread| leaves[*thread]).collect())
            };
            blackbox
                .thread_kinds()
                .instances()
                .iter()
                .map(|one| blackbox.base(0).performance(&placed(one)).unwrap())
                .sum()
        };
        let (sum, secluded) = blackbox.secluded(&space).unwrap();
        assert!((sum / best(&|(_, secluded)| secluded, &alone) - 1.0).abs() < 1e-12);
        let selected = blackbox.selected(&space, &ranked, &spread, 5);
        assert_eq!(selected.len(), 5);
        assert_eq!(
            selected[0],
            blackbox.preferred(&space, &ranked, 1)[0],
            "what is predicted best comes first"
        );
        assert_eq!(selected.contains(&secluded), sum >= ranked[0].performance);
        assert!(
            selected.iter().any(|one| sort(&blackbox, one.assignment.leaves()).0),
            "{selected:?}"
        );
    }

    #[test]
    fn nothing_is_preferred_to_nothing() {
        let obedient = Obedient::new("4x2", DomainKind::Core, "RW RW");
        let (blackbox, space) = (obedient.profile(), obedient.space());
        assert!(blackbox.preferred(&space, &[], 5).is_empty());
        // What is secluded needs no ranking.
        assert_eq!(blackbox.selected(&space, &[], &[], 5).len(), 1);
    }
}
