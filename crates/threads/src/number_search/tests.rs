//! Tests of [`NumberSearch`].

use super::probe_judge::{LITTLE_LONGER, LONGER, REPEATS};
use super::*;
use crate::fixture::{Bed, probe};
use crate::{
    Objective, SetAside, SpeedQuestion, SpeedSearchError, SweepQuestion, ThreadRange, ThreadsPerN,
    Thresholds,
};
use pinwise_campaign::{Ending, MemoryJournal, drive};
use pinwise_measure::{
    JUMP, Measure, MeasureError, Probe, Progress, Retry, SchedulingProfile, Setting, ThreadCount,
};
use std::cell::Cell;

fn search(method: SearchMethod) -> NumberQuestion {
    let window = Duration::from_millis(100);
    NumberQuestion {
        method,
        window,
        objective: Objective::Time,
        runs: WholeRuns::Never,
        goes_on: false,
        doubts_on: Some(4),
    }
}

pub(super) fn survey(most: u32) -> NumberQuestion {
    let question = SpeedQuestion::new((1..=most).collect(), 4, Duration::from_millis(100));
    search(SearchMethod::Survey(SpeedQuestion {
        most_time: Some(Duration::from_secs(60)),
        ..question
    }))
}

pub(super) fn sweep(candidates: &[u32], rounds: u32) -> NumberQuestion {
    let candidates = candidates.to_vec();
    search(SearchMethod::Sweep(SweepQuestion {
        candidates,
        rounds,
        tolerance: 0.0,
        counted: false,
        doubts: true,
    }))
}

pub(super) fn reinforcer(range: ThreadRange) -> NumberQuestion {
    let thresholds = Thresholds::scaled(range.step, 24);
    search(SearchMethod::Reinforcer(PublishedQuestion { range, contexts: 24, thresholds }))
}

fn same(threads: u32) -> u32 {
    threads
}

/// Drives a search through all its stages, from the records of `journal` on, until it has this many
/// records. `outcome` gives the probe of a parameter by the windows and the number of the record.
fn go(
    search: &NumberQuestion,
    convert: &dyn Fn(u32) -> u32,
    journal: &mut MemoryJournal,
    most: usize,
    outcome: impl Fn(u32, f64, usize, ProbeStage) -> Result<Probe, MeasureError>,
) -> Ending {
    loop {
        let made = Cell::new(journal.records.len());
        let mut searcher = NumberSearch::new(search, convert, &journal.records);
        let stage = searcher.stage();
        let mut bed = Bed::new(|n, windows| outcome(n, windows, made.get(), stage));
        let (clock, stop) = (|| Duration::ZERO, || made.get() >= most);
        let mut observe = |_: &Record| made.set(made.get() + 1);
        let (ending, _) =
            drive(journal, &mut searcher, &mut bed, &clock, &stop, &mut observe).unwrap();
        if !searcher.is_next_stage() || ending == Ending::Interrupted {
            return ending;
        }
    }
}

fn whole(
    search: &NumberQuestion,
    convert: &dyn Fn(u32) -> u32,
    outcome: impl Fn(u32, f64, usize, ProbeStage) -> Result<Probe, MeasureError>,
) -> (Ending, Vec<Record>) {
    let mut journal = MemoryJournal::default();
    let ending = go(search, convert, &mut journal, usize::MAX, outcome);
    (ending, journal.records)
}

/// A search that is stopped after any record ends as it would have.
fn resumes(
    search: &NumberQuestion,
    outcome: impl Fn(u32, f64, usize, ProbeStage) -> Result<Probe, MeasureError> + Copy,
) -> Vec<Record> {
    let (ending, records) = whole(search, &same, outcome);
    for k in 0..records.len() {
        let mut journal = MemoryJournal::default();
        assert_eq!(go(search, &same, &mut journal, k, outcome), Ending::Interrupted, "after {k}");
        assert_eq!(journal.records, records[..k], "after {k}");
        // The records as a store gives them back.
        let stored = serde_json::to_string(&journal.records).unwrap();
        journal.records = serde_json::from_str(&stored).unwrap();
        assert_eq!(go(search, &same, &mut journal, usize::MAX, outcome), ending, "after {k}");
        assert_eq!(journal.records, records, "after {k}");
    }
    records
}

