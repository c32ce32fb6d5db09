//! The strategy that compares several ways of placing.
//!
//! *Problem.* Searches end with figures of their own windows, taken at different times. So a
//! comparison measures every assignment they announced again, in one campaign of three stages:
//!
//! 1. *Draws*. Ways with chance in them (random, balanced): every drawn assignment once.
//! 2. *Choice*. Rounds of everything announced, the [`EXTREMES`] lowest draws of each way, and the
//!    highest of all. Their means choose the best known assignment and the worst draw of each way.
//! 3. *Verdict*. Rounds of what was chosen, everything announced, the unpinned program, and a share
//!    of each way's draws. Over all rounds each drawn assignment is measured once more.
//!
//! An assignment that was chosen for a high or low mean was partly lucky. So its windows of the
//! choice say nothing about it, and losses come from the verdict alone. A round is in random order,
//! and losses are taken round by round. So changes over time affect all alike.

use crate::compare::ways::{ComparedWays, EXTREMES};
use crate::fresh_windows::BASELINE_WINDOWS;
use crate::statistics::mean;
use pinwise_campaign::{Purpose, Record, Step, Strategy, Trial, TrialRounds, settled};
use pinwise_measure::{Effort, Retry, Setting};
use pinwise_topology::{Assignment, Random};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The way for which a window of the verdict counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WindowOwner {
    /// This setting.
    Of(Setting),
    /// The mean over what the contender with this index drew.
    Draws(usize),
}

/// The windows of one round of the verdict; what could not be measured has none.
pub(crate) type Round = BTreeMap<WindowOwner, Vec<f64>>;

/// The result of the choice.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chosen {
    /// The best known.
    pub(crate) best: Option<Assignment>,
    /// The worst draw, by contender.
    pub(crate) worst: BTreeMap<usize, Assignment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ComparisonStage {
    Draws,
    /// The number of rounds begun.
    Choice(usize),
    Verdict(usize),
}

/// Measures a [`ComparedWays`]; [`crate::Comparison`] is what that shows.
#[derive(Debug)]
pub struct ComparisonStrategy {
    ways: ComparedWays,
    random: Random,
    stage: ComparisonStage,
    queue: VecDeque<(Option<WindowOwner>, Trial)>,
    /// How many trials the round of the verdict had when it began.
    size: usize,
    /// The owner of the trial proposed last.
    asked: Option<WindowOwner>,
    /// How many records were taken into account.
    seen: usize,
    failed: BTreeSet<Setting>,
    /// Windows of the first stage, and of the second.
    drawn: BTreeMap<Assignment, Vec<f64>>,
    tried: BTreeMap<Assignment, Vec<f64>>,
    candidates: BTreeSet<Assignment>,
    chosen: Chosen,
    verdict: Vec<Round>,
}

impl ComparisonStrategy {
    /// A strategy of `ways`.
    pub fn new(ways: &ComparedWays) -> Self {
        let mut strategy = Self {
            ways: ways.clone(),
            random: Random::new(ways.seed),
            stage: ComparisonStage::Draws,
            queue: VecDeque::new(),
            size: 0,
            asked: None,
            seen: 0,
            failed: BTreeSet::new(),
            drawn: BTreeMap::new(),
            tried: BTreeMap::new(),
            candidates: BTreeSet::new(),
            chosen: Chosen::default(),
            verdict: Vec::new(),
        };
        let draws = ways.drawn().flat_map(|(_, drawn)| drawn);
        let trials =
            draws.map(|drawn| (None, trial(Setting::Pinned(drawn.clone()), Purpose::Sample)));
        strategy.ask(trials.collect());
        strategy
    }

    /// A strategy that has seen `records`, as after measuring them.
    pub(crate) fn replay(ways: &ComparedWays, records: &[Record]) -> Self {
        let mut strategy = Self::new(ways);
        strategy.step(&[]);
        for last in settled(records) {
            strategy.step(records.get(..=last.number as usize).unwrap_or(records));
        }
        strategy
    }

