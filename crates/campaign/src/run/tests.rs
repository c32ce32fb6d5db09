//! Tests of [`drive`].

use super::*;
use crate::fixture::{Curious, Scripted, campaign};
use crate::{NewCampaign, Purpose, Store};
use pinwise_measure::{Disturbances, Effort, ProgramNote, Setting, Time, Unit, Workload};
use pinwise_measure::{MeasureError, Measurement, NodeResult, NodeScale, to_begin};
use pinwise_synthetic::{Disturbance, Replay};
use pinwise_topology::{Assignment, Machine};
use std::collections::{BTreeMap, VecDeque};
use tempfile::TempDir;

fn store() -> (TempDir, Store, CampaignId) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("pinwise.db")).unwrap();
    let id = store.create(&campaign()).unwrap();
    (folder, store, id)
}

/// Runs a campaign of the store.
fn run(
    store: &mut Store,
    id: CampaignId,
    strategy: &mut dyn Strategy,
    testbed: &mut dyn Testbed,
    clock: &dyn Fn() -> Duration,
    stop: &dyn Fn() -> bool,
    observe: &mut dyn FnMut(&Record),
) -> Result<(Ending, Vec<Record>), StoreError> {
    drive(&mut store.journal(id)?, strategy, testbed, clock, stop, observe)
}

/// Runs until `stop_after` records are there.
fn go(store: &mut Store, id: CampaignId, stop_after: usize) -> (Ending, Vec<Record>) {
    let made = std::cell::Cell::new(store.records(id).unwrap().len());
    let (mut testbed, clock) = Scripted::after(made.get() as u64);
    let mut observe = |_: &Record| made.set(made.get() + 1);
    let stop = || made.get() >= stop_after;
    run(store, id, &mut Curious::default(), &mut testbed, &clock, &stop, &mut observe).unwrap()
}

#[test]
fn a_campaign_stopped_after_any_record_ends_as_it_would_have() {
    let (_folder, mut whole, id) = store();
    let (ending, records) = go(&mut whole, id, usize::MAX);
    assert_eq!(ending, Ending::Finished);
    assert!(records.len() > 25, "failed tries are repeated: {}", records.len());
    assert_eq!(whole.records(id).unwrap(), records);
    for k in 0..records.len() {
        let (_folder, mut store, id) = store();
        assert_eq!(go(&mut store, id, k).0, Ending::Interrupted, "after {k}");
        assert_eq!(store.records(id).unwrap(), records[..k], "after {k}");
        assert_eq!(go(&mut store, id, usize::MAX), (ending.clone(), records.clone()), "after {k}");
        assert_eq!(store.records(id).unwrap(), records, "after {k}");
    }
}

#[test]
fn a_finished_campaign_run_again_measures_nothing() {
    let (_folder, mut store, id) = store();
    let first = go(&mut store, id, usize::MAX);
    let (mut testbed, clock) = Scripted::after(0);
    let second =
        run(&mut store, id, &mut Curious::default(), &mut testbed, &clock, &|| false, &mut |_| {
            panic!("observed")
        });
    assert_eq!(second.unwrap(), first);
    assert_eq!(testbed.made, 0);
}

#[test]
fn a_history_that_the_strategy_would_not_have_made_is_refused() {
    let (_folder, mut store, id) = store();
    let (_, records) = go(&mut store, id, usize::MAX);
    let changed = store.create(&campaign()).unwrap();
    for record in &records {
        let mut record = record.clone();
        if record.number == 4 {
            record.trial.effort.windows = 99.0;
        }
        store.append(changed, &record).unwrap();
    }
    let (mut testbed, clock) = Scripted::after(0);
    let error = run(
        &mut store,
        changed,
        &mut Curious::default(),
        &mut testbed,
        &clock,
        &|| false,
        &mut |_| {},
    );
    assert!(matches!(error, Err(StoreError::Mismatch { number: 4, .. })));

    struct Done;
    impl Strategy for Done {
        fn step(&mut self, _: &[Record]) -> Step {
            Step::Stop
        }
    }
    let error = run(&mut store, id, &mut Done, &mut testbed, &clock, &|| false, &mut |_| {})
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("record 0 is") && error.contains("this version expects none"),
        "{error}"
    );
}

