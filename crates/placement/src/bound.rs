//! [`Bound`]: the limit of the best possible performance.

use crate::fresh_windows::FreshWindows;
use crate::search::history::{Guess, History};
use crate::search::residual_bound::ResidualBound;
use crate::search::solo_bound::Alone;
use crate::statistics::estimate;
use crate::{BoundMethod, BoundNote, Estimate, PlacementQuestion};
use pinwise_evt::{Method, Options, Sample};
use pinwise_measure::values_or_text;
use pinwise_topology::Assignment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The share of windows in which a metric may stand still. Beyond it, windows show when the metric
/// moves, not how fast.
const MOST_STILL: f64 = 0.5;

/// A bound on the best possible performance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Estimate of the best possible performance; `None` when the sample supports none (`notes`
    /// say why).
    pub upb: Option<f64>,
    /// Lower end: the best itself.
    pub upb_low: Option<f64>,
    /// Upper end at `confidence`.
    pub upb_high: Option<f64>,
    /// (upb - best) / upb.
    pub gap: Option<f64>,
    /// (upb_high - best) / upb_high.
    pub gap_high: Option<f64>,
    /// Confidence of the upper end.
    pub confidence: f64,
    /// The method that gave it.
    pub method: BoundMethod,
    /// Number of assignments it rests on.
    pub n: usize,
    /// Notes that qualify it, or say why there is none.
    #[serde(deserialize_with = "values_or_text")]
    pub notes: Vec<BoundNote>,
}

impl Bound {
    /// Takes one performance per randomly drawn assignment. `best` is the performance to compare
    /// with. It is the best on fresh windows. While the sample is being drawn, it is the best of
    /// the sample.
    pub(crate) fn from_sample(
        question: &PlacementQuestion,
        sample: Vec<f64>,
        best: Option<f64>,
    ) -> Self {
        let sample = Sample::new(sample);
        let options = Options {
            method: question.method,
            confidence: question.confidence,
            cap: question.cap,
            ..Options::default()
        };
        let method = BoundMethod::from(question.method);
        let n = sample.n();
        match pinwise_evt::estimate(&sample, &options) {
            Err(refusal) => Self::unknown(question, method, n, vec![refusal.into()]),
            Ok(estimate) => {
                let diagnostics = estimate.diagnostics.iter().copied();
                let mut notes: Vec<BoundNote> = diagnostics.map(BoundNote::Diagnostic).collect();
                notes.push(BoundNote::AnyDistribution { share: estimate.better_fraction });
                // Every reading of a fast node may have come from a slow one.
                let widened = 1.0 + question.abilities.node_spread;
                let upb_high = estimate.upb_high.map(|high| high * widened);
                let refuted = best.is_some_and(|best| estimate.is_falsified_by(best / widened));
                if refuted {
                    notes.push(BoundNote::Exceeded);
                }
                // Nothing is claimed by a bound that is wrong.
                let claims = best.filter(|_| !refuted);
                Self {
                    upb: Some(estimate.upb),
                    upb_low: best,
                    upb_high,
                    gap: claims.and_then(|best| gap(estimate.upb, best)),
                    gap_high: claims.zip(upb_high).and_then(|(best, high)| gap(high, best)),
                    confidence: estimate.confidence,
                    method,
                    n,
                    notes,
                }
            }
        }
    }

    /// Claims the lowest of all known bounds. They come from a learned predictor or random draws,
    /// instances `alone`, and the user's cap. `best` is the best performance and the lower end of
    /// its interval.
    pub(crate) fn of_all(
        question: &PlacementQuestion,
        residual_bound: Option<ResidualBound>,
        alone: Option<Alone>,
        history: &History,
        best: Option<(f64, f64)>,
    ) -> Self {
        let (residual_bound, alone) = widened(question, residual_bound, alone);
        let mean = best.map(|(mean, _)| mean);
        let confidence = Alone::beside(alone, question.confidence);
        let bound = Self::from_draws(question, confidence, residual_bound, history, mean);
        let bound = match alone {
            Some(alone) => bound.or_solo(alone, best),
            None => bound,
        };
        bound.over_nodes(question).or_cap(question, mean)
    }