    /// How many measurements it takes at most, if none is repeated.
    pub fn measurements(ways: &ComparedWays) -> u64 {
        ways.expected(ways.announced().count())
    }

    /// The chosen assignments; none before the verdict began.
    pub(crate) fn chosen(&self) -> &Chosen {
        &self.chosen
    }

    /// Windows before the verdict: of the draws, and of the choice.
    pub(crate) fn windows_before(&self) -> usize {
        self.drawn.values().chain(self.tried.values()).map(Vec::len).sum()
    }

    /// Which assignment leads in the windows of the choice so far, and its mean there.
    pub(crate) fn leader(&self) -> Option<(Assignment, f64)> {
        let means = self.tried.iter().map(|(tried, windows)| (tried, mean(windows)));
        let (leader, mean) = means.max_by(|one, other| one.1.total_cmp(&other.1))?;
        Some((leader.clone(), mean))
    }

    /// The rounds of the verdict.
    pub(crate) fn verdict(&self) -> &[Round] {
        &self.verdict
    }

    fn ask(&mut self, mut trials: Vec<(Option<WindowOwner>, Trial)>) {
        self.random.shuffle(&mut trials);
        self.queue.extend(trials);
    }

    fn learn(&mut self, history: &[Record]) {
        for record in settled(history.get(self.seen..).unwrap_or_default()) {
            let setting = &record.trial.setting;
            let performance = match &record.outcome {
                Ok(measured) => measured.performance,
                Err(error) => {
                    if error.retry == Retry::Other {
                        self.failed.insert(setting.clone());
                    }
                    continue;
                }
            };
            match (record.trial.purpose, setting, self.asked.take()) {
                (Purpose::Sample, Setting::Pinned(drawn), None) => {
                    self.drawn.entry(drawn.clone()).or_default().push(performance);
                }
                (Purpose::Climb, Setting::Pinned(tried), None) => {
                    self.tried.entry(tried.clone()).or_default().push(performance);
                }
                (Purpose::Final, _, Some(seat)) => {
                    if let Some(round) = self.verdict.last_mut() {
                        round.entry(seat).or_default().push(performance);
                    }
                }
                _ => {}
            }
        }
        self.seen = history.len();
    }

    /// The assignments among which is chosen.
    fn candidates(&self) -> BTreeSet<Assignment> {
        let ranked = |of: &mut dyn Iterator<Item = &Assignment>| {
            let of: BTreeSet<&Assignment> = of.collect();
            let mut ranked: Vec<(&Assignment, f64)> = of
                .into_iter()
                .filter_map(|drawn| Some((drawn, mean(self.drawn.get(drawn)?))))
                .collect();
            ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
            ranked.into_iter().map(|(drawn, _)| drawn.clone()).collect::<Vec<_>>()
        };
        let mut candidates: BTreeSet<Assignment> = self.ways.announced().cloned().collect();
        for (_, drawn) in self.ways.drawn() {
            candidates.extend(ranked(&mut drawn.iter()).into_iter().take(EXTREMES));
        }
        let all = ranked(&mut self.ways.drawn().flat_map(|(_, drawn)| drawn));
        candidates.extend(all.into_iter().rev().take(EXTREMES));
        candidates
    }

    fn choose(&self) -> Chosen {
        let height = |tried: &Assignment| self.tried.get(tried).map(|windows| mean(windows));
        let ranked = |of: &mut dyn Iterator<Item = &Assignment>| {
            let mut heights: Vec<(Assignment, f64)> =
                of.filter_map(|tried| Some((tried.clone(), height(tried)?))).collect();
            heights.sort_by(|a, b| a.1.total_cmp(&b.1));
            heights
        };
        let lowest = |drawn: &[Assignment]| Some(ranked(&mut drawn.iter()).first()?.0.clone());
        Chosen {
            best: ranked(&mut self.candidates.iter()).pop().map(|(best, _)| best),
            worst: self
                .ways
                .drawn()
                .filter_map(|(index, drawn)| Some((index, lowest(drawn)?)))
                .collect(),
        }
    }

