//! What to know about a bound, in words.

use crate::figures::{self, Scale};
use crate::note::tagged;
use pinwise_measure::Unit;
use pinwise_placement::{Bound, BoundMethod, BoundNote};
use serde_json::Value;

/// The notes of a bound, each as a clause. `typical` is about the size of performances.
pub fn bound_notes(bound: &Bound, unit: &Unit, typical: f64) -> Vec<String> {
    let scale = Scale::new(unit, typical);
    bound.notes.iter().map(|note| text(note, &scale)).collect()
}

/// As [`bound_notes`], each with its kind and values.
pub fn tagged_bound_notes(bound: &Bound, unit: &Unit, typical: f64) -> Vec<Value> {
    let texts = bound_notes(bound, unit, typical);
    let notes = bound.notes.iter().zip(texts);
    notes.map(|(note, text)| tagged(&note.clone().in_unit(unit), text)).collect()
}

pub(crate) fn text(note: &BoundNote, scale: &Scale) -> String {
    let say = |performance: f64| scale.show(performance);
    let premise = |method: BoundMethod| match method {
        BoundMethod::Cap => "the cap as given: nothing can exceed it",
        _ => "the sum of all instances alone, if co-runners never help",
    };
    match note {
        BoundNote::AnyDistribution { share } => format!(
            "whatever the distribution, at most {} of all assignments beat this sample's best",
            figures::percent(*share)
        ),
        BoundNote::Exceeded => {
            "the best was measured above the bound, which is wrong: do not use it, raise --budget"
                .to_owned()
        }
        BoundNote::PredictionExceeded { high } => format!(
            "the best beats the predicted bound ({}): not used, try --strategy \
             random",
            say(*high)
        ),
        BoundNote::Predicted { scatter, draws } => format!(
            "by prediction, which is off by {} near the top (standard deviation over {draws} \
             draws)",
            figures::percent(*scatter)
        ),
        BoundNote::NothingMeasured => {
            "no assignment could be measured: check the last failure".to_owned()
        }
        BoundNote::FewWindows => {
            "every assignment was measured, but too few times for an interval: raise --budget"
                .to_owned()
        }
        BoundNote::AllMeasured => {
            "every assignment was measured: the bound rests on noise alone".to_owned()
        }
        BoundNote::LeftOut { assignments } => {
            format!(
                "{} could not be measured and may beat the bound: check the last failure",
                figures::counted(*assignments as u64, "assignment")
            )
        }
        BoundNote::WrongCap { cap } => {
            format!("the best is above the cap of {}: the cap is not used, raise it", say(*cap))
        }
        BoundNote::Limit { method } => premise(*method).to_owned(),
        BoundNote::HigherLimit { method, high } => {
            format!("{} is unused: {}", say(*high), premise(*method))
        }
        BoundNote::NoLower { method, high } => {
            format!("the {} bound is no lower: {}", method.name(), say(*high))
        }
        BoundNote::CompanyHelps => {
            "the best did better than the instances alone: no bound; use --cap if you know a limit"
                .to_owned()
        }
        BoundNote::StandsStill { share } => format!(
            "the metric stood still in {} of windows: try a tenfold --window (models: --cycles)",
            figures::percent(*share)
        ),
        BoundNote::UnpinnedBetter { unpinned, high } => format!(
            "unpinned reached {}, beyond the bound {}: no claim, repeat",
            say(*unpinned),
            say(*high)
        ),
        BoundNote::NodesDiffer { share } => format!(
            "nodes may differ by {}, and the bound is higher by that",
            figures::percent(*share)
        ),
        BoundNote::SingleWindow => "the best has a single fresh window, which supports no claim: \
             raise --budget"
            .to_owned(),
        BoundNote::Text { text } => text.clone(),
        BoundNote::Diagnostic(diagnostic) => diagnostic.in_words(say),
        BoundNote::Refusal(refusal) => {
            let reason = refusal.in_words(say);
            match note.lacks_values() {
                Some(true) => format!("{reason}; raise --budget"),
                Some(false) => format!("{reason}; check the metric"),
                None => reason,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn performances_have_the_unit_of_the_metric() {
        let text = |note: BoundNote| text(&note, &Scale::new(&Unit::rate("ops/s"), 80.0));
        let constant = serde_json::json!({ "kind": "constant", "value": 80.0, "n": 60 });
        let constant = text(serde_json::from_value(constant).unwrap());
        assert!(
            constant.ends_with("ops/s: a constant sample shows no tail; check the metric"),
            "{constant}"
        );
        assert_eq!(
            text(BoundNote::LeftOut { assignments: 1 }),
            "1 assignment could not be measured and may beat the bound: check the last failure"
        );
        assert_eq!(
            text(BoundNote::UnpinnedBetter { unpinned: 120.0, high: 102.0 }),
            "unpinned reached 120.0 ops/s, beyond the bound 102.0 ops/s: no claim, repeat"
        );
    }
}
