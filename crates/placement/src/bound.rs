//! What is known of the best possible performance.

use crate::confirmation::FreshWindows;
use crate::search::history::{Guess, History};
use crate::search::residual_bound::ResidualBound;
use crate::search::solo_bound::Alone;
use crate::statistics::estimate;
use crate::{Estimate, Question};
use pinwise_evt::{Method, Options, Sample};
use pinwise_figures::percent;
use pinwise_topology::Assignment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How the note begins where a bound is known to be wrong.
const REFUTED: &str = "the best was measured above the bound by prediction, which refutes it";

/// How the note begins that holds of any random sample.
const WHATEVER: &str = "whatever the distribution";

/// The share of windows in which a metric may stand still: beyond it what is measured is when it
/// moves, not how fast.
const MOST_STILL: f64 = 0.5;

/// What is known of the best possible performance.
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
    /// Of the upper end.
    pub confidence: f64,
    /// `exact` when every class was measured, `predicted` by what a learned predictor supports,
    /// `solo` from what instances did alone, `cap` as the user says, else the estimator.
    pub method: String,
    /// Number of assignments it rests on.
    pub n: usize,
    /// Diagnostics in words, and the reason where there is no bound.
    pub notes: Vec<String>,
}

impl Bound {
    /// The [`Bound::method`] where every class was measured.
    pub const EXACT: &str = "exact";
    /// The [`Bound::method`] where a learned predictor supports the bound.
    pub const PREDICTED: &str = "predicted";
    /// The [`Bound::method`] where the bound is what instances did alone.
    pub const SOLO: &str = "solo";
    /// The [`Bound::method`] where the bound is what the user says cannot be exceeded.
    pub const CAP: &str = "cap";

    /// From one performance per randomly drawn assignment, and the performance to compare with: the
    /// best on fresh windows, or the best of the sample while it is being drawn. `say` says a
    /// performance with its unit.
    pub(crate) fn from_sample(
        question: &Question,
        sample: Vec<f64>,
        best: Option<f64>,
        say: impl Fn(f64) -> String,
    ) -> Self {
        let sample = Sample::new(sample);
        let options = Options {
            method: question.method,
            confidence: question.confidence,
            cap: question.cap,
            ..Options::default()
        };
        let method = match question.method {
            Method::Bayes => "bayes",
            Method::Profile => "profile",
        };
        let n = sample.n();
        match pinwise_evt::estimate(&sample, &options) {
            Err(refusal) => Self::unknown(question, method, n, refusal.in_words(say)),
            Ok(estimate) => {
                let mut notes: Vec<String> =
                    estimate.diagnostics.iter().map(|note| note.in_words(&say)).collect();
                notes.push(format!(
                    "{WHATEVER}, at most {} of all placements beat the best of this sample",
                    percent(estimate.better_fraction)
                ));
                let refuted = best.is_some_and(|best| estimate.is_falsified_by(best));
                if refuted {
                    notes.push(
                        "the best was measured above the bound: the bound is wrong here".to_owned(),
                    );
                }
                // Nothing is claimed by a bound that is wrong.
                let claims = best.filter(|_| !refuted);
                Self {
                    upb: Some(estimate.upb),
                    upb_low: best,
                    upb_high: estimate.upb_high,
                    gap: claims.and_then(|best| gap(estimate.upb, best)),
                    gap_high: claims
                        .zip(estimate.upb_high)
                        .and_then(|(best, high)| gap(high, best)),
                    confidence: estimate.confidence,
                    method: method.to_owned(),
                    n,
                    notes,
                }
            }
        }
    }

    /// All that is known: what a learned predictor or random draws support, what instances did
    /// `alone`, and the user's cap; the lowest is claimed. `best` is the best performance and
    /// the lower end of its interval, `say` says a performance with its unit.
    pub(crate) fn of_all(
        question: &Question,
        residual_bound: Option<ResidualBound>,
        alone: Option<Alone>,
        history: &History,
        best: Option<(f64, f64)>,
        say: impl Fn(f64) -> String + Copy,
    ) -> Self {
        let mean = best.map(|(mean, _)| mean);
        let confidence = Alone::beside(alone, question.confidence);
        let bound = Self::from_draws(question, confidence, residual_bound, history, mean, say);
        let bound = match alone {
            Some(alone) => bound.or_solo(alone, best, say),
            None => bound,
        };
        bound.or_cap(question, mean, say)
    }