    /// One round of the verdict.
    fn round(&self, round: usize) -> Vec<(Option<WindowOwner>, Trial)> {
        let pinned = |assignment: &Assignment| Setting::Pinned(assignment.clone());
        let chosen = self.chosen.worst.values().chain(&self.chosen.best);
        let settings: BTreeSet<Setting> = self.ways.announced().chain(chosen).map(pinned).collect();
        let unpinned = if self.ways.unpinned() { BASELINE_WINDOWS } else { 0 };
        let settings = settings.into_iter().chain(std::iter::repeat_n(Setting::Unpinned, unpinned));
        let mut seats: Vec<(WindowOwner, Setting)> =
            settings.map(|setting| (WindowOwner::Of(setting.clone()), setting)).collect();
        for (index, drawn) in self.ways.drawn() {
            let share = drawn.iter().skip(round).step_by(self.ways.rounds);
            seats.extend(share.map(|drawn| (WindowOwner::Draws(index), pinned(drawn))));
        }
        seats
            .into_iter()
            .map(|(seat, setting)| (Some(seat), trial(setting, Purpose::Final)))
            .collect()
    }

    /// Lets what is known so far fill the queue. `false`: there is nothing more to measure. If
    /// nothing pinned could be measured, there is no verdict.
    fn refill(&mut self) -> bool {
        let rounds = self.ways.rounds;
        self.stage = match self.stage {
            ComparisonStage::Draws => {
                self.candidates = self.candidates();
                ComparisonStage::Choice(0)
            }
            ComparisonStage::Choice(begun) if begun < rounds => {
                let tried = |tried: &Assignment| {
                    (None, trial(Setting::Pinned(tried.clone()), Purpose::Climb))
                };
                self.ask(self.candidates.iter().map(tried).collect());
                ComparisonStage::Choice(begun + 1)
            }
            ComparisonStage::Choice(_) => {
                self.chosen = self.choose();
                ComparisonStage::Verdict(0)
            }
            ComparisonStage::Verdict(begun) if begun < rounds && self.chosen.best.is_some() => {
                self.ask(self.round(begun));
                self.size = self.queue.len();
                self.verdict.push(Round::new());
                ComparisonStage::Verdict(begun + 1)
            }
            ComparisonStage::Verdict(_) => return false,
        };
        true
    }
}

fn trial(setting: Setting, purpose: Purpose) -> Trial {
    Trial { setting, purpose, effort: Effort::default() }
}

impl Strategy for ComparisonStrategy {
    fn step(&mut self, history: &[Record]) -> Step {
        self.learn(history);
        loop {
            while let Some((seat, trial)) = self.queue.pop_front() {
                // An assignment that cannot run is not tried again.
                if !self.failed.contains(&trial.setting) {
                    self.asked = seat;
                    return Step::Measure(trial);
                }
            }
            if !self.refill() {
                return Step::Stop;
            }
        }
    }

    fn foresee(&self, most: usize) -> Vec<Trial> {
        self.queue.iter().take(most).map(|(_, trial)| trial.clone()).collect()
    }

    fn rounds(&self, most: usize) -> Option<TrialRounds> {
        let ComparisonStage::Verdict(begun) = self.stage else { return None };
        let works = |(_, trial): &(Option<WindowOwner>, Trial)| {
            (!self.failed.contains(&trial.setting)).then(|| trial.clone())
        };
        let next = (begun..self.ways.rounds).take(most);
        let next = next.map(|round| self.round(round).iter().filter_map(works).collect());
        let continued = self.queue.len() + 1 < self.size;
        Some(TrialRounds {
            continued,
            rest: self.queue.iter().filter_map(works).collect(),
            next: next.collect(),
        })
    }
}
