//! Measures numbers under placement policies, to decide which numbers to place.

use super::program_testbed::NumberDetail;
use crate::threads::ThreadsOutcome;
use pinwise_campaign::{Purpose, Record, Step, Strategy, Trial, TrialRounds};
use pinwise_measure::{Effort, MemoryPolicy, Placed, Setting, ThreadCount, Unit};
use pinwise_placement::{LastComparisonNote, PlacementQuestion};
use pinwise_threads::{
    Arm, FoundNumber, JointSearch, PolicyCandidate, Shortlist, ThreadCeiling, candidates,
    filling_numbers, with_memory,
};
use pinwise_topology::{Alike, Footprint, Machine, Policy, SharingTree};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// More numbers are not compared together, so that this stays a matter of tenths of a second.
const MOST_NUMBERS: usize = 12;
/// Memory is left where it is unless a number is faster by this share with another policy. It is
/// the margin that an assignment needs over the default.
const MEMORY_GAIN: f64 = PlacementQuestion::WITHIN;

/// Which numbers are worth a search for their placement: the question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoliciesQuestion {
    /// The number that was found unpinned.
    pub first: u32,
    /// Numbers that may be best when placed, with the threads that each is meant to make.
    pub numbers: Vec<(u32, u32)>,
    /// The results of the probes: a number, its rate, and the rate's relative standard error.
    pub readings: Vec<(u32, f64, Option<f64>)>,
    /// Contexts that the program may use.
    pub contexts: u32,
    /// The time for all of this.
    pub time: Duration,
    /// About what it takes to start the program, and to measure it.
    pub run: Duration,
    /// Each measurement is a run of the program.
    pub starts_anew: bool,
    /// Windows of a measurement.
    pub windows: f64,
    /// The version of the policies' orders ([`Policy::ORDER`]). Earlier versions did not say.
    #[serde(default = "first_order")]
    pub order: u32,
    /// The memory policies to try, besides leaving it. Earlier versions tried none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<MemoryPolicy>,
}

fn first_order() -> u32 {
    1
}

/// A number in a place, measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyMeasurement {
    /// n.
    pub parameter: u32,
    /// `None`: unpinned.
    pub policy: Option<Policy>,
    /// Where its memory lay.
    pub memory: MemoryPolicy,
    /// Threads that were placed.
    pub threads: usize,
    /// The part of the machine that these use; unknown if they are unpinned.
    pub footprint: Option<Footprint>,
    /// In the unit of the rows.
    pub performance: f64,
}

/// The measurements, and what follows from them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyMeasurements {
    /// In the order in which they were made.
    pub rows: Vec<PolicyMeasurement>,
    /// The unit of performances; `None` if nothing was measured.
    pub unit: Option<Unit>,
    /// The expected value of each measured number in the best place known for it, pinned or not.
    /// Empty if none was pinned.
    pub values: Vec<(u32, f64)>,
    /// The numbers that were clearly faster with memory elsewhere, and the policy that did it.
    pub memory: BTreeMap<u32, MemoryPolicy>,
    /// Notes on what could not be measured.
    pub notes: Vec<LastComparisonNote>,
}

impl PoliciesQuestion {
    /// After a search for the number alone. `None` if there is no time for a start, a
    /// measurement unpinned and one pinned, or nothing to compare with.
    pub(super) fn after(
        outcome: &ThreadsOutcome,
        found: &FoundNumber,
        program: &super::program_testbed::TunedProgram<'_>,
        machine: &Machine,
        memory: Vec<MemoryPolicy>,
        time: Duration,
    ) -> Option<Self> {
        let first = found.parameter;
        let rates = rates(outcome);
        let of_first: Vec<f64> =
            rates.iter().filter(|rate| rate.0 == first).map(|rate| rate.1).collect();
        if of_first.is_empty() {
            return None;
        }
        let rate = of_first.iter().sum::<f64>() / of_first.len() as f64;
        let run = if program.starts_anew() {
            Duration::try_from_secs_f64(1.0 / rate).ok()
        } else {
            let probes = outcome.probes.iter().map(|shown| &shown.probe);
            probes.filter(|probe| probe.parameter == first).map(|probe| probe.cost).min()
        }?;
        if run > time / 3 {
            return None;
        }
        let readings = outcome.probes.iter().map(|shown| {
            let (rate, error) = (shown.probe.progress.rate, shown.probe.progress.error);
            (shown.probe.parameter, rate, error.filter(|_| rate > 0.0).map(|error| error / rate))
        });
        Some(Self {
            first,
            numbers: numbers(outcome, first, program, machine),
            readings: readings.collect(),
            contexts: outcome.question.contexts,
            time,
            run,
            starts_anew: program.starts_anew(),
            windows: program.effort().windows,
            order: Policy::ORDER,
            memory,
        })
    }

