//! Which nodes are alike. Measurements of nodes that differ do not compare.
//!
//! First what they are: the topology, the processor, the threads of the program. Their kernels may
//! differ. Then how fast they are: each measures one and the same setting a few times.
//!
//! *Method.* With k values on each of n nodes, the standard deviation within nodes is pooled over
//! all: s, with n(k-1) degrees of freedom. The mean of a node differs from the mean of all others
//! by chance with a standard error of s √(1/k + 1/(k(n-1))). A node is unlike if it differs by more
//! than [`ERRORS`] of these, and by more than [`NOTABLE`] of the others' mean. The most deviating
//! node goes first; then the rest is judged again. Of two nodes nobody knows which one is at fault:
//! the first that was named stays.
//!
//! Instead of being set aside, a node that differs may be put on the scale of the others. Its
//! factor is their mean by its own. It is wrong by [`ERRORS`] standard errors at most. The setting
//! says nothing of others: a node with slow memory differs more where memory matters more.
//!
//! [`ERRORS`] standard errors are the half-width of the comparison: what differs by less may pass
//! for alike. It is told. More values make it smaller, so they are taken where they cost little.
//! Later checks compare fresh values, and pool the deviation over all checks.
//!
//! A node is set aside if it is unlike in two series of values. Load of others may show in one.
//!
//! *Limits.* Between two checks a node may become slow unnoticed.

use crate::message::Opened;
use std::time::Duration;

/// How many standard errors a node may differ. The chance that one of 8 alike nodes with 3 values
/// each does is below 2 %, by Student's distribution with 16 degrees of freedom and Bonferroni.
pub const ERRORS: f64 = 4.0;

/// What differs by less than this share is alike: placements are told apart down to a percent.
pub const NOTABLE: f64 = 0.02;

/// How often each node measures the setting.
pub const REFERENCES: usize = 3;

/// The most values of a node that a check takes, if they cost little.
const MOST_REFERENCES: usize = 10;

/// What further values of a check may cost, in time of a node.
const CHEAP: Duration = Duration::from_secs(20);

/// The results of each node from one check to the next: 3 values of it cost 3 %.
pub(crate) const CHECK_EVERY: u64 = 100;

/// By what a node differs from the first.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NodeDifference {
    /// Its domains, caches or memory.
    #[error("its topology is {own}, that of {first} is {other}, or their numbers differ")]
    Topology {
        /// What it has.
        own: String,
        /// The first node.
        first: String,
        /// What that has.
        other: String,
    },
    /// Its processor.
    #[error("its processor is {own}, that of {first} is {other}")]
    Processor {
        /// What it has.
        own: String,
        /// The first node.
        first: String,
        /// What that has.
        other: String,
    },
    /// The contexts that may be used there.
    #[error("CPU {own} may be used on it, and {other} on {first}")]
    Allowed {
        /// There.
        own: String,
        /// The first node.
        first: String,
        /// On that.
        other: String,
    },
    /// The program has other threads there.
    #[error("the program does not have the threads there that it has on {first}")]
    Threads {
        /// The first node.
        first: String,
    },
    /// Its performance in the same setting.
    #[error("its performance differs by {:+.1} % from that of the other nodes", by * 100.0)]
    Performance {
        /// As a share of the others' mean.
        by: f64,
    },
}

/// By what a node differs from the first; `None`: by nothing that matters.
pub fn difference(opened: &Opened, first: &str, other: &Opened) -> Option<NodeDifference> {
    let first = first.to_owned();
    let [own, others] = [opened, other].map(|opened| &opened.fingerprint);
    if own.topology != others.topology {
        let [own, other] = [own, others].map(|fingerprint| fingerprint.summary.clone());
        return Some(NodeDifference::Topology { own, first, other });
    }
    if own.model != others.model {
        let [own, other] = [own, others].map(|fingerprint| fingerprint.model.clone());
        return Some(NodeDifference::Processor { own, first, other });
    }
    if opened.machine.allowed != other.machine.allowed {
        let [own, other] = [opened, other].map(|opened| opened.machine.allowed.to_string());
        return Some(NodeDifference::Allowed { own, first, other });
    }
    let same = opened.workload.threads == other.workload.threads && opened.unit == other.unit;
    (!same).then_some(NodeDifference::Threads { first })
}

