//! A program that comes into another phase while it is searched, on the model of a scheduler.

use pinwise_campaign::{MemoryJournal, drive};
use pinwise_measure::{Effort, MeasureError, Measurement, Setting, Testbed, Time, Unit, Workload};
use pinwise_scheduler::{ModelProber, ModelProgram, Platform};
use pinwise_threads::{
    NumberQuestion, NumberSearch, Objective, PhaseChange, SearchMethod, SweepQuestion, WholeRuns,
};
use pinwise_topology::Machine;
use std::time::Duration;

/// One run of a program that does what one description says for some probes, and then what another
/// one says.
struct Phases {
    phases: [ModelProber; 2],
    /// Probes of the first phase that are left.
    left: usize,
}

impl Phases {
    fn new(names: [&str; 2], first: usize) -> Self {
        let model = |name| {
            ModelProber::new(Platform::opteron_24(), ModelProgram::built_in(name).unwrap(), 1)
        };
        Self { phases: names.map(model), left: first }
    }

    fn now(&self) -> usize {
        usize::from(self.left == 0)
    }
}

impl Testbed for Phases {
    fn machine(&self) -> &Machine {
        self.phases[0].machine()
    }
    fn workload(&self) -> &Workload {
        self.phases[0].workload()
    }
    fn unit(&self) -> &Unit {
        self.phases[0].unit()
    }
    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let now = self.now();
        self.left = self.left.saturating_sub(1);
        self.phases[now].measure(setting, effort)
    }
    fn time(&self) -> Time {
        self.phases[0].time()
    }
}

fn searched(names: [&str; 2], first: usize) -> Option<PhaseChange> {
    let sweep = SweepQuestion {
        candidates: vec![16, 20, 24],
        rounds: 3,
        tolerance: 0.01,
        counted: false,
        doubts: false,
    };
    let search = NumberQuestion {
        method: SearchMethod::Sweep(sweep),
        window: Duration::from_millis(100),
        objective: Objective::Time,
        runs: WholeRuns::Never,
        goes_on: false,
        doubts_on: None,
    };
    let mut searcher = NumberSearch::new(&search, &|threads| threads, &[]);
    let (mut journal, mut bed) = (MemoryJournal::default(), Phases::new(names, first));
    drive(&mut journal, &mut searcher, &mut bed, &|| Duration::ZERO, &|| false, &mut |_| {})
        .unwrap();
    search.answer(&|threads| threads, &journal.records).unwrap().phase_change
}

#[test]
fn a_phase_that_begins_within_a_search_is_noticed_where_it_begins() {
    // One keeps all contexts busy. The other waits at locks, and waits longer with more threads.
    for first in 3..=6 {
        let shift = searched(["swaptions", "ammp"], first).unwrap();
        println!("{first}: {shift:?}");
        assert_eq!(shift.at, first, "{shift:?}");
    }
}

#[test]
fn a_program_that_stays_as_it_is_has_no_phases() {
    for name in ["swaptions", "ammp", "canneal", "streamcluster"] {
        assert_eq!(searched([name, name], 6), None, "{name}");
    }
}