/// A program as fast as Amdahl's law has it, with a little chance by the number of the record.
fn amdahl(n: u32, _: f64, record: usize, _: ProbeStage) -> Result<Probe, MeasureError> {
    let rate = 1.0 / (0.1 + 0.9 / f64::from(n.min(4)));
    let chance = 1.0 + 0.01 * (record as f64 * 1.7).sin();
    let progress =
        Progress { rate: rate * chance, error: Some(rate * 0.01), measure: Measure::Metric };
    let cpu_util = f64::from(n.min(4)) * 25.0;
    Ok(Probe {
        progress,
        profile: SchedulingProfile { cpu_util, ..SchedulingProfile::default() },
        ..probe(n, n, 1.0)
    })
}

#[test]
fn a_survey_stopped_after_any_record_ends_as_it_would_have() {
    let search = NumberQuestion { goes_on: true, ..survey(8) };
    let records = resumes(&search, amdahl);
    let found = search.answer(&same, &records).unwrap();
    assert_eq!((found.parameter, found.stopped), (4, NumberSearchEnd::Settled));
    assert_eq!(found.attempts.len(), records.len(), "the closing probe included");
    let [first, .., last] = &records[..] else { panic!("{records:?}") };
    assert_eq!(first.trial.setting, last.trial.setting);
}

#[test]
fn the_published_search_stopped_after_any_record_ends_as_it_would_have() {
    let search = reinforcer(ThreadRange { min: 2, max: 12, step: 2 });
    let records = resumes(&search, amdahl);
    let found = search.answer(&same, &records).unwrap();
    assert_eq!((found.parameter, found.stopped), (4, NumberSearchEnd::CpuUtil { last: 6 }));
}

#[test]
fn a_sweep_stopped_after_any_record_ends_as_it_would_have() {
    let search = NumberQuestion { goes_on: true, ..sweep(&[1, 2, 3, 4, 5], 3) };
    let records = resumes(&search, amdahl);
    assert_eq!(records.len(), 16, "one to hold the first against");
    let found = search.answer(&same, &records).unwrap();
    assert_eq!(found.stopped, NumberSearchEnd::AllTried { numbers: 5, rounds: 3 });
    assert!((4..=5).contains(&found.parameter) && found.loss == Some(0.0), "{found:?}");
}

/// Runs take two seconds by one thread; moments of it cannot be watched for long.
fn brief(n: u32, windows: f64, record: usize, stage: ProbeStage) -> Result<Probe, MeasureError> {
    let probe = amdahl(n, windows, record, stage)?;
    match stage {
        ProbeStage::Moments => Err(MeasureError::new(Retry::Other, "it ended by itself")),
        ProbeStage::Timing | ProbeStage::Runs => {
            let progress = Progress {
                rate: probe.progress.rate / 2.0,
                measure: Measure::Runs,
                ..probe.progress
            };
            Ok(Probe { progress, ..probe })
        }
    }
}

/// One thread beside the first does the work of every number.
#[test]
fn whole_runs_show_what_a_number_does_however_many_threads_it_makes() {
    let survey = survey(4);
    let SearchMethod::Survey(question) = survey.method else { panic!() };
    let survey = SearchMethod::Survey(SpeedQuestion { counted: true, ..question });
    let SearchMethod::Sweep(question) = sweep(&[1, 2, 3, 4], 2).method else { panic!() };
    let sweep = SearchMethod::Sweep(SweepQuestion { counted: true, ..question });
    for method in [survey, sweep] {
        for (runs, measure) in
            [(WholeRuns::Always, Measure::Runs), (WholeRuns::Never, Measure::CpuTime)]
        {
            let search = NumberQuestion { runs, ..search(method.clone()) };
            let (_, records) = whole(&search, &same, |n, _, _, _| {
                let progress = Progress { rate: 1.0, error: Some(0.01), measure };
                Ok(Probe { progress, ..probe(n, 2, 1.0) })
            });
            let more = search.answer(&same, &records).unwrap().advice.and_then(|found| found.more);
            assert_eq!(more.is_some(), runs == WholeRuns::Always, "{measure}: {more:?}");
        }
    }
}

