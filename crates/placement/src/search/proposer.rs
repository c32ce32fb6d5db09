//! The `Proposer` trait: one way to propose assignments, and what it sees.

use crate::search::history::History;
use crate::{BlackboxForecast, PlacementQuestion, StopReason};
use pinwise_campaign::{Purpose, Trial};
use pinwise_measure::{Effort, Setting};
use pinwise_topology::{Assignment, Random, Space};

/// The view of a search that a proposer has.
pub(crate) struct View<'a> {
    pub(crate) question: &'a PlacementQuestion,
    pub(crate) space: &'a Space,
    pub(crate) history: &'a History,
    pub(crate) random: &'a mut Random,
    /// The share of the budget used so far.
    pub(crate) used: f64,
    /// The share that searching may use.
    pub(crate) until: f64,
    /// The cost of one trial, as a share of the budget.
    pub(crate) cost: f64,
}

/// The next step of a proposer.
pub(crate) enum Next {
    /// These, in this order.
    Sequence(Vec<Trial>),
    /// These, in any order: they are compared with one another, so chance decides the order.
    Round(Vec<Trial>),
    /// These trials of instances of the workload, in any order. They are not compared with the
    /// baseline or the reference.
    Profile(Vec<Trial>),
    /// It has nothing more to try: why. The next proposer follows.
    Done(StopReason),
    /// The goal is reached, for this reason. No proposer follows.
    Reached(StopReason),
}

/// One way of searching. Everything proposed has been measured, or has failed, when it is asked
/// again.
pub(crate) trait Proposer: std::fmt::Debug {
    fn next(&mut self, view: &mut View<'_>) -> Next;

    /// The trials that it will probably want after the last one, at most `most`; see
    /// [`pinwise_campaign::Strategy::foresee`].
    fn foresee(&self, _space: &Space, _history: &History, _most: usize) -> Vec<Trial> {
        Vec::new()
    }

    /// The next round of a proposer that waits for no result, after `ahead` trials of such rounds.
    /// `random` is what it will draw from. Empty: that depends on results.
    fn foresee_round(&self, _space: &Space, _ahead: u64, _random: &mut Random) -> Vec<Trial> {
        Vec::new()
    }

    /// Its predictions, if it makes any.
    fn forecast(
        &self,
        _question: &PlacementQuestion,
        _history: &History,
    ) -> Option<BlackboxForecast> {
        None
    }
}

pub(crate) fn trial(setting: Setting, purpose: Purpose) -> Trial {
    Trial { setting, purpose, effort: Effort::default() }
}

pub(crate) fn pinned(assignment: &Assignment, purpose: Purpose) -> Trial {
    trial(Setting::Pinned(assignment.clone()), purpose)
}
