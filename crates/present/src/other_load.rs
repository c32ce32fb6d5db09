//! What other programs took of the machine while a program was measured.

use crate::figures;
use pinwise_measure::OtherLoad;

/// From this share of the contexts on, other programs are notable.
const NOTABLE: f64 = 0.05;

/// Share of the contexts' time that other programs took while a program was measured, if it is
/// notable.
pub fn notable_share(shares: &[OtherLoad]) -> Option<f64> {
    let sum = |of: fn(&OtherLoad) -> f64| shares.iter().map(of).sum::<f64>();
    Some(sum(|share| share.taken) / sum(|share| share.of)).filter(|others| *others >= NOTABLE)
}

/// Says that other programs took this `share` of the contexts' time meanwhile.
pub(crate) fn busy(share: f64, meanwhile: &str) -> String {
    format!(
        "the machine was busy: other programs took {} of it in the {meanwhile}; repeat when quiet",
        figures::percent(share)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_load_is_shown_from_a_twentieth_of_the_machine_on() {
        let share = |taken: f64| OtherLoad::new(taken, 10.0);
        assert_eq!(notable_share(&[]), None);
        assert_eq!(notable_share(&[share(-0.1), share(2.1)]), Some(0.1));
        assert_eq!(notable_share(&[share(0.4)]), None);
        assert_eq!(notable_share(&[share(0.3), share(0.6)]), None);
        let told = crate::sentence(&busy(0.239, "measurements"));
        assert!(told.contains("took 23.9 % of it in the measurements; repeat"), "{told}");
        assert!(told.len() <= 100, "one line: {told}");
    }
}
