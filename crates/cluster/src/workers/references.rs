//! All nodes measure one setting, at the start and now and then: those that differ are set aside.

use super::{NodeDifference, NodeLoss, Wanted, Workers};
use crate::likeness::{CHECK_EVERY, NodeLikeness, NodeScatter, REFERENCES};
use crate::message::ToWorker;
use pinwise_measure::{Effort, MeasureError, NodeResult, ProgramNote, Setting};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The setting that all nodes measure, and what they showed.
#[derive(Clone, Debug)]
pub(super) struct References {
    trial: Wanted,
    /// The tickets of the values that are measured now.
    tickets: BTreeSet<u64>,
    /// The results since the last check.
    since: u64,
    scatter: NodeScatter,
    checks: u64,
    /// Nodes, values of each and what may be missed, at the last check.
    last: Option<(usize, usize, f64)>,
}

impl References {
    pub(super) fn has(&self, ticket: u64) -> bool {
        self.tickets.contains(&ticket)
    }

    pub(super) fn count(&mut self) {
        self.since += 1;
    }

    /// What people are told.
    pub(super) fn note(&self) -> Option<ProgramNote> {
        let (nodes, references, missed) = self.last?;
        let [nodes, references] = [nodes, references].map(|count| count as u64);
        Some(ProgramNote::NodesAlike { nodes, references, checks: self.checks, missed })
    }
}

impl Workers {
    /// Measures one setting on each node a few times, now and every `CHECK_EVERY` results of a
    /// node. Sets nodes aside whose performance differs or whose measurements fail.
    ///
    /// # Errors
    /// No node is left; the user asked to stop.
    pub fn keep_alike_in(&mut self, setting: &Setting, effort: Effort) -> Result<(), MeasureError> {
        let trial = (setting.clone(), effort);
        let (tickets, scatter) = (BTreeSet::new(), NodeScatter::default());
        let (since, checks, last) = (u64::MAX, 0, None);
        self.references = Some(References { trial, tickets, since, scatter, checks, last });
        self.check_likeness(&(setting.clone(), effort), None, &mut |_| ()).map(drop)
    }

    /// Checks whether nodes are still alike, if it is time. Passes results of other trials on. True
    /// if that of the trial `first` was among them.
    pub(super) fn check_likeness(
        &mut self,
        first: &Wanted,
        node: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<bool, MeasureError> {
        let mut judged: Vec<usize> = self.dispatch.workers().collect();
        let due = CHECK_EVERY * judged.len() as u64;
        let Some(mut known) = self.references.take_if(|known| known.since >= due) else {
            return Ok(false);
        };
        let trial = known.trial.clone();
        known.since = 0;
        self.references = Some(known);
        if judged.len() < 2 {
            return Ok(false);
        }
        let mut came = false;
        let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut asked: BTreeMap<usize, usize> = BTreeMap::new();
        let mut longest = Duration::ZERO;
        let mut wanted = REFERENCES;
        let likeness = loop {
            self.check()?;
            // What a lost worker had is not measured by another one.
            self.dispatch.withdraw();
            for worker in self.dispatch.idle() {
                let asked = asked.entry(worker).or_default();
                if judged.contains(&worker)
                    && *asked < wanted
                    && let Some(ticket) = self.dispatch.hand_to(worker, trial.clone(), 0)
                {
                    *asked += 1;
                    if let Some(known) = &mut self.references {
                        known.tickets.insert(ticket);
                    }
                    let trials = vec![trial.clone()];
                    self.send(worker, ToWorker::Measure { ticket, number: 0, trials });
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
                    break likeness;
                }
                wanted += 1;
                continue;
            }
            let Some(result) = self.result() else { continue };
            if !self.references.as_ref().is_some_and(|known| known.has(result.1)) {
                came |= self.pass(result, first, node, take);
            } else if let (worker, _, _, Ok(measured)) = result {
                values.entry(worker).or_default().push(measured.performance);
                longest = longest.max(measured.duration);
            }
        };
        let scatter = NodeScatter::of(values.values().map(Vec::as_slice));
        let is_judged = |worker: &usize| values.get(worker).is_some_and(|values| values.len() > 1);
        let any = judged.iter().any(is_judged);
        for &worker in judged.iter().filter(|worker| any && !is_judged(worker)) {
            let why = self.workers[worker].failure.clone().unwrap_or_default();
            self.lose(worker, NodeLoss::Failing(why));
        }
        for &(place, by) in &likeness.unlike {
            self.lose(judged[place], NodeLoss::Unlike(NodeDifference::Performance { by }));
        }
        let left = self.count();
        if let Some(known) = &mut self.references {
            known.tickets.clear();
            known.scatter = known.scatter.with(scatter);
            known.checks += 1;
            known.last = likeness.missed.map(|missed| (left, wanted, missed));
        }
        Ok(came)
    }
}
