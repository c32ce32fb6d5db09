//! A result that came from one of several nodes.

use crate::{Effort, MeasureError, Measurement, Setting};

/// A result, and which node made it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeResult {
    /// The name of the node.
    pub node: String,
    /// What was measured.
    pub setting: Setting,
    /// How long.
    pub effort: Effort,
    /// What came of it.
    pub outcome: Result<Measurement, MeasureError>,
}

/// What of `rounds` is to be begun. Each trial in flight stands for one of them, which is not begun
/// again. A round of which nothing is left stays as an empty one.
pub fn to_begin<'a, T: Clone + PartialEq + 'a>(
    rounds: &[Vec<T>],
    in_flight: impl IntoIterator<Item = &'a T>,
) -> Vec<Vec<T>> {
    let mut flying: Vec<&T> = in_flight.into_iter().collect();
    let mut begins = |trial: &&T| match flying.iter().position(|flying| flying == trial) {
        Some(place) => {
            flying.swap_remove(place);
            false
        }
        None => true,
    };
    rounds.iter().map(|round| round.iter().filter(&mut begins).cloned().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trial_in_flight_stands_for_one() {
        let rounds = [vec!['a', 'b'], vec!['b', 'a'], vec!['a']];
        assert_eq!(to_begin(&rounds, []), rounds);
        assert_eq!(to_begin(&rounds, &['a', 'b', 'c']), [vec![], vec!['b', 'a'], vec!['a']]);
        let left = to_begin(&rounds, &['a', 'a', 'a']);
        assert_eq!(left, [vec!['b'], vec!['b'], vec![]]);
    }
}