#[test]
fn a_running_campaign_is_not_run_twice() {
    let (_folder, mut store, id) = store();
    let _lock = Store::open(store.path()).unwrap().lock(id).unwrap();
    let (mut testbed, clock) = Scripted::after(0);
    let error =
        run(&mut store, id, &mut Curious::default(), &mut testbed, &clock, &|| false, &mut |_| {});
    assert!(matches!(error, Err(StoreError::Running { .. })));
}

/// Answers every measurement alike.
struct Always(Scripted, Result<Measurement, MeasureError>);

impl Testbed for Always {
    fn machine(&self) -> &Machine {
        self.0.machine()
    }
    fn workload(&self) -> &Workload {
        self.0.workload()
    }
    fn unit(&self) -> &Unit {
        self.0.unit()
    }
    fn measure(&mut self, _: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        self.1.clone()
    }
}

/// Meets something new with every measurement, which takes 400 ms.
struct Eventful(Scripted);

impl Testbed for Eventful {
    fn machine(&self) -> &Machine {
        self.0.machine()
    }
    fn workload(&self) -> &Workload {
        self.0.workload()
    }
    fn unit(&self) -> &Unit {
        self.0.unit()
    }
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        self.0.measure(setting, effort)
    }
    fn disturbances(&self) -> Disturbances {
        Disturbances {
            others: None,
            notes: vec![format!("{} measurements were made", self.0.made).into()],
        }
    }
}

#[test]
fn disturbances_of_every_session_are_kept_even_if_it_was_killed() {
    let (_folder, mut store, id) = store();
    let made = std::cell::Cell::new(0u32);
    let text = |note: ProgramNote| match note {
        ProgramNote::Text { text } => text,
        other => panic!("{other:?}"),
    };
    let met = |store: &Store| -> Vec<Vec<String>> {
        let texts = |met: Disturbances| met.notes.into_iter().map(text).collect();
        store.disturbances(id).unwrap().into_iter().map(texts).collect()
    };
    let go = |store: &mut Store, deadly: u32| {
        let (testbed, _) = Scripted::after(u64::from(made.get()));
        let begun = made.get();
        let clock = || Duration::from_millis(400) * (made.get() - begun);
        // What a kill leaves behind is what was kept until then, so a panic stands for one.
        let mut observe = |_: &Record| {
            made.set(made.get() + 1);
            assert!(made.get() != deadly, "killed");
        };
        let (mut testbed, stop) = (Eventful(testbed), || made.get() >= 12);
        run(store, id, &mut Curious::default(), &mut testbed, &clock, &stop, &mut observe).unwrap()
    };
    let mut dies = |deadly: u32| {
        let killed = std::panic::AssertUnwindSafe(|| go(&mut store, deadly));
        assert!(std::panic::catch_unwind(killed).is_err());
        met(&store)
    };
    let of = |made: u32| vec![format!("{made} measurements were made")];
    assert_eq!(dies(2), [of(1)], "kept with the first record");
    assert_eq!(dies(7), [of(1), of(6)], "and once a second has passed");
    assert_eq!(go(&mut store, 0).0, Ending::Interrupted);
    assert_eq!(met(&store), [of(1), of(6), of(12)], "and at the end");
    go(&mut store, 0);
    assert_eq!(met(&store).len(), 4, "a part that measured nothing stores what its testbed says");
    store.delete(id).unwrap();
    assert_eq!(met(&store), Vec::<Vec<String>>::new());
}

fn with_answer(answer: Result<Measurement, MeasureError>) -> (Ending, Vec<Record>) {
    let (_folder, mut store, id) = store();
    let (testbed, clock) = Scripted::after(0);
    let mut testbed = Always(testbed, answer);
    run(&mut store, id, &mut Curious::default(), &mut testbed, &clock, &|| false, &mut |_| {})
        .unwrap()
}

#[test]
fn time_between_measurements_is_recorded_as_well() {
    let (_folder, mut store, id) = store();
    let (mut testbed, clock) = Scripted::after(0);
    // Half a second for each record that was stored.
    let stored = std::cell::Cell::new(0u32);
    let slow = || clock() + Duration::from_millis(500) * stored.get();
    let begin = slow();
    let mut observe = |_: &Record| stored.set(stored.get() + 1);
    let (_, records) =
        run(&mut store, id, &mut Curious::default(), &mut testbed, &slow, &|| false, &mut observe)
            .unwrap();
    let last = Duration::from_millis(500);
    assert_eq!(
        records.last().unwrap().elapsed,
        slow() - begin - last,
        "all but what storing the last took"
    );
}

