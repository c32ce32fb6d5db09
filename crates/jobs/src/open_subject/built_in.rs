//! A built-in workload on this machine, whole or as separate instances for BlackBox.
//!
//! Two processes make a profile. One runs the watched instance and prints its speed; the other runs
//! its neighbours. The whole workload ends before a profile, and starts again when it is measured.
//! Threads of several programs are distinguished as on a model. The number in a thread's name is
//! that of its instance. Its role begins with its program's name. Without profiles there is one
//! process: the program as started.

use super::{OpenSubject, Opening, live};
use crate::error::JobError;
use crate::placement_request::PlacementRequest;
use crate::subject::Subject;
use pinwise_campaign::Record;
use pinwise_linux::Pid;
use pinwise_measure::{
    Disturbances, Effort, Interrupt, MeasureError, Measurement, MemoryUse, PinnedInstance,
    ProgramNote, Retry, Setting, Testbed, Thread, Unit, Workload,
};
use pinwise_programs::LiveTestbed;
use pinwise_topology::{Assignment, CpuSet, Fingerprint, Machine};
use pinwise_workloads::{BuiltInProgram, BuiltInWorkload as Programs};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Starts a workload.
type Start = Box<dyn Fn(&Programs) -> Result<LiveTestbed, JobError>>;

/// The share of a window for which the unwatched threads are measured. Only their places matter.
const GLANCE: f64 = 0.05;

/// See the module.
pub(super) struct Instances {
    start: Start,
    /// The workload as a whole, while that runs.
    whole: Option<LiveTestbed>,
    machine: Machine,
    workload: Workload,
    unit: Unit,
    affinities: BTreeMap<String, CpuSet>,
    /// Notes on the last run of the whole workload.
    notes: Vec<ProgramNote>,
    /// Notes on what disturbed it until then, each once.
    disturbances: Vec<ProgramNote>,
    programs: Programs,
    /// How long it took until they ran steadily.
    starting: Duration,
    /// How long a measurement takes then.
    period: Duration,
}

impl Instances {
    /// The instances of `programs`, started by `start`.
    fn new(programs: Programs, start: Start, period: Duration) -> Result<Self, JobError> {
        let begin = Instant::now();
        let whole = start(&programs)?;
        Ok(Self {
            starting: begin.elapsed(),
            machine: whole.machine().clone(),
            workload: told_apart(whole.workload(), programs.programs(), &programs),
            unit: whole.unit().clone(),
            affinities: whole.affinities(),
            notes: Vec::new(),
            disturbances: Vec::new(),
            whole: Some(whole),
            period,
            start,
            programs,
        })
    }

    fn disturbances_with(&self, whole: &LiveTestbed) -> Vec<ProgramNote> {
        let new =
            whole.disturbances().notes.into_iter().filter(|note| !self.disturbances.contains(note));
        self.disturbances.iter().cloned().chain(new).collect()
    }

    fn begin(&self, programs: &Programs) -> Result<LiveTestbed, MeasureError> {
        (self.start)(programs).map_err(|error| match error {
            JobError::Interrupted(_) => MeasureError::interrupted(),
            error => MeasureError::new(Retry::Same, error.to_string()),
        })
    }

    fn whole(&mut self) -> Result<&mut LiveTestbed, MeasureError> {
        let whole = match self.whole.take() {
            Some(running) => running,
            None => self.begin(&self.programs)?,
        };
        if told_apart(whole.workload(), self.programs.programs(), &self.programs).threads
            != self.workload.threads
        {
            let message =
                format!("{} does not have the threads of its first start", self.workload.name);
            return Err(MeasureError::new(Retry::Never, message));
        }
        Ok(self.whole.insert(whole))
    }

    /// Measures the first of `instances` beside the others.
    fn profile(
        &mut self,
        instances: &[PinnedInstance],
        effort: Effort,
    ) -> Result<Measurement, MeasureError> {
        let Some((watched, company)) = instances.split_first() else {
            return Err(MeasureError::new(Retry::Other, "a profile of nothing"));
        };
        if let Some(whole) = self.whole.take() {
            self.notes = whole.notes();
            self.disturbances = self.disturbances_with(&whole);
        }
        // It ends when it is dropped, after the watched one was measured.
        let mut beside = None;
        if !company.is_empty() {
            let (mut others, places) = self.start(company)?;
            others.measure(&Setting::Pinned(places), Effort { windows: GLANCE })?;
            beside = Some(others);
        }
        let (mut alone, places) = self.start(std::slice::from_ref(watched))?;
        let measured = alone.measure(&Setting::Pinned(places), effort);
        drop(beside);
        measured
    }

    /// Starts a process with these instances, and says where its threads go. Its n-th instance is
    /// the n-th of these.
    fn start(
        &self,
        instances: &[PinnedInstance],
    ) -> Result<(LiveTestbed, Assignment), MeasureError> {
        let all = self.programs.programs();
        let missing = || {
            MeasureError::new(
                Retry::Other,
                "a profile of an instance that the workload does not have",
            )
        };
        let programs =
            instances.iter().map(|pinned| all.get(pinned.instance).copied().ok_or_else(missing));
        let programs = programs.collect::<Result<Vec<BuiltInProgram>, _>>()?;
        let named = Programs::new(programs)
            .map_err(|error| MeasureError::new(Retry::Other, error.to_string()))?;
        let process = self.begin(&named)?;
        let places = self
            .places(&told_apart(process.workload(), named.programs(), &self.programs), instances)?;
        Ok((process, places))
    }

