//! [`TunedProgram`]: the tuned program as a testbed, with any n, pinned or not.

use super::on_nodes;
use crate::default_number::DefaultNumber;
use crate::error::{Interruption, JobError};
use crate::events::{Events, Silent};
use crate::job::Caller;
use crate::last_comparison::{MOST_WINDOWS, Seen};
use crate::open_subject::{OnNodes, OpenSubject, Opening, open_with};
use crate::placement_request::PlacementRequest;
use crate::resume_check::check_nodes;
use crate::service_number::give_back;
use crate::subject::{RUNTIME_METRIC, Subject};
use crate::threads::{HostProgram, ProgramProber, ThreadsProgram, ThreadsRequest, usable_contexts};
use crate::with_other_load::WithOtherLoad;
use pinwise_campaign::CampaignInfo;
use pinwise_cluster::NodeNews;
use pinwise_linux::{Pid, process};
use pinwise_measure::{
    Detail, Disturbances, Effort, MeasureError, Measurement, MemoryPolicy, NodeResult, OtherLoad,
    Placed, Retry, Setting, Testbed, ThreadCount, Unit, Workload,
};
use pinwise_placement::{Budget, PlannedNumber};
use pinwise_present::quoted;
use pinwise_programs::{
    CommandTemplate, FloorDetail, LinuxProber, ProbeError, ProbeOptions, UnpinnedWindow,
};
use pinwise_threads::counted_threads;
use pinwise_topology::{Alike, Footprint, Machine, PerContext, SharingTree, Space};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The details of a measurement of a number of threads, besides its performance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct NumberDetail {
    /// The unit of performance.
    pub(super) unit: Unit,
    /// Threads that were placed, or left to the operating system.
    pub(super) threads: usize,
    /// The part of the machine that these use, if they were placed.
    pub(super) footprint: Option<Footprint>,
    /// How long starting the program took; zero if it was ready.
    pub(super) opening: Duration,
    /// How long the measurement took, settling included.
    pub(super) measuring: Duration,
    /// The load of other programs.
    pub(super) others: Option<OtherLoad>,
    /// The unpinned windows that judged the floor meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unpinned: Vec<UnpinnedWindow>,
}

/// The result of a window of the last comparison.
pub(super) fn seen(measured: &Measurement) -> Option<Seen> {
    let NumberDetail { unit, others, .. } = measured.detail.as_ref()?.read().ok()?;
    let lost = others.and_then(|others| others.lost_at_most());
    Some(Seen {
        value: measured.performance,
        unit,
        others,
        modelled: None,
        lost,
        below_floor: false,
    })
}

/// With which n and which policy of memory a program is open.
type OpenedWith = (Option<u32>, MemoryPolicy);

/// The program of a search.
pub(super) struct TunedProgram<'a> {
    request: &'a ThreadsRequest,
    program: HostProgram,
    /// How it is started; `None` for a process that runs already.
    template: Option<CommandTemplate>,
    /// Holds a program that goes on while its number changes.
    prober: LinuxProber,
    /// The number that the program uses on its own.
    pub(super) default: DefaultNumber,
    /// CPUs it may run on.
    pub(super) cpus: u32,
    /// The testbeds that are ready, by n and the policy of memory. No n: without a number.
    open: Vec<(OpenedWith, Box<dyn OpenSubject>)>,
    /// The number whose threads are known by name, and these names.
    known: Option<(u32, Workload)>,
    /// Measurements of a round, after which the program begins again if it goes on running.
    round: Option<u64>,
    machine: Machine,
    workload: Workload,
    unit: Unit,
    caller: &'a Caller,
    /// The nodes that measure it, while they do.
    nodes: Option<OnNodes>,
}

impl<'a> TunedProgram<'a> {
    /// `found` is the program as the search for the number left it.
    pub(super) fn after(
        request: &'a ThreadsRequest,
        found: ProgramProber,
        caller: &'a Caller,
    ) -> Result<Self, JobError> {
        match found {
            ProgramProber::Here(prober) => {
                Self::new(request, *prober, pinwise_linux::this_machine()?, None, caller)
            }
            ProgramProber::OnNodes(nodes) => {
                let cpus = nodes.usable()?.allowed;
                Self::anew(request, nodes.machine().clone(), Some(cpus), caller)
            }
            ProgramProber::Modelled(_) => Err(no_program()),
        }
    }