#[test]
fn a_program_that_ends_soon_is_measured_by_whole_runs_also_after_a_kill() {
    let search = NumberQuestion { runs: WholeRuns::WhereShort, ..survey(8) };
    let records = resumes(&search, brief);
    assert_eq!(records[0].trial.effort.windows, 0.0, "one run, however long");
    let progressed = search.progressed(&same, &records);
    assert_eq!(
        (progressed.stage, progressed.first, progressed.short),
        (ProbeStage::Runs, 1, false)
    );
    let run = progressed.run.unwrap().as_secs_f64();
    assert!((run - 0.65).abs() < 0.02, "{run}");
    assert_eq!(progressed.window, progressed.run.unwrap() * 3, "60 s are enough for several");
    assert_eq!(search.answer(&same, &records).unwrap().attempts.len(), records.len() - 1);
}

#[test]
fn a_probe_in_which_nothing_got_done_is_repeated_longer() {
    // Nothing in the first two probes of a number, if these are not long enough.
    let slow = |n: u32, windows: f64, record: usize, stage: ProbeStage| {
        let probe = amdahl(n, windows, record, stage)?;
        let rate = if n == 4 && windows < 10.0 { 0.0 } else { probe.progress.rate };
        Ok(Probe { progress: Progress { rate, ..probe.progress }, ..probe })
    };
    let search = survey(4);
    let records = resumes(&search, slow);
    let of_four: Vec<f64> = records
        .iter()
        .filter(|record| parameter(record) == 4)
        .map(|record| record.trial.effort.windows)
        .collect();
    assert_eq!(of_four[1] / of_four[0], LONGER);
    assert_eq!(of_four[2] / of_four[1], LONGER);
    let found = search.answer(&same, &records).unwrap();
    let empty = records
        .iter()
        .filter(|record| record.outcome.as_ref().is_ok_and(|measured| measured.performance <= 0.0));
    assert_eq!(found.attempts.len() + empty.count(), records.len());
    assert!(found.attempts.iter().all(|attempt| attempt.probe.progress.rate > 0.0));
}

/// The records of a survey next to others that take these shares of the contexts. Its probes are as
/// fast as Amdahl's law says, times `factor` of their record.
fn beside(
    search: &NumberQuestion,
    lost: &[f64],
    factor: impl Fn(u32, usize) -> f64,
) -> (Ending, Vec<Record>) {
    on(search, |bed| bed.beside(lost), factor)
}

/// A program that runs a probe for a test.
type Prober<'a> = Bed<Box<dyn FnMut(u32, f64) -> Result<Probe, MeasureError> + 'a>>;

/// The records of such a survey on the testbed that `as_is` makes of an undisturbed one.
fn on(
    search: &NumberQuestion,
    as_is: impl for<'a> FnOnce(Prober<'a>) -> Prober<'a>,
    factor: impl Fn(u32, usize) -> f64,
) -> (Ending, Vec<Record>) {
    let made = Cell::new(0);
    let mut bed = as_is(Bed::new(Box::new(|n, windows| {
        let probe = amdahl(n, windows, made.get(), ProbeStage::Moments)?;
        let rate = probe.progress.rate * factor(n, made.get());
        Ok(Probe { progress: Progress { rate, ..probe.progress }, ..probe })
    })));
    let mut journal = MemoryJournal::default();
    let mut searcher = NumberSearch::new(search, &same, &[]);
    let (clock, stop) = (|| Duration::ZERO, || false);
    let mut observe = |_: &Record| made.set(made.get() + 1);
    let (ending, _) =
        drive(&mut journal, &mut searcher, &mut bed, &clock, &stop, &mut observe).unwrap();
    (ending, journal.records)
}