#[test]
fn a_dead_testbed_and_an_interruption_leave_no_record() {
    let dead = with_answer(Err(MeasureError::new(Retry::Never, "the program has ended")));
    assert_eq!(dead, (Ending::Failed("the program has ended".into()), vec![]));
    assert_eq!(with_answer(Err(MeasureError::interrupted())), (Ending::Interrupted, vec![]));
}

fn measured(performance: f64, spread: Option<f64>) -> Measurement {
    Measurement { performance, duration: Duration::from_millis(1), spread, detail: None }
}

#[test]
fn a_performance_that_arithmetic_cannot_handle_is_a_failure_tried_again() {
    for answer in [
        measured(f64::NAN, None),
        measured(f64::INFINITY, None),
        measured(1e308, None),
        measured(-1e308, None),
        measured(1e-320, None),
        measured(1.0, Some(1e300)),
        measured(1.0, Some(f64::NAN)),
    ] {
        let (ending, records) = with_answer(Ok(answer.clone()));
        assert_eq!(ending, Ending::Finished, "{answer:?}");
        assert_eq!(records.len(), 20 * TRIES, "{answer:?}");
        assert!(records.iter().all(|record| record.outcome.is_err()), "{answer:?}");
    }
}

#[test]
fn a_performance_of_nothing_or_below_is_one() {
    for performance in [0.0, -5.0, 1e-75, 1e75] {
        let (_, records) = with_answer(Ok(measured(performance, Some(0.0))));
        assert!(records.iter().all(|record| record.outcome.is_ok()), "{performance}");
    }
}

/// A testbed in virtual time that fails now and then, and how many trials it was given at a time.
struct Wide {
    replay: Replay,
    width: usize,
    batches: Vec<usize>,
}

impl Testbed for Wide {
    fn machine(&self) -> &Machine {
        self.replay.machine()
    }
    fn workload(&self) -> &Workload {
        self.replay.workload()
    }
    fn unit(&self) -> &Unit {
        self.replay.unit()
    }
    fn measure(&mut self, _: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        panic!("in virtual time trials are handed over together")
    }
    fn time(&self) -> Time {
        Time::Virtual { width: self.width }
    }
    fn seek(&mut self, number: u64) {
        self.replay.seek(number);
    }
    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        self.batches.push(trials.len());
        trials.iter().map(|(setting, effort)| self.replay.measure(setting, *effort)).collect()
    }
}

/// Decides on five trials at a time, by what the last five gave. Foresees those it decided on, and
/// one it will not make.
#[derive(Default)]
struct Rounds {
    queue: VecDeque<Trial>,
    rounds: u64,
}

impl Strategy for Rounds {
    fn step(&mut self, history: &[Record]) -> Step {
        if self.queue.is_empty() {
            self.rounds += 1;
            let last =
                history.iter().rev().take(5).filter_map(|record| record.outcome.as_ref().ok());
            let mut bits = last.map(|measured| measured.performance).sum::<f64>().to_bits() >> 3;
            for _ in 0..5 {
                bits /= 2;
                let setting = Setting::Pinned(Assignment::new(vec![
                    (bits % 2) as u32,
                    1 - (bits % 2) as u32,
                ]));
                let effort = Effort { windows: 1.0 + (bits / 2 % 3) as f64 };
                self.queue.push_back(Trial { setting, purpose: Purpose::Sample, effort });
            }
        }
        match self.queue.pop_front() {
            Some(trial) if self.rounds <= 6 => Step::Measure(trial),
            _ => Step::Stop,
        }
    }

    fn foresee(&self, most: usize) -> Vec<Trial> {
        let effort = Effort { windows: 7.0 };
        let wrong = Trial { setting: Setting::Unpinned, purpose: Purpose::Baseline, effort };
        self.queue.iter().cloned().chain([wrong]).take(most).collect()
    }
}

/// Runs until `stop_after` records are there, `width` trials at a time.
fn go_wide(
    store: &mut Store,
    id: CampaignId,
    width: usize,
    stop_after: usize,
) -> (Vec<Record>, Vec<usize>) {
    let NewCampaign { machine, workload, unit, .. } = campaign();
    let population = [(Assignment::new(vec![0, 1]), 10.0), (Assignment::new(vec![1, 0]), 20.0)];
    let disturbance = Disturbance { noise: 0.1, drift: 1e-3, misses: 0.2, seed: 5 };
    let replay = Replay::new(machine, workload, unit, population, vec![15.0], disturbance);
    let mut testbed = Wide { replay, width, batches: Vec::new() };
    let made = std::cell::Cell::new(store.records(id).unwrap().len());
    let stop = || made.get() >= stop_after;
    let mut observe = |_: &Record| made.set(made.get() + 1);
    let clock = || panic!("virtual time is not read from a clock");
    let (_, records) =
        run(store, id, &mut Rounds::default(), &mut testbed, &clock, &stop, &mut observe).unwrap();
    (records, testbed.batches)
}

