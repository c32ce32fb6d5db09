//! A campaign on several nodes, to see what batches cost.
//!
//! A search sees its records in their own order, however many nodes there are. So its certificate
//! rests on the same rule. What changes is the cost: nodes measure what the search foresees, and
//! some of that is never wanted.

use pinwise_lab::Bed;
use pinwise_measure::{
    Effort, MeasureError, Measurement, NodeResult, Setting, Testbed, Time, Unit, Workload, to_begin,
};
use pinwise_topology::{Machine, Random};
use std::collections::VecDeque;

/// How much longer or shorter a measurement takes on a node, as a share: nodes do not keep step.
const JITTER: f64 = 0.1;

/// Nodes that are alike. Each measures one trial at a time.
pub(crate) struct Nodes {
    bed: Bed,
    nodes: Vec<Node>,
    /// In windows since the begin.
    pub(crate) now: f64,
    /// Measurements so far.
    pub(crate) made: u64,
    random: Random,
}

#[derive(Default)]
struct Node {
    /// When the first of its trials ends, in windows.
    ends: f64,
    /// The rest of its round.
    trials: VecDeque<(Setting, Effort)>,
}

impl Nodes {
    pub(crate) fn new(bed: Bed, count: usize, seed: u64) -> Self {
        let nodes = (0..count).map(|_| Node::default()).collect();
        Self { bed, nodes, now: 0.0, made: 0, random: Random::new(seed) }
    }

    /// A node begins the first of some trials.
    fn begin(&mut self, place: usize, now: f64, trials: VecDeque<(Setting, Effort)>) {
        let pace = 1.0 + JITTER * (2.0 * self.random.unit() - 1.0);
        let windows = trials.front().map_or(0.0, |(_, effort)| effort.windows);
        self.nodes[place] = Node { ends: now + windows * pace, trials };
    }

    /// The workload without what the nodes add.
    pub(crate) fn bed(&self) -> &Bed {
        &self.bed
    }
}

impl Testbed for Nodes {
    fn machine(&self) -> &Machine {
        self.bed.machine()
    }

    fn workload(&self) -> &Workload {
        self.bed.workload()
    }

    fn unit(&self) -> &Unit {
        self.bed.unit()
    }

    fn profiles(&self) -> bool {
        self.bed.profiles()
    }

    fn time(&self) -> Time {
        Time::Real
    }

    fn nodes(&self) -> Option<usize> {
        Some(self.nodes.len())
    }

    /// Noise follows the number of the measurement, not that of the record.
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        self.bed.seek(self.made);
        self.made += 1;
        self.bed.measure(setting, effort)
    }

    fn measure_first(
        &mut self,
        rounds: &[Vec<(Setting, Effort)>],
        node: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        let Some(first) = rounds.iter().flatten().next() else { return Ok(()) };
        // The node that began the round measures the rest of it.
        let own: Option<usize> = node.and_then(|name| name.parse().ok());
        let begun = self.nodes.iter().zip(0..);
        let begun = begun.flat_map(|(node, place)| node.trials.iter().map(move |one| (place, one)));
        let mut new = to_begin(rounds, own, begun);
        if let Some(own) = own {
            let mut trials = std::mem::take(&mut self.nodes[own].trials);
            let idle = trials.is_empty();
            trials.extend(std::mem::take(&mut new[0]));
            match idle {
                true => self.begin(own, self.now, trials),
                false => self.nodes[own].trials = trials,
            }
        }
        let mut waiting: VecDeque<VecDeque<_>> =
            new.into_iter().filter(|round| !round.is_empty()).map(VecDeque::from).collect();
        loop {
            for place in 0..self.nodes.len() {
                if self.nodes[place].trials.is_empty()
                    && let Some(round) = waiting.pop_front()
                {
                    self.begin(place, self.now, round);
                }
            }
            let busy = self.nodes.iter().enumerate().filter(|(_, node)| !node.trials.is_empty());
            let next = busy.min_by(|(_, one), (_, other)| one.ends.total_cmp(&other.ends));
            let Some((place, _)) = next else { return Ok(()) };
            self.now = self.nodes[place].ends;
            let mut round = std::mem::take(&mut self.nodes[place].trials);
            let Some((setting, effort)) = round.pop_front() else { return Ok(()) };
            self.begin(place, self.now, round);
            let outcome = self.measure(&setting, effort);
            let name = place.to_string();
            // If its own node has it, only that one's result counts.
            let own_has =
                own.is_some_and(|own| own != place && self.nodes[own].trials.contains(first));
            let came = (&setting, effort) == (&first.0, first.1) && !own_has;
            take(NodeResult { node: name, setting, effort, outcome, scale: None });
            if came {
                return Ok(());
            }
        }
    }
}