/// Others take nine tenths of the machine in the second probe, and the program is that much slower.
#[test]
fn a_starved_probe_is_repeated_and_decides_nothing() {
    let search = survey(4);
    let slow = |_: u32, record: usize| if record == 1 { 0.1 } else { 1.0 };
    let (_, records) = beside(&search, &[0.0, 0.9], slow);
    let again: Vec<_> = records[1..3].iter().map(|record| &record.trial).collect();
    assert_eq!(again[0].setting, again[1].setting);
    assert_eq!(again[1].effort.windows, LITTLE_LONGER * again[0].effort.windows);
    let found = search.answer(&same, &records).unwrap();
    assert_eq!((found.parameter, found.attempts.len()), (4, records.len() - 1));
    assert!(!found.records.contains(&1), "{:?}", found.records);
    assert_eq!(found.set_aside, SetAside { starved: 1, ..SetAside::default() });
    // A steady load is as it is everywhere.
    let (_, steady) = beside(&search, &[0.9; 40], |_, _| 1.0);
    let found = search.answer(&same, &steady).unwrap();
    assert_eq!((found.parameter, found.set_aside.total()), (4, 0));
    // Earlier versions took probes as they were.
    let (_, records) = beside(&NumberQuestion { doubts_on: None, ..search }, &[0.0, 0.9], slow);
    assert_ne!(records[1].trial.setting, records[2].trial.setting);
}

