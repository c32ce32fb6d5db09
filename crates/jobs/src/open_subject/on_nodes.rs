//! A subject that is open on several nodes. Each has a worker, which opened the same request.
//!
//! In virtual time trials are split over all, and the results are those of one machine, bit for
//! bit. In real time each node measures one trial at a time. First every node measures the same
//! setting a few times: one whose performance differs is set aside, or put on a common scale.

use super::{OpenSubject, Opening};
use crate::error::JobError;
use crate::events::{Event, Events, note};
use crate::job::Caller;
use crate::leftovers::data_folder;
use crate::node_worker::{OpenFacts, WorkerRequest, WorkingPlace};
use crate::placement_request::PlacementRequest;
use crate::subject::Subject;
use crate::threads::UsableContexts;
use pinwise_cluster::{
    NodeError, NodeLoss, NodeNews, NodeTurn, Nodes, Opened, OpeningRequest, OwnProgram,
    UnlikeNodes, Workers,
};
use pinwise_measure::{
    Disturbances, Effort, MeasureError, Measurement, MemoryPolicy, NodeResult, ProgramNote,
    Setting, Testbed, Time, Unit, Workload,
};
use pinwise_placement::Budget;
use pinwise_present::{NodesOutlook, Notice};
use pinwise_topology::{CpuSet, Fingerprint, Machine};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// See the module.
pub(crate) struct OnNodes {
    workers: Workers,
    /// What the first node opened.
    opened: Opened,
    facts: OpenFacts,
    /// Whether time is virtual: it stays so where no node is left.
    simulated: bool,
    number: u64,
}

/// Starts workers that open `request`, and says which nodes do not take part. With `informed`, the
/// first node opens it alone, and the others open what that says.
///
/// # Errors
/// No node is left, or the user asked to stop.
pub(crate) fn start(
    nodes: &Nodes,
    request: &WorkerRequest,
    informed: Option<&dyn Fn(&Opened) -> WorkerRequest>,
    caller: &Caller,
    events: &mut dyn Events,
) -> Result<OnNodes, JobError> {
    let program = caller.program()?;
    let own = OwnProgram::read(&program, env!("CARGO_PKG_VERSION")).map_err(|error| {
        JobError::failed(format!("cannot read this program's own file: {error}"))
    })?;
    let own = own.in_turn(turn_of(caller));
    let job = format!("pinwise-{}", pinwise_campaign::unpredictable());
    let request = serde_json::to_value(request)?;
    let informed = informed.map(|informed| {
        let request = request.clone();
        move |opened: &Opened| {
            serde_json::to_value(informed(opened)).unwrap_or_else(|_| request.clone())
        }
    });
    let informed = informed.as_ref().map(|informed| informed as &dyn Fn(&Opened) -> Value);
    let asked = OpeningRequest { request: request.clone(), informed };
    let mut told = Ok(());
    let mut queued = || told = note(events, Notice::NodesQueued { nodes: nodes.count() });
    let workers = Workers::start(nodes, own, job, &asked, &caller.interrupt, &mut queued)
        .map_err(workers_error)?;
    told?;
    let opened = opened(&workers)?;
    let started = OnNodes {
        simulated: opened.width.is_some(),
        facts: serde_json::from_value::<Option<_>>(opened.facts.clone())?.unwrap_or_default(),
        opened,
        number: 0,
        workers,
    };
    tell(&started.workers.news(), events)?;
    Ok(started)
}

/// The name by which a node knows the workers of the caller's store.
fn turn_of(caller: &Caller) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let store = caller.store.clone().or_else(data_folder).unwrap_or_default();
    NodeTurn::name(&host, &std::path::absolute(&store).unwrap_or(store))
}

fn workers_error(error: NodeError) -> JobError {
    match error {
        NodeError { loss: NodeLoss::Interrupted, .. } => JobError::nothing_measured(false),
        error => JobError::failed(error),
    }
}

fn opened(workers: &Workers) -> Result<Opened, JobError> {
    workers.first().cloned().ok_or_else(|| JobError::failed("no node is left that measures"))
}

/// Says what happened to nodes and was not said yet.
fn tell(news: &NodeNews, events: &mut dyn Events) -> Result<(), JobError> {
    news.take().into_iter().try_for_each(|about| note(events, about))
}

/// Events, each with what has happened to nodes since the last one.
pub(crate) struct WithNodeNews<'a> {
    events: &'a mut dyn Events,
    news: Option<NodeNews>,
}

impl<'a> WithNodeNews<'a> {
    /// `None`: there are no nodes.
    pub(crate) fn new(events: &'a mut dyn Events, news: Option<NodeNews>) -> Self {
        Self { events, news }
    }
}

impl Events for WithNodeNews<'_> {
    fn take(&mut self, event: Event<'_>) -> io::Result<()> {
        self.events.take(event)?;
        let news = self.news.iter().flat_map(NodeNews::take);
        news.map(Notice::from).try_for_each(|about| self.events.take(Event::Note(&about)))
    }
}

