//! Numbers under policies of placement, measured where that tells most: which numbers are worth a
//! search for their placement.

use super::beds::Beds;
use super::crew::Crew;
use crate::command::threads;
use crate::output::{Interrupted, Usage};
use crate::progress::Progress;
use pinwise_jobs::Bed;
use pinwise_measure::{Retry, Setting, Unit};
use pinwise_placement::Budget;
use pinwise_threads::{
    Arm, Candidate, JointSearch, Shortlist, ThreadCeiling, boundaries, candidates,
};
use pinwise_topology::{Alike, Footprint, Policy, SharingTree};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What was measured, and what is believed of the numbers since.
#[derive(Default)]
pub(super) struct Trials {
    /// In the order in which they were made.
    pub(super) rows: Vec<Trial>,
    /// What performances are counted in; `None` where nothing was measured.
    pub(super) unit: Option<Unit>,
    /// What each number that was measured, pinned or not, is believed to do in the best place
    /// known for it; empty where none was pinned.
    values: Vec<(u32, f64)>,
}

/// A number in a place.
pub(super) struct Trial {
    pub(super) parameter: u32,
    /// `None`: left to the operating system.
    pub(super) policy: Option<Policy>,
    /// Threads that were placed.
    pub(super) threads: usize,
    /// What these use of the machine; of what is left alone nothing is known.
    pub(super) footprint: Option<Footprint>,
    pub(super) performance: f64,
}

/// More numbers are not believed in together, so that this stays a matter of tenths of a second.
const MOST_NUMBERS: usize = 12;

impl Trials {
    /// The numbers whose placement is worth a search: by what is believed since, and where nothing
    /// was pinned by the speed unpinned.
    pub(super) fn shortlist(&self, surveyed: &threads::Document) -> Shortlist {
        if self.values.is_empty() {
            return Shortlist::new(&surveyed.rates(), surveyed.parameter);
        }
        Shortlist::believed(&self.values, surveyed.parameter)
    }

    /// Measures what is worth it within `time`. What keeps a number from being measured is noted
    /// and does not end this. Error: the user or the program ended it.
    pub(super) fn make(
        &mut self,
        crew: &mut Crew<'_>,
        surveyed: &threads::Document,
        time: Duration,
        notes: &mut Vec<String>,
    ) -> anyhow::Result<()> {
        let first = surveyed.parameter;
        let rates: Vec<f64> =
            surveyed.rates().iter().filter(|rate| rate.0 == first).map(|rate| rate.1).collect();
        if rates.is_empty() {
            return Ok(());
        }
        let rate = rates.iter().sum::<f64>() / rates.len() as f64;
        let run = if crew.starts_anew() {
            Duration::try_from_secs_f64(1.0 / rate).ok()
        } else {
            surveyed.time_of(first)
        };
        let Some(run) = run else { return Ok(()) };
        // To start it, to measure it unpinned, and pinned.
        if run > time / 3 {
            return Ok(());
        }
        let mut bench = Bench::new(crew, time, run);
        // The same window of the same program tells what probes are worth here: they begin and end
        // elsewhere.
        let reference = match bench.measure(first, None) {
            Ok(reference) => reference,
            Err(Failure::Ended(error)) => return Err(error),
            Err(Failure::Number(reason) | Failure::Place(reason)) => {
                notes.push(format!("no policy of placement was tried: with n = {first}, {reason}"));
                return Ok(());
            }
        };
        let scale = reference.performance / rate;
        self.unit = bench.unit.clone();
        self.rows.push(reference);
        let Some(tree) = bench.tree.clone() else { return Ok(()) };
        let numbers = numbers(bench.crew, surveyed, &tree);
        let candidates = candidates(&tree, &numbers);
        let arms: Vec<Arm> = candidates.iter().map(|candidate| candidate.arm).collect();
        let mut joint = JointSearch::new(&arms, surveyed.contexts);
        for (number, rate, error) in surveyed.readings() {
            let own =
                |candidate: &Candidate| candidate.number == number && candidate.policy.is_none();
            if let Some(arm) = candidates.iter().position(own) {
                joint.observe(arm, rate * scale, error);
            }
        }
        while let Some(arm) = joint.next() {
            let Candidate { number, policy, .. } = candidates[arm];
            let run = bench.run_at(joint.values()[arm]);
            if !bench.has_time_for(number, run) {
                // Another one may be shorter.
                joint.close(arm);
                continue;
            }
            match bench.measure(number, policy) {
                Ok(trial) => {
                    joint.observe(arm, trial.performance, None);
                    self.rows.push(trial);
                }
                Err(Failure::Ended(error)) => return Err(error),
                Err(Failure::Place(reason)) => {
                    notes.push(format!(
                        "n = {number}, {}, was not measured: {reason}",
                        name(policy)
                    ));
                    joint.close(arm);
                }
                Err(Failure::Number(reason)) => {
                    notes.push(format!(
                        "n = {number} was tried under no policy of placement: {reason}"
                    ));
                    let its = |arm: &usize| candidates[*arm].number == number;
                    (0..candidates.len()).filter(its).for_each(|arm| joint.close(arm));
                }
            }
        }
        if self.rows.iter().any(|trial| trial.policy.is_some()) {
            self.values = believed(&joint, &candidates);
        }
        Ok(())
    }
}

