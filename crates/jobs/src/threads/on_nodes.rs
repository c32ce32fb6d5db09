//! A search for a number of threads on several nodes, from both sides.
//!
//! *Programs.* First each node says which contexts the program may use there. The first node
//! decides the numbers. Then all open the program for one stage of the search after the other.
//! For that they get the records so far.
//!
//! *Models.* What a probe shows depends on how often its number was probed before. The coordinator
//! counts that over all nodes, and tells it with each probe. So the records are those of one
//! machine. A worker takes only consecutive numbers at once, so a node makes one probe at a time.

use super::host_program::HostProgram;
use super::program_opening::{ProgramOpening, UsableContexts, usable_contexts};
use super::request::{ThreadsProgram, ThreadsQuestion, ThreadsRequest};
use crate::error::JobError;
use crate::events::Events;
use crate::job::Caller;
use crate::node_worker::{OpenFacts, WorkerRequest, WorkingPlace, refuse};
use crate::open_subject::{OnNodes, OpenSubject as _, start_on_nodes};
use pinwise_campaign::Record;
use pinwise_cluster::{FrameError, NodeNews, Session};
use pinwise_measure::{
    Disturbances, Effort, MeasureError, Measurement, NodeResult, Setting, Testbed, ThreadCount,
    Time, Unit, Workload,
};
use pinwise_scheduler::ModelProber;
use pinwise_threads::ProbeStage;
use pinwise_topology::{Fingerprint, Machine};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a node shall open.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum AskedProbes {
    /// Nothing is decided: the node says what it has.
    Undecided {
        /// The request.
        request: Box<ThreadsRequest>,
    },
    /// One stage of the search, or the last comparison.
    Decided {
        /// The question.
        question: Box<ThreadsQuestion>,
        /// The records of the search so far.
        records: Vec<Record>,
        /// It is the last comparison, whose windows no deadline ends.
        last: bool,
    },
}

/// The program of a search, open on its nodes.
pub(crate) struct ThreadsOnNodes {
    nodes: OnNodes,
    from: Option<WorkingPlace>,
    /// The parameters that were probed before this campaign.
    earlier: Vec<u32>,
    /// Those of this campaign, by number.
    probed: Vec<u32>,
}

impl ThreadsOnNodes {
    /// Starts the workers of a request. `None`: it names no nodes.
    ///
    /// # Errors
    /// The request makes no sense on nodes, no node can open it, or the user asked to stop.
    pub(crate) fn start(
        request: &ThreadsRequest,
        caller: &Caller,
        events: &mut dyn Events,
    ) -> Result<Option<Self>, JobError> {
        let Some(nodes) = &request.on else { return Ok(None) };
        request.check()?;
        check(request)?;
        let from = matches!(request.program, ThreadsProgram::Here(_));
        let from = from.then(WorkingPlace::here).transpose()?;
        let asked = AskedProbes::Undecided { request: Box::new(alone(request)) };
        let nodes = start_on_nodes(nodes, &worker_request(asked, &from), None, caller, events)?;
        Ok(Some(Self { nodes, from, earlier: Vec::new(), probed: Vec::new() }))
    }

    /// The contexts that the program may use on the first node.
    pub(crate) fn usable(&self) -> Result<&UsableContexts, JobError> {
        self.nodes.usable().ok_or_else(|| JobError::failed("a node does not say what it has"))
    }

