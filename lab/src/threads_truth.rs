//! How often `pinwise threads` is wrong. The model of a scheduler runs programs with a known truth,
//! beside stated loads.
//!
//! A [`Cell`] is a program beside a load on a machine. Its truth is the speed of each number beside
//! that load ([`Truth`]). The model itself measures it in long windows that all numbers share. A
//! search sees short windows, one after the other.
//!
//! *Wrong.* A search announces a number for good if fresh windows decided it: "use n" or "keep the
//! default". Fresh windows compared it with another number. The announcement is wrong if the
//! announced number is slower in truth. The loss must exceed the tolerance plus twice the standard
//! error of the truth. An answer that is undecided is never wrong.
//!
//! [`Judged::as_it_was`] applies
//! the same rule to the number of the search alone, over the default. [`Judged::published`] applies
//! it to the published search.
//!
//! *Intervals.* One holds the truth if it overlaps the truth, give or take twice the truth's
//! standard error.

use crate::on_nodes::each;
use pinwise_campaign::Store;
use pinwise_jobs::{
    Caller, Confirmation, JobError, ModelledProgram, Silent, ThreadsAnswer, ThreadsMethod,
    ThreadsProgram, ThreadsRequest, run,
};
use pinwise_measure::MeasureError;
use pinwise_placement::{LastComparisonVerdict, Way};
use pinwise_scheduler::{ModelProber, ModelProgram, OtherPrograms, Platform};
use pinwise_topology::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

/// Programs by what their speed does, and what drives it.
const PROGRAMS: [&str; 11] = [
    include_str!("../models/truth/flat-locks.toml"),
    include_str!("../models/truth/sleep-flat.toml"),
    include_str!("../models/truth/linear-cpu.toml"),
    include_str!("../models/truth/sleep-linear.toml"),
    include_str!("../models/truth/usl-memory.toml"),
    include_str!("../models/truth/usl-locks.toml"),
    include_str!("../models/truth/step-units.toml"),
    include_str!("../models/truth/bimodal.toml"),
    include_str!("../models/truth/late-threads.toml"),
    include_str!("../models/truth/start-long.toml"),
    include_str!("../models/truth/bursty-progress.toml"),
];

/// Threads for each context, how long they compute and how long they pause, in seconds.
type Habit = (f64, f64, f64);

/// Loads by their habits.
const LOADS: [(&str, &[Habit]); 8] = [
    ("quiet", &[]),
    ("busy 0.5", &[(0.5, 1.0, 0.0)]),
    ("busy 1", &[(1.0, 1.0, 0.0)]),
    ("busy 2", &[(2.0, 1.0, 0.0)]),
    ("busy 10", &[(10.0, 1.0, 0.0)]),
    ("bursts 0.1 s", &[(1.0, 0.1, 0.1)]),
    ("bursts 5 s", &[(1.0, 5.0, 5.0)]),
    ("mixed", &[(0.5, 0.1, 0.1), (0.5, 1.0, 1.0), (0.5, 5.0, 5.0)]),
];

/// Machines by their contexts.
pub const MACHINES: [(u32, &str); 3] = [(2, "2"), (8, "8"), (24, "opteron-24")];

/// Windows of a truth on a quiet machine.
const QUIET_WINDOWS: u64 = 12;
/// The same beside others, which compute at other times in each.
const WINDOWS: u64 = 60;
/// How long a window of a truth is.
const WINDOW: Duration = Duration::from_secs(3);
/// The first seed of the truth. Searches have small ones.
const SEED: u64 = 1 << 20;

/// A program beside a load on a machine.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The program.
    pub program: ModelProgram,
    /// The name of the load.
    pub load: &'static str,
    others: Vec<OtherPrograms>,
    machine: &'static str,
    model: Machine,
    platform: Platform,
}