    /// From what a learned predictor supports, where there is such a bound and nothing above it was
    /// measured; else from the random draws. `confidence` is what the claim's leaves to this
    /// bound alone ([`Alone::beside`]).
    fn from_draws(
        question: &Question,
        confidence: f64,
        residual_bound: Option<ResidualBound>,
        history: &History,
        best: Option<f64>,
        say: impl Fn(f64) -> String,
    ) -> Self {
        let alone = Question { cap: None, confidence, ..question.clone() };
        let sampled = || {
            let bound = Self::from_sample(&alone, history.sample(), best, &say);
            Self { confidence: question.confidence, ..bound }
        };
        match residual_bound {
            Some(residual_bound) if best.is_none_or(|best| best <= residual_bound.upper) => {
                Self::predicted(question, residual_bound, best)
            }
            Some(residual_bound) => {
                let mut bound = sampled();
                bound.notes.push(format!("{REFUTED} ({})", say(residual_bound.upper)));
                bound
            }
            None => sampled(),
        }
    }

    /// What a search may stop by that was steered: hard bounds, and what its predictor supports.
    /// Its random draws are too few.
    pub(crate) fn while_searching(
        question: &Question,
        residual_bound: Option<ResidualBound>,
        solo: Option<Alone>,
        best: Option<Guess>,
    ) -> Self {
        let say = |value: f64| value.to_string();
        let low = best.map_or(f64::NEG_INFINITY, |best| best.mean - best.half);
        let best = best.map(|best| best.mean);
        let bound = match residual_bound
            .filter(|residual_bound| best.is_none_or(|best| best <= residual_bound.upper))
        {
            Some(residual_bound) => Self::predicted(question, residual_bound, best),
            None => Self::unknown(question, Self::PREDICTED, 0, String::new()),
        };
        let bound = match solo {
            Some(solo) => bound.or_solo(solo, best.map(|best| (best, low)), say),
            None => bound,
        };
        bound.or_cap(question, best, say)
    }

    fn predicted(question: &Question, residual_bound: ResidualBound, best: Option<f64>) -> Self {
        let note = format!(
            "by prediction: near the top, predictions are off by {} (standard deviation over {} \
             draws, noise included); this assumes the same for the best assignment",
            percent(residual_bound.scatter),
            residual_bound.n
        );
        let point =
            residual_bound.point.min(residual_bound.upper).max(best.unwrap_or(f64::NEG_INFINITY));
        Self {
            upb: Some(point),
            upb_low: best,
            upb_high: Some(residual_bound.upper),
            gap: best.and_then(|best| gap(point, best)),
            gap_high: best.and_then(|best| gap(residual_bound.upper, best)),
            confidence: question.confidence,
            method: Self::PREDICTED.to_owned(),
            n: residual_bound.n,
            notes: vec![note],
        }
    }

    /// Where every class of the space was measured, nothing is estimated but the noise: the upper
    /// end is the highest end of any class's interval, at a level shared by all classes
    /// (Bonferroni).
    pub(crate) fn exact(
        question: &Question,
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
        if n == 0 {
            return Self::unknown(
                question,
                Self::EXACT,
                n,
                "no assignment could be measured".to_owned(),
            );
        }
        if !high.is_finite() {
            let few = "every assignment was measured, but too few times to say how far off that may be: raise --budget";
            return Self::unknown(question, Self::EXACT, n, few.to_owned());
        }
        let failed = history.classes().filter(|(_, class)| class.failed).count();
        let mut notes =
            vec!["every assignment was measured: the bound rests on noise alone".to_owned()];
        if failed > 0 {
            notes.push(format!("{failed} assignments could not be measured and are left out"));
        }
        Self {
            upb: best,
            upb_low: best,
            upb_high: Some(best.map_or(high, |best| high.max(best))),
            gap: best.and_then(|best| gap(best, best)),
            gap_high: best.and_then(|best| gap(high.max(best), best)),
            confidence: question.confidence,
            method: Self::EXACT.to_owned(),
            n,
            notes,
        }
    }

    /// This bound, or the user's cap where that is lower or there is no bound.
    fn or_cap(self, question: &Question, best: Option<f64>, say: impl Fn(f64) -> String) -> Self {
        let Some(cap) = question.cap else { return self };
        if best.is_some_and(|best| best > cap) {
            let wrong =
                format!("the best is above the cap of {}, which is wrong and not used", say(cap));
            return Self { notes: [self.notes, vec![wrong]].concat(), ..self };
        }
        let premise = "the cap as given: nothing can exceed it";
        self.limited(Self::CAP, Alone { sum: cap, high: cap, n: 0 }, premise, best, say)
    }

    /// This bound, or what instances did alone where that is lower or there is no bound.
    /// `best` is the best performance and the lower end of its interval.
    pub(crate) fn or_solo(
        self,
        alone: Alone,
        best: Option<(f64, f64)>,
        say: impl Fn(f64) -> String,
    ) -> Self {
        if alone.sum <= 0.0 {
            return self;
        }
        if best.is_some_and(|(_, low)| low > alone.high) {
            let refuted = "the best did better than the instances did alone: company helps here, \
                           so there is no bound";
            let notes = if self.upb.is_some() { self.notes } else { Vec::new() };
            return Self { notes: [notes, vec![refuted.to_owned()]].concat(), ..self };
        }
        let premise = "the sum of the best of each instance alone; this assumes that company never \
                       makes one faster";
        self.limited(Self::SOLO, alone, premise, best.map(|(best, _)| best), say)
    }