    /// The conditions on the nodes.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.nodes.fingerprint()
    }

    /// What happens to the nodes.
    pub(crate) fn news(&self) -> Option<NodeNews> {
        self.nodes.node_news()
    }

    /// Opens the stage of the search that follows its records.
    pub(super) fn begin(
        &mut self,
        question: &ThreadsQuestion,
        stage: ProbeStage,
        records: Vec<Record>,
        events: &mut dyn Events,
    ) -> Result<(), JobError> {
        (self.earlier, self.probed) = (Vec::new(), parameters(&records));
        self.open(question, records, false, events)?;
        // The first run shows only how long runs take, so any node may make it.
        if stage == ProbeStage::Timing {
            return Ok(());
        }
        let contexts = question.counting()?.parameter(question.contexts);
        let numbers = question.numbers()?;
        let n = numbers.iter().copied().min_by_key(|n| n.abs_diff(contexts));
        let setting = Setting::Threads(ThreadCount::unpinned(n));
        self.nodes.keep_alike_in(&setting, events)
    }

    /// Opens the last comparison of a search, of which some windows may be there.
    pub(super) fn begin_last(
        &mut self,
        question: &ThreadsQuestion,
        search: Vec<Record>,
        windows: &[Record],
        events: &mut dyn Events,
    ) -> Result<(), JobError> {
        (self.earlier, self.probed) = (parameters(&search), parameters(windows));
        self.open(question, search, true, events)
    }

    fn open(
        &mut self,
        question: &ThreadsQuestion,
        records: Vec<Record>,
        last: bool,
        events: &mut dyn Events,
    ) -> Result<(), JobError> {
        if matches!(question.request.program, ThreadsProgram::Modelled(_)) {
            return Ok(());
        }
        let question = ThreadsQuestion { request: alone(&question.request), ..question.clone() };
        let asked = AskedProbes::Decided { question: Box::new(question), records, last };
        self.nodes.reopen(&worker_request(asked, &self.from), events)
    }
}

/// Refuses what cannot be measured on nodes.
fn check(request: &ThreadsRequest) -> Result<(), JobError> {
    let refused = match &request.program {
        ThreadsProgram::Here(
            HostProgram { set: Some(_), .. } | HostProgram { pid: Some(_), .. },
        ) => {
            "--on measures programs that are started anew, and models: leave --set and --pid or \
             --on out"
        }
        ThreadsProgram::Here(HostProgram { output: Some(_), .. }) => {
            "--output would be one file for several nodes: leave it or --on out"
        }
        ThreadsProgram::Modelled(program) if !program.others.is_empty() => {
            "--on measures a model without other programs"
        }
        ThreadsProgram::Here(program) => return program.subject().map(drop),
        ThreadsProgram::Modelled(_) => return Ok(()),
    };
    Err(JobError::usage(refused))
}

/// The request without its nodes.
fn alone(request: &ThreadsRequest) -> ThreadsRequest {
    ThreadsRequest { on: None, ..request.clone() }
}

fn worker_request(asked: AskedProbes, from: &Option<WorkingPlace>) -> WorkerRequest {
    WorkerRequest::Threads { asked, from: from.clone() }
}

fn parameters(records: &[Record]) -> Vec<u32> {
    records.iter().filter_map(super::probed).map(|(n, _)| n).collect()
}

impl Testbed for ThreadsOnNodes {
    fn machine(&self) -> &Machine {
        self.nodes.machine()
    }

    fn workload(&self) -> &Workload {
        self.nodes.workload()
    }

    fn unit(&self) -> &Unit {
        self.nodes.unit()
    }

    fn time(&self) -> Time {
        self.nodes.time()
    }

    fn disturbances(&self) -> Disturbances {
        self.nodes.disturbances()
    }

    fn seek(&mut self, number: u64) {
        self.probed.truncate(number as usize);
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let mut outcomes = self.measure_all(&[(setting.clone(), effort)]);
        outcomes.pop().unwrap_or_else(|| Err(MeasureError::interrupted()))
    }

    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        let mut numbered = Vec::with_capacity(trials.len());
        for trial in trials {
            let n = parameter(&trial.0).unwrap_or_default();
            let before = self.earlier.iter().chain(&self.probed).filter(|probed| **probed == n);
            numbered.push((trial.clone(), before.count() as u64));
            self.probed.push(n);
        }
        self.nodes.measure_numbered(numbered)
    }

    fn nodes(&self) -> Option<usize> {
        self.nodes.nodes()
    }

    fn measure_first(
        &mut self,
        rounds: &[Vec<(Setting, Effort)>],
        node: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        self.nodes.measure_first(rounds, node, take)
    }
}

