//! Which period comes next while running programs are co-scheduled, and whether that helps.
//!
//! **Terms.** An *unpinned period* leaves the threads to the kernel. In a *period of moves* pinwise
//! moves them ([`ThreadMoves`]). A *round* is one period of each, in random order. Lengths are
//! random, so that nothing periodic in the programs can keep step with them.
//!
//! **Problem.** A co-scheduler can make programs slower than the kernel alone would. It must notice
//! this while it runs, and then stop.
//!
//! **Method.** Rounds are compared as in every last comparison ([`ComparedRounds`]), over looks
//! that share the error. At each look:
//! - The whole interval of the gain is above 0: pinwise moves threads from now on. Occasional new
//!   rounds repeat the test, from these new rounds alone.
//! - The whole interval of the gain is below [`WITHIN`]: pinwise leaves the threads to the kernel.
//! - Neither, after [`MOST_ROUNDS`]: the same. pinwise stops if no gain is shown.
//!
//! With [`CoscheduleObjective::Both`], moving also ends if a program keeps less than [`FLOOR`] of
//! its unpinned progress.
//!
//! *What is compared.* With a metric, the metric. With counters, the sum over programs of their
//! progress, or with [`CoscheduleObjective::Fairness`] the smallest progress. Progress is the rate
//! of instructions as a share of the rate alone. If that is unknown, it is a share of the mean
//! unpinned rate so far. The rate alone comes from periods in which no sibling is busy
//! ([`ThreadMoves::Apart`]).
//!
//! *Without counters* no rule can choose a split. So pinwise deals some splits at random and tries
//! each for a round. Fresh rounds then judge the best one, because the search overstates it. This
//! costs [`SPLITS`] rounds before the first verdict.
//!
//! *Failures.* After a failed period the next one begins. [`FAILURES`] failures in a row end a
//! session.
//!
//! Everything follows from the records, so a resumed campaign goes on as it would have.

use crate::{CoscheduleObjective, CoscheduleRule};
use pinwise_campaign::{Purpose, Record, Step, Strategy, Trial, settled};
use pinwise_measure::{CoscheduledPeriod, Effort, ProgramProgress, Setting, ThreadMoves};
use pinwise_placement::{ComparedRounds, Gain, GainRule, LastComparisonVerdict, Way};
use pinwise_topology::Random;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Splits that are tried where nothing is counted.
pub const SPLITS: usize = 8;
/// A gain up to this share is not worth the cost.
pub const WITHIN: f64 = 0.01;
/// The share of its unpinned progress that each program keeps, with [`CoscheduleObjective::Both`].
pub const FLOOR: f64 = 0.9;
/// Rounds after which pinwise stops if the gain is still unclear.
pub const MOST_ROUNDS: usize = 80;
/// The bounds of the length of a period, in quanta.
const QUANTA: [u64; 2] = [20, 60];
/// A period of moves without comparison is this many times as long as one of a round.
const HOLD: f64 = 10.0;
/// The rounds between two periods in which no sibling is busy.
const ROUNDS_PER_APART: usize = 8;

/// This many failed periods in a row end a session. One failure may be chance, and two a pause of
/// the metric. A period takes seconds, so three show that the cause remains.
const FAILURES: usize = 3;

/// The question of a co-scheduled campaign.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CoschedQuestion {
    /// The objective.
    pub objective: CoscheduleObjective,
    /// Whether instructions are counted. Otherwise a metric is read.
    pub counted: bool,
    /// How good neighbours are told from bad ones. Without counters, nothing tells them apart.
    #[serde(default)]
    pub rule: CoscheduleRule,
    /// The length of a quantum.
    pub quantum: Duration,
    /// When it ends at the latest. `None`: when the programs end.
    pub budget: Option<Duration>,
    /// The confidence of the looks at a gain together: until moving is seen to help, and of each
    /// series of looks after that.
    pub confidence: f64,
    /// The seed of lengths, orders and splits.
    pub seed: u64,
}

impl CoschedQuestion {
    /// The usual length of a quantum.
    pub const QUANTUM: Duration = Duration::from_millis(100);