    /// From what a learned predictor supports, if there is such a bound and no measurement exceeded
    /// it. Else from the random draws. `confidence` is the part of the claim's confidence that is
    /// left for this bound ([`Alone::beside`]).
    fn from_draws(
        question: &PlacementQuestion,
        confidence: f64,
        residual_bound: Option<ResidualBound>,
        history: &History,
        best: Option<f64>,
    ) -> Self {
        let alone = PlacementQuestion { cap: None, confidence, ..question.clone() };
        let sampled = || {
            let bound = Self::from_sample(&alone, history.sample(), best);
            Self { confidence: question.confidence, ..bound }
        };
        match residual_bound {
            Some(residual_bound) if best.is_none_or(|best| best <= residual_bound.upper) => {
                Self::predicted(question, residual_bound, best)
            }
            Some(residual_bound) => {
                let mut bound = sampled();
                let high = residual_bound.upper;
                bound.notes.push(BoundNote::PredictionExceeded { high });
                bound
            }
            None => sampled(),
        }
    }

    /// The bound that may end a steered search: hard limits and the predictor's bound. A steered
    /// search has too few random draws for another one.
    pub(crate) fn while_searching(
        question: &PlacementQuestion,
        residual_bound: Option<ResidualBound>,
        solo: Option<Alone>,
        best: Option<Guess>,
    ) -> Self {
        let (residual_bound, solo) = widened(question, residual_bound, solo);
        let low = best.map_or(f64::NEG_INFINITY, |best| best.mean - best.half);
        let best = best.map(|best| best.mean);
        let bound = match residual_bound
            .filter(|residual_bound| best.is_none_or(|best| best <= residual_bound.upper))
        {
            Some(residual_bound) => Self::predicted(question, residual_bound, best),
            None => Self::unknown(question, BoundMethod::Predicted, 0, Vec::new()),
        };
        let bound = match solo {
            Some(solo) => bound.or_solo(solo, best.map(|best| (best, low))),
            None => bound,
        };
        bound.or_cap(question, best)
    }

    fn predicted(
        question: &PlacementQuestion,
        residual_bound: ResidualBound,
        best: Option<f64>,
    ) -> Self {
        let ResidualBound { scatter, n: draws, .. } = residual_bound;
        let point =
            residual_bound.point.min(residual_bound.upper).max(best.unwrap_or(f64::NEG_INFINITY));
        Self {
            upb: Some(point),
            upb_low: best,
            upb_high: Some(residual_bound.upper),
            gap: best.and_then(|best| gap(point, best)),
            gap_high: best.and_then(|best| gap(residual_bound.upper, best)),
            confidence: question.confidence,
            method: BoundMethod::Predicted,
            n: residual_bound.n,
            notes: vec![BoundNote::Predicted { scatter, draws }],
        }
    }

    /// No bound, and nothing to say about it.
    pub(crate) fn none(question: &PlacementQuestion) -> Self {
        Self::unknown(question, BoundMethod::Exact, 0, Vec::new())
    }

