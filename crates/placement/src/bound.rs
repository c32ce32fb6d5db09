//! What is known of the best possible performance.

use crate::fresh::Fresh;
use crate::search::ceiling::Ceiling;
use crate::search::tally::Tally;
use crate::statistics::estimate;
use crate::{Estimate, Question};
use pinwise_evt::{Method, Options, Sample};
use pinwise_testbed::figures::percent;
use pinwise_topology::Assignment;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The method's name where a predictor was learned.
const PREDICTED: &str = "predicted";

/// The method's name where the bound is what instances did alone.
const SOLO: &str = "solo";

/// How the note begins where a bound is known to be wrong.
const REFUTED: &str = "the best was measured above the bound by prediction, which refutes it";

/// How the note begins that holds of any random sample.
const WHATEVER: &str = "whatever the distribution";

/// What is known of the best possible performance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Estimate of the best possible performance; `None` when the sample supports none (`notes` say why).
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
    /// `exact` when every class was measured, `predicted` by what a learned predictor supports, `solo` from what
    /// instances did alone, else the estimator.
    pub method: String,
    /// Number of assignments it rests on.
    pub n: usize,
    /// Diagnostics in words, and the reason where there is no bound.
    pub notes: Vec<String>,
}

impl Bound {
    /// From one performance per randomly drawn assignment, and the performance to compare with: the best on fresh windows, or
    /// the best of the sample while it is being drawn. `say` says a performance with its unit.
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
                let mut notes: Vec<String> = estimate.diagnostics.iter().map(|note| note.in_words(&say)).collect();
                notes.push(format!(
                    "{WHATEVER}, at most {} of all placements beat the best of this sample",
                    percent(estimate.better_fraction)
                ));
                if best.is_some_and(|best| estimate.is_falsified_by(best)) {
                    notes.push("the best was measured above the bound: the bound is wrong here".to_owned());
                }
                Self {
                    upb: Some(estimate.upb),
                    upb_low: best,
                    upb_high: estimate.upb_high,
                    gap: best.and_then(|best| gap(estimate.upb, best)),
                    gap_high: best.zip(estimate.upb_high).and_then(|(best, high)| gap(high, best)),
                    confidence: estimate.confidence,
                    method: method.to_owned(),
                    n,
                    notes,
                }
            }
        }
    }

    /// From what a learned predictor supports, where there is such a bound and nothing above it was measured; else from the random
    /// draws. `say` says a performance with its unit.
    pub(crate) fn from_draws(
        question: &Question,
        ceiling: Option<Ceiling>,
        tally: &Tally,
        best: Option<f64>,
        say: impl Fn(f64) -> String,
    ) -> Self {
        match ceiling {
            Some(ceiling) if best.is_none_or(|best| best <= ceiling.upper) => {
                Self::predicted(question, ceiling, best, say)
            }
            Some(ceiling) => {
                let mut bound = Self::from_sample(question, tally.sample(), best, &say);
                bound.notes.push(format!("{REFUTED} ({})", say(ceiling.upper)));
                bound
            }
            None => Self::from_sample(question, tally.sample(), best, say),
        }
    }

    fn predicted(question: &Question, ceiling: Ceiling, best: Option<f64>, say: impl Fn(f64) -> String) -> Self {
        let mut notes = vec![format!(
            "by prediction: near the top performance is what was learned to within {} (standard deviation over {} draws, noise \
             included); it rests on that being so for the best assignment too",
            percent(ceiling.scatter),
            ceiling.n
        )];
        let mut upper = ceiling.upper;
        match question.cap {
            Some(cap) if best.is_some_and(|best| best > cap) => {
                notes.push(format!("the best is above the cap of {}, which is wrong and not used", say(cap)));
            }
            Some(cap) if cap < upper => {
                upper = cap;
                notes.push("the upper end is the cap".to_owned());
            }
            _ => {}
        }
        let point = ceiling.point.min(upper).max(best.unwrap_or(f64::NEG_INFINITY));
        Self {
            upb: Some(point),
            upb_low: best,
            upb_high: Some(upper),
            gap: best.and_then(|best| gap(point, best)),
            gap_high: best.and_then(|best| gap(upper, best)),
            confidence: question.confidence,
            method: PREDICTED.to_owned(),
            n: ceiling.n,
            notes,
        }
    }

    /// Where every class of the space was measured, nothing is estimated but the noise: the upper end is the highest end of any
    /// class's interval, at a level shared by all classes (Bonferroni).
    pub(crate) fn exact(question: &Question, tally: &Tally, fresh: &Fresh, best: Option<f64>) -> Self {
        let n = tally.classes().filter(|(_, class)| !class.windows.is_empty()).count();
        let level = 1.0 - 2.0 * (1.0 - question.confidence) / n.max(1) as f64;
        let finalists: BTreeSet<&Assignment> = fresh.candidates().collect();
        let searched = tally
            .guesses(level)
            .into_iter()
            .filter(|(assignment, _)| !finalists.contains(assignment))
            .map(|(_, guess)| guess.mean + guess.half);
        let announced = finalists
            .iter()
            .filter_map(|finalist| estimate(&fresh.windows(finalist), level))
            .map(|estimate| estimate.high);
        let high = searched.chain(announced).fold(f64::NEG_INFINITY, f64::max);
        let high = Some(high).filter(|high| high.is_finite());
        let failed = tally.classes().filter(|(_, class)| class.failed).count();
        let mut notes = vec!["every assignment was measured: the bound rests on noise alone".to_owned()];
        if failed > 0 {
            notes.push(format!("{failed} assignments could not be measured and are left out"));
        }
        Self {
            upb: best,
            upb_low: best,
            upb_high: high.map(|high| best.map_or(high, |best| high.max(best))),
            gap: best.and_then(|best| gap(best, best)),
            gap_high: best.zip(high).and_then(|(best, high)| gap(high.max(best), best)),
            confidence: question.confidence,
            method: "exact".to_owned(),
            n,
            notes,
        }
    }

    /// This bound, or where there is none that of what instances did alone: `solo` is the sum of the best of each, `high` its upper end.
    pub(crate) fn or_solo(self, solo: f64, high: f64, best: Option<Estimate>) -> Self {
        if self.upb.is_some() || solo <= 0.0 {
            return self;
        }
        let premise =
            "the sum of the best that each instance did alone: it rests on company never making an instance faster";
        if best.is_some_and(|best| best.low.is_finite() && best.low > high) {
            let refuted =
                "the best was measured above what the instances did alone: company helps here, and there is no bound";
            return Self { notes: vec![refuted.to_owned()], method: SOLO.to_owned(), ..self };
        }
        let mean = best.map(|best| best.mean);
        Self {
            upb: Some(mean.map_or(solo, |mean| solo.max(mean))),
            upb_low: mean,
            upb_high: Some(mean.map_or(high, |mean| high.max(mean))),
            gap: mean.and_then(|mean| gap(solo.max(mean), mean)),
            gap_high: mean.and_then(|mean| gap(high.max(mean), mean)),
            method: SOLO.to_owned(),
            notes: vec![premise.to_owned()],
            ..self
        }
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

    /// The gap that a stop at `within` is decided by: the upper end's where it is calibrated (Bayes), the point estimate's
    /// where the published algorithm says so (profile).
    pub(crate) fn deciding_gap(&self, method: Method) -> Option<f64> {
        match method {
            Method::Bayes => self.gap_high,
            Method::Profile => self.gap,
        }
    }
}

/// How far `best` is below `bound`, relative to it; 0 where it is above. `None` for a bound that is not positive.
fn gap(bound: f64, best: f64) -> Option<f64> {
    (bound > 0.0 && bound.is_finite()).then(|| ((bound - best) / bound).max(0.0))
}