    /// The time of the rounds before the first verdict: that of the shortest periods, and of those
    /// of mean length.
    pub fn first_verdict(&self) -> [Duration; 2] {
        let splits = if self.counted { 0 } else { SPLITS };
        let periods = 2 * (splits + ComparedRounds::FIRST_LOOK) as u64;
        let [least, most] = QUANTA;
        [least, (least + most) / 2].map(|quanta| self.quantum.mul_f64((periods * quanta) as f64))
    }
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

/// A period that was measured.
#[derive(Clone, Debug)]
struct SeenPeriod {
    performance: f64,
    showed: CoscheduledPeriod,
}

/// What the records show so far.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    question: CoschedQuestion,
    /// Splits that were tried, with what each gained in its round.
    pub(crate) tried: Vec<(ThreadMoves, Option<f64>)>,
    /// How threads are moved, once that is known.
    pub(crate) chosen: Option<ThreadMoves>,
    /// The rounds since moving was last seen to help, or since the beginning.
    rounds: ComparedRounds,
    /// The gain with which moving was last seen to help.
    helped: Option<Gain>,
    /// Why moving was switched off.
    off: Option<CoschedVerdict>,
    /// What each program made.
    pub(crate) programs: BTreeMap<String, ProgramRounds>,
    /// Rounds of all times that were judged.
    pub(crate) judged: u64,
    /// A period with idle siblings is due.
    apart_due: bool,
    /// A period without comparison is due.
    hold_due: bool,
    /// The first half of a round, and how threads were moved in it.
    half: Option<(Option<ThreadMoves>, Option<SeenPeriod>)>,
    /// Periods that failed, one after the other.
    failures: usize,
    /// All periods together. Of its counters, those of the last period.
    pub(crate) total: CoscheduledPeriod,
}

/// What a program made, round by round.
#[derive(Clone, Debug)]
pub(crate) struct ProgramRounds {
    /// Its rates in both periods of each round: instructions, or CPU time.
    rounds: ComparedRounds,
    /// The sums of the same: unpinned and in moves.
    sums: [f64; 2],
    /// Instructions in a second of CPU time, in periods with idle siblings.
    alone: Vec<f64>,
    /// Its progress as a share of that alone, unpinned and in moves.
    of_alone: [Vec<f64>; 2],
    /// The most processes of its name in a period.
    pub(crate) processes: u64,
    /// The contexts to which its threads were kept at the end of the last period of moves.
    pub(crate) contexts: Vec<usize>,
}

impl ProgramRounds {
    /// The share of its unpinned progress that it keeps, as a gain.
    pub(crate) fn kept(&self) -> Option<Gain> {
        self.rounds.gain(Way::Placed, Way::Default)
    }

    /// Its mean progress as a share of that alone, unpinned and in moves.
    pub(crate) fn of_alone(&self) -> [Option<f64>; 2] {
        self.of_alone.each_ref().map(|values| mean(values))
    }

    /// Whether it loses more than [`FLOOR`] allows, and surely loses. It is one of so many
    /// `programs`: with many, one seems to lose by chance.
    fn loses_too_much(&self, programs: usize) -> bool {
        let [found, moved] = self.sums;
        let enough = self.rounds.count() >= ComparedRounds::FIRST_LOOK;
        let surely = || {
            let all = self.rounds.clone().with_looks(ComparedRounds::LOOKS * programs);
            all.gain(Way::Placed, Way::Default).is_some_and(|kept| kept.high < 0.0)
        };
        enough && moved < FLOOR * found && surely()
    }
}

/// The mean; `None` without values.
fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// No round yet.
fn compared(question: &CoschedQuestion) -> ComparedRounds {
    ComparedRounds::new(vec![Way::Default, Way::Placed], question.confidence)
        .with_looks(ComparedRounds::LOOKS)
        .by(GainRule::Ranks)
        .with_least(ComparedRounds::FIRST_LOOK)
}

impl Judgement {
    pub(crate) fn new(question: CoschedQuestion) -> Self {
        Self {
            tried: Vec::new(),
            chosen: question.counted.then_some(ThreadMoves::Counted),
            rounds: compared(&question),
            helped: None,
            off: None,
            programs: BTreeMap::new(),
            judged: 0,
            apart_due: question.counted,
            hold_due: false,
            half: None,
            failures: 0,
            total: CoscheduledPeriod::default(),
            question,
        }
    }

