//! All nodes measure one setting, at the start and now and then. Those that differ in two series of
//! values are set aside, or put on the scale of the others.

use super::{ConnectedWorker, NodeDifference, NodeLoss, Wanted, Workers};
use crate::likeness::{CHECK_EVERY, NodeLikeness, NodeScatter, REFERENCES, UnlikeNode};
use crate::message::ToWorker;
use pinwise_measure::{Effort, MeasureError, NodeResult, NodeScale, ProgramNote, Setting};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What becomes of a node that differs.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum UnlikeNodes {
    /// It measures nothing more.
    #[default]
    SetAside,
    /// Its results are put on the scale of the others.
    Scaled {
        /// The nodes whose results a resumed campaign has, with the last scale of each.
        known: BTreeMap<String, Option<NodeScale>>,
    },
}

/// The setting that all nodes measure, and what they showed.
#[derive(Clone, Debug)]
pub(super) struct References {
    trial: Wanted,
    unlike: UnlikeNodes,
    /// The tickets of the values that are measured now.
    tickets: BTreeSet<u64>,
    /// The results since the last check.
    since: u64,
    scatter: NodeScatter,
    checks: u64,
    /// Nodes, values of each and what may be missed, at the last check.
    last: Option<(usize, usize, f64)>,
    /// By which share nodes may differ, on the common scale.
    spread: f64,
    /// Scales that were given to nodes.
    scaled: Vec<ProgramNote>,
}

/// What the nodes showed in one series of values.
struct ReferenceSeries {
    values: BTreeMap<usize, Vec<f64>>,
    /// How many values of each node.
    wanted: usize,
    /// Workers that differ.
    unlike: Vec<UnlikeNode>,
    missed: Option<f64>,
    spread: f64,
}

impl References {
    pub(super) fn has(&self, ticket: u64) -> bool {
        self.tickets.contains(&ticket)
    }

    pub(super) fn count(&mut self) {
        self.since += 1;
    }

    /// What people are told.
    pub(super) fn notes(&self) -> impl Iterator<Item = ProgramNote> {
        let alike = self.last.map(|(nodes, references, missed)| {
            let [nodes, references] = [nodes, references].map(|count| count as u64);
            ProgramNote::NodesAlike { nodes, references, checks: self.checks, missed }
        });
        self.scaled.iter().cloned().chain(alike)
    }

    /// By which share nodes may differ, on the common scale.
    pub(super) fn spread(&self) -> f64 {
        self.spread
    }
}

impl Workers {
    /// Measures one setting on each node a few times, now and every `CHECK_EVERY` results of a
    /// node. Sets nodes aside whose measurements fail. Nodes whose performance differs twice are
    /// `unlike`.
    ///
    /// # Errors
    /// No node is left; the user asked to stop.
    pub fn keep_alike_in(
        &mut self,
        setting: &Setting,
        effort: Effort,
        unlike: UnlikeNodes,
    ) -> Result<(), MeasureError> {
        if let UnlikeNodes::Scaled { known } = &unlike {
            for worker in &mut self.workers {
                worker.scale = known.get(&worker.node).copied().flatten();
            }
        }
        self.references = Some(References {
            trial: (setting.clone(), effort),
            unlike,
            tickets: BTreeSet::new(),
            since: u64::MAX,
            scatter: NodeScatter::default(),
            checks: 0,
            last: None,
            spread: 0.0,
            scaled: Vec::new(),
        });
        self.check_likeness(&mut |_, _| ())
    }

    /// Those that are compared. Of two that differ, the first one stays as it is: one on whose
    /// scale earlier results are, or that was named first.
    fn judged(&self) -> Vec<usize> {
        let mut judged: Vec<usize> = self.dispatch.workers().collect();
        judged.sort_by_key(|&worker| {
            let ConnectedWorker { node, number, .. } = &self.workers[worker];
            let is_known = self.references.as_ref().is_some_and(|known| {
                matches!(&known.unlike, UnlikeNodes::Scaled { known } if known.contains_key(node))
            });
            (!is_known, *number)
        });
        judged
    }

