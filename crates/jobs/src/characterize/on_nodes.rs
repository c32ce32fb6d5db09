//! The other side of a characterization on several nodes: microbenchmarks for a coordinator.

use super::benchmarks::Benchmarks;
use super::caches::Caches;
use super::{CharacterizeRequest, OpenBench, fingerprint, open};
use crate::job::Caller;
use crate::node_worker::refuse;
use pinwise_cluster::{FrameError, Session};
use pinwise_measure::{
    Effort, MeasureError, Measurement, Setting, Testbed, Time, Unit, WorkingSets, Workload,
};
use pinwise_topology::Machine;
use serde_json::Value;

/// Benchmarks, and on a real machine a look at its caches.
struct NodeBenchmarks<'a> {
    benchmarks: Benchmarks<'a>,
    caches: Option<Caches<'a>>,
}

impl Testbed for NodeBenchmarks<'_> {
    fn machine(&self) -> &Machine {
        self.benchmarks.machine()
    }

    fn workload(&self) -> &Workload {
        self.benchmarks.workload()
    }

    fn unit(&self) -> &Unit {
        self.benchmarks.unit()
    }

    fn time(&self) -> Time {
        self.benchmarks.time()
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        match (setting, &mut self.caches) {
            (Setting::Caches(_), Some(caches)) => caches.measure(setting, effort),
            _ => self.benchmarks.measure(setting, effort),
        }
    }

    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        match self.time() {
            Time::Virtual { .. } => self.benchmarks.measure_all(trials),
            Time::Real => trials.iter().map(|(one, effort)| self.measure(one, *effort)).collect(),
        }
    }
}

/// Opens the bench of a request, and measures on it for a coordinator.
///
/// # Errors
/// The coordinator cannot be heard or answered any more.
pub(crate) fn serve_benchmarks(
    request: &CharacterizeRequest,
    found: Option<WorkingSets>,
    caller: &Caller,
    session: &mut Session,
) -> Result<(), FrameError> {
    let mut bench = match open(request, caller, None) {
        Ok(bench) => bench,
        Err(error) => return refuse(session, &error, &caller.interrupt),
    };
    if let (OpenBench::Host(host), Some(found)) = (&mut bench, found) {
        host.know_caches(found);
    }
    let caches = match &bench {
        OpenBench::Host(host) => Some(Caches::new(host)),
        OpenBench::Model(_) => None,
    };
    let benchmarks = Benchmarks::new(bench.bench(), request.conditions.fame);
    let fingerprint = fingerprint(request, bench.bench().machine());
    session.measure(&mut NodeBenchmarks { benchmarks, caches }, fingerprint, Value::Null)
}
