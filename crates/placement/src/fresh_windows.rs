//! Fresh windows of the finalists, and what they decide.
//!
//! *Problem.* Finalists were chosen because their windows were good. So these windows overstate
//! them.
//!
//! *Method.* The winner and its rivals are measured again, together with the baseline, in *rounds*.
//! Each round measures every finalist still in question once, and the baseline
//! [`BASELINE_WINDOWS`] times, in random order. Comparisons are made within rounds.

use crate::Estimate;
use crate::statistics::{Ratio, estimate, mean, ratio, variance};
use pinwise_campaign::{Purpose, Record};
use pinwise_measure::Setting;
use pinwise_topology::Assignment;
use std::collections::BTreeMap;

/// Windows of the baseline per round: more than of any assignment, since unpinned threads may
/// settle in several ways.
pub(crate) const BASELINE_WINDOWS: usize = 2;

/// One baseline window in this many may differ from all others without counting as a state of the
/// baseline.
const STRAY: usize = 20;

/// Fresh windows by round; `None` for one that failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreshWindows {
    candidates: BTreeMap<Assignment, Vec<Option<f64>>>,
    baseline: Vec<Option<f64>>,
    /// Variance of all baseline windows of the search, the earlier ones included.
    baseline_variance: f64,
}

impl FreshWindows {
    /// Collects the fresh windows from the settled records of a search. `earlier_baseline` has the
    /// baseline's windows before the fresh ones.
    pub(crate) fn new<'a>(
        settled: impl Iterator<Item = &'a Record>,
        earlier_baseline: &[f64],
    ) -> Self {
        let mut fresh = Self::default();
        for record in settled {
            fresh.learn(record);
        }
        fresh.weigh(earlier_baseline);
        fresh
    }

    pub(crate) fn learn(&mut self, record: &Record) {
        if record.trial.purpose != Purpose::Final {
            return;
        }
        let performance = record.outcome.as_ref().ok().map(|measured| measured.performance);
        match &record.trial.setting {
            Setting::Unpinned => self.baseline.push(performance),
            Setting::Pinned(assignment) => {
                self.candidates.entry(assignment.clone()).or_default().push(performance);
            }
            _ => {}
        }
    }

    /// Takes the spread of the baseline over the whole search into account. Fresh windows may by
    /// chance all fall into one of the states of a bistable baseline. One window in [`STRAY`] may
    /// be stray (the first one, cold) and is no state.
    pub(crate) fn weigh(&mut self, earlier_baseline: &[f64]) {
        let mut all: Vec<f64> = earlier_baseline
            .iter()
            .copied()
            .chain(self.baseline.iter().flatten().copied())
            .collect();
        all.sort_by(f64::total_cmp);
        for _ in 0..all.len().div_ceil(STRAY) {
            let Some(middle) = all.get(all.len() / 2) else { break };
            let far = |value: Option<&f64>| value.map_or(0.0, |value| (value - middle).abs());
            if far(all.first()) > far(all.last()) {
                all.remove(0)
            } else {
                all.pop().unwrap_or_default()
            };
        }
        self.baseline_variance = variance(&all);
    }

    /// Finalists that were measured at least once and never failed.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = &Assignment> {
        self.candidates
            .iter()
            .filter(|(_, rounds)| rounds.iter().all(Option::is_some))
            .map(|(candidate, _)| candidate)
    }

    /// How many finalists there were, which is how many comparisons were made.
    pub(crate) fn comparisons(&self) -> usize {
        self.candidates.len().max(1)
    }

    pub(crate) fn windows(&self, candidate: &Assignment) -> Vec<f64> {
        self.candidates.get(candidate).into_iter().flatten().flatten().copied().collect()
    }

    /// The mean of a finalist's fresh windows. The highest of several means is a little too high,
    /// because it was chosen for that. So the intervals of all finalists hold together
    /// (Bonferroni), the chosen one included.
    pub(crate) fn estimate(&self, candidate: &Assignment, confidence: f64) -> Option<Estimate> {
        let together = 1.0 - (1.0 - confidence) / self.comparisons() as f64;
        Some(Estimate { confidence, ..estimate(&self.windows(candidate), together)? })
    }

    pub(crate) fn baseline(&self, confidence: f64) -> Option<Estimate> {
        estimate(&self.baseline.iter().flatten().copied().collect::<Vec<_>>(), confidence)
    }

    /// The finalist with the highest mean among those measured in the most rounds: others were
    /// dropped as beaten.
    pub(crate) fn leader(&self) -> Option<Assignment> {
        let most = self.candidates().map(|candidate| self.candidates[candidate].len()).max()?;
        self.candidates()
            .filter(|candidate| self.candidates[*candidate].len() + 1 >= most)
            .max_by(|a, b| mean(&self.windows(a)).total_cmp(&mean(&self.windows(b))))
            .cloned()
    }

    /// How `candidate` compares with `other`, over the rounds both were measured in.
    pub(crate) fn against(
        &self,
        candidate: &Assignment,
        other: &Assignment,
        confidence: f64,
    ) -> Option<Ratio> {
        let rounds = |of: &Assignment| self.candidates.get(of).map_or(&[][..], Vec::as_slice);
        let pairs: Vec<(f64, f64)> = rounds(candidate)
            .iter()
            .zip(rounds(other))
            .filter_map(|(a, b)| Some(((*a)?, (*b)?)))
            .collect();
        ratio(&pairs, 0.0, confidence)
    }

    /// How `candidate` compares with the baseline. The interval is corrected for the number of
    /// finalists (Bonferroni), because the candidate is the best of them.
    pub(crate) fn gain(&self, candidate: &Assignment, confidence: f64) -> Option<Ratio> {
        let rounds: Vec<Vec<f64>> = self
            .baseline
            .chunks(BASELINE_WINDOWS)
            .map(|round| round.iter().flatten().copied().collect())
            .collect();
        let pairs: Vec<(f64, f64)> = self
            .candidates
            .get(candidate)?
            .iter()
            .zip(&rounds)
            .filter_map(|(value, round)| {
                (!round.is_empty()).then(|| Some(((*value)?, mean(round))))?
            })
            .collect();
        let shown = variance(&self.baseline.iter().flatten().copied().collect::<Vec<_>>());
        let unseen = (self.baseline_variance - shown).max(0.0) / BASELINE_WINDOWS as f64;
        ratio(&pairs, unseen, 1.0 - (1.0 - confidence) / self.comparisons() as f64)
    }

    /// Every other finalist that does not differ from `best` beyond chance. Its shortfall is within
    /// the noise at a level shared by all comparisons.
    pub(crate) fn ties(&self, best: &Assignment, confidence: f64) -> Vec<Assignment> {
        let others = self.comparisons().saturating_sub(1).max(1);
        let level = 1.0 - (1.0 - confidence) / others as f64;
        self.candidates()
            .filter(|candidate| *candidate != best)
            .filter(|candidate| {
                self.against(candidate, best, level).is_none_or(|ratio| ratio.high >= 1.0)
            })
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_seen_only_before_the_fresh_windows_widens_the_gain_and_a_stray_window_does_not() {
        let candidate = Assignment::new(vec![0]);
        let half_width = |earlier: &[f64]| {
            let mut fresh = FreshWindows::default();
            fresh
                .candidates
                .insert(candidate.clone(), [110.0, 110.2, 109.9, 110.1, 110.0].map(Some).to_vec());
            fresh.baseline = [100.0, 100.1].repeat(5).into_iter().map(Some).collect();
            fresh.weigh(earlier);
            fresh.gain(&candidate, 0.95).unwrap().half_width()
        };
        let plain = half_width(&[]);
        assert!(plain < 0.002);
        assert_eq!(half_width(&[50.0]), plain);
        assert!(half_width(&[50.0, 100.0, 50.0, 50.0, 100.0]) > 0.1);
    }
}
