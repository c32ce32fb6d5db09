//! Which of the assignments that are predicted alike to measure.
//!
//! An instance is predicted by the one of its threads that company slows most; what the others suffer costs nothing there. So
//! many assignments are predicted the same, or nearer to each other than measurements of the profile repeat, and differ where they run. The
//! reason for which forecasts are monotone tells them apart: company only burdens. Of assignments predicted alike, the one
//! whose threads have the least company of other instances is preferred, nearer company counting for more. Company within an
//! instance is in its base time table.

use crate::optimum::Predicted;
use crate::{BlackBox, Predictor};
use pinwise_topology::{Assignment, Space};
use std::collections::BTreeSet;

/// Predictions that differ by no more than this share are alike. With 0.3 to 1 % the choice for six threads of the nine IPFwd programs is
/// the same but for one of them.
const ALIKE: f64 = 0.005;
/// So many of the best predicted are looked at for others like them with less company.
const RELIEVED: usize = 6;

/// What a prediction reads of the tables: by instance, its application, what the base table calls its assignment, and the layout around
/// each thread.
type Reads = Vec<(usize, Assignment, Vec<usize>)>;

impl BlackBox {
    /// The `count` assignments to measure, the most promising first: of `ranked`, which is as [`crate::Optima`] has them, and of others predicted
    /// like the best of them.
    pub fn preferred(&self, space: &Space, ranked: &[Predicted], count: usize) -> Vec<Predicted> {
        let Some(best) = ranked.first() else { return Vec::new() };
        let floor = best.performance * (1.0 - ALIKE);
        let alike = ranked.iter().filter(|ranked| ranked.performance >= floor).take(RELIEVED);
        let relieved: Vec<Predicted> = alike.map(|ranked| self.relieved(space, ranked, floor)).collect();
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
            let Some((next, _)) = alike.min_by_key(|(place, (company, _))| (*company, *place)) else { break };
            preferred.push(left.remove(next).1);
        }
        preferred
    }

    /// From an assignment, moves of threads that leave less company, or as much and predict better, as long as what is predicted is not below
    /// `floor`.
    fn relieved(&self, space: &Space, from: &Predicted, floor: f64) -> Predicted {
        let mut leaves = from.assignment.leaves().to_vec();
        let contexts = (self.local().domains() * self.local().size()) as u32;
        let (mut company, mut performance) = (self.company(&leaves), from.performance);
        let moves = leaves.len() * contexts as usize;
        let (mut looked, mut since) = (0, 0);
        while since < moves {
            let (thread, to) = (looked / contexts as usize % leaves.len(), (looked % contexts as usize) as u32);
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

    /// Over all pairs of threads of different instances in one core-local domain, the levels of the machine that they share there.
    fn company(&self, leaves: &[u32]) -> u32 {
        let mut width = self.local().size() as u32;
        let mut widths = vec![width];
        for arity in self.local().arities() {
            width /= *arity as u32;
            widths.extend(Some(width).filter(|width| *width > 0));
        }
        let mut instance_of = vec![0; leaves.len()];
        for (number, instance) in self.cast().instances().iter().enumerate() {
            instance.threads.iter().for_each(|thread| instance_of[*thread] = number);
        }
        let mut company = 0;
        for a in 0..leaves.len() {
            for b in (0..a).filter(|b| instance_of[a] != instance_of[*b]) {
                let shared = widths.iter().take_while(|width| leaves[a] / **width == leaves[b] / **width);
                company += shared.count() as u32;
            }
        }
        company
    }

    fn reads(&self, leaves: &[u32]) -> Reads {
        let around = self.layouts_around(leaves);
        let read = |instance: &crate::Instance| {
            let placed = Assignment::new(instance.threads.iter().map(|thread| leaves[*thread]).collect());
            let layouts = instance.threads.iter().map(|thread| around[*thread]).collect();
            (instance.application, self.base(instance.application).name(&placed), layouts)
        };
        let mut reads: Reads = self.cast().instances().iter().map(read).collect();
        reads.sort_unstable();
        reads
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blackbox::tests::Obedient;
    use pinwise_topology::{DomainKind, Random};

    #[test]
    fn of_assignments_predicted_alike_the_one_with_least_company_comes_first() {
        let obedient = Obedient::new("4x2x2", DomainKind::Package, "RPT RPT");
        let blackbox = obedient.profile();
        // Domains of 2 parts of 2: threads of two instances on one part share two levels, in one domain one.
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
        let told: BTreeSet<Reads> = preferred.iter().map(|one| blackbox.reads(one.assignment.leaves())).collect();
        assert_eq!(told.len(), preferred.len(), "no two read the same");
    }

    #[test]
    fn nothing_is_preferred_to_nothing() {
        let obedient = Obedient::new("4x2", DomainKind::Core, "RW RW");
        assert!(obedient.profile().preferred(&obedient.space(), &[], 5).is_empty());
    }
}
