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
//! *Limits.* A node that becomes slow later is not noticed.

use crate::message::Opened;

/// How many standard errors a node may differ. The chance that one of 8 alike nodes with 3 values
/// each does is below 2 %, by Student's distribution with 16 degrees of freedom and Bonferroni.
pub const ERRORS: f64 = 4.0;

/// What differs by less than this share is alike: placements are told apart down to a percent.
pub const NOTABLE: f64 = 0.02;

/// How often each node measures the setting.
pub const REFERENCES: usize = 3;

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

/// The nodes that are unlike, with the share by which each differs, from the values of each node.
/// Nodes with fewer than two values are not judged.
pub fn unlike(values: &[Vec<f64>]) -> Vec<(usize, f64)> {
    let mut judged: Vec<usize> = (0..values.len()).filter(|node| values[*node].len() > 1).collect();
    let mut found = Vec::new();
    while judged.len() > 1 {
        let groups: Vec<&[f64]> = judged.iter().map(|node| &values[*node][..]).collect();
        let squares: f64 = groups.iter().map(|group| squares(group)).sum();
        let degrees: usize = groups.iter().map(|group| group.len() - 1).sum();
        let variance = squares / degrees as f64;
        let deviation = |place: usize| {
            let own = groups[place];
            let rest: Vec<f64> = (0..groups.len())
                .filter(|other| *other != place)
                .flat_map(|other| groups[other].iter().copied())
                .collect();
            let error = (variance * (1.0 / own.len() as f64 + 1.0 / rest.len() as f64)).sqrt();
            let by = mean(own) - mean(&rest);
            let share = by / mean(&rest).abs();
            (by.abs() > ERRORS * error && share.abs() > NOTABLE).then_some((by.abs(), share))
        };
        // Of nodes that deviate alike, the last goes.
        let worst = (0..groups.len())
            .filter_map(|place| Some((place, deviation(place)?)))
            .max_by(|(_, (one, _)), (_, (other, _))| one.total_cmp(other));
        let Some((place, (_, share))) = worst else { break };
        found.push((judged.remove(place), share));
    }
    found
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