    /// If every different assignment was measured, only the noise is estimated. The upper end is
    /// the highest end of any interval, at a level shared by all of them (Bonferroni).
    pub(crate) fn exact(
        question: &PlacementQuestion,
        history: &History,
        fresh: &FreshWindows,
        best: Option<f64>,
    ) -> Self {
        let n = history.classes().filter(|(_, class)| !class.windows.is_empty()).count();
        let level = 1.0 - 2.0 * (1.0 - question.confidence) / n.max(1) as f64;
        let finalists: BTreeSet<&Assignment> = fresh.candidates().collect();
        let searched = history
            .guesses(level)
            .into_iter()
            .filter(|(assignment, _)| !finalists.contains(assignment))
            .map(|(_, guess)| guess.mean + guess.half);
        let announced = finalists
            .iter()
            .filter_map(|finalist| estimate(&fresh.windows(finalist), level))
            .map(|estimate| estimate.high);
        let high = searched.chain(announced).fold(f64::NEG_INFINITY, f64::max);
        let high = high * (1.0 + question.abilities.node_spread);
        if n == 0 {
            return Self::unknown(
                question,
                BoundMethod::Exact,
                n,
                vec![BoundNote::NothingMeasured],
            );
        }
        if !high.is_finite() {
            return Self::unknown(question, BoundMethod::Exact, n, vec![BoundNote::FewWindows]);
        }
        let failed = history.classes().filter(|(_, class)| class.failed).count();
        let left_out = (failed > 0).then_some(BoundNote::LeftOut { assignments: failed });
        let notes = std::iter::once(BoundNote::AllMeasured).chain(left_out).collect();
        Self {
            upb: best,
            upb_low: best,
            upb_high: Some(best.map_or(high, |best| high.max(best))),
            gap: best.and_then(|best| gap(best, best)),
            gap_high: best.and_then(|best| gap(high.max(best), best)),
            confidence: question.confidence,
            method: BoundMethod::Exact,
            n,
            notes,
        }
        .over_nodes(question)
    }

    /// This bound with a note if it is wider because its readings come from several nodes.
    pub(crate) fn over_nodes(self, question: &PlacementQuestion) -> Self {
        let share = question.abilities.node_spread;
        let note = BoundNote::NodesDiffer { share };
        let tells = share > 0.0 && self.upb_high.is_some() && !self.notes.contains(&note);
        if tells { self.and(note) } else { self }
    }

    /// This bound, or the user's cap if that is lower or there is no bound.
    fn or_cap(self, question: &PlacementQuestion, best: Option<f64>) -> Self {
        let Some(cap) = question.cap else { return self };
        if best.is_some_and(|best| best > cap) {
            return self.and(BoundNote::WrongCap { cap });
        }
        self.limited(BoundMethod::Cap, Alone { sum: cap, high: cap, n: 0 }, best)
    }

    /// This bound, or what instances did alone if that is lower or there is no bound.
    /// `best` is the best performance and the lower end of its interval.
    pub(crate) fn or_solo(self, alone: Alone, best: Option<(f64, f64)>) -> Self {
        if alone.sum <= 0.0 {
            return self;
        }
        if best.is_some_and(|(_, low)| low > alone.high) {
            let notes = if self.upb.is_some() { self.notes } else { Vec::new() };
            return Self { notes, ..self }.and(BoundNote::CompanyHelps);
        }
        self.limited(BoundMethod::Solo, alone, best.map(|(best, _)| best))
    }

    /// This bound with another note.
    fn and(mut self, note: BoundNote) -> Self {
        self.notes.push(note);
        self
    }

    /// This bound, or a hard one if that is lower or there is no other. It says which is not used.
    fn limited(self, method: BoundMethod, hard: Alone, best: Option<f64>) -> Self {
        let standing = self.upb_high.filter(|_| self.gap_high.is_some() || best.is_none());
        if standing.is_some_and(|high| high < hard.high) {
            return self.and(BoundNote::HigherLimit { method, high: hard.high });
        }
        let unused = standing.map(|high| BoundNote::NoLower { method: self.method, high });
        let limit = BoundNote::Limit { method };
        let reached = best.unwrap_or(f64::NEG_INFINITY);
        // Noise may lift the best above; then nothing is left to gain.
        let (point, high) =
            (hard.sum.min(self.upb.unwrap_or(hard.sum)).max(reached), hard.high.max(reached));
        Self {
            upb: Some(point),
            upb_low: best,
            upb_high: Some(high),
            gap: best.and_then(|best| gap(point, best)),
            gap_high: best.and_then(|best| gap(high, best)),
            method,
            n: hard.n,
            notes: std::iter::once(limit).chain(unused).collect(),
            ..self
        }
    }