    /// The program before it is started. It does not go on running.
    pub(super) fn anew(
        request: &'a ThreadsRequest,
        machine: Machine,
        cpus: Option<u32>,
        caller: &'a Caller,
    ) -> Result<Self, JobError> {
        let ThreadsProgram::Here(program) = &request.program else { return Err(no_program()) };
        let (subject, options) = (program.subject()?, ProbeOptions::default());
        let prober = LinuxProber::new(machine.clone(), subject, options, caller.interrupt.clone());
        Self::new(request, prober.map_err(JobError::failed)?, machine, cpus, caller)
    }

    /// `prober` is the one that found the number. `cpus`: those that the program may use, if they
    /// are known.
    fn new(
        request: &'a ThreadsRequest,
        prober: LinuxProber,
        machine: Machine,
        cpus: Option<u32>,
        caller: &'a Caller,
    ) -> Result<Self, JobError> {
        let ThreadsProgram::Here(program) = &request.program else { return Err(no_program()) };
        let template = program.pid.is_none().then(|| program.template()).transpose()?;
        // A program that counts CPUs sees its affinity, and no quota.
        let cpus = match cpus {
            Some(cpus) => cpus,
            None => usable_contexts(&machine, program.pid.map(Pid))?.allowed,
        };
        let is_set = program.set.is_some();
        let by_variable = !is_set && template.as_ref().is_some_and(|template| !template.in_words());
        let default = match request.default {
            Some(default) => DefaultNumber::given(default),
            None if by_variable => DefaultNumber { n: None, known: None },
            None => DefaultNumber::of(&prober, program.set.is_some(), cpus),
        };
        let sure = default.sure();
        let mut tuned = Self {
            workload: Workload::new(program.name(), &[]),
            program: program.clone(),
            request,
            template,
            prober,
            default,
            cpus,
            open: Vec::new(),
            known: None,
            round: None,
            machine,
            unit: Unit::rate("1/s"),
            caller,
            nodes: None,
        };
        tuned.know_own(sure);
        Ok(tuned)
    }

    /// Takes this for the number that the program gets back, if there is one.
    pub(super) fn know_own(&mut self, own: Option<u32>) {
        own.into_iter().for_each(|own| self.prober.know_own(own));
    }

    /// The command line as a shell takes it, with the place of the number. `None` if the program is
    /// not started with the number.
    pub(super) fn command(&self) -> Option<String> {
        self.template.as_ref().filter(|_| !self.goes_on())?;
        // The place of the number needs no quotes.
        let plain = |word: &str| {
            quoted(&word.replace(PlannedNumber::PLACE, "n"))
                == word.replace(PlannedNumber::PLACE, "n")
        };
        let words = self.program.command.iter();
        let words = words.map(|word| if plain(word) { word.clone() } else { quoted(word) });
        Some(words.collect::<Vec<_>>().join(" "))
    }

    /// Whether it goes on running while its number changes.
    pub(super) fn goes_on(&self) -> bool {
        self.program.set.is_some()
    }

    /// Whether every measurement restarts the program: then several may stand ready at once.
    pub(super) fn starts_anew(&self) -> bool {
        self.request.per_run
    }

    /// The contexts of the machine.
    pub(super) fn contexts(&self) -> u32 {
        self.machine.contexts.len() as u32
    }

    /// How long it is measured at a time, if it is started or given its number for few
    /// measurements.
    pub(super) fn effort(&self) -> Effort {
        Effort { windows: if self.starts_anew() { 1.0 } else { MOST_WINDOWS } }
    }

    /// The threads that the search for the number counts for `n`. If each n makes one thread, a
    /// first thread that only waits does not count.
    pub(super) fn threads(&self, n: u32) -> u32 {
        let formula = self.program.formula();
        counted_threads(n, |threads| formula.parameter(threads), |n| formula.threads(n)).max(1)
    }

    /// The number that makes this number of threads, or comes nearest to it.
    pub(super) fn number(&self, threads: u32) -> u32 {
        self.program.threads_per_n.as_ref().map_or(threads, |formula| formula.parameter(threads))
    }

    /// The threads that have places with `n`: they are waited for, and have to be the same.
    pub(super) fn know(&mut self, n: u32, workload: Workload) {
        self.known = Some((n, workload));
    }

    /// Lets a program that goes on running begin again after this number of measurements.
    pub(super) fn in_rounds_of(&mut self, measurements: usize) {
        self.round = Some(measurements as u64);
    }