    /// This bound, or a hard one where that is lower or there is no other; it says which is not
    /// used.
    fn limited(
        self,
        method: &str,
        hard: Alone,
        premise: &str,
        best: Option<f64>,
        say: impl Fn(f64) -> String,
    ) -> Self {
        let standing = self.upb_high.filter(|_| self.gap_high.is_some() || best.is_none());
        if standing.is_some_and(|high| high < hard.high) {
            let unused = format!("{premise}; at {} that is higher, and not used", say(hard.high));
            return Self { notes: [self.notes, vec![unused]].concat(), ..self };
        }
        let unused =
            standing.map(|high| format!("the {} bound is no lower: {}", self.method, say(high)));
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
            method: method.to_owned(),
            n: hard.n,
            notes: std::iter::once(premise.to_owned()).chain(unused).collect(),
            ..self
        }
    }

    /// This bound, or none where what else was measured speaks against it. `best` is the best
    /// announced, `unpinned` what the program did by itself, `still` the share of windows in
    /// which the metric did not move.
    pub(crate) fn unless_doubtful(
        self,
        best: Option<&Estimate>,
        unpinned: f64,
        still: f64,
        say: impl Fn(f64) -> String,
    ) -> Self {
        let reason = if still > MOST_STILL {
            let still = percent(still);
            format!(
                "in {still} of the windows the metric did not change: measure longer windows \
                 (--period; on a model --cycles), ten times as long at first"
            )
        } else if self.upb_high.or(self.upb).is_some_and(|high| unpinned > high) {
            let (unpinned, high) =
                (say(unpinned), say(self.upb_high.or(self.upb).unwrap_or(unpinned)));
            format!(
                "unpinned the program did better ({unpinned}) than the bound allows ({high}): no \
                 bound is claimed"
            )
        } else if self.upb.is_some() && best.is_some_and(|best| best.n < 2) {
            "the best has a single fresh window, from which nothing is claimed: raise --budget"
                .to_owned()
        } else {
            return self;
        };
        let none =
            Self { upb: None, upb_low: None, upb_high: None, gap: None, gap_high: None, ..self };
        Self { notes: vec![reason], ..none }
    }

    fn unknown(question: &Question, method: &str, n: usize, reason: String) -> Self {
        Self {
            upb: None,
            upb_low: None,
            upb_high: None,
            gap: None,
            gap_high: None,
            confidence: question.confidence,
            method: method.to_owned(),
            n,
            notes: vec![reason],
        }
    }

    /// The gap that a stop at `within` is decided by: the upper end's where it is calibrated
    /// (Bayes), the point estimate's where the published algorithm says so (profile).
    pub(crate) fn deciding_gap(&self, method: Method) -> Option<f64> {
        match method {
            Method::Bayes => self.gap_high,
            Method::Profile => self.gap,
        }
    }
}

/// How far `best` is below `bound`, relative to it; 0 where it is above. `None` for a bound that is
/// not positive.
fn gap(bound: f64, best: f64) -> Option<f64> {
    (bound > 0.0 && bound.is_finite()).then(|| ((bound - best) / bound).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, StrategyName};

    fn bound() -> Bound {
        let question = Question::new(StrategyName::Auto, Budget::Measurements(1));
        let found = Some(100.0);
        let bound = Bound::unknown(&question, "exact", 4, "every assignment was measured".into());
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
        bound().unless_doubtful(Some(&best), unpinned, still, |value| format!("{value} op/s"))
    }

    #[test]
    fn nothing_is_claimed_where_what_else_was_measured_speaks_against_it() {
        assert_eq!(judged(5, 101.0, 0.5), bound());
        for (n, unpinned, still, reason) in [
            (
                5,
                120.0,
                0.0,
                "unpinned the program did better (120 op/s) than the bound allows (102 op/s): no \
                 bound is claimed",
            ),
            (
                1,
                90.0,
                0.0,
                "the best has a single fresh window, from which nothing is claimed: raise --budget",
            ),
            (
                5,
                90.0,
                0.7,
                "in 70 % of the windows the metric did not change: measure longer windows \
                 (--period; on a model --cycles), ten times as long at first",
            ),
        ] {
            let Bound { upb, upb_high, gap, gap_high, notes, .. } = judged(n, unpinned, still);
            assert_eq!([upb, upb_high, gap, gap_high], [None; 4], "{reason}");
            assert_eq!(notes, [reason]);
        }
    }
}
