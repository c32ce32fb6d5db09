//! A program that comes into another phase while it is searched, on the model of a scheduler.

use pinwise_measure::{MeasureError, Part, Probe, Prober};
use pinwise_scheduler::{ModelProber, Platform, Program};
use pinwise_threads::{PhaseChange, Sweep, sweep};
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
        let model =
            |name| ModelProber::new(Platform::opteron_24(), Program::built_in(name).unwrap(), 1);
        Self { phases: names.map(model), left: first }
    }

    fn now(&self) -> usize {
        usize::from(self.left == 0)
    }
}

impl Prober for Phases {
    fn contexts(&self) -> u32 {
        self.phases[0].contexts()
    }

    fn probe(&mut self, parameter: u32, window: Duration) -> Result<Probe, MeasureError> {
        let now = self.now();
        self.left = self.left.saturating_sub(1);
        self.phases[now].probe(parameter, window)
    }

    fn parts(&self) -> Vec<Part> {
        self.phases[self.now()].parts()
    }
}

fn searched(names: [&str; 2], first: usize) -> Option<PhaseChange> {
    let question = Sweep {
        candidates: vec![16, 20, 24],
        rounds: 3,
        window: Duration::from_millis(100),
        tolerance: 0.01,
        counted: false,
    };
    PhaseChange::of(
        &sweep(&question, &mut Phases::new(names, first), |threads| threads).unwrap().attempts,
    )
}

#[test]
fn a_phase_that_begins_within_a_search_is_noticed_where_it_begins() {
    // One keeps all contexts busy, the other waits at locks, the more the more threads it has.
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