    /// Ends all that stands ready, and puts back what was changed.
    pub(super) fn end(&mut self) {
        self.open.clear();
        self.nodes = None;
    }

    /// Opens it on nodes for a part, if it is measured there.
    ///
    /// # Errors
    /// No node can open it, or those that do are unlike the machine of the part.
    pub(super) fn open_on_nodes(
        &mut self,
        part: &CampaignInfo,
        events: &mut dyn Events,
    ) -> Result<(), JobError> {
        self.nodes = on_nodes::start(self.request, self.known.clone(), self.caller, events)?;
        self.nodes.as_ref().map_or(Ok(()), |nodes| check_nodes(part, nodes.machine()))
    }

    /// What happens to these nodes.
    pub(super) fn news(&self) -> Option<NodeNews> {
        self.nodes.as_ref().and_then(OnNodes::node_news)
    }

    /// The machine that measures, as it is now.
    pub(super) fn machine_now(&self) -> Result<Machine, JobError> {
        match &self.request.on {
            Some(_) => Ok(self.machine.clone()),
            None => Ok(pinwise_linux::this_machine()?),
        }
    }

    /// The request to place it with `n` within `time`, or with the program's own number. A program
    /// that goes on running is given the number.
    pub(super) fn request(
        &mut self,
        n: Option<u32>,
        memory: MemoryPolicy,
        time: Duration,
    ) -> Result<PlacementRequest, JobError> {
        let subject = match (&self.template, self.goes_on()) {
            (_, true) => {
                let n = n.unwrap_or(self.cpus);
                if self.prober.pid().is_none() {
                    // After a pause nobody holds the program: a probe takes hold of it again.
                    let count = ThreadCount::unpinned(Some(n));
                    self.prober.measure(&Setting::Threads(count), Effort { windows: 0.1 })?;
                }
                let set = self.prober.set(n);
                // Setting takes up to seconds: what ends it meanwhile ends the search, too.
                if self.caller.interrupt.came() {
                    return Err(JobError::nothing_measured(true));
                }
                let pid = self.prober.pid().filter(|&pid| !process::ended(pid));
                let pid = pid.ok_or_else(|| JobError::Usage(ended(set.as_ref().err())))?;
                set.map_err(JobError::failed)?;
                Subject::Pids(vec![pid.0])
            }
            (Some(template), false) => {
                let words = template.words(n.unwrap_or(self.cpus));
                if self.starts_anew() { Subject::Rerun(words) } else { Subject::Launched(words) }
            }
            (None, false) => return Err(JobError::Usage("there is no program".into())),
        };
        let environment = match (&self.template, n) {
            (Some(template), Some(n)) => template.environment(n),
            (Some(template), None) => template.fixed_environment(),
            (None, _) => BTreeMap::new(),
        };
        let path = |path: &PathBuf| {
            let template = self.template.as_ref();
            template.map_or_else(
                || path.clone(),
                |template| template.path(path, n.unwrap_or(self.cpus)),
            )
        };
        let metric = self.program.metric.clone().unwrap_or_else(|| RUNTIME_METRIC.into());
        let mut request = PlacementRequest {
            environment,
            output: self.program.output.as_ref().map(path),
            remove: self.program.remove.iter().map(path).collect(),
            reading: self.program.reading.clone(),
            period: self.request.probe,
            floor: self.program.floor,
            limit: self.request.limit,
            memory,
            on: self.request.on.clone(),
            ..PlacementRequest::new(subject, metric)
        };
        request.question.budget = Budget::Time(time);
        Ok(request)
    }

    /// The memory policies that are tried on `machine`, besides leaving memory where it is. `asked`
    /// is what the user says about it. A service is only touched if they say so.
    pub(super) fn tried_memory(
        &self,
        asked: Option<MemoryPolicy>,
        machine: &Machine,
    ) -> Vec<MemoryPolicy> {
        if self.request.on.is_some() || machine.memory_nodes().len() < 2 {
            return Vec::new();
        }
        match asked {
            None if self.goes_on() => Vec::new(),
            None => vec![MemoryPolicy::Follow, MemoryPolicy::Interleave],
            Some(asked) => Some(asked).into_iter().filter(|asked| !asked.is_leave()).collect(),
        }
    }

    /// The process that runs already, if it is one.
    pub(super) fn process(&self) -> Option<i32> {
        self.program.pid
    }

    /// Leaves a process that goes on running with the number, if a command sets it. Returns whether
    /// it did.
    pub(super) fn leave(&mut self, n: u32) -> Result<bool, ProbeError> {
        self.prober.settle(n)
    }

