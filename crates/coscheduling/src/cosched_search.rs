//! Which period comes next while running programs are co-scheduled, and whether that helps.
//!
//! **Terms.** A *period as found* leaves the threads to the kernel. In a *period of moves* they are
//! moved ([`ThreadMoves`]). A *round* is one period of each, in random order, each of random
//! length: nothing that recurs in the programs can keep step with them.
//!
//! **Problem.** A co-scheduler can make programs slower than doing nothing does. It must find out
//! while it runs, and then stop.
//!
//! **Method.** Rounds are compared as in every last comparison ([`ComparedRounds`]), over looks
//! that share the error. At each look:
//! - The gain is above nothing beyond its interval: threads are moved from now on. Rounds are made
//!   now and then, and are judged in the same way, from new rounds alone.
//! - The gain is below [`WITHIN`] beyond its interval: the threads are left to the kernel.
//! - Neither after [`MOST_ROUNDS`]: also then. What does not show that it helps is switched off.
//!
//! With [`CoscheduleObjective::Both`], a program that keeps less than [`FLOOR`] of what it makes as
//! found also ends it.
//!
//! *What is compared.* With a metric, the metric. With counters, the sum over programs of their
//! progress, or with [`CoscheduleObjective::Fairness`] the smallest progress. Progress is the rate
//! of instructions as a share of the rate alone; without that, of the mean rate as found so far.
//! The rate alone comes from periods in which no sibling is busy ([`ThreadMoves::Apart`]).
//!
//! *Without counters* no rule decides. So some splits are dealt at random and tried for a round
//! each. The one that looks best is judged by fresh rounds, as the search overstates it. That costs
//! [`SPLITS`] rounds before the first verdict.
//!
//! Everything follows from the records, so a resumed campaign goes on as it would have.

use crate::CoscheduleObjective;
use pinwise_campaign::{Purpose, Record, Step, Strategy, Trial, settled};
use pinwise_measure::{CoscheduledPeriod, Effort, Setting, ThreadMoves};
use pinwise_placement::{ComparedRounds, Gain, GainRule, LastComparisonVerdict, Way};
use pinwise_topology::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Splits that are tried where nothing is counted.
pub const SPLITS: usize = 8;
/// A gain that is not above this share is none worth its trouble.
pub const WITHIN: f64 = 0.01;
/// What each program keeps of its progress as found, with [`CoscheduleObjective::Both`].
pub const FLOOR: f64 = 0.9;
/// Rounds after which a gain that shows neither is given up.
pub const MOST_ROUNDS: usize = 80;
/// The bounds of the length of a period, in quanta.
const QUANTA: [u64; 2] = [20, 60];
/// A period of moves without comparison is this many times as long as one of a round.
const HOLD: f64 = 10.0;
/// The rounds between two periods in which no sibling is busy.
const ROUNDS_PER_APART: usize = 8;

/// What is asked of a co-scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoschedQuestion {
    /// What is to become better.
    pub objective: CoscheduleObjective,
    /// Whether instructions are counted. Otherwise a metric is read.
    pub counted: bool,
    /// The length of a quantum.
    pub quantum: Duration,
    /// When it ends at the latest. `None`: when the programs end.
    pub budget: Option<Duration>,
    /// The confidence of all looks at the gain together.
    pub confidence: f64,
    /// The seed of lengths, orders and splits.
    pub seed: u64,
}

impl CoschedQuestion {
    /// The usual length of a quantum.
    pub const QUANTUM: Duration = Duration::from_millis(100);
}

/// Whether moving threads helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoschedVerdict {
    /// It helps, beyond its interval.
    Helps,
    /// It gains nothing, or less than 1 %: switched off.
    NoGain,
    /// It helped at first, and later it did not: switched off.
    NoLonger,
    /// A program keeps too little of its progress: switched off.
    Unfair,
    /// Its rounds show neither.
    Undecided,
}

/// A round: what a period as found and one of moves showed; `None` if it failed.
#[derive(Clone, Debug)]
struct PeriodPair {
    as_found: Option<SeenPeriod>,
    moved: Option<SeenPeriod>,
    split: ThreadMoves,
}