    /// This bound, or none if what else was measured speaks against it. `best` is the best
    /// announced, `unpinned` the performance of the unpinned program. `still` is the share of
    /// windows in which the metric did not move.
    pub(crate) fn unless_doubtful(
        self,
        best: Option<&Estimate>,
        unpinned: f64,
        still: f64,
    ) -> Self {
        let reason = if still > MOST_STILL {
            BoundNote::StandsStill { share: still }
        } else if let Some(high) = self.upb_high.or(self.upb).filter(|&high| unpinned > high) {
            BoundNote::UnpinnedBetter { unpinned, high }
        } else if self.upb.is_some() && best.is_some_and(|best| best.n < 2) {
            BoundNote::SingleWindow
        } else {
            return self;
        };
        let none =
            Self { upb: None, upb_low: None, upb_high: None, gap: None, gap_high: None, ..self };
        Self { notes: vec![reason], ..none }
    }

    fn unknown(
        question: &PlacementQuestion,
        method: BoundMethod,
        n: usize,
        notes: Vec<BoundNote>,
    ) -> Self {
        Self {
            upb: None,
            upb_low: None,
            upb_high: None,
            gap: None,
            gap_high: None,
            confidence: question.confidence,
            method,
            n,
            notes,
        }
    }

    /// The gap that decides a stop at `within`. It is the upper end's if that is calibrated
    /// (Bayes). It is the point estimate's if the published algorithm says so (profile).
    pub(crate) fn deciding_gap(&self, method: Method) -> Option<f64> {
        match method {
            Method::Bayes => self.gap_high,
            Method::Profile => self.gap,
        }
    }
}

/// Two bounds whose readings may have come from the slowest of several nodes.
fn widened(
    question: &PlacementQuestion,
    residual_bound: Option<ResidualBound>,
    alone: Option<Alone>,
) -> (Option<ResidualBound>, Option<Alone>) {
    let by = 1.0 + question.abilities.node_spread;
    let residual_bound =
        residual_bound.map(|bound| ResidualBound { upper: bound.upper * by, ..bound });
    (residual_bound, alone.map(|alone| alone.widened(question)))
}

/// How far `best` is below `bound`, relative to it; 0 if it is above. `None` for a bound that is
/// not positive.
fn gap(bound: f64, best: f64) -> Option<f64> {
    (bound > 0.0 && bound.is_finite()).then(|| ((bound - best) / bound).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, StrategyName};

    fn bound() -> Bound {
        let question = PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(1));
        let found = Some(100.0);
        let bound = Bound::unknown(&question, BoundMethod::Exact, 4, vec![BoundNote::AllMeasured]);
        Bound {
            upb: found,
            upb_low: found,
            upb_high: Some(102.0),
            gap: Some(0.0),
            gap_high: Some(0.02),
            ..bound
        }
    }

    fn judged(n: usize, unpinned: f64, still: f64) -> Bound {
        let best =
            Estimate { mean: 100.0, low: 98.0, high: 102.0, n, confidence: 0.95, spread: 1.0 };
        bound().unless_doubtful(Some(&best), unpinned, still)
    }

    #[test]
    fn nothing_is_claimed_where_what_else_was_measured_speaks_against_it() {
        assert_eq!(judged(5, 101.0, 0.5), bound());
        for (n, unpinned, still, reason) in [
            (5, 120.0, 0.0, BoundNote::UnpinnedBetter { unpinned: 120.0, high: 102.0 }),
            (1, 90.0, 0.0, BoundNote::SingleWindow),
            (5, 90.0, 0.7, BoundNote::StandsStill { share: 0.7 }),
        ] {
            let Bound { upb, upb_high, gap, gap_high, notes, .. } = judged(n, unpinned, still);
            assert_eq!([upb, upb_high, gap, gap_high], [None; 4], "{reason:?}");
            assert_eq!(notes, [reason]);
        }
    }
}
