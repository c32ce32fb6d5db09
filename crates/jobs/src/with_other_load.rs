//! A program that is measured, with what other programs take of its contexts meanwhile.

use crate::bed::Bed;
use pinwise_measure::{
    Disturbances, Effort, MeasureError, Measurement, OtherLoad, Setting, Testbed, Time, Unit,
    Workload,
};
use pinwise_monitor::OtherLoadWatch;
use pinwise_topology::Machine;
use std::cell::Cell;

/// A bed that is watched for what other programs take of its contexts.
pub struct WithOtherLoad<'a> {
    bed: &'a mut Bed,
    watch: Option<OtherLoadWatch>,
    /// What was last known of others: of a program that has ended meanwhile it is what was known
    /// while it ran.
    others: Cell<Option<OtherLoad>>,
}

impl<'a> WithOtherLoad<'a> {
    /// From now on.
    pub fn new(bed: &'a mut Bed) -> Self {
        let watch = bed
            .pids()
            .and_then(|pids| OtherLoadWatch::begin(&bed.testbed().machine().allowed, &pids));
        Self { bed, watch, others: Cell::default() }
    }
}

impl Testbed for WithOtherLoad<'_> {
    fn machine(&self) -> &Machine {
        self.bed.testbed().machine()
    }

    fn workload(&self) -> &Workload {
        self.bed.testbed().workload()
    }

    fn unit(&self) -> &Unit {
        self.bed.testbed().unit()
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        self.bed.testbed_mut().measure(setting, effort)
    }

    fn profiles(&self) -> bool {
        self.bed.testbed().profiles()
    }

    fn time(&self) -> Time {
        self.bed.testbed().time()
    }

    fn disturbances(&self) -> Disturbances {
        let others = self.watch.as_ref().and_then(|watch| watch.so_far(&self.bed.pids()?));
        self.others.set(others.or(self.others.get()));
        Disturbances { others: self.others.get(), ..self.bed.testbed().disturbances() }
    }

    fn seek(&mut self, number: u64) {
        self.bed.testbed_mut().seek(number);
    }

    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        self.bed.testbed_mut().measure_all(trials)
    }
}
