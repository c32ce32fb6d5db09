use super::*;
use crate::fixture::{Curious, Scripted, campaign};
use pinwise_testbed::{Effort, Setting, Unit, Workload};
use pinwise_topology::Machine;
use tempfile::TempDir;

fn store() -> (TempDir, Store, CampaignId) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("pinwise.db")).unwrap();
    let id = store.create(&campaign()).unwrap();
    (folder, store, id)
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
    assert!(matches!(ending, Ending::Finished(_)));
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
        run(&mut store, id, &mut Curious::default(), &mut testbed, &clock, &|| false, &mut |_| panic!("observed"));
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
    let error = run(&mut store, changed, &mut Curious::default(), &mut testbed, &clock, &|| false, &mut |_| {});
    assert!(matches!(error, Err(StoreError::Mismatch { number: 4, .. })));

    struct Done;
    impl Strategy for Done {
        fn step(&mut self, _: &[Record]) -> Step {
            Step::Stop("enough".into())
        }
    }
    let error = run(&mut store, id, &mut Done, &mut testbed, &clock, &|| false, &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("record 0 is") && error.contains("would have made none"), "{error}");
}

#[test]
fn a_running_campaign_is_not_run_twice() {
    let (_folder, mut store, id) = store();
    let _claim = store.claim(id).unwrap();
    let (mut testbed, clock) = Scripted::after(0);
    let error = run(&mut store, id, &mut Curious::default(), &mut testbed, &clock, &|| false, &mut |_| {});
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

fn with_answer(answer: Result<Measurement, MeasureError>) -> (Ending, Vec<Record>) {
    let (_folder, mut store, id) = store();
    let (testbed, clock) = Scripted::after(0);
    let mut testbed = Always(testbed, answer);
    run(&mut store, id, &mut Curious::default(), &mut testbed, &clock, &|| false, &mut |_| {}).unwrap()
}

#[test]
fn a_dead_testbed_and_an_interruption_leave_no_record() {
    let dead = with_answer(Err(MeasureError::new(Retry::Never, "the program has ended")));
    assert_eq!(dead, (Ending::Failed("the program has ended".into()), vec![]));
    assert_eq!(with_answer(Err(MeasureError::interrupted())), (Ending::Interrupted, vec![]));
}

#[test]
fn a_performance_that_is_no_number_is_a_failure_tried_again() {
    let answer = Measurement { performance: f64::NAN, duration: Duration::from_millis(1), spread: None };
    let (ending, records) = with_answer(Ok(answer));
    assert!(matches!(ending, Ending::Finished(_)));
    assert_eq!(records.len(), 20 * TRIES);
    assert!(records.iter().all(|record| record.outcome.is_err()));
}