impl Cell {
    /// Every program beside every load on the machine with this number of contexts.
    ///
    /// # Errors
    /// There is no such machine.
    pub fn all(contexts: u32) -> Result<Vec<Self>, Box<dyn Error>> {
        let known = MACHINES.iter().find(|(known, _)| *known == contexts);
        let &(_, machine) = known.ok_or("a machine has 2, 8 or 24 contexts")?;
        let (model, platform) = if Machine::MODELS.contains(&machine) {
            (Machine::model(machine)?, Platform::opteron_24())
        } else {
            let model = Machine::from_shape(machine)?;
            let platform = Platform::new(&model).ok_or("the machine is too large")?;
            (model, platform)
        };
        let mut cells = Vec::new();
        for text in PROGRAMS {
            let program = ModelProgram::parse(text)?;
            for (load, habits) in LOADS {
                let others = habits.iter().map(|&(per_context, burst_s, pause_s)| OtherPrograms {
                    threads: (per_context * f64::from(contexts)).round() as u32,
                    burst_s,
                    pause_s,
                });
                cells.push(Self {
                    program: program.clone(),
                    load,
                    others: others.collect(),
                    machine,
                    model: model.clone(),
                    platform: platform.clone(),
                });
            }
        }
        Ok(cells)
    }

    /// Contexts of the machine: the default number.
    pub fn contexts(&self) -> u32 {
        self.platform.contexts() as u32
    }

    /// The name of the cell.
    pub fn name(&self) -> String {
        format!("{}, {}, {} contexts", self.program.name, self.load, self.contexts())
    }

    /// One search as `pinwise threads` makes it.
    ///
    /// # Errors
    /// It ends without an answer.
    pub fn search(
        &self,
        method: ThreadsMethod,
        budget: Duration,
        seed: u64,
    ) -> Result<ThreadsAnswer, JobError> {
        let program = ModelledProgram {
            machine: self.machine.to_owned(),
            model: self.model.clone(),
            program: self.program.name.clone(),
            seed,
            description: Some(Box::new(self.program.clone())),
            others: self.others.clone(),
        };
        let request = ThreadsRequest {
            method,
            budget: Some(budget),
            ..ThreadsRequest::new(ThreadsProgram::Modelled(program))
        };
        let folder = tempfile::tempdir().map_err(JobError::failed)?;
        let mut store = Store::open(&folder.path().join("pinwise.db"))?;
        run(request, &Caller::default(), &mut store, &mut Silent)
    }

    /// The program without what hides its speed from a short window. That is the same for each
    /// number in the end.
    fn steady(&self) -> ModelProgram {
        let mut program = self.program.clone();
        (program.name, program.about) = (String::new(), String::new());
        program.fitted.initialization_s = 0.0;
        program.fitted.create_ms = 0.0;
        program.fitted.slow_runs = 0.0;
        program.fitted.report_every_s = 0.0;
        program
    }

    /// Whether the truth of the other cell is that of this one.
    pub fn has_truth_of(&self, other: &Self) -> bool {
        let is_alike = self.machine == other.machine && self.others == other.others;
        is_alike && self.steady() == other.steady()
    }

    /// The speed with `n` in each window of the truth.
    fn speeds(&self, n: u32) -> Result<Vec<f64>, MeasureError> {
        let program = self.steady();
        let window = |number| {
            let prober = ModelProber::new(self.platform.clone(), program.clone(), SEED + number);
            // At any moment within the seconds of the load's clock.
            let later = Duration::from_millis(1370 * number);
            let probed = prober.beside(self.others.clone()).after([(n, later)]).probe(n, WINDOW)?;
            Ok(probed.probe.progress.rate)
        };
        let windows = if self.others.is_empty() { QUIET_WINDOWS } else { WINDOWS };
        (0..windows).map(window).collect()
    }
}

/// The speeds of numbers in one cell, as far as they were asked for.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    speeds: BTreeMap<u32, Vec<f64>>,
}

/// A value and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
}