/// How much values of one node scatter, pooled over nodes and checks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NodeScatter {
    squares: f64,
    degrees: usize,
}

impl NodeScatter {
    /// That of the values of each node.
    pub fn of<'a>(groups: impl IntoIterator<Item = &'a [f64]>) -> Self {
        let groups = groups.into_iter().filter(|group| group.len() > 1);
        groups
            .map(|group| Self { squares: squares(group), degrees: group.len() - 1 })
            .fold(Self::default(), |one, other| one.with(other))
    }

    /// Both together.
    pub fn with(self, other: Self) -> Self {
        let (squares, degrees) = (self.squares + other.squares, self.degrees + other.degrees);
        Self { squares, degrees }
    }
}

/// A node that differs from those that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnlikeNode {
    /// Which one.
    pub node: usize,
    /// As a share of the others' mean.
    pub by: f64,
    /// By which share of itself the ratio of both means may be wrong.
    pub error: f64,
}

/// What values of one setting say about the nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeLikeness {
    /// The nodes that are unlike.
    pub unlike: Vec<UnlikeNode>,
    /// By which share one of the others may differ unnoticed; `None`: fewer than two are judged.
    pub missed: Option<f64>,
    /// By which share the others differ at most, as far as the values show.
    pub spread: f64,
}

impl NodeLikeness {
    /// Judges the values of each node. `earlier` is the scatter of earlier checks. Nodes with fewer
    /// than two values are not judged.
    pub fn of(values: &[Vec<f64>], earlier: NodeScatter) -> Self {
        let mut judged: Vec<usize> =
            (0..values.len()).filter(|node| values[*node].len() > 1).collect();
        let (mut removed, mut missed, mut spread) = (Vec::new(), None, 0.0);
        while judged.len() > 1 {
            let groups: Vec<&[f64]> = judged.iter().map(|node| &values[*node][..]).collect();
            let scatter = earlier.with(NodeScatter::of(groups.iter().copied()));
            let variance = scatter.squares / scatter.degrees as f64;
            // The deviation, its share of the others' mean, and the share that it may be off.
            let deviation = |place: usize| {
                let own = groups[place];
                let rest: Vec<f64> = (0..groups.len())
                    .filter(|other| *other != place)
                    .flat_map(|other| groups[other].iter().copied())
                    .collect();
                let error = (variance * (1.0 / own.len() as f64 + 1.0 / rest.len() as f64)).sqrt();
                let (by, level) = (mean(own) - mean(&rest), mean(&rest).abs());
                (by.abs(), by / level, ERRORS * error / level)
            };
            let all: Vec<(f64, f64, f64)> = (0..groups.len()).map(deviation).collect();
            let shares = all.iter().map(|(_, _, error)| error.max(NOTABLE));
            missed = shares.max_by(f64::total_cmp).filter(|share| share.is_finite());
            spread = all.iter().map(|(_, by, error)| by.abs() + error).fold(0.0, f64::max);
            // Of nodes that deviate alike, the last goes.
            let worst = (0..groups.len())
                .filter(|place| all[*place].1.abs() > all[*place].2.max(NOTABLE))
                .max_by(|one, other| all[*one].0.total_cmp(&all[*other].0));
            let Some(place) = worst else { break };
            removed.push(judged.remove(place));
            (missed, spread) = (None, 0.0);
        }
        let alike: Vec<f64> = judged.iter().flat_map(|node| values[*node].clone()).collect();
        let groups = judged.iter().chain(&removed).map(|node| &values[*node][..]);
        let scatter = earlier.with(NodeScatter::of(groups));
        let variance = scatter.squares / scatter.degrees as f64;
        let of_others = |node: usize| {
            let own = &values[node];
            let [own_error, error] =
                [own, &alike].map(|values| variance / values.len() as f64 / mean(values).powi(2));
            let error = ERRORS * (own_error + error).sqrt();
            UnlikeNode { node, by: mean(own) / mean(&alike) - 1.0, error }
        };
        let unlike = removed.iter().map(|node| of_others(*node)).collect();
        // Of performances of zero nothing is known.
        let spread = if f64::is_finite(spread) { spread } else { 0.0 };
        Self { unlike, missed, spread }
    }

