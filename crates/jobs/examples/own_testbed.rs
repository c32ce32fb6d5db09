//! A testbed of one's own: four threads, of which two pairs talk to each other, on two cores with
//! two contexts each. Its records stay in memory.

use pinwise_campaign::MemoryJournal;
use pinwise_jobs::{Interrupt, JobError, place_on};
use pinwise_measure::{
    Effort, MeasureError, Measurement, Retry, Setting, Testbed, Thread, Unit, Workload,
};
use pinwise_placement::{Budget, Question, StrategyName};
use pinwise_topology::Machine;
use std::time::Duration;

struct Pairs(Machine, Workload, Unit);

impl Testbed for Pairs {
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
        let performance = match setting {
            Setting::Unpinned => 150.0,
            Setting::Pinned(a) if a.leaf(0) / 2 == a.leaf(1) / 2 => 200.0,
            Setting::Pinned(_) => 100.0,
            _ => return Err(MeasureError::new(Retry::Other, "only placements")),
        };
        let duration = Duration::from_millis(1);
        Ok(Measurement { performance, duration, spread: None, detail: None })
    }
}

fn main() -> Result<(), JobError> {
    let thread = |i| Thread { name: format!("t{i}"), role: format!("r{i}"), instance: 0 };
    let workload = Workload { name: "pairs".into(), threads: (0..4).map(thread).collect() };
    let machine = Machine::from_shape("2x2").map_err(JobError::failed)?;
    let mut testbed = Pairs(machine, workload, Unit::rate("items/s"));
    let question = Question::new(StrategyName::Auto, Budget::Measurements(400));
    let (mut records, stop) = (MemoryJournal::default(), Interrupt::default());
    let outcome = place_on(&mut testbed, question, &mut records, &stop)?;
    println!("{:?} after {} measurements", outcome.advice, records.records.len());
    println!("{:?}", outcome.best.map(|best| best.assignment));
    Ok(())
}