impl Known {
    fn is_below(self, limit: f64) -> bool {
        self.value + 2.0 * self.error < limit
    }

    fn is_within(self, low: f64, high: f64) -> bool {
        self.value + 2.0 * self.error >= low && self.value - 2.0 * self.error <= high
    }
}

impl Truth {
    /// Of these numbers.
    ///
    /// # Errors
    /// The program does not run on the model.
    pub fn of(cell: &Cell, numbers: impl IntoIterator<Item = u32>) -> Result<Self, MeasureError> {
        let mut numbers: Vec<u32> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let speeds = each(&numbers, |&n| Ok((n, cell.speeds(n)?)));
        Ok(Self { speeds: speeds.into_iter().collect::<Result<_, MeasureError>>()? })
    }

    /// How much faster `n` is than `other`, by the ratio of means of paired windows (Cochran,
    /// Sampling Techniques, eq. 6.13).
    pub fn gain(&self, n: u32, other: u32) -> Option<Known> {
        let (top, bottom) = (self.speeds.get(&n)?, self.speeds.get(&other)?);
        let ratio = top.iter().sum::<f64>() / bottom.iter().sum::<f64>();
        let count = bottom.len() as f64;
        let mean = bottom.iter().sum::<f64>() / count;
        let residuals = top.iter().zip(bottom).map(|(one, two)| (one - ratio * two).powi(2));
        let error = (residuals.sum::<f64>() / (count - 1.0) / count).sqrt() / mean;
        Some(Known { value: ratio - 1.0, error })
    }

    /// The fewest threads, of the numbers asked for, that lose at most `within` of the best. The
    /// first number may do so. The second surely does.
    pub fn fewest(&self, within: f64) -> Option<(u32, u32)> {
        let mean = |speeds: &[f64]| speeds.iter().sum::<f64>();
        let (&best, _) =
            self.speeds.iter().max_by(|one, two| mean(one.1).total_cmp(&mean(two.1)))?;
        let least = |does: &dyn Fn(Known) -> bool| {
            self.speeds.keys().copied().find(|&n| self.gain(n, best).is_some_and(does))
        };
        let may = least(&|gain| gain.value + 2.0 * gain.error >= -within)?;
        Some((may, least(&|gain| gain.value - 2.0 * gain.error >= -within).unwrap_or(best)))
    }
}

/// What a search announced.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Announced {
    /// The number that the search alone found.
    pub found: u32,
    /// The number that was compared with the default.
    pub compared: Option<u32>,
    /// The verdict of fresh windows.
    pub verdict: LastComparisonVerdict,
    /// The interval of the gain of the number over the default.
    #[serde(with = "as_bits")]
    pub gain: Option<(f64, f64)>,
    /// The interval of the fewest threads.
    pub fewest: Option<(u32, u32)>,
    /// Probes and fresh windows.
    pub measurements: u64,
}

/// JSON has no infinite ends.
mod as_bits {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    type Interval = Option<(f64, f64)>;