    /// Ends it without an answer: a process that goes on running gets its own number back.
    pub(super) fn give_back(&mut self, events: &mut dyn Events) -> Result<(), JobError> {
        self.end();
        give_back(&mut self.prober, events)
    }

    /// The program with `n`, ready to be measured. One that goes on running has one number and one
    /// memory policy at a time: the others end.
    fn opened(&mut self, n: Option<u32>, memory: MemoryPolicy) -> Result<usize, JobError> {
        if let Some(place) = self.open.iter().position(|(open, _)| *open == (n, memory)) {
            return Ok(place);
        }
        if !self.starts_anew() {
            self.end();
        }
        let (request, opening) = self.opening(n, memory)?;
        self.open.push(((n, memory), open_with(&request, opening, self.caller, &mut Silent)?));
        Ok(self.open.len() - 1)
    }

    /// How it is opened with `n`: what is asked, and what is known about it.
    fn opening(
        &mut self,
        n: Option<u32>,
        memory: MemoryPolicy,
    ) -> Result<(PlacementRequest, Opening), JobError> {
        let request = self.request(n, memory, Duration::ZERO)?;
        let known = self.known.as_ref().filter(|(known, _)| Some(*known) == n);
        let threads = known.iter().flat_map(|(_, workload)| &workload.threads);
        let threads = threads.map(|thread| thread.name.clone()).collect();
        Ok((request, Opening { threads, ..Opening::default() }))
    }
}

impl Testbed for TunedProgram<'_> {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn disturbances(&self) -> Disturbances {
        self.nodes.as_ref().map_or_else(Disturbances::default, OnNodes::disturbances)
    }

    fn nodes(&self) -> Option<usize> {
        self.nodes.as_ref()?.nodes()
    }

    fn measure_first(
        &mut self,
        rounds: &[Vec<(Setting, Effort)>],
        node: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        match &mut self.nodes {
            Some(nodes) => nodes.measure_first(rounds, node, take),
            None => Err(MeasureError::new(Retry::Never, "no nodes are open")),
        }
    }

    fn seek(&mut self, number: u64) {
        let begins = self.round.is_some_and(|round| number.is_multiple_of(round));
        if begins && !self.starts_anew() {
            self.end();
        }
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let Setting::Threads(ThreadCount { n, placed, memory }) = setting else {
            return Err(MeasureError::unsupported(&self.workload.name, setting));
        };
        let other = |reason: String| MeasureError::new(Retry::Other, reason);
        let begin = Instant::now();
        let ready = self.open.iter().any(|(open, _)| *open == (*n, *memory));
        let place = self.opened(*n, *memory).map_err(|error| match error {
            JobError::Interrupted(Interruption { .. }) => MeasureError::interrupted(),
            JobError::Usage(reason) => MeasureError::new(Retry::Never, reason),
            error => other(error.to_string()),
        })?;
        let opening = if ready { Duration::ZERO } else { begin.elapsed() };
        let known = self.known.as_ref().filter(|(known, _)| Some(*known) == *n);
        let testbed = &mut *self.open[place].1;
        let threads = testbed.workload().threads.len();
        let tree = SharingTree::new(testbed.machine(), Alike::ExceptNuma);
        if tree.leaves().is_empty() {
            return Err(other("it may use no CPU".into()));
        }
        let assignment = match placed {
            None => None,
            Some(Placed::By(policy)) => {
                let masks = testbed.workload().masks();
                let space = Space::masked(tree.clone(), &masks, PerContext::Any)
                    .map_err(|error| other(error.to_string()))?;
                Some(space.nearest(&policy.assign(&tree, threads)))
            }
            Some(Placed::At(assignment)) => {
                if known.is_some_and(|(_, known)| known.threads != testbed.workload().threads) {
                    return Err(other("its threads were others when it was started again".into()));
                }
                Some(assignment.clone())
            }
        };
        let footprint = assignment.as_ref().map(|assignment| tree.footprint(assignment));
        let unit = testbed.unit().clone();
        let began = Instant::now();
        let mut watched = WithOtherLoad::new(&mut *testbed);
        let setting = assignment.map_or(Setting::Unpinned, Setting::Pinned);
        let measured = watched.measure(&setting, effort);
        let (measuring, others) = (began.elapsed(), watched.disturbances().others);
        // Another try is another run, so the caller decides.
        let mut measurement = measured.map_err(|error| match error.retry {
            retry if retry.is_same() => MeasureError { retry: Retry::Other, ..error },
            _ => error,
        })?;
        if measurement.performance <= 0.0 {
            return Err(other("nothing got done".into()));
        }
        self.unit = unit.clone();
        let floor = measurement.detail.take().and_then(|detail| detail.read::<FloorDetail>().ok());
        let unpinned = floor.map_or_else(Vec::new, |floor| floor.unpinned);
        let detail =
            NumberDetail { unit, threads, footprint, opening, measuring, others, unpinned };
        measurement.detail = Detail::of(&detail);
        Ok(measurement)
    }
}

