//! A result that came from one of several nodes.

use crate::{Effort, MeasureError, Measurement, Setting};
use serde::{Deserialize, Serialize};

/// What a node's performance is multiplied by, so that it compares with that of other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeScale {
    /// The factor.
    pub factor: f64,
    /// By which share of itself the factor may be wrong.
    pub error: f64,
}

/// A result, and which node made it.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeResult {
    /// The name of the node.
    pub node: String,
    /// What was measured.
    pub setting: Setting,
    /// How long.
    pub effort: Effort,
    /// What came of it, as the node measured it.
    pub outcome: Result<Measurement, MeasureError>,
    /// What puts it on the common scale; `None`: it is on that.
    pub scale: Option<NodeScale>,
}

impl NodeResult {
    /// What came of it, on the common scale of the nodes.
    pub fn on_common_scale(self) -> Result<Measurement, MeasureError> {
        let factor = self.scale.map_or(1.0, |scale| scale.factor);
        self.outcome.map(|measured| Measurement {
            performance: measured.performance * factor,
            spread: measured.spread.map(|spread| spread * factor),
            ..measured
        })
    }
}

/// What of `rounds` is to be begun. Each trial that a node has `begun` stands for one of them. That
/// is not begun again. If a `node` measures the first round, only its own stand for trials there. A
/// round with nothing left stays, empty.
pub fn to_begin<'a, T: Clone + PartialEq + 'a, N: PartialEq>(
    rounds: &[Vec<T>],
    node: Option<N>,
    begun: impl IntoIterator<Item = (N, &'a T)>,
) -> Vec<Vec<T>> {
    let mut begun: Vec<(N, &T)> = begun.into_iter().collect();
    let mut left = Vec::new();
    for (number, round) in rounds.iter().enumerate() {
        let node = node.as_ref().filter(|_| number == 0);
        let mut begins = |trial: &&T| {
            let stands = |(by, begun): &(N, &T)| begun == trial && node.is_none_or(|own| by == own);
            begun.iter().position(stands).map(|place| begun.swap_remove(place)).is_none()
        };
        left.push(round.iter().filter(&mut begins).cloned().collect());
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trial_that_has_begun_stands_for_one() {
        let rounds = [vec!['a', 'b'], vec!['b', 'a'], vec!['a']];
        assert_eq!(to_begin(&rounds, None, [(0, &'c')]), rounds);
        let left = to_begin(&rounds, None, [(0, &'a'), (0, &'b'), (1, &'c')]);
        assert_eq!(left, [vec![], vec!['b', 'a'], vec!['a']]);
        let left = to_begin(&rounds, None, [(0, &'a'), (1, &'a'), (2, &'a')]);
        assert_eq!(left, [vec!['b'], vec!['b'], vec![]]);
    }

    #[test]
    fn no_other_node_stands_in_for_the_one_that_measures_a_round() {
        let rounds = [vec!['a', 'b'], vec!['b', 'a']];
        let left = to_begin(&rounds, Some(0), [(1, &'a'), (0, &'b'), (0, &'b')]);
        assert_eq!(left, [vec!['a'], vec![]]);
    }
}