/// Nothing gets done in the second one, the fourth is starved, and the sixth is far too fast.
#[test]
fn a_sweep_makes_doubtful_probes_again_and_no_other_ones() {
    let search = NumberQuestion { goes_on: true, ..sweep(&[1, 2, 4], 3) };
    let odd =
        |_: u32, record: usize| [1.0, 0.0, 1.0, 0.1, 1.0, 20.0].get(record).map_or(1.0, |x| *x);
    let lost = [0.0, 0.0, 0.0, 0.9];
    let (ending, records) = beside(&search, &lost, odd);
    assert_eq!(
        (ending, probed(&records)),
        (Ending::Finished, vec![1, 2, 2, 4, 4, 1, 1, 2, 4, 1, 2, 4, 1])
    );
    let found = search.answer(&same, &records).unwrap();
    let aside = SetAside { idle: 1, starved: 1, jumped: 1, ..SetAside::default() };
    assert_eq!((found.parameter, found.set_aside, found.attempts.len()), (4, aside, 10));
    // A load that stays another ends it.
    let (_, records) = beside(&search, &[], |_, record| if record >= 3 { 20.0 } else { 1.0 });
    let why = search.answer(&same, &records).unwrap_err().why;
    assert!(matches!(why, Some(NumberSearchError::Jumped(_))), "{why:?}");
    // Earlier versions took probes as they were, and stored no rule for it.
    let stored = serde_json::to_string(&search).unwrap().replace(r#","doubts":true"#, "");
    let earlier: NumberQuestion = serde_json::from_str(&stored).unwrap();
    assert_ne!(earlier, search);
    let (_, records) = beside(&earlier, &lost, odd);
    assert_eq!(probed(&records), [1, 2, 4, 1, 2, 4, 1, 2, 4, 1]);
}

/// Only the second one shows that the first was unusual.
#[test]
fn a_first_probe_that_was_starved_counts_less() {
    let search = survey(4);
    let slow = |_: u32, record: usize| if record == 0 { 0.4 } else { 1.0 };
    let (_, records) = beside(&search, &[0.9, 0.0], slow);
    let found = search.answer(&same, &records).unwrap();
    assert_eq!((found.parameter, found.set_aside.total()), (4, 0));
    let (_, records) = beside(&search, &[0.0, 0.0], slow);
    assert_ne!(search.answer(&same, &records).unwrap().parameter, 4, "a slow one counts");
}

#[test]
fn a_probe_that_stays_starved_counts_less() {
    let search = survey(4);
    let late = |_: u32, record: usize| if (1..=4).contains(&record) { 0.5 } else { 1.0 };
    let lost = [0.0, 0.5, 0.5, 0.9, 0.9];
    let (ending, records) = beside(&search, &lost, late);
    let found = search.answer(&same, &records).unwrap();
    assert_eq!((ending, found.parameter), (Ending::Finished, 4));
}

#[test]
fn progress_that_jumps_ends_the_search_of_a_program_that_keeps_running() {
    let search = NumberQuestion { goes_on: true, ..survey(4) };
    let jump = |_: u32, record: usize| if record >= 2 { 20.0 } else { 1.0 };
    let (ending, records) = beside(&search, &[], jump);
    let why = search.answer(&same, &records).unwrap_err().why.unwrap();
    assert!(matches!(why, NumberSearchError::Jumped(jump) if jump.times > JUMP), "{why}");
    assert_eq!(ending, Ending::Failed(why.to_string()));
    // If only the closing probe shows it, it speaks against what was found.
    let last = beside(&search, &[], |_, _| 1.0).1.len() - 1;
    let (ending, records) =
        beside(&search, &[], |_, record| if record >= last { 20.0 } else { 1.0 });
    let found = search.answer(&same, &records).unwrap();
    assert!(found.jumped().is_some_and(|jump| jump.n == 4), "{found:?}");
    assert_eq!((ending, found.parameter), (Ending::Finished, 4), "what was found stays");
    // One odd reading is made again.
    let once = |_: u32, record: usize| if record == 2 { 20.0 } else { 1.0 };
    let (ending, records) = beside(&search, &[], once);
    assert_eq!(ending, Ending::Finished);
    assert_eq!(search.answer(&same, &records).unwrap().parameter, 4);
}

/// The numbers that were probed, in order.
fn probed(records: &[Record]) -> Vec<u32> {
    records.iter().map(parameter).collect()
}

#[test]
fn a_number_below_the_floor_is_probed_once_and_never_chosen() {
    let search = NumberQuestion { goes_on: true, ..survey(6) };
    // Without one, 1 is probed, and the slow 2 at least once.
    let slow = |n: u32, _: usize| if n <= 2 { 0.1 } else { 1.0 };
    let (ending, records) = on(&search, |bed| bed.with_floor(1.0), slow);
    let found = search.answer(&same, &records).unwrap();
    assert_eq!((ending, found.parameter), (Ending::Finished, 4), "{:?}", probed(&records));
    for n in [1, 2] {
        let times = probed(&records).iter().filter(|probed| **probed == n).count();
        assert!(times <= 1, "{n}: {:?}", probed(&records));
    }
    assert!(found.attempts.iter().any(|attempt| attempt.below_floor), "{:?}", probed(&records));
    // The first number stands still. It is not probed for longer, also not at the end.
    let still = |n: u32, _: usize| if n == 4 { 0.0 } else { 1.0 };
    let (ending, records) = on(&search, |bed| bed.with_floor(0.5), still);
    let found = search.answer(&same, &records).unwrap();
    let advice = found.advice.as_ref().unwrap();
    assert!(ending == Ending::Finished && found.parameter >= 5, "{:?}", probed(&records));
    assert!(advice.between.0 >= 5 && advice.value.value > 1.0, "{advice:?}");
    assert_eq!(probed(&records).iter().filter(|n| **n == 4).count(), 1, "{:?}", probed(&records));
    // A single number that is left is the answer. If none is, there is no answer.
    let two = SpeedQuestion::new(vec![1, 4], 4, Duration::from_millis(100));
    let two = NumberQuestion { goes_on: true, ..self::search(SearchMethod::Survey(two)) };
    let (_, records) = on(&two, |bed| bed.with_floor(2.0), |_, _| 1.0);
    assert_eq!(two.answer(&same, &records).unwrap().parameter, 4);
    let (ending, records) = on(&two, |bed| bed.with_floor(9.0), |_, _| 1.0);
    let why = two.answer(&same, &records).unwrap_err().why.unwrap();
    assert_eq!(why, NumberSearchError::Survey(SpeedSearchError::NoneLeft));
    assert_eq!((ending, records.len()), (Ending::Failed(why.to_string()), 2));
}

#[test]
fn progress_that_rises_when_others_leave_is_no_jump() {
    let one = SpeedQuestion::new(vec![1, 4], 4, Duration::from_millis(100));
    let one =
        NumberQuestion { goes_on: true, doubts_on: Some(4), ..search(SearchMethod::Survey(one)) };
    let faster = |record: usize| if record >= 1 { 10.0 } else { 1.0 };
    for (busy, is_jump) in [(0.9, false), (0.0, true)] {
        let lost = [[busy].as_slice(), &[0.0; 40]].concat();
        let (_, records) = on(&one, |bed| bed.beside(&lost), |_, record| faster(record));
        let jumped = match one.answer(&same, &records) {
            Ok(found) => found.jumped().is_some(),
            Err(unfound) => matches!(unfound.why, Some(NumberSearchError::Jumped(_))),
        };
        assert_eq!(jumped, is_jump, "{busy}: {:?}", probed(&records));
    }
}

#[test]
fn a_jump_is_one_of_what_is_maximised() {
    let energy = |doubts: SpeedQuestion| NumberQuestion {
        goes_on: true,
        objective: Objective::Energy,
        ..search(SearchMethod::Survey(doubts))
    };
    let one = energy(SpeedQuestion::new(vec![1, 4], 4, Duration::from_millis(100)));
    // Ten times the work by ten times the power, from the third probe on.
    let more = |record: usize| if record >= 2 { 10.0 } else { 1.0 };
    let watts: Vec<f64> = (0..40).map(more).collect();
    let (ending, records) = on(&one, |bed| bed.drawing(&watts), |_, record| more(record));
    assert_eq!(ending, Ending::Finished);
    assert_eq!(one.answer(&same, &records).unwrap().jumped(), None);
    // The same work by ten times the power.
    let (_, records) = on(&one, |bed| bed.drawing(&watts), |_, _| 1.0);
    let why = match one.answer(&same, &records) {
        Ok(found) => found.unchecked,
        Err(unfound) => unfound.why,
    };
    assert!(matches!(why, Some(NumberSearchError::Jumped(_))), "{why:?}");
}

#[test]
fn a_program_that_gets_nothing_done_ends_the_search_with_an_error() {
    let dead = |n, windows, record, stage| {
        let probe = amdahl(n, windows, record, stage)?;
        Ok(Probe { progress: Progress { rate: 0.0, ..probe.progress }, ..probe })
    };
    for search in [survey(4), sweep(&[1, 2], 2)] {
        let records = resumes(&search, dead);
        assert_eq!(records.len(), 1 + REPEATS as usize);
        let unfound = search.answer(&same, &records).unwrap_err();
        assert_eq!((unfound.set_aside.idle, unfound.attempts.len()), (3, 1), "the last one counts");
        let why = unfound.why.unwrap();
        assert!(matches!(why, NumberSearchError::Survey(SpeedSearchError::Idle { .. })), "{why}");
    }
}

/// n of a record.
fn parameter(record: &Record) -> u32 {
    match record.trial.setting {
        Setting::Threads(ThreadCount { n: Some(n), .. }) => n,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_that_prints_a_number_is_as_long_as_it_takes() {
    let search = NumberQuestion { runs: WholeRuns::Always, ..survey(8) };
    // Millions a second, in runs of two seconds.
    let printed = |n, windows, record, stage| {
        let probe = amdahl(n, windows, record, stage)?;
        let rate = probe.progress.rate * 1e6;
        let progress = Progress { rate, error: Some(rate * 0.01), ..probe.progress };
        Ok(Probe { progress, cost: Duration::from_secs(2), ..probe })
    };
    let records = resumes(&search, printed);
    let progressed = search.progressed(&same, &records);
    assert_eq!(progressed.run, Some(Duration::from_secs(2)));
    assert_eq!(progressed.window, Duration::from_secs(6));
    assert_eq!(search.answer(&same, &records).unwrap().parameter, 4);
}

#[test]
fn whole_runs_take_over_where_a_program_ends_within_a_probe() {
    let by_moments = |n, windows, record, stage| match (stage, record) {
        (ProbeStage::Timing, _) => Err(MeasureError::new(Retry::Other, "it ran longer")),
        // The second number is faster.
        (ProbeStage::Moments, 0 | 1) => amdahl(n, windows, record, stage),
        _ => brief(n, windows, record, stage),
    };
    let surveyed = NumberQuestion { runs: WholeRuns::WhereShort, ..survey(8) };
    let records = resumes(&surveyed, by_moments);
    let progressed = surveyed.progressed(&same, &records);
    assert_eq!((progressed.stage, progressed.first, progressed.short), (ProbeStage::Runs, 3, true));
    let swept = NumberQuestion { runs: WholeRuns::WhereShort, ..sweep(&[1, 2, 3], 1) };
    let records = resumes(&swept, by_moments);
    assert_eq!(swept.progressed(&same, &records).first, 3);
    assert_eq!(swept.answer(&same, &records).unwrap().attempts.len(), 3);
    let refused = |search: &NumberQuestion| whole(search, &same, brief).0;
    let never = NumberQuestion { runs: WholeRuns::Never, ..sweep(&[1, 2, 3], 1) };
    assert_eq!(refused(&never), Ending::Failed("it ended by itself".into()));
}

#[test]
fn an_answer_outlives_the_probe_that_was_to_check_it() {
    let search = NumberQuestion { goes_on: true, ..sweep(&[1, 2, 3], 1) };
    let failing = |error: MeasureError, left: usize| {
        let outcome = |n: u32, _: f64, record: usize, _: ProbeStage| {
            if record < left { Ok(probe(n, n, f64::from(n))) } else { Err(error.clone()) }
        };
        let (ending, records) = whole(&search, &same, outcome);
        (ending, search.answer(&same, &records))
    };
    let other = MeasureError::new(Retry::Other, "nothing matched");
    let (ending, found) = failing(other.clone(), 3);
    assert_eq!(ending, Ending::Finished);
    let found = found.unwrap();
    assert_eq!((found.parameter, found.attempts.len()), (3, 3));
    assert_eq!(found.unchecked.unwrap().to_string(), "nothing matched");
    let (ending, found) = failing(MeasureError::interrupted(), 3);
    assert_eq!((ending, found.unwrap().parameter), (Ending::Interrupted, 3));
    let (ending, found) = failing(MeasureError::expired("the time is over"), 3);
    assert_eq!(ending, Ending::Finished);
    assert_eq!(found.unwrap().unchecked, None);
    let (ending, unfound) = failing(other, 2);
    assert_eq!(ending, Ending::Failed("nothing matched".into()));
    assert_eq!(unfound.unwrap_err().attempts.len(), 2, "then there is none");
}

#[test]
fn when_the_time_is_over_a_survey_answers_by_what_it_has() {
    let search = NumberQuestion { goes_on: true, ..survey(8) };
    let ending_at = |left: usize| {
        let outcome = |n: u32, windows: f64, record: usize, stage: ProbeStage| {
            if record < left {
                amdahl(n, windows, record, stage)
            } else {
                Err(MeasureError::expired("the time is over"))
            }
        };
        resumes(&search, outcome)
    };
    let records = ending_at(2);
    assert_eq!(records.len(), 3, "no probe is made after that");
    let found = search.answer(&same, &records).unwrap();
    assert!(
        matches!(found.stopped, NumberSearchEnd::Time { broken_off: Some(_) }),
        "{:?}",
        found.stopped
    );
    assert_eq!(found.set_aside, SetAside { cut_short: 1, ..SetAside::default() });
    let none = search.answer(&same, &ending_at(0)).unwrap_err();
    assert_eq!(none.why.unwrap().to_string(), "the time is over");
}

/// Keeps as many contexts busy as it has threads, by a formula.
fn busy(n: u32, _: f64, _: usize, _: ProbeStage) -> Result<Probe, MeasureError> {
    let threads = 3 + 4 * n;
    let cpu_util = f64::from(threads) / 24.0 * 100.0;
    Ok(Probe {
        profile: SchedulingProfile { cpu_util, ..SchedulingProfile::default() },
        ..probe(n, threads, 1.0)
    })
}

/// 1 and 5 threads are n = 1. Two probes of the same program would show no parallelism and end the
/// search.
#[test]
fn a_step_that_starts_the_same_program_is_no_saturation() {
    let formula: ThreadsPerN = "3+4n".parse().unwrap();
    let convert = |threads: u32| formula.parameter(threads);
    let search = reinforcer(ThreadRange { min: 1, max: 30, step: 4 });
    let (_, records) = whole(&search, &convert, busy);
    let found = search.answer(&convert, &records).unwrap();
    assert_eq!((found.parameter, found.stopped), (6, NumberSearchEnd::MostThreads { last: 6 }));
    let probed: Vec<u32> = found.attempts.iter().map(|attempt| attempt.probe.parameter).collect();
    assert_eq!(probed, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn where_all_numbers_start_the_same_program_it_is_chosen() {
    let search = reinforcer(ThreadRange { min: 1, max: 6, step: 2 });
    let (_, records) = whole(&search, &|_| 1, busy);
    let found = search.answer(&|_| 1, &records).unwrap();
    assert_eq!((found.parameter, found.attempts.len()), (1, 1));
}

#[test]
fn speeds_from_different_sources_are_not_compared() {
    let fickle = |n: u32, _: f64, record: usize, _: ProbeStage| {
        let measure = if record == 1 { Measure::CpuTime } else { Measure::Instructions };
        Ok(Probe { progress: Progress { rate: 1.0, error: None, measure }, ..probe(n, n, 1.0) })
    };
    let (ending, _) = whole(&sweep(&[1, 2], 1), &same, fickle);
    let Ending::Failed(error) = ending else { panic!("{ending:?}") };
    assert!(error.contains("by CPU time, before by instructions"), "{error}");
}

#[test]
fn a_failure_that_another_try_mends_is_no_end() {
    let flaky = |n: u32, windows: f64, record: usize, stage: ProbeStage| {
        if record % 3 == 1 {
            Err(MeasureError::new(Retry::Same, "no line matched"))
        } else {
            amdahl(n, windows, record, stage)
        }
    };
    let search = sweep(&[1, 2, 3], 2);
    let records = resumes(&search, flaky);
    assert_eq!(search.answer(&same, &records).unwrap().attempts.len(), 6);
    let broken = |_, _, _, _| Err(MeasureError::new(Retry::Same, "no line matched"));
    let (ending, records) = whole(&search, &same, broken);
    assert_eq!((ending, records.len()), (Ending::Failed("no line matched".into()), 3));
}

/// One node measures all of a round of a sweep, and all of a survey.
#[test]
fn rounds_of_a_sweep_are_foreseen() {
    let question = sweep(&[1, 2, 4], 3);
    let (_, records) = whole(&question, &same, amdahl);
    let trials: Vec<&Trial> = records.iter().map(|record| &record.trial).collect();
    assert_eq!(trials.len(), 9);
    let mut searcher = NumberSearch::new(&question, &same, &[]);
    for made in 0..trials.len() {
        assert_eq!(searcher.step(&records[..made]), Step::Measure(trials[made].clone()));
        let (place, foreseen) = (made % 3, searcher.foresee(usize::MAX));
        assert_eq!(foreseen.iter().collect::<Vec<_>>(), trials[made + 1..]);
        let TrialRounds { continued, rest, next } = searcher.rounds(1).unwrap();
        assert_eq!((continued, rest.len()), (place > 0, 2 - place));
        assert!(next.len() <= 1 && next.iter().all(|round| round.len() == 3));
        let rounds: Vec<Trial> = rest.into_iter().chain(next.into_iter().flatten()).collect();
        assert_eq!(rounds, foreseen[..rounds.len()]);
    }
    assert_eq!(searcher.step(&records), Step::Stop);
    assert_eq!((searcher.foresee(9), searcher.rounds(9).unwrap().next), (vec![], vec![]));

    let question = survey(4);
    let mut searcher = NumberSearch::new(&question, &same, &[]);
    assert!(matches!(searcher.step(&[]), Step::Measure(_)));
    assert_eq!(searcher.foresee(9), []);
    let on_one_node = TrialRounds { continued: true, ..TrialRounds::default() };
    assert_eq!(searcher.rounds(9), Some(on_one_node));
}