    /// Takes in records, each trial whole.
    pub(crate) fn take(&mut self, records: &[Record]) {
        settled(records).for_each(|record| self.take_one(record));
    }

    fn take_one(&mut self, record: &Record) {
        let seen = record.outcome.as_ref().ok().and_then(|measured| {
            let showed: CoscheduledPeriod = measured.detail.as_ref()?.read().ok()?;
            Some(SeenPeriod { performance: measured.performance, showed })
        });
        self.failures = if seen.is_some() { 0 } else { self.failures + 1 };
        if let Some(SeenPeriod { showed, .. }) = &seen {
            let total = &mut self.total;
            total.seconds += showed.seconds;
            total.whole += showed.whole;
            total.quanta += showed.quanta;
            total.moves += showed.moves;
            total.begun += showed.begun;
            total.ended += showed.ended;
            total.cost += showed.cost;
            if showed.counters.is_some() {
                total.counters.clone_from(&showed.counters);
            }
            for program in &showed.programs {
                self.program(program);
            }
        }
        let moves = match record.trial.setting {
            Setting::Coscheduled(moves) => Some(moves),
            _ => None,
        };
        match record.trial.purpose {
            Purpose::Profile => {
                self.apart_due = false;
                seen.iter().for_each(|seen| self.take_apart(&seen.showed));
            }
            Purpose::Other => self.hold_due = false,
            purpose => match self.half.take() {
                None => self.half = Some((moves, seen)),
                Some((first, earlier)) => {
                    let split = moves.or(first).unwrap_or(ThreadMoves::Counted);
                    let (found, moved) =
                        if moves.is_some() { (earlier, seen) } else { (seen, earlier) };
                    match purpose {
                        Purpose::Climb => self.take_tried(split, found, moved),
                        _ => self.take_judged(found.as_ref(), moved.as_ref()),
                    }
                }
            },
        }
    }

    /// Takes in a period in which no sibling was busy.
    fn take_apart(&mut self, showed: &CoscheduledPeriod) {
        for program in &showed.programs {
            let Some(instructions) = program.instructions.filter(|_| program.ran > 0.0) else {
                continue;
            };
            self.program(program).alone.push(instructions / program.ran);
        }
    }

    fn program(&mut self, program: &ProgramProgress) -> &mut ProgramRounds {
        let rounds = || ProgramRounds {
            rounds: compared(&self.question),
            sums: [0.0; 2],
            alone: Vec::new(),
            of_alone: [Vec::new(), Vec::new()],
            processes: 0,
            contexts: Vec::new(),
        };
        let own = self.programs.entry(program.name.clone()).or_insert_with(rounds);
        own.processes = own.processes.max(program.processes);
        own
    }

    /// Takes in a round of the search for a split.
    fn take_tried(
        &mut self,
        split: ThreadMoves,
        found: Option<SeenPeriod>,
        moved: Option<SeenPeriod>,
    ) {
        let gain = found.zip(moved).and_then(|(found, moved)| {
            (found.performance > 0.0).then(|| moved.performance / found.performance - 1.0)
        });
        self.tried.push((split, gain));
        if self.tried.len() >= SPLITS {
            let gain = |tried: &(ThreadMoves, Option<f64>)| tried.1.unwrap_or(f64::NEG_INFINITY);
            let best = self.tried.iter().max_by(|one, other| gain(one).total_cmp(&gain(other)));
            self.chosen = best.map(|(split, _)| *split);
        }
    }

    /// Takes in a round that is judged, and decides.
    fn take_judged(&mut self, found: Option<&SeenPeriod>, moved: Option<&SeenPeriod>) {
        self.judged += 1;
        self.apart_due =
            self.question.counted && self.judged.is_multiple_of(ROUNDS_PER_APART as u64);
        self.hold_due = self.helped.is_some();
        let scores = found.zip(moved).map(|(found, moved)| self.scores(found, moved));
        let [found, moved] = scores.flatten().map_or([None, None], |both| both.map(Some));
        self.rounds.take(vec![found, moved]);
        let looks = 0..ComparedRounds::LOOKS - 1;
        if looks.into_iter().any(|look| self.rounds.count() == ComparedRounds::FIRST_LOOK << look) {
            self.look();
        }
    }

