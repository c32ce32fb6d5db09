//! What the terminal, the page and JSON say of a selection.

use crate::figures::{self, Scale};
use pinwise_measure::Unit;
use pinwise_placement::{PlacedSelection, SelectionOutcome};
use serde::Serialize;
use std::collections::BTreeSet;

/// What runs in a selection: `intmul:2 + hash1_Mem`. `names` are those of all ready instances.
pub fn selection_name(names: &[String], instances: impl IntoIterator<Item = usize>) -> String {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for name in instances.into_iter().filter_map(|instance| names.get(instance)) {
        match counted.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    let named = |(name, count): (&str, usize)| {
        if count > 1 { format!("{name}:{count}") } else { name.to_owned() }
    };
    counted.into_iter().map(named).collect::<Vec<_>>().join(" + ")
}

/// What fresh windows show of a selection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SelectionVerdict {
    /// `best`, `tied` (other selections may be as good) or `none` (before fresh windows).
    pub kind: &'static str,
    /// The same in sentences.
    pub text: String,
}

/// The verdict of a selection of `choose` of the ready instances, whose programs are `names`.
pub fn selection_verdict(
    outcome: &SelectionOutcome,
    names: &[String],
    choose: usize,
) -> SelectionVerdict {
    let Some(best) = outcome.best.as_ref().map(|best| placed_name(names, best)) else {
        let text = "No result yet: no selection has had fresh windows.".to_owned();
        return SelectionVerdict { kind: "none", text };
    };
    let ready = names.len();
    let text = format!("Of {ready} ready instances run these {choose}: {best}.");
    // Other assignments of the best are not other selections.
    let tied = outcome.ties.iter().map(|tie| placed_name(names, tie));
    let tied: BTreeSet<String> = tied.filter(|tied| *tied != best).collect();
    if tied.is_empty() {
        return SelectionVerdict { kind: "best", text };
    }
    let tied = tied.into_iter().collect::<Vec<_>>().join("; ");
    let text =
        format!("{text} Statistically tied with it: {tied}. A larger --budget may choose another.");
    SelectionVerdict { kind: "tied", text }
}

/// What fresh windows and draws gave, each with its label.
pub fn selection_estimates(
    outcome: &SelectionOutcome,
    names: &[String],
    unit: &Unit,
) -> Vec<(&'static str, String)> {
    let scale = Scale::new(unit, 1.0);
    let best = outcome.best.iter().map(|best| ("best", best.performance.show(&scale)));
    let chance = outcome.chance.iter();
    let chance =
        chance.map(|chance| ("chance", format!("{}, over all draws", chance.show(&scale))));
    let gain = outcome.gain().map(|gain| {
        let interval = if gain.low.is_finite() && gain.high.is_finite() {
            format!("{} to {}", figures::change(gain.low), figures::change(gain.high))
        } else {
            "no interval: too few windows".to_owned()
        };
        let gain = figures::change(gain.mean);
        ("gain", format!("{gain} over the mean of all draws ({interval})"))
    });
    let ties = outcome.ties.iter().enumerate().map(|(index, tie)| {
        let (name, performance) = (placed_name(names, tie), tie.performance.show(&scale));
        (if index == 0 { "ties" } else { "" }, format!("{name}, elsewhere, {performance}"))
    });
    best.chain(chance).chain(gain).chain(ties).collect()
}

/// The bound on the best selection on its best assignment, as a clause.
pub fn selection_bound(outcome: &SelectionOutcome, unit: &Unit) -> String {
    let bound = &outcome.bound;
    let (Some(high), Some(gap)) = (bound.upb_high, bound.gap_high) else {
        return "no bound follows from the draws".to_owned();
    };
    let scale = Scale::new(unit, 1.0);
    // To the digits of the best: rounded to fewer, it may read as below it.
    let best = outcome.best.as_ref();
    let scale = best.map_or(scale.clone(), |best| best.performance.telling(&scale));
    format!(
        "no selection on any assignment is better than {} ({} confidence, {}): the gap is at \
         most {}",
        scale.show(high),
        figures::percent(bound.confidence),
        figures::counted(bound.n as u64, "assignment"),
        figures::percent(gap)
    )
}

/// How many of the selections were drawn, in a sentence.
pub fn selections_drawn(outcome: &SelectionOutcome) -> String {
    let drawn = outcome.selections.len();
    format!("{drawn} of {} different selections were drawn.", figures::count(outcome.different))
}

fn placed_name(names: &[String], placed: &PlacedSelection) -> String {
    selection_name(names, placed.instances.iter().map(|pinned| pinned.instance))
}

/// What a program reaches alone, with its unit.
pub fn alone_rate(rate: f64) -> String {
    Scale::new(&Unit::rate("packets/s"), rate).show(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_of_one_program_are_counted_together() {
        let names = ["a", "b", "a", "a"].map(str::to_owned);
        assert_eq!(selection_name(&names, [0, 1, 3]), "a:2 + b");
        assert_eq!(selection_name(&names, [1, 9]), "b", "an instance that there is none of");
    }
}
