//! A testbed that also records how much of its contexts other programs take.

use crate::open_subject::OpenSubject;
use pinwise_measure::{
    Disturbances, Effort, MeasureError, Measurement, NodeResult, OtherLoad, Setting, Testbed, Time,
    Unit, Workload,
};
use pinwise_monitor::OtherLoadWatch;
use pinwise_topology::Machine;
use std::cell::Cell;
use std::time::Duration;

/// An open subject that is watched for what other programs take of its contexts.
pub(crate) struct WithOtherLoad<'a> {
    testbed: &'a mut dyn OpenSubject,
    watch: Option<OtherLoadWatch>,
    /// The load of others at the last look. For a program that has ended, it is the load while it
    /// ran.
    others: Cell<Option<OtherLoad>>,
}

impl<'a> WithOtherLoad<'a> {
    /// From now on.
    pub(crate) fn new(testbed: &'a mut dyn OpenSubject) -> Self {
        let watch = testbed
            .pids()
            .and_then(|pids| OtherLoadWatch::begin(&testbed.machine().allowed, &pids));
        Self { testbed, watch, others: Cell::default() }
    }
}

impl Testbed for WithOtherLoad<'_> {
    fn machine(&self) -> &Machine {
        self.testbed.machine()
    }

    fn workload(&self) -> &Workload {
        self.testbed.workload()
    }

    fn unit(&self) -> &Unit {
        self.testbed.unit()
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        self.testbed.measure(setting, effort)
    }

    fn profiles(&self) -> bool {
        self.testbed.profiles()
    }

    fn restart(&self) -> Option<Duration> {
        self.testbed.restart()
    }

    fn time(&self) -> Time {
        self.testbed.time()
    }

    fn disturbances(&self) -> Disturbances {
        let others = self.watch.as_ref().and_then(|watch| watch.so_far(&self.testbed.pids()?));
        self.others.set(others.or(self.others.get()));
        Disturbances { others: self.others.get(), ..self.testbed.disturbances() }
    }

    fn seek(&mut self, number: u64) {
        self.testbed.seek(number);
    }

    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        self.testbed.measure_all(trials)
    }

    fn nodes(&self) -> Option<usize> {
        self.testbed.nodes()
    }

    fn measure_first(
        &mut self,
        rounds: &[Vec<(Setting, Effort)>],
        node: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        self.testbed.measure_first(rounds, node, take)
    }
}