    /// Whether one more value of each node is worth its time. Each has `count`, and one takes
    /// `each`.
    pub fn wants_more(&self, count: usize, each: Duration) -> bool {
        let coarse = self.missed.is_some_and(|missed| missed > NOTABLE)
            || self.unlike.iter().any(|unlike| unlike.error > NOTABLE);
        coarse && count < MOST_REFERENCES && each.saturating_mul(count as u32) < CHEAP
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_measure::{Unit, Workload};
    use pinwise_topology::{Fingerprint, Machine, Random};
    use serde_json::Value;

    fn unlike(values: &[Vec<f64>]) -> Vec<(usize, f64)> {
        let found = NodeLikeness::of(values, NodeScatter::default()).unlike;
        found.into_iter().map(|unlike| (unlike.node, unlike.by)).collect()
    }

    #[test]
    fn the_scale_of_a_node_comes_with_its_error_and_alike_nodes_with_their_spread() {
        let judged = |values: &[Vec<f64>]| NodeLikeness::of(values, NodeScatter::default());
        // By hand: s = 0.1, of each mean 0.1 / sqrt(3): 1.1547 % of 5, 0.5774 % of 10.
        let found = judged(&[vec![9.9, 10.0, 10.1], vec![4.9, 5.0, 5.1]]);
        let [UnlikeNode { node: 1, by, error }] = found.unlike[..] else { panic!("{found:?}") };
        assert!((by + 0.5).abs() < 1e-12 && (error - 4.0 * 0.012910).abs() < 1e-5, "{found:?}");
        assert_eq!((found.missed, found.spread), (None, 0.0), "one node is left");
        assert!(found.wants_more(3, Duration::from_secs(1)), "a scale gets better with more");
        // Each of two unlike nodes is compared with those that are alike.
        let three = [vec![10.0; 3], vec![10.1; 3], vec![5.0; 3], vec![20.1; 3], vec![10.05; 3]];
        let found = judged(&three);
        let mut by: Vec<(usize, f64)> = found.unlike.iter().map(|one| (one.node, one.by)).collect();
        by.sort_by_key(|(node, _)| *node);
        assert!(
            matches!(by[..], [(2, half), (3, twice)]
            if (half + 0.50249).abs() < 1e-4 && (twice - 1.0).abs() < 1e-4),
            "{by:?}"
        );
        // What passes for alike may differ all the same: by 1 % here, and by what noise hides.
        let spread = |one: [f64; 3], other: [f64; 3]| judged(&[one.into(), other.into()]).spread;
        assert!((spread([10.0; 3], [9.9; 3]) - 0.1 / 9.9).abs() < 1e-9);
        assert!((spread([9.9, 10.0, 10.1], [9.9, 10.0, 10.1]) - 0.0327).abs() < 1e-4);
    }

    #[test]
    fn a_slow_node_is_found_and_noise_is_none() {
        let alike = vec![vec![10.0, 10.2, 9.9], vec![10.1, 9.8, 10.0], vec![10.0, 10.1, 10.1]];
        assert_eq!(unlike(&alike), []);
        let mut slow = alike.clone();
        slow[1].iter_mut().for_each(|value| *value *= 0.8);
        let found = unlike(&slow);
        assert!(matches!(found[..], [(1, by)] if (by + 0.2).abs() < 0.02), "{found:?}");
        // What repeats bit for bit and differs by less than a placement does is alike.
        assert_eq!(unlike(&[vec![10.0; 3], vec![10.1; 3]]), []);
        assert!(
            matches!(unlike(&[vec![10.0; 3], vec![12.0; 3]])[..], [(1, _)]),
            "of two, the last"
        );
        assert_eq!(unlike(&[vec![], vec![1.0], vec![9.0, 9.0]]), [], "nothing to judge by");
    }

    #[test]
    fn what_may_be_missed_is_told_and_shrinks_with_more_values() {
        let values = |count: usize| -> Vec<Vec<f64>> {
            (0..2).map(|_| (0..count).map(|place| [9.9, 10.0, 10.1][place % 3]).collect()).collect()
        };
        let judged = |values: &[Vec<f64>]| NodeLikeness::of(values, NodeScatter::default());
        // By hand: s = 0.1, the error is 0.1 √(2/3), four of them are 3.27 % of 10.
        let three = judged(&values(3));
        assert!((three.missed.unwrap() - 0.0327).abs() < 1e-4, "{three:?}");
        let second = Duration::from_secs(1);
        assert!(three.wants_more(3, second) && !three.wants_more(3, 9 * second), "{three:?}");
        assert!(!three.wants_more(MOST_REFERENCES, second));
        let nine = judged(&values(9));
        assert!(!nine.wants_more(9, second), "{nine:?}");
        // Just beyond it a node is found, just below it is not.
        let shifted = |by: f64| {
            let mut values = values(3);
            values[1].iter_mut().for_each(|value| *value += by);
            judged(&values).unlike.len()
        };
        assert_eq!((shifted(0.32), shifted(0.34)), (0, 1));
        // Of one node there is nothing to say.
        assert_eq!(judged(&values(3)[..1]).missed, None);
        // Earlier checks say that these values are close by chance.
        let (close, wide) = ([vec![10.0; 3], vec![10.5; 3]], [&[8.0, 12.0, 10.0][..]; 8]);
        assert_eq!(judged(&close).unlike.len(), 1);
        assert_eq!(NodeLikeness::of(&close, NodeScatter::of(wide)).unlike, []);
    }

    /// The chance that the documentation of [`ERRORS`] states, by simulation.
    #[test]
    fn alike_nodes_are_rarely_unlike() {
        let mut random = Random::new(7);
        let mut normal = || -> f64 {
            (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
        };
        let campaigns = 4000;
        let wrong = (0..campaigns).filter(|_| {
            let nodes: Vec<Vec<f64>> =
                (0..8).map(|_| (0..REFERENCES).map(|_| 10.0 + 2.0 * normal()).collect()).collect();
            !unlike(&nodes).is_empty()
        });
        let wrong = wrong.count();
        assert!(wrong < campaigns / 50, "{wrong} of {campaigns}");
    }

    #[test]
    fn a_node_differs_by_what_the_measurements_depend_on() {
        let opened = |shape: &str| {
            let machine = Machine::from_shape(shape).unwrap();
            let fingerprint = Fingerprint { model: "m".into(), ..Fingerprint::of(&machine) };
            let (workload, unit) = (Workload::new("a", &[&["r"]]), Unit::rate("1/s"));
            Opened { machine, fingerprint, workload, unit, width: None, facts: Value::Null }
        };
        let first = opened("4");
        let mut other = first.clone();
        other.fingerprint.kernel = Some("7.1".into());
        assert_eq!(difference(&other, "a", &first), None, "kernels may differ");
        other.workload = Workload::new("a", &[&["r", "t"]]);
        let threads = NodeDifference::Threads { first: "a".into() };
        assert_eq!(difference(&other, "a", &first), Some(threads));
        other.machine.allowed = other.machine.allowed.iter().take(2).collect();
        let allowed = difference(&other, "a", &first);
        assert!(matches!(allowed, Some(NodeDifference::Allowed { .. })), "{allowed:?}");
        other.fingerprint.model = "n".into();
        let processor = difference(&other, "a", &first);
        assert!(matches!(processor, Some(NodeDifference::Processor { .. })), "{processor:?}");
        let topology = difference(&opened("8"), "a", &first);
        assert!(matches!(topology, Some(NodeDifference::Topology { .. })), "{topology:?}");
    }
}
