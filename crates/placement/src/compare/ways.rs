//! The ways of placing that are compared, and what each announced.

use crate::fresh_windows::BASELINE_WINDOWS;
use crate::{SearchError, StopReason};
use pinwise_campaign::CampaignId;
use pinwise_measure::value_or_text;
use pinwise_topology::Assignment;
use serde::{Deserialize, Serialize};

/// The number of a way's draws that may turn out to be its worst. Also the number of all draws that
/// may turn out to be the best known. Single windows choose these draws.
pub(crate) const EXTREMES: usize = 3;

/// The result that a way of placing announced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WayResult {
    /// The operating system's own placement.
    Unpinned,
    /// Assignments drawn by chance; none of them is chosen.
    Drawn(Vec<Assignment>),
    /// The assignment announced.
    Announced(Assignment),
}

/// The claim of a search about the best possible performance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundClaim {
    /// No assignment is better than this, in the testbed's unit.
    pub bound: f64,
    /// Upper limit of the gap between the announced assignment and the bound.
    pub gap: f64,
    /// Whether the bound is a point estimate, as in the published algorithm, and not the upper end
    /// of its interval.
    #[serde(default)]
    pub estimated: bool,
}

/// A way of placing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contender {
    /// The name that the user sees.
    pub name: String,
    /// The result that it announced.
    pub entry: WayResult,
    /// Measurements spent on it.
    pub spent: u64,
    /// The campaign in which it searched; `None` if nothing was searched.
    pub campaign: Option<CampaignId>,
    /// Its claim about the bound, if it made one.
    pub claim: Option<BoundClaim>,
}

/// A way that is not compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The name that the user sees.
    pub name: String,
    /// Why.
    #[serde(deserialize_with = "value_or_text")]
    pub reason: LeftOutReason,
}

/// Why a way is not compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LeftOutReason {
    /// It cannot search here. Earlier versions had kinds of their own for what has no profile.
    #[serde(alias = "no_profile", alias = "one_instance")]
    Refused {
        /// Why.
        #[serde(default = "no_profile", deserialize_with = "value_or_text")]
        error: SearchError,
    },
    /// It announced nothing.
    NothingAnnounced {
        /// Why its search ended.
        stopped_because: Vec<StopReason>,
    },
    /// It could not be measured.
    NotMeasured,
    /// Text: from a store that was written before reasons had kinds.
    Text {
        /// The sentence.
        text: String,
    },
}

pinwise_measure::text_in_old_stores!(LeftOutReason);

/// The refusal of a workload that has no name.
fn no_profile() -> SearchError {
    SearchError::NoProfile { workload: String::new() }
}

/// Everything that is compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedWays {
    /// In the order in which they are shown.
    pub contenders: Vec<Contender>,
    /// Ways that are not in it.
    pub left_out: Vec<LeftOut>,
    /// Rounds of the verdict, and as many rounds of the choice before it.
    pub rounds: usize,
    /// The confidence of every interval.
    pub confidence: f64,
    /// A claim of a gap up to this is a certificate. Losses that differ by less count as equal with
    /// more windows.
    pub within: f64,
    /// The seed of the order in which things are measured.
    pub seed: u64,
}

impl ComparedWays {
    /// Fewer rounds than these show no interval worth reading.
    pub const FEWEST_ROUNDS: usize = 5;

    /// Reduces rounds, and draws in proportion, until the comparison fits in `windows` if the
    /// searches announce `announced` assignments. Below [`Self::FEWEST_ROUNDS`] only draws shrink,
    /// down to 2 of each way.
    #[must_use]
    pub fn fitted(&self, windows: u64, announced: usize) -> Self {
        let (fewest, draws) = (Self::FEWEST_ROUNDS.min(self.rounds), self.draws());
        let in_proportion = |rounds: usize| (draws * rounds / self.rounds.max(1)).max(2);
        let fewer_rounds =
            (fewest..=self.rounds).rev().map(|all| self.cut(all, in_proportion(all)));
        let fewer_draws = (2..in_proportion(fewest)).rev().map(|draws| self.cut(fewest, draws));
        fewer_rounds
            .chain(fewer_draws)
            .find(|ways| ways.expected(announced) <= windows)
            .unwrap_or_else(|| self.cut(fewest, 2))
    }

    /// The number of draws of each way. If ways differ in it, the largest.
    pub fn draws(&self) -> usize {
        self.drawn().map(|(_, drawn)| drawn.len()).max().unwrap_or_default()
    }

    fn cut(&self, rounds: usize, draws: usize) -> Self {
        let mut ways = Self { rounds, ..self.clone() };
        for contender in &mut ways.contenders {
            if let WayResult::Drawn(drawn) = &mut contender.entry {
                drawn.truncate(draws);
            }
        }
        ways
    }

    /// How many windows it takes if the searches announce this number of assignments.
    pub fn expected(&self, announced: usize) -> u64 {
        let draws: usize = self.drawn().map(|(_, drawn)| drawn.len()).sum();
        let drawn = self.drawn().count();
        let choice = announced + EXTREMES * (drawn + 1);
        let unpinned = if self.unpinned() { BASELINE_WINDOWS } else { 0 };
        // The worst of each way and the best known, which may be a draw.
        let verdict = announced + drawn + 1 + unpinned;
        (2 * draws + self.rounds * (choice + verdict)) as u64
    }

    /// The windows of the fewest rounds: see [`Self::fitted`].
    pub fn fewest_windows(&self, announced: usize) -> u64 {
        self.fitted(0, announced).expected(announced)
    }

    /// The assignments announced.
    pub fn announced(&self) -> impl Iterator<Item = &Assignment> {
        self.contenders.iter().filter_map(|contender| match &contender.entry {
            WayResult::Announced(assignment) => Some(assignment),
            _ => None,
        })
    }

    /// The draws, with the contender that drew them.
    pub(crate) fn drawn(&self) -> impl Iterator<Item = (usize, &[Assignment])> {
        self.contenders.iter().enumerate().filter_map(|(index, contender)| match &contender.entry {
            WayResult::Drawn(assignments) => Some((index, assignments.as_slice())),
            _ => None,
        })
    }

    /// Whether the unpinned program takes part.
    pub(crate) fn unpinned(&self) -> bool {
        self.contenders.iter().any(|contender| contender.entry == WayResult::Unpinned)
    }
}