fn no_program() -> JobError {
    JobError::Usage("a model has no program to place".into())
}

/// Says that the program has ended, in the words of the error if there is one.
fn ended(met: Option<&ProbeError>) -> String {
    met.map_or_else(|| "the program has ended".into(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shows_what_it_can_have_lost_to_others() {
        let seen_beside = |others| {
            let detail = NumberDetail {
                unit: Unit::rate("1/s"),
                threads: 2,
                footprint: None,
                opening: Duration::ZERO,
                measuring: Duration::ZERO,
                others,
                unpinned: Vec::new(),
            };
            let (duration, detail) = (Duration::from_secs(1), Detail::of(&detail));
            let measured = Measurement { performance: 2.0, duration, spread: None, detail };
            seen(&measured).unwrap().lost
        };
        let busy = OtherLoad::new(1.0, 2.0);
        assert_eq!((seen_beside(None), seen_beside(Some(busy))), (None, None));
        let waited = OtherLoad { pressure: Some(0.25), ..busy };
        assert_eq!(seen_beside(Some(waited)), Some(0.25));
    }

    #[test]
    fn placements_keep_the_floor_and_names_of_known_threads_are_no_affinities() {
        let command = ["pigz", "-p", "{n}"].map(String::from).to_vec();
        let program = HostProgram { command, floor: Some(0.5), ..HostProgram::default() };
        let request = ThreadsRequest {
            default: Some(2),
            ..ThreadsRequest::new(ThreadsProgram::Here(program))
        };
        let machine = Machine::from_shape("2").unwrap();
        let caller = Caller::default();
        let mut program = TunedProgram::anew(&request, machine, None, &caller).unwrap();
        program.know(4, Workload::new("pigz", &[&["pigz", "helper"]]));
        let mut opened = |n| {
            let (request, opening) = program.opening(Some(n), MemoryPolicy::Leave).unwrap();
            assert_eq!(request.affinities, BTreeMap::new(), "nobody has looked at any");
            assert_eq!(request.floor, Some(0.5));
            opening.threads
        };
        assert_eq!(opened(4), ["pigz0", "helper0"]);
        assert_eq!(opened(3), [""; 0]);
        let (request, _) = program.opening(Some(3), MemoryPolicy::Follow).unwrap();
        assert_eq!(request.memory, MemoryPolicy::Follow);
    }

    #[test]
    fn memory_is_tried_elsewhere_on_several_nodes_and_a_service_is_asked_for() {
        let tried = |set: Option<&str>, shape: &str, asked| {
            let command = ["pigz", "-p", "{n}"].map(String::from).to_vec();
            let set = set.map(|set| set.parse().unwrap());
            let program = HostProgram { command, set, ..HostProgram::default() };
            let request = ThreadsRequest {
                default: Some(2),
                ..ThreadsRequest::new(ThreadsProgram::Here(program))
            };
            let machine = Machine::from_shape(shape).unwrap();
            let caller = Caller::default();
            let program = TunedProgram::anew(&request, machine.clone(), None, &caller).unwrap();
            program.tried_memory(asked, &machine)
        };
        let (two, set) = ("numa:2 core:2", Some("cmd:echo {n}"));
        let all = vec![MemoryPolicy::Follow, MemoryPolicy::Interleave];
        assert_eq!(tried(None, two, None), all);
        assert_eq!(tried(None, "2x2", None), []);
        assert_eq!(tried(None, two, Some(MemoryPolicy::Leave)), []);
        assert_eq!(tried(None, two, Some(MemoryPolicy::Interleave)), [MemoryPolicy::Interleave]);
        assert_eq!(tried(set, two, None), []);
        assert_eq!(tried(set, two, Some(MemoryPolicy::Follow)), [MemoryPolicy::Follow]);
    }
}
