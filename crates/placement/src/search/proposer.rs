//! What the ways of searching have in common.

use crate::search::history::History;
use crate::{Forecast, Question, StopReason};
use pinwise_campaign::{Purpose, Trial};
use pinwise_measure::{Effort, Setting};
use pinwise_topology::{Assignment, Random, Space};

/// What a proposer may look at.
pub(crate) struct View<'a> {
    pub(crate) question: &'a Question,
    pub(crate) space: &'a Space,
    pub(crate) history: &'a History,
    pub(crate) random: &'a mut Random,
    /// The share of the budget used so far.
    pub(crate) used: f64,
    /// The share that searching may use.
    pub(crate) until: f64,
    /// What one trial costs, as a share of the budget.
    pub(crate) cost: f64,
}

/// What a proposer wants next.
pub(crate) enum Next {
    /// These, in this order.
    Sequence(Vec<Trial>),
    /// These, in any order: they are compared with one another, so chance decides the order.
    Round(Vec<Trial>),
    /// These, in any order, of pieces of the workload: nothing that the baseline or the reference
    /// compares with.
    Profile(Vec<Trial>),
    /// It has nothing more to try: why. The next proposer follows.
    Done(StopReason),
    /// What was asked is reached: why. No proposer follows.
    Reached(StopReason),
}

/// One way of searching. Everything proposed has been measured, or has failed, when it is asked
/// again.
pub(crate) trait Proposer: std::fmt::Debug {
    fn next(&mut self, view: &mut View<'_>) -> Next;

    /// What it will probably want after what it wanted last, at most that many; see
    /// [`pinwise_campaign::Strategy::foresee`].
    fn foresee(&self, _space: &Space, _history: &History, _most: usize) -> Vec<Trial> {
        Vec::new()
    }

    /// What it predicts, where it does.
    fn forecast(&self, _question: &Question, _history: &History) -> Option<Forecast> {
        None
    }
}

pub(crate) fn trial(setting: Setting, purpose: Purpose) -> Trial {
    Trial { setting, purpose, effort: Effort::default() }
}

pub(crate) fn pinned(assignment: &Assignment, purpose: Purpose) -> Trial {
    trial(Setting::Pinned(assignment.clone()), purpose)
}