    /// Checks whether nodes are still alike, if it is time. `take` gets the results of other
    /// trials, with their workers.
    pub(super) fn check_likeness(
        &mut self,
        take: &mut dyn FnMut(usize, NodeResult),
    ) -> Result<(), MeasureError> {
        let mut judged = self.judged();
        let due = CHECK_EVERY * judged.len() as u64;
        let Some(mut known) = self.references.take_if(|known| known.since >= due) else {
            return Ok(());
        };
        known.since = 0;
        self.references = Some(known);
        if judged.len() < 2 {
            return Ok(());
        }
        let mut series = self.measure_references(&mut judged, take)?;
        if !series.unlike.is_empty() {
            // What others took from a node for a moment sets no node aside.
            let fresh = self.measure_references(&mut judged, take)?;
            let before = series.unlike;
            let twice = |one: &UnlikeNode| {
                before.iter().any(|first| first.node == one.node && first.by * one.by > 0.0)
            };
            series = ReferenceSeries {
                unlike: fresh.unlike.into_iter().filter(twice).collect(),
                ..fresh
            };
        }
        let ReferenceSeries { values, wanted, unlike, missed, mut spread } = series;
        let scatter = NodeScatter::of(values.values().map(Vec::as_slice));
        let is_judged = |worker: &usize| values.get(worker).is_some_and(|values| values.len() > 1);
        let any = judged.iter().any(is_judged);
        for &worker in judged.iter().filter(|worker| any && !is_judged(worker)) {
            let why = self.workers[worker].failure.clone().unwrap_or_default();
            self.lose(worker, NodeLoss::Failing(why));
        }
        for UnlikeNode { node: worker, by, error } in unlike {
            if self.put_on_scale(worker, by, error) {
                spread = spread.max(error);
            } else {
                self.lose(worker, NodeLoss::Unlike(NodeDifference::Performance { by }));
            }
        }
        let left = self.count();
        if let Some(known) = &mut self.references {
            known.tickets.clear();
            known.scatter = known.scatter.with(scatter);
            known.checks += 1;
            known.last = missed.map(|missed| (left, wanted, missed));
            known.spread = spread;
        }
        Ok(())
    }

    /// Puts what a worker measures from now on on the scale of the others, if that is wanted.
    fn put_on_scale(&mut self, worker: usize, by: f64, error: f64) -> bool {
        let Some(known) = &mut self.references else { return false };
        let ConnectedWorker { node, scale, .. } = &mut self.workers[worker];
        let factor = scale.map_or(1.0, |scale| scale.factor) / (1.0 + by);
        let usable = factor.is_finite() && factor > 0.0 && error < 1.0;
        if !usable || known.unlike == UnlikeNodes::SetAside {
            return false;
        }
        *scale = Some(NodeScale { factor, error });
        let note = ProgramNote::NodeScaled { node: node.clone(), factor, error };
        known.scaled.push(note.clone());
        self.news.add(note);
        true
    }

    /// Measures the setting on the nodes that are judged, as often as their differences ask for.
    /// `take` gets the results of other trials. Nodes that are lost meanwhile are no longer judged.
    fn measure_references(
        &mut self,
        judged: &mut Vec<usize>,
        take: &mut dyn FnMut(usize, NodeResult),
    ) -> Result<ReferenceSeries, MeasureError> {
        let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut asked: BTreeMap<usize, usize> = BTreeMap::new();
        let mut longest = Duration::ZERO;
        let mut wanted = REFERENCES;
        loop {
            self.check()?;
            // What a lost worker had is not measured by another one.
            self.dispatch.withdraw();
            for worker in self.dispatch.idle() {
                let asked = asked.entry(worker).or_default();
                if judged.contains(&worker) && *asked < wanted {
                    *asked += 1;
                    self.ask_reference(worker);
                }
            }
            judged.retain(|worker| self.workers[*worker].alive);
            let idle = self.dispatch.idle();
            if judged.iter().all(|worker| idle.contains(worker)) {
                let of = |worker: &usize| values.get(worker).cloned().unwrap_or_default();
                let groups: Vec<Vec<f64>> = judged.iter().map(of).collect();
                let scatter = self.references.as_ref().map(|known| known.scatter);
                let likeness = NodeLikeness::of(&groups, scatter.unwrap_or_default());
                if !likeness.wants_more(wanted, longest) {
                    let NodeLikeness { unlike, missed, spread } = likeness;
                    let named = |one: UnlikeNode| UnlikeNode { node: judged[one.node], ..one };
                    let unlike = unlike.into_iter().map(named).collect();
                    return Ok(ReferenceSeries { values, wanted, unlike, missed, spread });
                }
                wanted += 1;
                continue;
            }
            let Some((worker, ticket, trial, outcome)) = self.result() else { continue };
            if !self.references.as_ref().is_some_and(|known| known.has(ticket)) {
                take(worker, self.node_result(worker, trial, outcome));
            } else if let Ok(measured) = outcome {
                let scale = self.workers[worker].scale.map_or(1.0, |scale| scale.factor);
                values.entry(worker).or_default().push(measured.performance * scale);
                longest = longest.max(measured.duration);
            }
        }
    }

    /// A worker that is idle measures the setting once.
    fn ask_reference(&mut self, worker: usize) {
        let Some(known) = &mut self.references else { return };
        let trial = known.trial.clone();
        if let Some(ticket) = self.dispatch.hand_to(worker, trial.clone(), 0) {
            known.tickets.insert(ticket);
            self.send(worker, ToWorker::Measure { ticket, number: 0, trials: vec![trial] });
        }
    }
}
