//! What fresh windows show of two ways against each other, as text.

use crate::figures;
use crate::note::sentence;
use crate::reason::unmeasured;
use pinwise_placement::{Budget, ComparedRounds, Gain, Unmeasured};
use std::time::Duration;

/// A gain as text: `+12 % (interval +8 % to +16 %)`.
pub fn gain_text(gain: Gain) -> String {
    let [mean, low, high] = [gain.mean, gain.low, gain.high].map(figures::change);
    format!("{mean} (interval {low} to {high})")
}

/// A gain over `other`, or the loss against it.
pub(crate) fn against(gain: Gain, other: &str) -> String {
    let text = gain_text(gain);
    match gain {
        Gain { high, .. } if high < 0.0 => format!("slower than {other}, {text}"),
        Gain { mean, .. } if mean < 0.0 => format!("{text} against {other}"),
        _ => format!("{text} over {other}"),
    }
}

/// A guess from the scatter so far names no more than this many times the budget.
const MANY_TIMES: f64 = 16.0;

/// What may decide an undecided comparison with a tolerance of `within`, made in a search of this
/// `budget`. `others`: the share of the contexts' time that others took meanwhile, if it is
/// notable.
pub(crate) fn decided_by(
    rounds: &ComparedRounds,
    within: f64,
    budget: Duration,
    others: Option<f64>,
) -> String {
    let made = rounds.count().max(1) as f64;
    let least = (ComparedRounds::FIRST_LOOK as f64 / made).max(2.0);
    let times = rounds.times_to_decide(within).unwrap_or(least).max(least);
    let to = raise_budget(Budget::Time(budget), times, least, others.is_some());
    if times > MANY_TIMES {
        let made = figures::counted(rounds.count() as u64, "round");
        return format!("To decide it, {to}: {made} were far too few.");
    }
    format!("To decide it, {to}.")
}

/// What to do if the load of the program changed, which ended its comparison. `None`: it did not.
pub(crate) fn changed(cut_short: Option<&Unmeasured>) -> Option<String> {
    cut_short
        .filter(|why| matches!(why, Unmeasured::Jumped { .. }))
        .map(|why| sentence(&unmeasured(why)))
}

/// The advice to raise the budget to about this many `times` its value, `least` times or more. If
/// others were there (`busy`), it also advises a quieter machine.
pub(crate) fn raise_budget(budget: Budget, times: f64, least: f64, busy: bool) -> String {
    let raised = times.min(MANY_TIMES).max(least);
    let to = match budget {
        Budget::Time(time) => budget_text(time.as_secs_f64() * raised),
        Budget::Measurements(count) => {
            format!("{:.0} (measurements)", (count as f64 * raised).ceil())
        }
    };
    let or_more = if times > raised { " or more" } else { "" };
    let quieter = if busy { " on a quieter machine" } else { "" };
    format!("raise --budget to {to}{or_more}{quieter}")
}

/// Measurements may take this many times as long in the next search as in this one. A choice:
/// estimates of the same program differed by a quarter.
pub(crate) const LONGER: f64 = 1.5;

/// A budget for measurements that are expected to take these seconds, as `--budget` takes it.
pub(crate) fn budget_with_margin(seconds: f64) -> String {
    budget_text(LONGER * seconds)
}

/// `35s`, `2m`: as `--budget` takes it. It is rounded up to 5 s below a minute, else to a minute.
fn budget_text(seconds: f64) -> String {
    match seconds {
        seconds if seconds <= 55.0 => format!("{:.0}s", (seconds / 5.0).ceil().max(1.0) * 5.0),
        seconds => format!("{:.0}m", (seconds / 60.0).ceil()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_placement::Way;

    #[test]
    fn the_advice_to_decide_a_comparison_has_an_amount() {
        let told = |off: f64, rounds: usize, others| {
            let mut compared = ComparedRounds::new(vec![Way::Default, Way::Number], 0.95);
            (0..rounds).for_each(|round| {
                let off = if round % 2 == 0 { 1.0 + off } else { 1.0 - off };
                compared.take(vec![Some(1.0), Some(off)]);
            });
            decided_by(&compared, 0.01, Duration::from_secs(40), others)
        };
        let few = "To decide it, raise --budget to 4m.";
        assert_eq!(told(0.0, 1, None), few, "five rounds are the fewest that may decide");
        assert_eq!(told(0.03, 20, None), "To decide it, raise --budget to 3m.");
        let noisy = told(0.5, 20, Some(0.3));
        let far = "To decide it, raise --budget to 11m or more on a quieter machine: 20 rounds \
                   were far too few.";
        assert_eq!(noisy, far);
        // More than the cap on guesses.
        let raised = |times, least| raise_budget(Budget::Measurements(1), times, least, false);
        assert_eq!(raised(2.0, 30.0), "raise --budget to 30 (measurements)");
        assert_eq!(raised(40.0, 30.0), "raise --budget to 30 (measurements) or more");
        assert_eq!(raised(40.0, 2.0), "raise --budget to 16 (measurements) or more");
        assert_eq!([0.1, 41.0, 56.0, 61.0].map(budget_text), ["5s", "45s", "1m", "2m"]);
        assert_eq!(budget_with_margin(27.0), "45s", "the next start estimated 34 s");
    }
}
