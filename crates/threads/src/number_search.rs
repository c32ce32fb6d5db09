//! Runs any search for a number as a campaign strategy: the next probe, and the answer. Both come
//! from the records.
//!
//! [`NumberQuestion`] is the question: by the survey, by the published search or by a sweep.
//! [`NumberSearch`] proposes one probe after another. The campaign measures and records it.
//! [`NumberQuestion::answer`] computes the answer from the question and the records alone. So a
//! campaign that was killed goes on as it would have. Its answer needs no program.
//!
//! **Stages.** Only probes show what a program is like. So what a probe measures may change during
//! a search ([`ProbeStage`]). A program that ends soon is measured by whole runs. The testbed of a
//! campaign is opened for one stage; the strategy stops where the next one begins.
//!
//! **Doubtful probes.** A survey and a sweep repeat a probe that shows no progress, was starved or
//! jumped (`probe_judge.rs`). It is a record like any other, and no attempt.
//!
//! **Closing probe.** If all probes are of one run, the first number is probed once more at the
//! end. The two probes show whether the program came into another phase meanwhile
//! ([`PhaseChange`](crate::PhaseChange)).
//!
//! **Several nodes.** A round of a sweep goes to one node, and rounds to different ones. A survey
//! and the published search choose by each probe. All of theirs go to one node, so that they
//! compare whatever the nodes differ by.

mod answer;
mod error;
mod probe_judge;
mod question;
mod state;

pub use answer::{FoundNumber, NumberSearchEnd, SetAside, Unfound};
pub use error::{Jump, NumberSearchError};
use pinwise_campaign::{Record, Step, Strategy, Trial, TrialRounds};
use pinwise_measure::Probe;
pub use question::{NumberQuestion, PublishedQuestion, SearchMethod, WholeRuns};
use serde::{Deserialize, Serialize};
use state::SearchState;
use std::time::Duration;

/// A stage of a search: what its probes measure. Stages follow each other in this order. A search
/// need not have all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeStage {
    /// One whole run, which shows how long runs take.
    #[serde(rename = "trial")]
    Timing,
    /// Moments of a run.
    Moments,
    /// Whole runs.
    Runs,
}

/// The position of a search, from its records: how the program is probed now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPosition {
    /// The stage that the search is at.
    pub stage: ProbeStage,
    /// The number of the first record of that stage.
    pub first: usize,
    /// How long the timing run took.
    pub run: Option<Duration>,
    /// The program ended within a short probe.
    pub short: bool,
    /// The length of an ordinary probe at that stage.
    pub window: Duration,
}

/// One probe that a search counts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// T: what the search asked for.
    pub asked: u32,
    /// The probe. Its progress is the value that is maximised.
    pub probe: Probe,
    /// The share of the contexts' time that the program lost to others. `None`: it is not known.
    #[serde(default)]
    pub lost: Option<f64>,
    /// The program fell below the floor. The search does not ask for this number again.
    #[serde(default)]
    pub below_floor: bool,
}

/// Proposes the probes of a search.
pub struct NumberSearch<'a> {
    state: SearchState<'a>,
    /// The records that the state knows.
    taken: usize,
    /// The stage that the testbed is opened for.
    stage: ProbeStage,
}

impl<'a> NumberSearch<'a> {
    /// The strategy of a campaign that has these records by now. Its testbed is to be opened for
    /// the stage that [`NumberSearch::stage`] says. `convert` is the program's Convert().
    pub fn new(
        search: &'a NumberQuestion,
        convert: &'a dyn Fn(u32) -> u32,
        records: &[Record],
    ) -> Self {
        let stage = search.progressed(convert, records).stage;
        Self { state: SearchState::new(search, convert), taken: 0, stage }
    }

    /// The stage that the testbed has to be opened for.
    pub fn stage(&self) -> ProbeStage {
        self.stage
    }

    /// The strategy stopped because the next stage begins. Open the testbed for that one, and go on
    /// with a new searcher.
    pub fn is_next_stage(&self) -> bool {
        self.state.progressed.stage > self.stage
    }
}

impl Strategy for NumberSearch<'_> {
    fn step(&mut self, history: &[Record]) -> Step {
        history[self.taken..].iter().for_each(|record| self.state.take(record));
        self.taken = history.len();
        if self.is_next_stage() {
            return Step::Stop;
        }
        self.state.next()
    }

    fn foresee(&self, most: usize) -> Vec<Trial> {
        self.state.following().take(most).map(|(_, trial)| trial).collect()
    }

    fn rounds(&self, most: usize) -> Option<TrialRounds> {
        Some(self.state.rounds(most))
    }
}

#[cfg(test)]
mod tests;