/// Opens the subject of a request on its nodes.
pub(super) fn open(
    nodes: &Nodes,
    request: &PlacementRequest,
    opening: Opening,
    caller: &Caller,
    events: &mut dyn Events,
) -> Result<OnNodes, JobError> {
    if !matches!(request.subject, Subject::Simulated(_) | Subject::Rerun(_)) {
        return Err(JobError::usage(
            "--on measures commands that are started anew, and models: use -- CMD without \
             --metric or with --per-run, or --machine MODEL",
        ));
    }
    if request.memory != MemoryPolicy::Leave {
        return Err(JobError::usage(
            "--memory is not known on several nodes: leave it or --on out",
        ));
    }
    let alone = PlacementRequest { on: None, ..request.clone() };
    let real = !matches!(request.subject, Subject::Simulated(_));
    let from = real.then(WorkingPlace::here).transpose()?;
    let asked = |threads: Vec<String>| WorkerRequest::Place {
        request: Box::new(alone.clone()),
        threads,
        left: opening.until.map(|end| end.saturating_duration_since(Instant::now())),
        from: from.clone(),
    };
    // Each node would decide by itself which threads matter. The first one decides for all.
    let named = |opened: &Opened| {
        let threads = opened.workload.threads.iter().map(|thread| thread.name.clone());
        asked(threads.collect())
    };
    let informed = real.then_some(&named as &dyn Fn(&Opened) -> WorkerRequest);
    let mut subject = start(nodes, &asked(opening.threads.clone()), informed, caller, events)?;
    let unlike = match request.scale_nodes {
        true => UnlikeNodes::Scaled { known: opening.node_scales },
        false => UnlikeNodes::SetAside,
    };
    subject.keep_alike_or(&Setting::Unpinned, unlike, events)?;
    Ok(subject)
}

/// What a placement on its nodes takes, at best. Measures one model on this machine, and no
/// program.
///
/// # Errors
/// The request names no nodes, or a model that cannot be opened.
pub fn nodes_cost(request: &PlacementRequest, caller: &Caller) -> Result<NodesOutlook, JobError> {
    let Some(nodes) = request.on.as_ref().map(Nodes::count) else {
        return Err(JobError::usage("the request names no nodes: add --on"));
    };
    let budget = request.question.budget;
    let each = match (&request.subject, budget) {
        (Subject::Simulated(_), Budget::Measurements(_)) => {
            let alone = PlacementRequest { on: None, ..request.clone() };
            super::open(&alone, caller)?.simulating()
        }
        _ => None,
    };
    Ok(NodesOutlook::of(nodes, budget, each))
}

impl OnNodes {
    /// Sets nodes aside whose performance differs in `setting`, now and from time to time. In
    /// virtual time they are all equal.
    ///
    /// # Errors
    /// No node is left, or the user asked to stop.
    pub(crate) fn keep_alike_in(
        &mut self,
        setting: &Setting,
        events: &mut dyn Events,
    ) -> Result<(), JobError> {
        self.keep_alike_or(setting, UnlikeNodes::SetAside, events)
    }

    /// The same, with what becomes of nodes that differ.
    fn keep_alike_or(
        &mut self,
        setting: &Setting,
        unlike: UnlikeNodes,
        events: &mut dyn Events,
    ) -> Result<(), JobError> {
        if self.simulated {
            return Ok(());
        }
        self.workers.keep_alike_in(setting, Effort::default(), unlike)?;
        tell(&self.workers.news(), events)
    }

    /// The results of trials in virtual time. The number of each decides its random numbers.
    pub(crate) fn measure_numbered(
        &mut self,
        trials: impl IntoIterator<Item = ((Setting, Effort), u64)>,
    ) -> Vec<Result<Measurement, MeasureError>> {
        self.workers.measure_all(trials)
    }

    /// What the first node said about the contexts that a program may use.
    pub(crate) fn usable(&self) -> Option<&UsableContexts> {
        self.facts.usable.as_ref()
    }

    /// Has the same nodes open something else.
    ///
    /// # Errors
    /// No node is left, or the user asked to stop.
    pub(crate) fn reopen(
        &mut self,
        request: &WorkerRequest,
        events: &mut dyn Events,
    ) -> Result<(), JobError> {
        let asked = OpeningRequest { request: serde_json::to_value(request)?, informed: None };
        self.workers.reopen(&asked).map_err(workers_error)?;
        self.opened = opened(&self.workers)?;
        tell(&self.workers.news(), events)
    }
}

impl Testbed for OnNodes {
    fn machine(&self) -> &Machine {
        &self.opened.machine
    }

    fn workload(&self) -> &Workload {
        &self.opened.workload
    }

    fn unit(&self) -> &Unit {
        &self.opened.unit
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let mut outcomes = self.measure_all(&[(setting.clone(), effort)]);
        outcomes.pop().unwrap_or_else(|| Err(MeasureError::interrupted()))
    }

    fn profiles(&self) -> bool {
        self.facts.profiles
    }

    fn restart(&self) -> Option<Duration> {
        self.facts.restart
    }

    fn time(&self) -> Time {
        match self.workers.width() {
            Some(width) if self.simulated => Time::Virtual { width: width.max(1) },
            _ => Time::Real,
        }
    }

    fn disturbances(&self) -> Disturbances {
        self.workers.disturbances()
    }

    fn seek(&mut self, number: u64) {
        self.number = number;
    }

    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        let first = self.number;
        self.number += trials.len() as u64;
        self.workers.measure_all(trials.iter().cloned().zip(first..))
    }

    fn nodes(&self) -> Option<usize> {
        (!self.simulated).then(|| self.workers.count().max(1))
    }

    fn node_spread(&self) -> f64 {
        self.workers.spread()
    }

    fn measure_first(
        &mut self,
        rounds: &[Vec<(Setting, Effort)>],
        node: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        self.workers.measure_first(rounds, node, take)
    }
}

impl OpenSubject for OnNodes {
    fn affinities(&self) -> BTreeMap<String, CpuSet> {
        self.facts.affinities.clone()
    }

    fn notes(&self) -> Vec<ProgramNote> {
        self.facts.notes.clone()
    }

    fn node_news(&self) -> Option<NodeNews> {
        Some(self.workers.news())
    }

    fn each(&self, _period: Duration) -> Duration {
        self.facts.each
    }

    fn experiment(&self, _period: Duration) -> Option<Duration> {
        self.facts.experiment
    }

    fn fingerprint(&self) -> Fingerprint {
        self.opened.fingerprint.clone()
    }
}
