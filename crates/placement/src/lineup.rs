//! What several ways of placing came to, measured beside one another.
//!
//! Searches end with figures of their own windows, taken at different times. To compare ways of placing, everything they came to is
//! measured again, in one campaign of two parts. *Draws*: of ways that leave something to chance (random, balanced) every
//! drawn assignment once, and as many windows of the unpinned program, in random order. *Rounds*: every assignment announced, the
//! worst of each kind of draw, and the unpinned program once a round, in random order, so that whatever changes with time hits
//! all alike.

use crate::search::tally::settled;
use crate::statistics::mean;
use pinwise_campaign::{CampaignId, Purpose, Record, Step, Strategy, Trial};
use pinwise_testbed::{Effort, Retry, Setting};
use pinwise_topology::{Assignment, Random};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};

/// What a way of placing came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// The operating system's own placement.
    Unpinned,
    /// Assignments drawn by chance, of which none is chosen.
    Drawn(Vec<Assignment>),
    /// The assignment announced.
    Announced(Assignment),
}

/// What a search said about the best possible performance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// No assignment is better than this, in the testbed's unit.
    pub bound: f64,
    /// How far what it announced is below the bound, at most.
    pub gap: f64,
}

/// A way of placing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// As the user is told.
    pub name: String,
    /// What it came to.
    pub entry: Entry,
    /// Measurements spent on it.
    pub spent: u64,
    /// The campaign in which it searched; `None` where nothing was searched.
    pub campaign: Option<CampaignId>,
    /// What it claimed, where it made a claim.
    pub claim: Option<Claim>,
}

/// Everything that is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lineup {
    /// In the order in which they are shown.
    pub contenders: Vec<Contender>,
    /// Ways that are not in it: name and reason.
    pub left_out: Vec<(String, String)>,
    /// Fresh windows of each in the second part.
    pub rounds: usize,
    /// Of every interval.
    pub confidence: f64,
    /// A claim of a gap up to this is a certificate.
    pub within: f64,
    /// Of the order in which things are measured.
    pub seed: u64,
}

impl Lineup {
    /// How many measurements it takes, where nothing fails.
    pub fn measurements(&self) -> u64 {
        // The worst of a set of draws is one setting, as everything else is.
        (self.draws().len() + self.rounds * self.contenders.len()) as u64
    }

    /// The settings of the first part: everything drawn, and as many windows unpinned as the largest set of draws has.
    pub(crate) fn draws(&self) -> Vec<Setting> {
        let drawn = |contender: &Contender| match &contender.entry {
            Entry::Drawn(assignments) => assignments.clone(),
            _ => Vec::new(),
        };
        let sets: Vec<Vec<Assignment>> = self.contenders.iter().map(drawn).collect();
        let unpinned = self.contenders.iter().any(|contender| contender.entry == Entry::Unpinned);
        let windows = if unpinned { sets.iter().map(Vec::len).max().unwrap_or(0) } else { 0 };
        let pinned = sets.into_iter().flatten().map(Setting::Pinned);
        pinned.chain(std::iter::repeat_n(Setting::Unpinned, windows)).collect()
    }

    /// The settings of a round, given the first part's outcome: performances by setting, in any order.
    pub(crate) fn round(&self, drawn: &[(&Setting, f64)]) -> Vec<Setting> {
        let of = |contender: &Contender| match &contender.entry {
            Entry::Unpinned => Some(Setting::Unpinned),
            Entry::Announced(assignment) => Some(Setting::Pinned(assignment.clone())),
            Entry::Drawn(assignments) => worst(assignments, drawn).map(Setting::Pinned),
        };
        let different: BTreeSet<Setting> = self.contenders.iter().filter_map(of).collect();
        different.into_iter().collect()
    }
}

/// The assignment with the lowest mean among those drawn.
pub(crate) fn worst(assignments: &[Assignment], drawn: &[(&Setting, f64)]) -> Option<Assignment> {
    let performance = |assignment: &Assignment| {
        let own = |(setting, value): &(&Setting, f64)| {
            matches!(setting, Setting::Pinned(other) if other == assignment).then_some(*value)
        };
        let values: Vec<f64> = drawn.iter().filter_map(own).collect();
        (!values.is_empty()).then(|| mean(&values))
    };
    let measured = assignments.iter().filter_map(|assignment| Some((assignment, performance(assignment)?)));
    measured.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(assignment, _)| assignment.clone())
}

/// What was measured, and the performance; `None` where it failed.
pub(crate) type Window<'a> = (&'a Setting, Option<f64>);

/// The outcomes of a judge's campaign: those of the first part, and all later ones.
pub(crate) fn parts<'a>(lineup: &Lineup, records: &'a [Record]) -> (Vec<Window<'a>>, Vec<Window<'a>>) {
    let outcome =
        |record: &'a Record| (&record.trial.setting, record.outcome.as_ref().ok().map(|measured| measured.performance));
    let mut first: Vec<_> = settled(records).map(outcome).collect();
    let later = first.split_off(lineup.draws().len().min(first.len()));
    (first, later)
}

/// The strategy that measures a [`Lineup`].
#[derive(Debug)]
pub struct Judge {
    lineup: Lineup,
    random: Random,
    queue: VecDeque<Setting>,
    /// Rounds begun; `None` during the first part.
    round: Option<usize>,
    settings: Vec<Setting>,
}

impl Judge {
    /// A judge of `lineup`.
    pub fn new(lineup: &Lineup) -> Self {
        let mut random = Random::new(lineup.seed);
        let mut draws = lineup.draws();
        random.shuffle(&mut draws);
        Self { lineup: lineup.clone(), random, queue: draws.into(), round: None, settings: Vec::new() }
    }
}

fn fresh_window(setting: Setting) -> Trial {
    Trial { setting, purpose: Purpose::Final, effort: Effort::default() }
}

impl Strategy for Judge {
    fn step(&mut self, history: &[Record]) -> Step {
        if let Some(setting) = self.queue.pop_front() {
            return Step::Measure(fresh_window(setting));
        }
        let round = self.round.map_or(0, |round| round + 1);
        if self.round.is_none() {
            let (first, _) = parts(&self.lineup, history);
            let drawn: Vec<_> = first.into_iter().filter_map(|(setting, value)| Some((setting, value?))).collect();
            self.settings = self.lineup.round(&drawn);
        }
        // What cannot run once is not tried again.
        let failed: BTreeSet<&Setting> = history
            .iter()
            .filter(|record| matches!(&record.outcome, Err(error) if error.retry == Retry::Other))
            .map(|record| &record.trial.setting)
            .collect();
        self.settings.retain(|setting| !failed.contains(setting));
        self.round = Some(round);
        if round >= self.lineup.rounds || self.settings.is_empty() {
            return Step::Stop(format!("{} fresh windows of each were measured", self.lineup.rounds));
        }
        let mut settings = self.settings.clone();
        self.random.shuffle(&mut settings);
        self.queue.extend(settings);
        match self.queue.pop_front() {
            Some(setting) => Step::Measure(fresh_window(setting)),
            None => Step::Stop("nothing is left to measure".to_owned()),
        }
    }

    fn foresee(&self, most: usize) -> Vec<Trial> {
        self.queue.iter().take(most).cloned().map(fresh_window).collect()
    }
}