    /// What both periods of a round are compared by. Takes in what each program made.
    fn scores(&mut self, found: &SeenPeriod, moved: &SeenPeriod) -> Option<[f64; 2]> {
        let both: Vec<(&ProgramProgress, &ProgramProgress)> = found
            .showed
            .programs
            .iter()
            .filter_map(|one| {
                let same = |other: &&ProgramProgress| other.name == one.name;
                Some((one, moved.showed.programs.iter().find(same)?))
            })
            .collect();
        let counted = self.question.counted;
        let made = |program: &ProgramProgress| match counted {
            true => program.instructions,
            false => Some(program.ran),
        };
        let mut shares = Vec::new();
        for (found, moved) in both {
            let (Some(found_rate), Some(moved_rate)) = (made(found), made(moved)) else { continue };
            if found_rate <= 0.0 {
                continue;
            }
            let unused = compared(&self.question);
            let own = self.program(found);
            own.contexts.clone_from(&moved.contexts);
            if own.rounds.count() >= MOST_ROUNDS {
                // A run may take weeks. What is shown is of the latest rounds.
                own.rounds = unused;
                own.sums = [0.0; 2];
            }
            own.rounds.take(vec![Some(found_rate), Some(moved_rate)]);
            own.sums[0] += found_rate;
            own.sums[1] += moved_rate;
            let usual = (own.sums[0] + own.sums[1]) / (2 * own.rounds.count()) as f64;
            let alone = mean(&own.alone).filter(|_| counted);
            if let Some(alone) = alone {
                for (share, (program, rate)) in
                    own.of_alone.iter_mut().zip([(found, found_rate), (moved, moved_rate)])
                {
                    share.push(rate / (alone * (program.ran + program.waited)));
                }
            }
            // One weight for both periods, so that a program that wants less counts as slower. It
            // is made of both alike: with that of one alone, demand that varies looks like a gain.
            let wanted = [found, moved].map(|program| program.ran + program.waited);
            let alone = alone.map(|alone| alone * (wanted[0] + wanted[1]) / 2.0);
            shares.push((found_rate, moved_rate, usual, alone));
        }
        if !counted {
            return Some([found.performance, moved.performance]);
        }
        let all_alone = shares.iter().all(|share| share.3.is_some());
        let progress = shares.iter().map(|&(found, moved, usual, alone)| {
            let whole = alone.filter(|_| all_alone).unwrap_or(usual);
            [found / whole, moved / whole]
        });
        let fair = self.question.objective == CoscheduleObjective::Fairness;
        progress.reduce(|one, other| {
            [0, 1].map(|way| if fair { one[way].min(other[way]) } else { one[way] + other[way] })
        })
    }

    /// Decides whether threads are moved from now on.
    fn look(&mut self) {
        let fair = self.question.objective == CoscheduleObjective::Both;
        if fair && self.losers().next().is_some() {
            self.off = Some(CoschedVerdict::Unfair);
            return;
        }
        let no_gain = match self.helped {
            Some(_) => CoschedVerdict::NoLonger,
            None => CoschedVerdict::NoGain,
        };
        match self.rounds.choice(false, WITHIN) {
            LastComparisonVerdict::Placed => {
                self.helped = self.rounds.gain(Way::Placed, Way::Default);
                self.rounds = compared(&self.question);
                self.hold_due = true;
            }
            LastComparisonVerdict::Default => self.off = Some(no_gain),
            _ if self.rounds.count() >= MOST_ROUNDS => {
                let undecided = self.helped.map_or(CoschedVerdict::Undecided, |_| no_gain);
                self.off = Some(undecided);
            }
            _ => {}
        }
    }