fn parameter(setting: &Setting) -> Option<u32> {
    match setting {
        Setting::Threads(ThreadCount { n, placed: None, .. }) => *n,
        _ => None,
    }
}

/// A model on a node. The number of a probe says how often its parameter was probed before.
struct NumberedModel {
    prober: ModelProber,
    number: u64,
}

impl Testbed for NumberedModel {
    fn machine(&self) -> &Machine {
        self.prober.machine()
    }

    fn workload(&self) -> &Workload {
        self.prober.workload()
    }

    fn unit(&self) -> &Unit {
        self.prober.unit()
    }

    fn time(&self) -> Time {
        Time::Virtual { width: 1 }
    }

    fn seek(&mut self, number: u64) {
        self.number = number;
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let before = parameter(setting).map(|n| (n, Duration::ZERO));
        let before = before.into_iter().cycle().take(self.number as usize);
        self.number += 1;
        self.prober.clone().after(before).measure(setting, effort)
    }
}

/// Opens the program of a search, and probes it for a coordinator. `path`: where programs are
/// looked for.
///
/// # Errors
/// The coordinator cannot be heard or answered any more.
pub(crate) fn serve_probes(
    asked: AskedProbes,
    path: Result<Option<String>, JobError>,
    caller: &Caller,
    session: &mut Session,
) -> Result<(), FrameError> {
    match path.and_then(|path| open(asked, path, caller)) {
        Ok((mut testbed, fingerprint, usable)) => {
            let facts = OpenFacts { usable, ..OpenFacts::default() };
            let facts = serde_json::to_value(facts).map_err(FrameError::Malformed)?;
            session.measure(&mut *testbed, fingerprint, facts)
        }
        Err(error) => refuse(session, &error, &caller.interrupt),
    }
}

type OpenProgram = (Box<dyn Testbed>, Fingerprint, Option<UsableContexts>);

/// Looks for programs in `path`.
pub(crate) fn look_in(path: Option<String>, request: &mut ThreadsRequest) {
    let path = path.filter(|path| !path.is_empty()).map(|path| format!("PATH={path}"));
    if let ThreadsProgram::Here(program) = &mut request.program {
        // What the request names comes last, and counts.
        program.env.splice(0..0, path);
    }
}

fn open(
    asked: AskedProbes,
    path: Option<String>,
    caller: &Caller,
) -> Result<OpenProgram, JobError> {
    let (question, records, last) = match asked {
        AskedProbes::Undecided { mut request } => {
            look_in(path, &mut request);
            (ThreadsQuestion::of(*request)?.0, Vec::new(), false)
        }
        AskedProbes::Decided { mut question, records, last } => {
            look_in(path, &mut question.request);
            (*question, records, last)
        }
    };
    let interrupt = &caller.interrupt;
    match &question.request.program {
        ThreadsProgram::Here(program) => {
            let machine = pinwise_linux::this_machine()?;
            let usable = usable_contexts(&machine, None)?;
            let fingerprint = pinwise_linux::fingerprint(&machine);
            let counting = question.counting()?;
            let position =
                question.search.progressed(&|threads| counting.parameter(threads), &records);
            let opening = ProgramOpening::new(program, &question, machine, interrupt)?;
            let mut prober = opening.open(position, &records)?;
            if last {
                prober.without_deadline();
            }
            Ok((Box::new(prober), fingerprint, Some(usable)))
        }
        ThreadsProgram::Modelled(program) => {
            let prober = program.prober(&question)?.cancelled_by(interrupt.clone());
            let fingerprint = Fingerprint::of(prober.machine());
            Ok((Box::new(NumberedModel { prober, number: 0 }), fingerprint, None))
        }
    }
}
