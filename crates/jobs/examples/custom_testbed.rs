//! How to write a testbed: four threads on two cores with two contexts each. The threads talk to
//! each other in two pairs. Its records stay in memory.

use pinwise_campaign::MemoryJournal;
use pinwise_jobs::{Interrupt, place_on};
use pinwise_measure::{Effort, MeasureError, Measurement, Setting, Testbed, Unit, Workload};
use pinwise_placement::{Budget, PlacementQuestion, StrategyName};
use pinwise_topology::Machine;
use std::{error::Error, time::Duration};

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
            _ => return Err(MeasureError::unsupported("pairs", setting)),
        };
        Ok(Measurement::new(performance, Duration::from_millis(1)))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let workload = Workload::new("pairs", &[&["a", "b", "c", "d"]]);
    let mut testbed = Pairs(Machine::from_shape("2x2")?, workload, Unit::rate("items/s"));
    let question = PlacementQuestion::new(StrategyName::Auto, Budget::Measurements(400));
    let (mut records, stop) = (MemoryJournal::default(), Interrupt::default());
    let outcome = place_on(&mut testbed, question, &mut records, &stop)?;
    println!("{:?}: {:?}", outcome.verdict, outcome.best.map(|best| best.assignment));
    Ok(())
}