    /// Whether its measurements do not compare with later ones of the same policies.
    pub(super) fn is_of_other_order(&self, machine: &Machine) -> bool {
        self.order != Policy::ORDER && machine.kinds.len() > 1
    }
}

/// The parameter and the progress of every probe, but of numbers below the floor.
pub(super) fn rates(outcome: &ThreadsOutcome) -> Vec<(u32, f64)> {
    let probes = outcome.probes.iter().map(|shown| &shown.probe);
    let probes = probes.filter(|probe| !gave_up(outcome, probe.parameter));
    probes.map(|probe| (probe.parameter, probe.progress.rate)).collect()
}

fn gave_up(outcome: &ThreadsOutcome, n: u32) -> bool {
    outcome.found.as_ref().is_ok_and(|found| found.gave_up(n))
}

/// Numbers that may be the best one placed, with the threads that each should make. They are
/// `first`, those that fill a part of the machine, and the fastest of those probed.
fn numbers(
    outcome: &ThreadsOutcome,
    first: u32,
    program: &super::program_testbed::TunedProgram<'_>,
    machine: &Machine,
) -> Vec<(u32, u32)> {
    let tree = SharingTree::new(machine, Alike::ExceptNuma);
    let made = outcome.probes.iter().map(|shown| (shown.probe.parameter, &shown.probe));
    let ceiling = ThreadCeiling::of_probes(made).filter(|_| !program.goes_on());
    let ceiling = ceiling.map(|ceiling| ceiling.fewest());
    let range = outcome.question.range;
    let full = filling_numbers(&tree)
        .into_iter()
        .filter(|threads| (range.min..=range.max).contains(threads))
        .map(|threads| program.number(threads));
    let full = full.filter(|&number| ceiling.is_none_or(|ceiling| number <= ceiling));
    let full: BTreeSet<u32> = full.filter(|&number| !gave_up(outcome, number)).collect();
    let mut probed = rates(outcome);
    probed.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let mut numbers = vec![first];
    for number in full.into_iter().chain(probed.into_iter().map(|(number, _)| number)) {
        if numbers.len() < MOST_NUMBERS && !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers.into_iter().map(|number| (number, program.threads(number))).collect()
}

/// The search over numbers and policies: decides by the records alone.
pub(super) struct Policies {
    question: PoliciesQuestion,
    candidates: Vec<PolicyCandidate>,
}

impl Policies {
    /// On `machine`, as far as the program may use it.
    pub(super) fn new(question: PoliciesQuestion, machine: &Machine) -> Self {
        let tree = SharingTree::new(machine, Alike::ExceptNuma);
        let candidates = candidates(&tree, &question.numbers);
        let candidates = with_memory(candidates, &tree, machine, &question.memory);
        Self { question, candidates }
    }

    fn trial(&self, (number, policy, memory): TriedPlace) -> Step {
        let placed = policy.map(Placed::By);
        Step::Measure(Trial {
            setting: Setting::Threads(ThreadCount { n: Some(number), placed, memory }),
            purpose: Purpose::Other,
            effort: Effort { windows: self.question.windows },
        })
    }

    /// The search after these records; `None` if the first, unpinned one failed.
    fn search(&self, history: &[Record]) -> Option<JointSearch> {
        let Self { question, candidates } = self;
        let reference = history.first()?.outcome.as_ref().ok()?.performance;
        let of_first = question.readings.iter().filter(|reading| reading.0 == question.first);
        let (sum, count) =
            of_first.fold((0.0, 0.0), |(sum, n), reading| (sum + reading.1, n + 1.0));
        // The same window of the same program shows what probes are worth here: they begin and end
        // elsewhere.
        let scale = reference * count / sum;
        let arms: Vec<Arm> = candidates.iter().map(|candidate| candidate.arm).collect();
        let mut search = JointSearch::new(&arms, question.contexts);
        for (number, rate, error) in &question.readings {
            if let Some(arm) = self.arm((*number, None, MemoryPolicy::Leave)) {
                search.observe(arm, rate * scale, *error);
            }
        }
        for (index, record) in history.iter().enumerate().skip(1) {
            let Some(failed) = place(record) else { continue };
            let Some(arm) = self.arm(failed) else { continue };
            match &record.outcome {
                Ok(measurement) => search.observe(arm, measurement.performance, None),
                Err(_) => {
                    let lost = lost_with(&history[..index], failed);
                    let lost = |arm: &usize| lost(place_of(&candidates[*arm]));
                    (0..candidates.len()).filter(lost).for_each(|arm| search.close(arm));
                }
            }
        }
        Some(search)
    }

    fn arm(&self, place: TriedPlace) -> Option<usize> {
        self.candidates.iter().position(|one| place_of(one) == place)
    }

    /// Whether another measurement, of a run that takes `run`, would end in time.
    fn has_time_for(&self, history: &[Record], next: TriedPlace, run: Duration) -> bool {
        let spent = history.last().map_or(Duration::ZERO, |record| record.elapsed);
        let details = details(history);
        let longest = |of: fn(&NumberDetail) -> Duration| {
            details.iter().map(of).max().unwrap_or_default().max(self.question.run)
        };
        let longest = (longest(|detail| detail.opening), longest(|detail| detail.measuring));
        let is_same = |(n, _, memory): TriedPlace| (n, memory) == (next.0, next.2);
        let last = history.iter().rev().find_map(place);
        let is_ready = if self.question.starts_anew {
            history.iter().filter_map(place).any(is_same)
        } else {
            last.is_some_and(is_same)
        };
        spent + least(longest, run, is_ready) <= self.question.time
    }

    /// The expected time of one run at `speed`. Zero if a measurement is not a whole run.
    fn run_at(&self, speed: f64) -> Duration {
        let run = || Duration::try_from_secs_f64(1.0 / speed).unwrap_or(Duration::MAX);
        if self.question.starts_anew { run() } else { Duration::ZERO }
    }

    /// The measurements that these records show.
    pub(super) fn measured(&self, history: &[Record]) -> PolicyMeasurements {
        let mut found = PolicyMeasurements::default();
        for record in history {
            let Some((parameter, policy, memory)) = place(record) else { continue };
            match &record.outcome {
                Ok(measurement) => {
                    let detail = measurement.detail.as_ref();
                    let detail = detail.and_then(|detail| detail.read::<NumberDetail>().ok());
                    let Some(NumberDetail { unit, threads, footprint, .. }) = detail else {
                        continue;
                    };
                    let performance = measurement.performance;
                    found.unit.get_or_insert(unit);
                    found.rows.push(PolicyMeasurement {
                        parameter,
                        policy,
                        memory,
                        threads,
                        footprint,
                        performance,
                    });
                }
                Err(error) => found.notes.push(LastComparisonNote::NotMeasured {
                    n: parameter,
                    policy,
                    error: error.message.clone(),
                }),
            }
        }
        if found.rows.iter().any(|row| row.policy.is_some())
            && let Some(search) = self.search(history)
        {
            found.memory = faster_memory(&search, &self.candidates);
            found.values = believed(&search, &self.candidates, &found.memory);
        }
        found
    }
}

impl Strategy for Policies {
    fn step(&mut self, history: &[Record]) -> Step {
        if history.is_empty() {
            return self.trial((self.question.first, None, MemoryPolicy::Leave));
        }
        let Some(mut search) = self.search(history) else {
            return Step::Stop;
        };
        while let Some(arm) = search.next() {
            let next = place_of(&self.candidates[arm]);
            let run = self.run_at(search.values()[arm]);
            if self.has_time_for(history, next, run) {
                return self.trial(next);
            }
            // Another one may be shorter.
            search.close(arm);
        }
        Step::Stop
    }

    /// Each measurement decides the next, so one node makes all.
    fn rounds(&self, _most: usize) -> Option<TrialRounds> {
        Some(TrialRounds { continued: true, ..TrialRounds::default() })
    }
}

impl PolicyMeasurements {
    /// The numbers whose placement is worth a search. The values after these measurements rank
    /// them. If nothing was pinned, their unpinned speeds do.
    pub(super) fn shortlist(&self, rates: &[(u32, f64)], first: u32) -> Shortlist {
        if self.values.is_empty() {
            return Shortlist::new(rates, first);
        }
        Shortlist::believed(&self.values, first)
    }

    /// Where memory lies while a number is placed.
    pub(super) fn memory_of(&self, n: u32) -> MemoryPolicy {
        self.memory.get(&n).copied().unwrap_or_default()
    }
}

/// A number, the policy of its threads (`None`: unpinned), and that of its memory.
type TriedPlace = (u32, Option<Policy>, MemoryPolicy);

/// The place of a record.
fn place(record: &Record) -> Option<TriedPlace> {
    match &record.trial.setting {
        Setting::Threads(ThreadCount { n: Some(n), placed, memory }) => Some((
            *n,
            match placed {
                Some(Placed::By(policy)) => Some(*policy),
                _ => None,
            },
            *memory,
        )),
        _ => None,
    }
}

fn place_of(candidate: &PolicyCandidate) -> TriedPlace {
    (candidate.number, candidate.policy, candidate.arm.memory)
}

/// What cannot be measured after a failure. It is the number if no measurement of it succeeded
/// before. If one did, it is a memory policy that never worked. Else it is the place alone.
fn lost_with(before: &[Record], failed: TriedPlace) -> impl Fn(TriedPlace) -> bool {
    let (number, _, memory) = failed;
    let measured = before.iter().filter(|record| record.outcome.is_ok()).filter_map(place);
    let (mut is_number_known, mut is_memory_known) = (false, memory.is_leave());
    for (known, _, policy) in measured {
        is_number_known |= known == number;
        is_memory_known |= policy == memory;
    }
    move |place| match (is_number_known, is_memory_known) {
        (true, true) => place == failed,
        (true, false) => place.2 == memory,
        // Who is to blame shows once the number is tried with memory left alone.
        (false, false) => (place.0, place.2) == (number, memory),
        (false, true) => place.0 == number,
    }
}

fn details(history: &[Record]) -> Vec<NumberDetail> {
    let measured = history.iter().filter_map(|record| record.outcome.as_ref().ok());
    measured.filter_map(|measured| measured.detail.as_ref()?.read().ok()).collect()
}

/// The value of the best place of each number that was measured in some place. Its memory is left
/// alone there, or lies by the policy that was chosen.
fn believed(
    search: &JointSearch,
    candidates: &[PolicyCandidate],
    chosen: &BTreeMap<u32, MemoryPolicy>,
) -> Vec<(u32, f64)> {
    let values = search.values();
    let mut best: BTreeMap<u32, (bool, f64)> = BTreeMap::new();
    for (arm, candidate) in candidates.iter().enumerate() {
        let (measured, value) = best.entry(candidate.number).or_insert((false, 0.0));
        *measured |= search.is_measured(arm);
        let memory = candidate.arm.memory;
        if memory.is_leave() || chosen.get(&candidate.number) == Some(&memory) {
            *value = value.max(values[arm]);
        }
    }
    let measured = best.into_iter().filter(|(_, (measured, _))| *measured);
    measured.map(|(number, (_, value))| (number, value)).collect()
}

/// The memory policy of each number that is clearly faster with it. A measurement shows that. No
/// place of the number is expected to be as fast without.
fn faster_memory(
    search: &JointSearch,
    candidates: &[PolicyCandidate],
) -> BTreeMap<u32, MemoryPolicy> {
    let values = search.values();
    let left = |number| {
        let left = candidates.iter().zip(&values);
        let left = left.filter(|(one, _)| one.number == number && one.arm.memory.is_leave());
        left.fold(0.0, |best, (_, &value)| value.max(best))
    };
    let mut best: BTreeMap<u32, (f64, MemoryPolicy)> = BTreeMap::new();
    for (arm, candidate) in candidates.iter().enumerate() {
        let (number, memory) = (candidate.number, candidate.arm.memory);
        let known = best
            .get(&number)
            .map_or_else(|| left(number) * (1.0 + MEMORY_GAIN), |(value, _)| *value);
        if !memory.is_leave() && search.is_measured(arm) && values[arm] > known {
            best.insert(number, (values[arm], memory));
        }
    }
    best.into_iter().map(|(number, (_, memory))| (number, memory)).collect()
}

/// The least time that a measurement is expected to take. It is the longest start so far plus the
/// longest measurement, each at least `run`. A program that is ready needs no start.
fn least((start, measurement): (Duration, Duration), run: Duration, is_ready: bool) -> Duration {
    let start = if is_ready { Duration::ZERO } else { start.max(run) };
    start.saturating_add(measurement.max(run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_campaign::{Ending, MemoryJournal, drive};
    use pinwise_measure::{Detail, MeasureError, Measurement, Retry, Testbed, Workload};
    use pinwise_synthetic::{Contention, Demand, Disturbance, RemoteMemory};

    #[test]
    fn a_measurement_takes_as_long_as_its_run_is_expected_to_and_the_longest_did() {
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

    /// A program that is fastest with four threads, compact; with eight it cannot run.
    struct Scripted(Machine, Workload, Unit);

    impl Testbed for Scripted {
        fn machine(&self) -> &Machine {
            &self.0
        }
        fn workload(&self) -> &Workload {
            &self.1
        }
        fn unit(&self) -> &Unit {
            &self.2
        }
        fn measure(&mut self, setting: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
            let Setting::Threads(ThreadCount { n: Some(n), placed, .. }) = setting else {
                panic!("{setting:?}")
            };
            let performance = match (n, placed) {
                (8, _) => return Err(MeasureError::new(Retry::Other, "eight are too many")),
                (4, Some(Placed::By(Policy::Compact))) => 6.0,
                (n, _) => f64::from(*n).sqrt(),
            };
            let detail = NumberDetail {
                unit: self.2.clone(),
                threads: *n as usize,
                footprint: None,
                opening: Duration::from_millis(10),
                measuring: Duration::from_millis(5),
                others: None,
                unpinned: Vec::new(),
            };
            let (duration, detail) = (Duration::from_millis(5), Detail::of(&detail));
            Ok(Measurement { performance, duration, spread: None, detail })
        }
    }

    /// About numbers of threads on 8 contexts, from the first on. The program goes on between.
    fn question(numbers: &[u32], readings: Vec<(u32, f64, Option<f64>)>) -> PoliciesQuestion {
        PoliciesQuestion {
            first: numbers[0],
            numbers: numbers.iter().map(|&n| (n, n)).collect(),
            readings,
            contexts: 8,
            time: Duration::from_secs(10),
            run: Duration::from_millis(10),
            starts_anew: false,
            windows: 4.0,
            order: Policy::ORDER,
            memory: Vec::new(),
        }
    }

    /// A program of two threads or four, whose memory lies on the second of two nodes at home.
    struct OnTwoNodes {
        plain: Scripted,
        latency: f64,
        /// It may not be moved.
        held: bool,
    }

    impl Testbed for OnTwoNodes {
        fn machine(&self) -> &Machine {
            self.plain.machine()
        }
        fn workload(&self) -> &Workload {
            self.plain.workload()
        }
        fn unit(&self) -> &Unit {
            self.plain.unit()
        }
        fn measure(
            &mut self,
            setting: &Setting,
            effort: Effort,
        ) -> Result<Measurement, MeasureError> {
            let measured = self.plain.measure(setting, effort)?;
            let Setting::Threads(ThreadCount { n: Some(n), placed, memory: policy }) = setting
            else {
                panic!("{setting:?}")
            };
            if self.held && !policy.is_leave() {
                return Err(MeasureError::new(Retry::Other, "not permitted to move memory"));
            }
            let (machine, threads) = (self.plain.0.clone(), *n as usize);
            let tree = SharingTree::new(&machine, Alike::ExceptNuma);
            // All threads work alike, and disturb each other a little on a node.
            let demand = Demand {
                time: vec![1.0],
                burden: vec![vec![0.1]],
                distance: 0.0,
                near: 0,
                cap: None,
                needle: None,
            };
            let roles = vec!["worker"; threads];
            let bed = Contention::new(machine, 1, &roles, demand, Disturbance::default());
            let memory = RemoteMemory { policy: *policy, home: 1, latency: self.latency };
            let mut bed = bed.with_memory(memory);
            let setting = match placed {
                Some(Placed::By(policy)) => Setting::Pinned(policy.assign(&tree, threads)),
                _ => Setting::Unpinned,
            };
            let performance = bed.measure(&setting, effort)?.performance;
            Ok(Measurement { performance, ..measured })
        }
    }

    #[test]
    fn memory_goes_with_the_threads_where_that_is_measured_to_be_clearly_faster() {
        let machine = Machine::from_shape("numa:2 core:4").unwrap();
        let tried = |latency, held, memory: &[MemoryPolicy]| {
            let readings = vec![(4, 2.0, None), (2, 1.0, None)];
            let question =
                PoliciesQuestion { memory: memory.to_vec(), ..question(&[4, 2], readings) };
            let workload = Workload::new("p", &[]);
            let plain = Scripted(machine.clone(), workload, Unit::rate("1/s"));
            let mut testbed = OnTwoNodes { plain, latency, held };
            let mut policies = Policies::new(question, &machine);
            let mut journal = MemoryJournal::default();
            let clock = || Duration::ZERO;
            let never = || false;
            let ended = drive(
                &mut journal,
                &mut policies,
                &mut testbed,
                &clock,
                &never,
                &mut |_: &Record| {},
            );
            policies.measured(&ended.unwrap().1)
        };
        let moved = |found: &PolicyMeasurements| {
            found.rows.iter().filter(|row| !row.memory.is_leave()).count()
        };
        // Compact threads are on the first node.
        let far = tried(1.0, false, &MemoryPolicy::ALL);
        assert_eq!(far.memory_of(4), MemoryPolicy::Follow, "{far:?}");
        let near = tried(0.01, false, &MemoryPolicy::ALL);
        assert_eq!(near.memory, BTreeMap::new(), "a percent is not worth it: {near:?}");
        let left = tried(1.0, false, &[]);
        assert_eq!((moved(&left), left.memory_of(4)), (0, MemoryPolicy::Leave));
        // A refusal costs one try of each policy, and no number.
        let held = tried(1.0, true, &MemoryPolicy::ALL);
        assert_eq!((moved(&held), held.memory_of(4)), (0, MemoryPolicy::Leave));
        assert!((1..=2).contains(&held.notes.len()), "{:?}", held.notes);
        assert!(held.values.iter().any(|(number, _)| *number == 4), "{held:?}");
    }

    #[test]
    fn measurements_of_an_earlier_order_compare_only_where_all_cores_are_alike() {
        let [plain, mut hybrid] = ["8", "8"].map(|shape| Machine::from_shape(shape).unwrap());
        hybrid.kinds.extend(hybrid.kinds.clone());
        let earlier = serde_json::json!({
            "first": 1, "numbers": [], "readings": [], "contexts": 8,
            "time": Duration::ZERO, "run": Duration::ZERO, "starts_anew": false, "windows": 1.0,
        });
        let mut question: PoliciesQuestion = serde_json::from_value(earlier).unwrap();
        assert!(question.is_of_other_order(&hybrid) && !question.is_of_other_order(&plain));
        question.order = Policy::ORDER;
        assert!(!question.is_of_other_order(&hybrid));
    }

    #[test]
    fn a_search_stopped_anywhere_goes_on_to_the_same_numbers_and_ends_in_time() {
        let machine = Machine::from_shape("2x2x2").unwrap();
        let readings = vec![(4, 2.0, None), (2, 1.4, None), (8, 2.2, None)];
        let question = question(&[4, 2, 8], readings);
        let go = |journal: &mut MemoryJournal, most: usize, time: Duration| {
            let made = std::cell::Cell::new(journal.records.len());
            let now = std::cell::Cell::new(0);
            let clock = || {
                now.set(now.get() + 1);
                Duration::from_millis(20 * now.get())
            };
            let stop = || made.get() >= most;
            let mut count = |_: &Record| made.set(made.get() + 1);
            let mut policies =
                Policies::new(PoliciesQuestion { time, ..question.clone() }, &machine);
            let workload = Workload::new("p", &[]);
            let mut testbed = Scripted(machine.clone(), workload, Unit::rate("1/s"));
            let ended =
                drive(journal, &mut policies, &mut testbed, &clock, &stop, &mut count).unwrap();
            (ended.0, policies.measured(&ended.1), ended.1.len())
        };
        let all = Duration::from_secs(10);
        let (ending, whole, records) = go(&mut MemoryJournal::default(), usize::MAX, all);
        assert_eq!(ending, Ending::Finished);
        // Two are far behind four, compact, and eight cannot run.
        assert_eq!(whole.shortlist(&[], 4).numbers(), [4], "{whole:?}");
        assert!(whole.rows.iter().any(|row| row.policy == Some(Policy::Compact)), "{whole:?}");
        let lost = whole
            .notes
            .iter()
            .filter(|note| matches!(note, LastComparisonNote::NotMeasured { n: 8, .. }))
            .count();
        assert!(lost <= 1, "a number that cannot run is tried once: {:?}", whole.notes);
        for most in 0..records {
            let mut journal = MemoryJournal::default();
            assert_eq!(go(&mut journal, most, all).0, Ending::Interrupted);
            assert_eq!(go(&mut journal, usize::MAX, all).1.values, whole.values, "after {most}");
        }
        let (_, short, few) =
            go(&mut MemoryJournal::default(), usize::MAX, Duration::from_millis(1));
        assert_eq!((few, short.rows.len()), (1, 1), "only the reference");
    }
}