#[test]
fn measuring_ahead_changes_nothing_but_the_time_it_takes() {
    let (_folder, mut store, first) = store();
    let (records, batches) = go_wide(&mut store, first, 1, usize::MAX);
    assert!(
        records.len() > 30 && batches == vec![1; records.len()],
        "failed tries are repeated: {batches:?}"
    );
    assert!(records.iter().any(|record| record.outcome.is_err()));
    let windows = records.iter().filter(|record| record.outcome.is_ok()).count() as u32;
    assert_eq!(records.last().unwrap().elapsed, windows * Duration::from_millis(100));
    for width in [2, 3, 8] {
        let id = store.create(&campaign()).unwrap();
        let (wide, batches) = go_wide(&mut store, id, width, usize::MAX);
        assert_eq!(wide, records, "{width} at a time");
        assert_eq!(store.records(id).unwrap(), records, "{width} at a time");
        assert_eq!(batches.iter().max(), Some(&width.min(6)));
        assert!(batches.len() < records.len(), "{batches:?}");
    }
    for k in 0..records.len() {
        let id = store.create(&campaign()).unwrap();
        assert_eq!(go_wide(&mut store, id, 3, k).0, records[..k], "stopped after {k}");
        assert_eq!(go_wide(&mut store, id, 4, usize::MAX).0, records, "stopped after {k}");
    }
}

/// Three nodes that end in another order than they begin. Each performance is unique.
struct Several {
    replay: Wide,
    begun: Vec<(Setting, Effort)>,
    measured: u32,
}

impl Testbed for Several {
    fn machine(&self) -> &Machine {
        self.replay.machine()
    }
    fn workload(&self) -> &Workload {
        self.replay.workload()
    }
    fn unit(&self) -> &Unit {
        self.replay.unit()
    }
    fn measure(&mut self, _: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        panic!("the nodes measure")
    }
    fn nodes(&self) -> Option<usize> {
        Some(3)
    }
    fn measure_first(
        &mut self,
        rounds: &[Vec<(Setting, Effort)>],
        _: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        let new = to_begin(rounds, None, self.begun.iter().map(|trial| (0, trial)));
        let free = 3 - self.begun.len();
        self.begun.extend(new.into_iter().flatten().take(free));
        while let Some((setting, effort)) = self.begun.pop() {
            self.measured += 1;
            let performance = f64::from(self.measured);
            let first = (setting.clone(), effort) == rounds[0][0];
            let outcome = Ok(Measurement::new(performance, Duration::from_millis(1)));
            let node = format!("h{}", self.begun.len());
            let scale = Some(NodeScale { factor: 2.0, error: 0.0 });
            take(NodeResult { node, setting, effort, outcome, scale });
            if first {
                break;
            }
        }
        Ok(())
    }
}

/// Stopped after any record and resumed: no result is lost, none is in two records.
#[test]
fn a_result_of_a_node_is_kept_when_it_comes_and_used_once() {
    for stop_after in 0..20 {
        let (_folder, mut store, id) = store();
        let NewCampaign { machine, workload, unit, .. } = campaign();
        let disturbance = Disturbance { noise: 0.0, drift: 0.0, misses: 0.0, seed: 5 };
        let population = [(Assignment::new(vec![0, 1]), 10.0)];
        let replay = Replay::new(machine, workload, unit, population, vec![15.0], disturbance);
        let replay = Wide { replay, width: 1, batches: Vec::new() };
        let mut testbed = Several { replay, begun: Vec::new(), measured: 0 };
        let mut records = Vec::new();
        for stop_after in [stop_after, usize::MAX] {
            let made = std::cell::Cell::new(store.records(id).unwrap().len());
            let stop = || made.get() >= stop_after;
            let mut observe = |_: &Record| made.set(made.get() + 1);
            let strategy = &mut Rounds::default();
            let clock = || Duration::ZERO;
            records =
                run(&mut store, id, strategy, &mut testbed, &clock, &stop, &mut observe).unwrap().1;
            // A node that a dead coordinator had does not measure for the next one.
            testbed.begun.clear();
        }
        let value = |record: &Record| record.outcome.as_ref().unwrap().performance as u32;
        let mut used: Vec<u32> = records.iter().map(value).collect();
        // The nodes count up by one, and their common scale has twice that.
        assert!(used.iter().all(|value| value.is_multiple_of(2)), "{used:?}");
        used.sort_unstable();
        used.dedup();
        assert_eq!(used.len(), records.len(), "none in two records");
        let journal = store.journal(id).unwrap();
        let waiting = journal.kept_results(usize::MAX).unwrap();
        assert_eq!(records.len() + waiting.len(), testbed.measured as usize, "none lost");
        let last = journal.kept_results(1).unwrap();
        assert_eq!(last, waiting[waiting.len().saturating_sub(1)..]);
        drop(journal);
        store.delete(id).unwrap();
    }
}