    pub(super) fn serialize<S: Serializer>(ends: &Interval, to: S) -> Result<S::Ok, S::Error> {
        ends.map(|(low, high)| (low.to_bits(), high.to_bits())).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Interval, D::Error> {
        let bits: Option<(u64, u64)> = Option::deserialize(from)?;
        Ok(bits.map(|(low, high)| (f64::from_bits(low), f64::from_bits(high))))
    }
}

impl Announced {
    /// What this answer announced; `None` without a number.
    pub fn of(answer: &ThreadsAnswer) -> Option<Self> {
        let found = answer.outcome.found.as_ref().ok()?;
        let shown = answer.confirmation.as_ref();
        let contest = shown.map(|shown| &shown.comparison.rounds);
        let gain = contest.and_then(|contest| contest.gain(Way::Number, Way::Default));
        let rounds = contest.map_or(0, |contest| contest.count() * contest.ways().len());
        Some(Self {
            found: found.parameter,
            compared: shown.map(|shown| shown.compared.n),
            verdict: shown.map_or(LastComparisonVerdict::Undecided, |shown| shown.choice),
            gain: gain.map(|gain| (gain.low, gain.high)),
            fewest: answer
                .outcome
                .advice(found, shown.and_then(Confirmation::compared_numbers))
                .map(|advice| advice.between),
            measurements: (answer.outcome.probes.len() + answer.outcome.set_aside.total() + rounds)
                as u64,
        })
    }
}

/// A search, judged by the truth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// What it announced; `None`: it ended without an answer.
    pub announced: Option<Announced>,
    /// It announced a number for good, and that is wrong.
    pub wrong: bool,
    /// The number of the search alone is wrong.
    pub as_it_was: bool,
    /// The number of the published search is wrong.
    pub published: bool,
    /// The interval of the gain holds the truth. `None`: there is none.
    pub gain_held: Option<bool>,
    /// The interval of the fewest threads holds them. `None`: there is none.
    pub fewest_held: Option<bool>,
}

impl Judged {
    /// Judges what a search announced, and the number of the published one.
    fn of(
        announced: Option<Announced>,
        published: Option<u32>,
        truth: &Truth,
        default: u32,
        within: f64,
    ) -> Self {
        let slower =
            |n: u32, other: u32| truth.gain(n, other).is_some_and(|gain| gain.is_below(-within));
        let wrong = announced.is_some_and(|Announced { compared, verdict, .. }| {
            compared.is_some_and(|n| match verdict {
                LastComparisonVerdict::Undecided => false,
                verdict if verdict.way() == Way::Default => slower(default, n),
                _ => slower(n, default),
            })
        });
        let gain_held = announced.and_then(|announced| {
            let (low, high) = announced.gain?;
            Some(truth.gain(announced.compared?, default)?.is_within(low, high))
        });
        let fewest_held = announced.and_then(|announced| {
            let ((low, high), (may, surely)) = (announced.fewest?, truth.fewest(within)?);
            Some(low <= surely && may <= high)
        });
        Self {
            announced,
            wrong,
            as_it_was: announced.is_some_and(|announced| slower(announced.found, default)),
            published: published.is_some_and(|n| slower(n, default)),
            gain_held,
            fewest_held,
        }
    }
}

/// In how many searches a statement holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Searches in which it holds.
    pub is: usize,
    /// Searches that can judge it.
    pub of: usize,
}

impl Count {
    fn take(&mut self, is: Option<bool>) {
        self.is += usize::from(is == Some(true));
        self.of += usize::from(is.is_some());
    }
}

/// What several searches came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Fresh windows decided.
    pub decided: Count,
    /// Announced for good, and wrong.
    pub wrong: Count,
    /// The number of the search alone is wrong.
    pub as_it_was: Count,
    /// The number of the published search is wrong.
    pub published: Count,
    /// The interval of the gain holds the truth.
    pub gain_held: Count,
    /// The interval of the fewest threads holds them.
    pub fewest_held: Count,
    /// Measurements, mean.
    pub measurements: f64,
}

impl Tally {
    /// Of these searches.
    pub fn of<'a>(searches: impl IntoIterator<Item = &'a Judged>) -> Self {
        let (mut tally, mut measurements) = (Self::default(), 0);
        for judged in searches {
            let decided =
                |announced: Announced| announced.verdict != LastComparisonVerdict::Undecided;
            tally.decided.take(Some(judged.announced.is_some_and(decided)));
            tally.wrong.take(Some(judged.wrong));
            tally.as_it_was.take(Some(judged.as_it_was));
            tally.published.take(Some(judged.published));
            tally.gain_held.take(judged.gain_held);
            tally.fewest_held.take(judged.fewest_held);
            measurements += judged.announced.map_or(0, |announced| announced.measurements);
        }
        Self { measurements: measurements as f64 / tally.wrong.of.max(1) as f64, ..tally }
    }
}