/// A period that was measured.
#[derive(Clone, Debug)]
struct SeenPeriod {
    performance: f64,
    showed: CoscheduledPeriod,
}

/// What the records show so far.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    /// Splits that were tried, with what each gained in its round.
    pub(crate) tried: Vec<(u64, Option<f64>)>,
    /// How threads are moved, once that is known.
    pub(crate) chosen: Option<ThreadMoves>,
    /// The rounds since moving was last seen to help, or since the beginning.
    pub(crate) rounds: ComparedRounds,
    /// The gain with which moving was last seen to help.
    pub(crate) helped: Option<Gain>,
    /// Why moving was switched off.
    pub(crate) off: Option<CoschedVerdict>,
    /// What each program made as found and in moves, in rounds with both.
    pub(crate) programs: BTreeMap<String, ProgramRounds>,
    /// Rounds of all times that were judged.
    pub(crate) judged: usize,
    /// Whether the period with idle siblings is due.
    apart_due: bool,
    /// Whether a period without comparison is due.
    hold_due: bool,
    /// The half of a round that is there.
    half: Option<(bool, Option<SeenPeriod>)>,
}

/// What a program made, round by round.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgramRounds {
    /// As found and in moves: instructions per second, or the share of CPU time that it got.
    pub(crate) pairs: Vec<(f64, f64)>,
    /// The speed alone: instructions per second of CPU time, in periods with idle siblings.
    pub(crate) alone: Vec<f64>,
    /// The speed as a share of that alone, as found and in moves.
    pub(crate) of_alone: [Vec<f64>; 2],
    /// The most processes of its name in a period.
    pub(crate) processes: u64,
}

impl ProgramRounds {
    /// What it keeps of its progress as found.
    pub(crate) fn kept(&self) -> Option<f64> {
        let (found, moved): (Vec<f64>, Vec<f64>) = self.pairs.iter().copied().unzip();
        let (found, moved) = (mean(&found)?, mean(&moved)?);
        (found > 0.0).then(|| moved / found)
    }
}

/// The mean; `None` without values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Judgement {
    /// Of all records so far.
    pub(crate) fn of(records: &[Record], question: &CoschedQuestion) -> Self {
        let mut judgement = Self {
            tried: Vec::new(),
            chosen: question.counted.then_some(ThreadMoves::Counted),
            rounds: compared(question),
            helped: None,
            off: None,
            programs: BTreeMap::new(),
            judged: 0,
            apart_due: question.counted,
            hold_due: false,
            half: None,
        };
        settled(records).for_each(|record| judgement.take(record, question));
        judgement
    }

    fn take(&mut self, record: &Record, question: &CoschedQuestion) {
        let seen = record.outcome.as_ref().ok().and_then(|measured| {
            let showed = measured.detail.as_ref()?.read().ok()?;
            Some(SeenPeriod { performance: measured.performance, showed })
        });
        match (record.trial.purpose, &record.trial.setting) {
            (_, Setting::Coscheduled(ThreadMoves::Apart)) => {
                self.apart_due = false;
                seen.iter().for_each(|seen| self.take_apart(&seen.showed));
            }
            (Purpose::Other, _) => self.hold_due = false,
            (purpose, setting) => {
                let moves = match setting {
                    Setting::Coscheduled(moves) => Some(*moves),
                    _ => None,
                };
                let Some((was_moved, earlier)) = self.half.take() else {
                    self.half = Some((moves.is_some(), seen));
                    if let Some(moves) = moves {
                        self.half_split(moves);
                    }
                    return;
                };
                let split = moves.or(self.split_of_half).unwrap_or(ThreadMoves::Counted);
                let (as_found, moved) = if was_moved { (seen, earlier) } else { (earlier, seen) };
                let pair = PeriodPair { as_found, moved, split };
                match purpose {
                    Purpose::Climb => self.take_tried(&pair, question),
                    _ => self.take_judged(&pair, question),
                }
            }
        }
    }
}