/// Nodes of which each is as fast as its number says. They end in turn, one trial at a time.
struct Unequal {
    several: Several,
    /// What each has begun.
    held: [VecDeque<(Setting, Effort)>; 2],
    turn: usize,
    /// Node 0 dies after so many results.
    left: usize,
}

impl Testbed for Unequal {
    fn machine(&self) -> &Machine {
        self.several.machine()
    }
    fn workload(&self) -> &Workload {
        self.several.workload()
    }
    fn unit(&self) -> &Unit {
        self.several.unit()
    }
    fn measure(&mut self, _: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        panic!("the nodes measure")
    }
    fn nodes(&self) -> Option<usize> {
        Some(2)
    }
    fn measure_first(
        &mut self,
        rounds: &[Vec<(Setting, Effort)>],
        node: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        let first = &rounds[0][0];
        let by = |number: usize| format!("h{number}");
        let own = (0..2).find(|number| node == Some(&by(*number)));
        let own = own.filter(|number| *number > 0 || self.left > 0);
        let begun = self.held.iter().zip(0..);
        let begun = begun.flat_map(|(held, number)| held.iter().map(move |trial| (number, trial)));
        let mut new = to_begin(rounds, own, begun);
        if let Some(own) = own {
            self.held[own].extend(std::mem::take(&mut new[0]));
        }
        for new in new {
            let free = |number: &usize| self.held[*number].is_empty();
            if let Some(number) = (0..2).filter(free).find(|number| *number > 0 || self.left > 0) {
                self.held[number].extend(new);
            }
        }
        loop {
            self.turn += 1;
            let number = self.turn % 2;
            if number == 0 && self.left == 0 {
                self.held[0].clear();
            }
            let Some((setting, effort)) = self.held[number].pop_front() else {
                if self.held[1 - number].is_empty() {
                    self.held[1].push_back(first.clone());
                }
                continue;
            };
            self.left -= usize::from(number == 0);
            let is_first = (setting.clone(), effort) == *first;
            let waits = own.is_some_and(|own| own != number && self.held[own].contains(first));
            let outcome = Ok(Measurement::new(number as f64, Duration::from_millis(1)));
            take(NodeResult { node: by(number), setting, effort, outcome, scale: None });
            if is_first && !waits {
                return Ok(());
            }
        }
    }
}

/// Ten rounds of the same four settings.
#[derive(Default)]
struct Compared(usize);

impl Compared {
    fn trial(place: usize) -> Trial {
        let setting = Setting::Pinned(Assignment::new(vec![place as u32 % 4]));
        Trial { setting, purpose: Purpose::Final, effort: Effort::default() }
    }
}

impl Strategy for Compared {
    fn step(&mut self, history: &[Record]) -> Step {
        self.0 = history.len();
        if self.0 < 40 { Step::Measure(Self::trial(self.0)) } else { Step::Stop }
    }

    fn rounds(&self, most: usize) -> Option<crate::TrialRounds> {
        let round = || (0..4).map(Self::trial).collect();
        let rest = (self.0 % 4 + 1..4).map(Self::trial).collect();
        let next = (0..most).map(|_| round()).collect();
        Some(crate::TrialRounds { continued: !self.0.is_multiple_of(4), rest, next })
    }
}