/// Searches of a cell with each of these budgets, with seeds from `seed` on, judged by `truth`. The
/// published search has no budget: its numbers are the same with each.
///
/// # Errors
/// A search failed, as on a full disk. It is no undecided one.
pub fn judge(
    cell: &Cell,
    truth: &Truth,
    budgets: &[Duration],
    searches: u64,
    seed: u64,
) -> Result<Vec<Vec<Judged>>, JobError> {
    let seeds: Vec<u64> = (seed..seed + searches).collect();
    let of_seed = |seed: u64| {
        let published = cell.search(ThreadsMethod::Reinforcer, ThreadsRequest::TIME, seed)?;
        let published = published.outcome.found.ok().map(|found| found.parameter);
        let judged = |&budget: &Duration| {
            let announced = Announced::of(&cell.search(ThreadsMethod::Survey, budget, seed)?);
            let within = ThreadsRequest::WITHIN;
            Ok(Judged::of(announced, published, truth, cell.contexts(), within))
        };
        let judged: Result<Vec<Judged>, JobError> = budgets.iter().map(judged).collect();
        judged
    };
    let all = each(&seeds, |seed| of_seed(*seed).map_err(|error| error.to_string()));
    let all: Result<Vec<Vec<Judged>>, String> = all.into_iter().collect();
    let all = all.map_err(JobError::failed)?;
    let of = |budget: usize| all.iter().map(|judged| judged[budget]).collect();
    Ok((0..budgets.len()).map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth(speeds: &[(u32, f64)]) -> Truth {
        let noise = [1.0, 1.02, 0.98, 1.0];
        let windows =
            |&(n, speed): &(u32, f64)| (n, noise.iter().map(|noise| noise * speed).collect());
        Truth { speeds: speeds.iter().map(windows).collect() }
    }

    fn judged(compared: u32, verdict: LastComparisonVerdict, truth: &Truth) -> Judged {
        let announced = Announced {
            found: 2,
            compared: Some(compared),
            verdict,
            gain: Some((-0.1, 0.1)),
            fewest: Some((1, 2)),
            measurements: 9,
        };
        Judged::of(Some(announced), Some(4), truth, 4, 0.01)
    }

    #[test]
    fn what_is_announced_for_good_and_slower_is_wrong() {
        // Noise of whole windows is not in their ratio.
        let truth = truth(&[(1, 0.5), (2, 0.9), (4, 1.0), (8, 1.3)]);
        let of = |compared, verdict| judged(compared, verdict, &truth).wrong;
        assert!(of(2, LastComparisonVerdict::Number) && of(2, LastComparisonVerdict::Fewer));
        assert!(!of(2, LastComparisonVerdict::Undecided));
        assert!(!of(8, LastComparisonVerdict::Number) && of(8, LastComparisonVerdict::Default));
        let judged = judged(8, LastComparisonVerdict::Number, &truth);
        assert!(judged.as_it_was && !judged.published, "2 is slower than the default, 4 is it");
        assert_eq!((judged.gain_held, judged.fewest_held), (Some(false), Some(false)));
        let tally = Tally::of([&judged]);
        assert_eq!((tally.wrong.is, tally.decided.is, tally.gain_held.of), (0, 1, 1));
    }

    #[test]
    fn the_truth_knows_how_far_it_may_be_off() {
        let mut truth = truth(&[(1, 0.985), (2, 0.995), (4, 1.0)]);
        assert_eq!(truth.fewest(0.01), Some((2, 2)));
        truth.speeds.insert(1, vec![0.93, 1.03, 0.99, 1.0]);
        assert_eq!(truth.fewest(0.01), Some((1, 2)), "1 may be as fast");
        let gain = truth.gain(1, 4).unwrap();
        assert!((gain.value + 0.0125).abs() < 1e-12 && gain.error > 0.005, "{gain:?}");
    }
}