    fn places(
        &self,
        process: &Workload,
        instances: &[PinnedInstance],
    ) -> Result<Assignment, MeasureError> {
        let place = |thread: &Thread| {
            let pinned = instances.get(thread.instance)?;
            let members = self.workload.members(pinned.instance);
            let place = members
                .iter()
                .position(|member| self.workload.threads[*member].role == thread.role)?;
            pinned.leaves.get(place).copied()
        };
        let leaves: Option<Vec<u32>> = process.threads.iter().map(place).collect();
        let expected: usize = instances.iter().map(|pinned| pinned.leaves.len()).sum();
        leaves.filter(|leaves| leaves.len() == expected).map(Assignment::new).ok_or_else(|| {
            let message =
                format!("{} threads run, {expected} were expected", process.threads.len());
            MeasureError::new(Retry::Same, message)
        })
    }
}

/// The threads of a process that runs `programs`, as a part of `whole`. If `whole` has several
/// programs, each thread gets the role and the instance of its program.
fn told_apart(process: &Workload, programs: &[BuiltInProgram], whole: &Programs) -> Workload {
    let mut workload = process.clone();
    if whole.parts().len() > 1 {
        for thread in &mut workload.threads {
            let Some((front, stage)) = thread.name.split_once('-') else { continue };
            let number =
                front.trim_start_matches(|letter: char| !letter.is_ascii_digit()).parse().ok();
            let Some((number, program)) =
                number.and_then(|number: usize| Some((number, programs.get(number)?)))
            else {
                continue;
            };
            (thread.role, thread.instance) = (format!("{program}-{stage}"), number);
        }
    }
    workload
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
            Setting::Profile(instances) => self.profile(instances, effort),
            _ => self.whole()?.measure(setting, effort),
        }
    }

    fn profiles(&self) -> bool {
        true
    }

    fn restart(&self) -> Option<Duration> {
        Some(self.starting + self.period)
    }

    fn disturbances(&self) -> Disturbances {
        let notes = self
            .whole
            .as_ref()
            .map_or_else(|| self.disturbances.clone(), |whole| self.disturbances_with(whole));
        Disturbances { others: None, notes }
    }
}

impl OpenSubject for Instances {
    fn recall(&mut self, records: &[Record]) {
        if let Some(whole) = &mut self.whole {
            whole.recall(records);
        }
    }

    fn affinities(&self) -> BTreeMap<String, CpuSet> {
        self.affinities.clone()
    }

    fn notes(&self) -> Vec<ProgramNote> {
        self.whole.as_ref().map_or_else(|| self.notes.clone(), LiveTestbed::notes)
    }

    fn pids(&self) -> Option<Vec<Pid>> {
        Some(self.whole.as_ref().map(LiveTestbed::pids).unwrap_or_default())
    }

    fn memory(&self, best: Option<&Assignment>) -> Option<MemoryUse> {
        self.whole.as_ref().and_then(|whole| whole.memory(best))
    }

    /// Two programs are started for it.
    fn experiment(&self, period: Duration) -> Option<Duration> {
        Some(2 * self.starting + period)
    }

    fn fingerprint(&self) -> Fingerprint {
        pinwise_linux::fingerprint(&self.machine)
    }
}

/// Starts `programs`, which `program` runs.
pub(super) fn open(
    programs: Programs,
    request: PlacementRequest,
    opening: Opening,
    program: PathBuf,
    interrupt: Interrupt,
) -> Result<Instances, JobError> {
    let whole = programs.clone();
    let period = request.period;
    let start = move |programs: &Programs| {
        let own = program.to_string_lossy();
        let words = [&own, "workload", &programs.to_string(), "--interval", "10ms"];
        let subject = Subject::Launched(words.map(String::from).to_vec());
        // Names are those of the whole.
        let threads = if *programs == whole { opening.threads.clone() } else { Vec::new() };
        let starter = Some(program.clone());
        let until = opening.until;
        let opening = Opening { threads, until, starter, ..Opening::default() };
        live::open(&PlacementRequest { subject, ..request.clone() }, opening, &interrupt)
    };
    Instances::new(programs, Box::new(start), period)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `role instance` of threads that the host knows by their names alone.
    fn roles(names: &[&str], programs: &str, whole: &str) -> Vec<String> {
        let thread = |name: &&str| Thread::new(*name, "?", 0);
        let process =
            Workload { name: "pinwise".into(), threads: names.iter().map(thread).collect() };
        let [programs, whole] = [programs, whole].map(|text| Programs::parse(text).unwrap());
        let told = told_apart(&process, programs.programs(), &whole).threads;
        told.into_iter().map(|thread| format!("{} {}", thread.role, thread.instance)).collect()
    }

    #[test]
    fn threads_of_several_programs_are_told_apart_as_on_a_model() {
        let names = ["ipfwd0-R", "ipfwd1-R", "flow2-T", "pinwise"];
        let whole = "intadd+intmul+stateful";
        assert_eq!(
            roles(&names, whole, whole),
            ["intadd-R 0", "intmul-R 1", "stateful-T 2", "? 0"]
        );
        assert_eq!(roles(&["flow0-P"], "stateful", whole), ["stateful-P 0"], "started alone");
        assert_eq!(
            roles(&["ipfwd1-R"], "intadd:2", "intadd:2"),
            ["? 0"],
            "of one program: as the host names them"
        );
    }
}
