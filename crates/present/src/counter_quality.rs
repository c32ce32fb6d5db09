//! How far counts can be trusted, in sentences.

use crate::doctor::counter_event;
use crate::figures::{self, percent};
use pinwise_measure::{CounterQuality, QuantumAutocorrelation};

/// Whether counters took turns, and how well a quantum predicts the next one.
pub fn counter_sentences(quality: &CounterQuality) -> Vec<String> {
    let noun = if quality.quanta == 1 { "quantum" } else { "quanta" };
    let quanta = format!("{} {noun}", figures::count(quality.quanta));
    let turns = if quality.counted > 0.999 {
        format!("Counters took no turns in {quanta}.")
    } else {
        format!(
            "Counters took turns: the least counted event was counted in {} of the CPU time, over \
             {quanta}. Counts are scaled.",
            percent(quality.counted)
        )
    };
    let each: Vec<String> = quality
        .autocorrelation
        .iter()
        .map(|(&event, QuantumAutocorrelation { next, six, .. })| {
            let six = six.map_or(String::new(), |six| format!(" ({six:.2})"));
            format!("{} {next:.2}{six}", counter_event(event))
        })
        .collect();
    let sums = quality.autocorrelation.values().any(|event| event.six.is_some());
    let correlate = (!each.is_empty()).then(|| {
        format!(
            "Autocorrelation of the rates of events from one quantum to the next{}: {}. Near 1, a \
             quantum predicts the next one well.",
            if sums { " (of sums of six quanta)" } else { "" },
            each.join(", ")
        )
    });
    [Some(turns), correlate].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::CounterEvent;

    #[test]
    fn turns_and_autocorrelations_are_said_as_far_as_they_are_known() {
        let known = |next, six| QuantumAutocorrelation { next, six, quanta: 40 };
        let mut quality = CounterQuality {
            counted: 0.43,
            quanta: 1200,
            autocorrelation: [
                (CounterEvent::Instructions, known(0.93, Some(0.81))),
                (CounterEvent::L2Misses, known(0.92, None)),
            ]
            .into(),
        };
        let said = counter_sentences(&quality).join(" ");
        assert!(said.contains("in 43 % of the CPU time, over 1,200 quanta"), "{said}");
        assert!(said.contains("sums of six quanta): instructions 0.93 (0.81), L2 misses 0.92."));
        quality = CounterQuality { counted: 1.0, quanta: 1, ..CounterQuality::default() };
        let said = counter_sentences(&quality);
        assert_eq!(said, ["Counters took no turns in 1 quantum."]);
    }
}
