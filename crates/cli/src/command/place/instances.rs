//! A built-in workload on this machine, whose instances can also be run apart: what BlackBox profiles.
//!
//! A profile runs as two processes of the same program: the watched instance alone in one, those that stress it in the other, so that
//! what the first prints is what the watched instance does. The workload as a whole is ended before, or it would be company too, and
//! started again when it is to be measured as a whole. Where nothing is profiled it is the program that was started, and nothing else.

use crate::output::Interrupted;
use pinwise_host::{LiveTestbed, Pid};
use pinwise_testbed::{Effort, MeasureError, Measurement, Piece, Retry, Setting, Testbed, Thread, Unit, Workload};
use pinwise_topology::{Assignment, CpuSet, Machine};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Starts so many instances; and what the user should know of how they are measured.
pub(super) type Start = Box<dyn Fn(usize) -> anyhow::Result<(LiveTestbed, Vec<String>)>>;

/// The share of a window that threads which are not watched are measured for: only their places matter.
const GLANCE: f64 = 0.05;

/// See the module.
pub(crate) struct Instances {
    start: Start,
    /// The workload as a whole, while that runs.
    whole: Option<LiveTestbed>,
    machine: Machine,
    workload: Workload,
    unit: Unit,
    affinities: BTreeMap<String, CpuSet>,
    metric: Vec<String>,
    /// Of the whole when it ran last.
    notes: Vec<String>,
    count: usize,
    /// How long it took until they ran steadily.
    starting: Duration,
}

impl Instances {
    /// `count` instances, started by `start`.
    pub(super) fn new(count: usize, start: Start) -> anyhow::Result<Self> {
        let begin = Instant::now();
        let (whole, metric) = start(count)?;
        Ok(Self {
            starting: begin.elapsed(),
            machine: whole.machine().clone(),
            workload: whole.workload().clone(),
            unit: whole.unit().clone(),
            affinities: whole.affinities(),
            metric,
            notes: Vec::new(),
            whole: Some(whole),
            start,
            count,
        })
    }

    /// How long an experiment of a profile with windows of `window` takes, about: two programs are started for it.
    pub(super) fn experiment(&self, window: Duration) -> Duration {
        self.starting + self.alone(window)
    }

    /// How long one instance alone takes to be measured for `window`, about.
    pub(super) fn alone(&self, window: Duration) -> Duration {
        self.starting + window
    }

    /// The processes of the whole, while it runs.
    pub(super) fn pids(&self) -> Vec<Pid> {
        self.whole.as_ref().map(LiveTestbed::pids).unwrap_or_default()
    }

    /// On which CPUs the threads may run by themselves.
    pub(super) fn affinities(&self) -> BTreeMap<String, CpuSet> {
        self.affinities.clone()
    }

    /// What the user should know.
    pub(super) fn notes(&self) -> Vec<String> {
        let now = self.whole.as_ref().map_or_else(|| self.notes.clone(), LiveTestbed::notes);
        self.metric.iter().cloned().chain(now).collect()
    }

    fn begin(&self, count: usize) -> Result<LiveTestbed, MeasureError> {
        (self.start)(count).map(|(bed, _)| bed).map_err(|error| match error.is::<Interrupted>() {
            true => MeasureError::interrupted(),
            false => MeasureError::new(Retry::Same, format!("{error:#}")),
        })
    }

    fn whole(&mut self) -> Result<&mut LiveTestbed, MeasureError> {
        let whole = match self.whole.take() {
            Some(running) => running,
            None => self.begin(self.count)?,
        };
        if whole.workload().threads != self.workload.threads {
            let message = format!("{} has other threads than when it was first started", self.workload.name);
            return Err(MeasureError::new(Retry::Never, message));
        }
        Ok(self.whole.insert(whole))
    }

    /// What the first of `pieces` does beside the others.
    fn profile(&mut self, pieces: &[Piece], effort: Effort) -> Result<Measurement, MeasureError> {
        let Some((watched, company)) = pieces.split_first() else {
            return Err(MeasureError::new(Retry::Other, "a profile of nothing"));
        };
        if let Some(whole) = self.whole.take() {
            self.notes = whole.notes();
        }
        // It ends when it is dropped, after the watched one was measured.
        let mut beside = None;
        if !company.is_empty() {
            let mut others = self.begin(company.len())?;
            let places = self.places(others.workload(), company)?;
            others.measure(&Setting::Pinned(places), Effort { windows: GLANCE })?;
            beside = Some(others);
        }
        let mut alone = self.begin(1)?;
        let places = self.places(alone.workload(), std::slice::from_ref(watched))?;
        let measured = alone.measure(&Setting::Pinned(places), effort);
        drop(beside);
        measured
    }

    /// Where the threads of a process with these pieces go: its n-th instance is the n-th piece.
    fn places(&self, process: &Workload, pieces: &[Piece]) -> Result<Assignment, MeasureError> {
        let place = |thread: &Thread| {
            let piece = pieces.get(thread.instance)?;
            let members = self.workload.members(piece.instance);
            let place = members.iter().position(|member| self.workload.threads[*member].role == thread.role)?;
            piece.leaves.get(place).copied()
        };
        let leaves: Option<Vec<u32>> = process.threads.iter().map(place).collect();
        let expected: usize = pieces.iter().map(|piece| piece.leaves.len()).sum();
        leaves.filter(|leaves| leaves.len() == expected).map(Assignment::new).ok_or_else(|| {
            let message = format!("{} threads run where {expected} were expected", process.threads.len());
            MeasureError::new(Retry::Same, message)
        })
    }
}

impl Testbed for Instances {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        match setting {
            Setting::Profile(pieces) => self.profile(pieces, effort),
            Setting::Unpinned | Setting::Pinned(_) => self.whole()?.measure(setting, effort),
        }
    }

    fn profiles(&self) -> bool {
        true
    }
}