/// `compact`, `unpinned`
pub(super) fn name(policy: Option<Policy>) -> &'static str {
    policy.map_or("unpinned", Policy::name)
}

/// Of each number that was measured in some place, the value of its best one.
fn believed(joint: &JointSearch, candidates: &[Candidate]) -> Vec<(u32, f64)> {
    let values = joint.values();
    let of = |number: u32| {
        let arms = (0..candidates.len()).filter(|&arm| candidates[arm].number == number);
        let measured = arms.clone().any(|arm| joint.is_measured(arm));
        measured
            .then(|| arms.map(|arm| values[arm]).fold(0.0, f64::max))
            .map(|value| (number, value))
    };
    let numbers: BTreeSet<u32> = candidates.iter().map(|candidate| candidate.number).collect();
    numbers.into_iter().filter_map(of).collect()
}

/// Numbers that may be the best one placed, with the threads that each is meant to make: those with
/// which a part of the machine is full, and of those that were probed the fastest.
fn numbers(crew: &Crew<'_>, surveyed: &threads::Document, tree: &SharingTree) -> Vec<(u32, u32)> {
    let cap =
        ThreadCeiling::seen(surveyed.made()).filter(|_| !crew.goes_on()).map(|cap| cap.fewest());
    let full = boundaries(tree)
        .into_iter()
        .filter(|&threads| surveyed.spans(threads))
        .map(|threads| crew.number(threads));
    let full: BTreeSet<u32> = full.filter(|&number| cap.is_none_or(|cap| number <= cap)).collect();
    let mut probed = surveyed.rates();
    probed.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut numbers = vec![surveyed.parameter];
    for number in full.into_iter().chain(probed.into_iter().map(|(number, _)| number)) {
        if numbers.len() < MOST_NUMBERS && !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers.into_iter().map(|number| (number, crew.threads(number))).collect()
}

/// Why there is no measurement.
enum Failure {
    /// The user ended it, or the program has ended.
    Ended(anyhow::Error),
    /// The number cannot be measured at all.
    Number(String),
    /// It cannot be there.
    Place(String),
}

/// The program, measured for a while.
struct Bench<'a, 'b> {
    crew: &'a mut Crew<'b>,
    beds: Beds,
    begin: Instant,
    time: Duration,
    /// The longest that starting it took, and a measurement.
    longest: (Duration, Duration),
    /// Of the contexts that it may use, once it was started.
    tree: Option<SharingTree>,
    unit: Option<Unit>,
    progress: Option<Progress>,
    made: u64,
}

impl<'a, 'b> Bench<'a, 'b> {
    /// `run` is about what it takes to start it, and to measure it.
    fn new(crew: &'a mut Crew<'b>, time: Duration, run: Duration) -> Self {
        let (beds, begin, longest) = (Beds::default(), Instant::now(), (run, run));
        Self { crew, beds, begin, time, longest, tree: None, unit: None, progress: None, made: 0 }
    }

    /// What a run takes that is this fast, where each measurement is a run: far from what others
    /// took, as with an eighth of the threads.
    fn run_at(&self, speed: f64) -> Duration {
        let run = || Duration::try_from_secs_f64(1.0 / speed).unwrap_or(Duration::MAX);
        if self.crew.starts_anew() { run() } else { Duration::ZERO }
    }

    /// Whether another measurement, of a run that takes `run`, would end in time.
    fn has_time_for(&self, number: u32, run: Duration) -> bool {
        let left = self.time.saturating_sub(self.begin.elapsed());
        least(self.longest, run, self.beds.has(Some(number))) <= left
    }

    fn measure(&mut self, number: u32, policy: Option<Policy>) -> Result<Trial, Failure> {
        let effort = self.crew.effort();
        let begin = Instant::now();
        let was_open = self.beds.has(Some(number));
        let bed: &mut Bed =
            self.beds.get(self.crew, Some(number), &[]).map_err(|error| {
                match error.is::<Interrupted>() || error.is::<Usage>() {
                    true => Failure::Ended(error),
                    false => Failure::Number(format!("{error:#}")),
                }
            })?;
        let opened = Instant::now();
        if !was_open {
            self.longest.0 = self.longest.0.max(opened - begin);
        }
        let tree = SharingTree::new(bed.testbed().machine(), Alike::ExceptNuma);
        if tree.leaves().is_empty() {
            return Err(Failure::Number("there is no CPU that it may use".into()));
        }
        let threads = bed.testbed().workload().threads.len();
        let assignment = policy.map(|policy| policy.assign(&tree, threads));
        let footprint = assignment.as_ref().map(|assignment| tree.footprint(assignment));
        let setting = assignment.map_or(Setting::Unpinned, Setting::Pinned);
        let unit = bed.testbed().unit().clone();
        let measured = bed.testbed_mut().measure(&setting, effort);
        self.longest.1 = self.longest.1.max(opened.elapsed());
        self.made += 1;
        let progress = self
            .progress
            .get_or_insert_with(|| Progress::new(Budget::Time(self.time), unit.clone()));
        let performance = measured.as_ref().ok().map(|measurement| measurement.performance);
        progress.take(&setting, performance, self.made, self.begin.elapsed());
        (self.tree, self.unit) = (Some(tree), Some(unit));
        match measured {
            Ok(measurement) if measurement.performance > 0.0 => Ok(Trial {
                parameter: number,
                policy,
                threads,
                footprint,
                performance: measurement.performance,
            }),
            Ok(_) => Err(Failure::Place("nothing got done".into())),
            Err(error) if error.interrupted => Err(Failure::Ended(Interrupted::amid().into())),
            Err(error) if error.retry == Retry::Never => Err(Failure::Number(error.to_string())),
            Err(error) => Err(Failure::Place(error.to_string())),
        }
    }
}

/// The least that a measurement is expected to take, with the start where the program does not
/// stand ready: a run each, and as long as the longest start and the longest measurement were.
fn least((start, measurement): (Duration, Duration), run: Duration, is_ready: bool) -> Duration {
    let start = if is_ready { Duration::ZERO } else { start.max(run) };
    start.saturating_add(measurement.max(run))
}

impl Drop for Bench<'_, '_> {
    /// Takes the line away that shows how far it is.
    fn drop(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Machine;

    #[test]
    fn a_measurement_takes_as_long_as_its_run_is_believed_to_be_and_the_longest_was() {
        let seconds = Duration::from_secs;
        let longest = (seconds(3), seconds(2));
        assert_eq!(
            (least(longest, seconds(1), true), least(longest, seconds(1), false)),
            (seconds(2), seconds(5))
        );
        assert_eq!(
            least(longest, seconds(16), false),
            seconds(32),
            "a run to get to know its threads, and a run"
        );
        assert_eq!(least(longest, Duration::MAX, false), Duration::MAX);
    }

    #[test]
    fn a_number_is_worth_what_its_best_place_is_and_nothing_where_none_was_measured() {
        let machine = Machine::from_shape("2x2x2").unwrap();
        let candidates =
            candidates(&SharingTree::new(&machine, Alike::ExceptNuma), &[(2, 2), (4, 4), (8, 8)]);
        let arms: Vec<Arm> = candidates.iter().map(|candidate| candidate.arm).collect();
        let mut joint = JointSearch::new(&arms, 8);
        let place = |number: u32, policy: Option<Policy>| {
            candidates.iter().position(|one| one.number == number && one.policy == policy).unwrap()
        };
        joint.observe(place(2, None), 1.0, None);
        joint.observe(place(8, None), 2.0, None);
        assert_eq!(
            believed(&joint, &candidates).iter().map(|value| value.0).collect::<Vec<_>>(),
            [2, 8]
        );
        joint.observe(place(4, Some(Policy::Compact)), 6.0, None);
        let values = believed(&joint, &candidates);
        assert!((values[1].1 / 6.0 - 1.0).abs() < 0.05, "{values:?}");
        assert_eq!(Shortlist::believed(&values, 8).numbers()[0], 4, "{values:?}");
    }
}
