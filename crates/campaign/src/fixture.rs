//! A small campaign and a deterministic strategy and testbed, for the tests of this crate.

use crate::{Kind, NewCampaign, Purpose, Record, Step, Strategy, Trial};
use pinwise_measure::{
    Effort, MeasureError, Measurement, Retry, Setting, Testbed, Thread, Unit, Workload,
};
use pinwise_topology::{Alike, Assignment, Machine};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

pub(crate) fn campaign() -> NewCampaign {
    let thread = |name: &str| Thread::new(name, name, 0);
    NewCampaign {
        kind: Kind::Place,
        parent: None,
        command: vec!["pinwise".into(), "place".into()],
        machine: Machine::from_shape("1x2").expect("a valid shape"),
        alike: Alike::ExceptNuma,
        workload: Workload {
            name: "it's \"quoted\"".into(),
            threads: vec![thread("R"), thread("P")],
        },
        unit: Unit::cost("s"),
        simulated: false,
        question: serde_json::json!({ "within": 0.025 }),
        seed: u64::MAX,
    }
}

/// A testbed whose every measurement depends on how many came before it. It fails in every way, and
/// has its own clock.
pub(crate) struct Scripted {
    machine: Machine,
    workload: Workload,
    unit: Unit,
    now: Rc<Cell<Duration>>,
    /// Measurements made so far.
    pub(crate) made: u64,
}

impl Scripted {
    /// The testbed after `made` measurements, and its clock.
    pub(crate) fn after(made: u64) -> (Self, impl Fn() -> Duration) {
        let now = Rc::new(Cell::new(Duration::from_secs(1000)));
        let NewCampaign { machine, workload, unit, .. } = campaign();
        let clock = Rc::clone(&now);
        (Self { machine, workload, unit, now, made }, move || clock.get())
    }
}

impl Testbed for Scripted {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn measure(&mut self, _: &Setting, _: Effort) -> Result<Measurement, MeasureError> {
        let n = self.made;
        self.made += 1;
        self.now.set(self.now.get() + Duration::from_nanos(10_000_019 + n));
        match n % 11 {
            3 | 7 | 8 | 9 => Err(MeasureError::new(Retry::Same, "no line matched")),
            5 => Err(MeasureError::new(Retry::Other, "under the floor")),
            _ => Ok(Measurement {
                performance: 1.0 / (n as f64 + 3.0),
                duration: Duration::from_nanos(9_000_007 + n),
                spread: n.is_multiple_of(2).then(|| (n as f64).sqrt()),
                detail: None,
            }),
        }
    }
}

/// Proposes by what it has seen: the next assignment is a function of all performances so far.
#[derive(Default)]
pub(crate) struct Curious {
    sum: f64,
    seen: usize,
    calls: u64,
}

impl Strategy for Curious {
    fn step(&mut self, history: &[Record]) -> Step {
        self.sum += history[self.seen..]
            .iter()
            .map(|record| {
                record.outcome.as_ref().map_or(record.elapsed.as_secs_f64(), |m| m.performance)
            })
            .sum::<f64>();
        self.seen = history.len();
        self.calls += 1;
        if self.calls > 20 {
            return Step::Stop;
        }
        let bits = self.sum.to_bits();
        let setting = match bits % 3 {
            0 => Setting::Unpinned,
            _ => Setting::Pinned(Assignment::new(vec![(bits % 2) as u32, (bits / 2 % 2) as u32])),
        };
        let purpose = [Purpose::Baseline, Purpose::Sample, Purpose::Final][(bits / 4 % 3) as usize];
        Step::Measure(Trial {
            setting,
            purpose,
            effort: Effort { windows: 0.1 + (bits % 7) as f64 },
        })
    }
}