#[test]
fn one_node_measures_all_of_a_round() {
    // A session may be killed within a round.
    for (left, stale, killed_after) in [
        (usize::MAX, false, None),
        (usize::MAX, true, None),
        (6, false, None),
        (usize::MAX, false, Some(6)),
        (usize::MAX, false, Some(9)),
    ] {
        let (_folder, mut store, id) = store();
        if stale {
            // A killed session has left it.
            let Trial { setting, effort, .. } = Compared::trial(1);
            let outcome = Ok(Measurement::new(0.0, Duration::from_millis(1)));
            let (node, scale) = ("h0".into(), None);
            let result = NodeResult { node, setting, effort, outcome, scale };
            store.journal(id).unwrap().keep_result(&result).unwrap();
        }
        let NewCampaign { machine, workload, unit, .. } = campaign();
        let disturbance = Disturbance { noise: 0.0, drift: 0.0, misses: 0.0, seed: 5 };
        let population = [(Assignment::new(vec![0, 1]), 10.0)];
        let replay = Replay::new(machine, workload, unit, population, vec![15.0], disturbance);
        let replay = Wide { replay, width: 1, batches: Vec::new() };
        let several = Several { replay, begun: Vec::new(), measured: 0 };
        let mut testbed = Unequal { several, held: Default::default(), turn: 0, left };
        let clock = || Duration::ZERO;
        let mut records = Vec::new();
        for most in killed_after.into_iter().chain([usize::MAX]) {
            let made = std::cell::Cell::new(records.len());
            let (stop, strategy) = (|| made.get() >= most, &mut Compared::default());
            let mut observe = |_: &Record| made.set(made.get() + 1);
            records =
                run(&mut store, id, strategy, &mut testbed, &clock, &stop, &mut observe).unwrap().1;
            testbed.held = Default::default();
            // Without what has come for the rest of the round, another node could measure it.
            let connection = rusqlite::Connection::open(store.path()).unwrap();
            connection.execute("DELETE FROM result WHERE record IS NULL", []).unwrap();
        }
        assert_eq!(records.len(), 40);
        let by = |record: &Record| record.outcome.as_ref().unwrap().performance;
        let whole = records
            .chunks(4)
            .filter(|round| round.iter().all(|record| by(record) == by(&round[0])));
        let whole = whole.count();
        // The death of a node breaks one round.
        assert_eq!(whole, if left == 6 { 9 } else { 10 }, "{left} {stale}");
        let slow = records.iter().filter(|record| by(record) == 0.0).count();
        assert!(slow == if left == 6 { 6 } else { 20 } || stale, "{left}: {slow}");
    }
}

/// Also in a store whose results have no scale.
#[test]
fn what_a_node_measured_is_kept_as_it_is_with_its_scale() {
    for from_before in [false, true] {
        let (_folder, mut store, id) = store();
        let scale = Some(NodeScale { factor: 2.0, error: 0.01 });
        let result = |node: &str, performance, scale| {
            let (setting, effort) =
                (Setting::Pinned(Assignment::new(vec![0, 1])), Effort::default());
            let mut measured = Measurement::new(performance, Duration::from_millis(1));
            measured.spread = Some(0.5);
            NodeResult { node: node.into(), setting, effort, outcome: Ok(measured), scale }
        };
        if from_before {
            store.journal(id).unwrap().keep_result(&result("h9", 7.0, None)).unwrap();
            let connection = rusqlite::Connection::open(store.path()).unwrap();
            connection.execute_batch("ALTER TABLE result DROP COLUMN scale").unwrap();
            let kept = store.journal(id).unwrap().kept_results(9).unwrap();
            assert_eq!(kept, [(0, result("h9", 7.0, None))]);
            assert_eq!(store.node_scales(id).unwrap(), BTreeMap::from([("h9".into(), None)]));
            connection.execute("DELETE FROM result", []).unwrap();
        }
        let mut journal = store.journal(id).unwrap();
        journal.keep_result(&result("h1", 6.0, None)).unwrap();
        journal.keep_result(&result("h1", 5.0, scale)).unwrap();
        journal.keep_result(&result("h0", 10.0, None)).unwrap();
        assert_eq!(journal.kept_results(9).unwrap()[1], (1, result("h1", 5.0, scale)));
        let common = result("h1", 5.0, scale).on_common_scale().unwrap();
        assert_eq!((common.performance, common.spread), (10.0, Some(1.0)));
        drop(journal);
        let scales = store.node_scales(id).unwrap();
        assert_eq!(scales, BTreeMap::from([("h0".into(), None), ("h1".into(), scale)]));
    }
}