    /// The verdict if nothing more is measured, with the gain that it rests on.
    pub(crate) fn verdict(&self) -> (CoschedVerdict, Option<Gain>) {
        let gain = self.rounds.gain(Way::Placed, Way::Default);
        let verdict = match (self.off, self.rounds.choice(false, WITHIN), self.helped) {
            (Some(off), ..) => off,
            (None, LastComparisonVerdict::Placed, _) => CoschedVerdict::Helps,
            (None, LastComparisonVerdict::Default, None) => CoschedVerdict::NoGain,
            (None, LastComparisonVerdict::Default, Some(_)) => CoschedVerdict::NoLonger,
            (None, _, Some(_)) => return (CoschedVerdict::Helps, self.helped),
            (None, _, None) => CoschedVerdict::Undecided,
        };
        (verdict, gain)
    }

    /// The programs that lose too much.
    pub(crate) fn losers(&self) -> impl Iterator<Item = &str> {
        let all = self.programs.len();
        let losers = self.programs.iter().filter(move |(_, program)| program.loses_too_much(all));
        losers.map(|(name, _)| name.as_str())
    }
}

/// Proposes periods: rounds, and what lies between them.
#[derive(Clone, Debug)]
pub struct CoschedSearch {
    judgement: Judgement,
    /// The records that the judgement has.
    taken: usize,
    /// The records of earlier sessions.
    known: usize,
}

impl CoschedSearch {
    /// For this question.
    pub fn new(question: CoschedQuestion) -> Self {
        Self { judgement: Judgement::new(question), taken: 0, known: 0 }
    }

    /// In a session that begins with that many records. What failed before does not end it.
    pub fn after(self, known: usize) -> Self {
        Self { known, ..self }
    }

    /// The next period; `None` if threads are left to the kernel from now on.
    fn next(&self, number: usize) -> Option<(Setting, Purpose, f64)> {
        if self.judgement.off.is_some() {
            return None;
        }
        let Judgement { question, tried, chosen, half, apart_due, hold_due, .. } = &self.judgement;
        let mut random = Random::new(question.seed.wrapping_add((number as u64) << 32));
        let [least, most] = QUANTA;
        let quanta = (least + random.below(most - least + 1)) as f64;
        if *apart_due && half.is_none() {
            return Some((Setting::Coscheduled(ThreadMoves::Apart), Purpose::Profile, quanta));
        }
        let (moves, searching) = match chosen {
            Some(moves) => (*moves, false),
            None => {
                let seed = question.seed.wrapping_add(tried.len() as u64);
                (ThreadMoves::Dealt(seed), true)
            }
        };
        if *hold_due && half.is_none() {
            return Some((Setting::Coscheduled(moves), Purpose::Other, HOLD * quanta));
        }
        let is_moved = match half {
            Some((first, _)) => first.is_none(),
            None => random.below(2) == 1,
        };
        let setting = if is_moved { Setting::Coscheduled(moves) } else { Setting::Unpinned };
        let purpose = match (searching, is_moved) {
            (true, _) => Purpose::Climb,
            (false, true) => Purpose::Final,
            (false, false) => Purpose::Baseline,
        };
        Some((setting, purpose, quanta))
    }
}

impl Strategy for CoschedSearch {
    fn step(&mut self, history: &[Record]) -> Step {
        self.judgement.take(&history[self.taken..]);
        self.taken = history.len();
        let last = history.last().map(|record| &record.outcome);
        if let Some(Err(error)) = last {
            if error.expired {
                return Step::Stop;
            }
            let new = history.len().saturating_sub(self.known);
            if self.judgement.failures.min(new) >= FAILURES {
                return Step::Fail(error.message.clone());
            }
        }
        let Some((setting, purpose, mut windows)) = self.next(history.len()) else {
            return Step::Stop;
        };
        let question = &self.judgement.question;
        if let Some(budget) = question.budget {
            let elapsed = history.last().map_or(Duration::ZERO, |record| record.elapsed);
            let left = budget.saturating_sub(elapsed).as_secs_f64();
            windows = windows.min((left / question.quantum.as_secs_f64()).floor());
            if windows < QUANTA[0] as f64 {
                return Step::Stop;
            }
        }
        Step::Measure(Trial { setting, purpose, effort: Effort { windows } })
    }
}

#[cfg(test)]
mod tests;
