//! What fresh windows show of two ways against each other, as text.

use crate::figures;
use pinwise_placement::{ComparedRounds, Gain};

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

/// After this many rounds more of them help little.
const MANY_ROUNDS: u64 = 40;

/// What may decide an undecided comparison. `others`: the share of the contexts' time that others
/// took meanwhile, if it is worth a word.
pub(crate) fn compared_longer(rounds: &ComparedRounds, others: Option<f64>) -> String {
    let quiet = if others.is_some() { " on a quieter machine" } else { "" };
    match rounds.count() as u64 {
        rounds if rounds >= MANY_ROUNDS => {
            let rounds = figures::counted(rounds, "round");
            format!(
                "To decide it, repeat it{quiet} with a longer --probe: {rounds} were not enough."
            )
        }
        _ => format!("To decide it, raise --budget{quiet}."),
    }
}
