//! The workers of a campaign, as the coordinator sees them.
//!
//! One thread for each worker reads its messages, and one writes to it. The writer also asks now
//! and then whether it is there. Everything else happens on the thread that asks for measurements:
//! it hands out what [`Dispatch`] says, and waits. A worker that is silent for [`SILENCE`] is lost,
//! and so is one whose connection ends. Its trials go to others. Where nobody is left, the error
//! names the node that was lost last, and why.
//!
//! *Failures.* In real time, a trial that fails on one node is measured on another one. If it
//! fails there, too, the trial is at fault. Otherwise the node is: after [`MOST_FAILURES`] of them
//! in a row it is lost. An error of [`Retry::Never`] loses the node at once.

mod opening;
mod references;

use crate::dispatch::Dispatch;
use crate::launch::{JobGuard, NodeLoss, OwnProgram, Said, cancel_jobs};
use crate::likeness::{NodeDifference, difference};
use crate::message::{FrameError, FromWorker, Opened, ToWorker, write_frame};
use crate::node::Nodes;
use crate::watch::Watch;
use opening::Launches;
pub use opening::OpeningRequest;
use pinwise_measure::{
    Disturbances, Effort, Interrupt, MeasureError, Measurement, NodeResult, NodeScale, OtherLoad,
    ProgramNote, Retry, Setting, to_begin,
};
use references::References;
pub use references::UnlikeNodes;
use std::collections::BTreeMap;
use std::io::Write;
use std::iter;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Nothing is heard from a worker for so long: it is lost. Longer than ssh waits by itself.
pub const SILENCE: Duration = Duration::from_secs(90);

/// How often the request to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long workers may take to put everything back, once they are told to end.
const FAREWELL: Duration = Duration::from_secs(20);

/// How long a worker whose connection has ended may take to end.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// A node is lost after so many failures in a row of trials that another node measured.
const MOST_FAILURES: u32 = 3;

/// The messages of all workers that wait. More do not come before these are read.
const MOST_MESSAGES: usize = 64;

/// The most trials that a worker takes at once.
const MOST_AT_ONCE: usize = 4096;

/// A node that does not measure, or not any more.
#[derive(Debug, thiserror::Error)]
#[error("node {node}: {loss}")]
pub struct NodeError {
    /// The node.
    pub node: String,
    /// Why, with the remedy.
    #[source]
    pub loss: NodeLoss,
}

impl NodeError {
    /// What people are told about it.
    pub fn note(&self) -> ProgramNote {
        ProgramNote::NodeLost { node: self.node.clone(), error: self.loss.to_string() }
    }
}

/// What happened to nodes and was not told yet. Its copies share it.
#[derive(Clone, Debug, Default)]
pub struct NodeNews(Arc<Mutex<Vec<ProgramNote>>>);

impl NodeNews {
    fn add(&self, note: ProgramNote) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// What was not told yet.
    pub fn take(&self) -> Vec<ProgramNote> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A trial.
type Wanted = (Setting, Effort);

/// What a worker measured: with its ticket and trial.
type WorkerResult = (usize, u64, Wanted, Result<Measurement, MeasureError>);

/// A message of a worker, or why there are no more.
type Heard = (usize, Result<FromWorker, FrameError>);

#[derive(Debug)]
struct ConnectedWorker {
    node: String,
    /// Which of the nodes it is.
    number: usize,
    /// When its connection was there.
    connected: Instant,
    child: Child,
    /// What its thread writes to it. A stopped worker stops that thread alone.
    input: Option<Sender<ToWorker>>,
    said: Said,
    /// It was asked to open the request.
    asked: bool,
    opened: Option<Opened>,
    /// What puts its results on the common scale; `None`: they are on that.
    scale: Option<NodeScale>,
    disturbances: Disturbances,
    /// Failures since its last success of trials that another node measured.
    failures: u32,
    /// Its last failure.
    failure: Option<String>,
    /// It takes trials, or may do so once it is open.
    alive: bool,
}

/// See the module.
#[derive(Debug)]
pub struct Workers {
    nodes: Nodes,
    own: OwnProgram,
    job: String,
    workers: Vec<ConnectedWorker>,
    messages: Receiver<Heard>,
    dispatch: Dispatch<Wanted>,
    references: Option<References>,
    lost: Vec<NodeError>,
    news: NodeNews,
    watch: Watch,
    interrupt: Interrupt,
    /// The workers that are being started.
    launches: Option<Launches>,
    _guard: Option<JobGuard>,
}

impl Workers {
    /// Before any is connected.
    fn without_nodes(
        nodes: Nodes,
        own: OwnProgram,
        job: String,
        messages: Receiver<(usize, Result<FromWorker, FrameError>)>,
        interrupt: Interrupt,
    ) -> Self {
        Self {
            nodes,
            own,
            job,
            workers: Vec::new(),
            messages,
            dispatch: Dispatch::default(),
            references: None,
            lost: Vec::new(),
            news: NodeNews::default(),
            watch: Watch::new(SILENCE, Instant::now()),
            interrupt,
            launches: None,
            _guard: None,
        }
    }

    /// Sets nodes aside that differ from the first one.
    fn keep_alike(&mut self) {
        let mut open: Vec<usize> = self.dispatch.workers().collect();
        open.sort_by_key(|worker| self.workers[*worker].number);
        let Some((&first, others)) = open.split_first() else { return };
        for &other in others {
            let [one, other_opened] =
                [first, other].map(|number| self.workers[number].opened.as_ref());
            let name = &self.workers[first].node;
            if let (Some(one), Some(opened)) = (one, other_opened)
                && let Some(differs) = difference(opened, name, one)
            {
                self.lose(other, NodeLoss::Unlike(differs));
            }
        }
    }

    /// The first of the named nodes that measures, as it is open there.
    pub fn first(&self) -> Option<&Opened> {
        let first = self.dispatch.workers().min_by_key(|worker| self.workers[*worker].number);
        first.and_then(|worker| self.workers[worker].opened.as_ref())
    }

    /// How many nodes measure.
    pub fn count(&self) -> usize {
        self.dispatch.workers().count()
    }

    /// How many trials they take at once where time is virtual; `None` where time is real.
    pub fn width(&self) -> Option<usize> {
        let widths = self.dispatch.workers().map(|number| self.workers[number].width());
        widths.sum::<Option<usize>>()
    }

    /// What happens to nodes from now on, and what was not told yet.
    pub fn news(&self) -> NodeNews {
        self.news.clone()
    }

    /// What has disturbed the measurements on all nodes, which nodes were lost, and how alike the
    /// others are.
    pub fn disturbances(&self) -> Disturbances {
        let mut all = Disturbances::default();
        for worker in &self.workers {
            let Disturbances { others, notes } = worker.disturbances.clone();
            all.others = match (all.others, others) {
                (Some(one), Some(other)) => Some(OtherLoad::with(one, other)),
                (one, other) => one.or(other),
            };
            for note in notes {
                if !all.notes.contains(&note) {
                    all.notes.push(note);
                }
            }
        }
        all.notes.extend(self.lost.iter().map(NodeError::note));
        all.notes.extend(self.references.iter().flat_map(References::notes));
        all
    }

    /// By which share the performance of the nodes may differ, as far as their check showed.
    pub fn spread(&self) -> f64 {
        self.references.as_ref().map_or(0.0, References::spread)
    }

    /// The results of trials in virtual time, in their order. Each has its number. Those of a
    /// worker that is lost are measured by another one.
    pub fn measure_all(
        &mut self,
        trials: impl IntoIterator<Item = (Wanted, u64)>,
    ) -> Vec<Result<Measurement, MeasureError>> {
        self.dispatch.withdraw();
        let tickets = self.dispatch.offer(None, trials);
        let mut outcomes = BTreeMap::new();
        while (outcomes.len() as u64) < tickets.end - tickets.start {
            if let Err(error) = self.hand_out() {
                return tickets
                    .map(|ticket| outcomes.remove(&ticket).unwrap_or_else(|| Err(error.clone())))
                    .collect();
            }
            if let Some((_, ticket, _, outcome)) = self.result()
                && tickets.contains(&ticket)
            {
                outcomes.insert(ticket, outcome);
            }
        }
        outcomes.into_values().collect()
    }

    /// Measures trials in real time until the first of them has a result. Each of the `rounds` goes
    /// to one node, which measures its trials one after the other. Meanwhile nodes that are free
    /// begin the others, in their order. What is in flight already is not begun again. `take` gets
    /// each result when it comes, also of trials that were wanted earlier. If `node` is not lost,
    /// it measures the first round, and only its result counts.
    ///
    /// # Errors
    /// No node is left; the user asked to stop.
    pub fn measure_first(
        &mut self,
        rounds: &[Vec<Wanted>],
        node: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        let Some(first) = rounds.iter().flatten().next() else { return Ok(()) };
        // What came during a check is not measured once more.
        let mut received: Vec<(usize, Wanted)> = Vec::new();
        self.check_likeness(&mut |worker, result| {
            received.push((worker, (result.setting.clone(), result.effort)));
            take(result);
        })?;
        let named = |worker: &usize| node == Some(&self.workers[*worker].node);
        let own = self.dispatch.workers().find(named);
        let is_own = |worker: usize| own.is_none_or(|own| own == worker);
        if received.iter().any(|(worker, trial)| is_own(*worker) && trial == first) {
            return Ok(());
        }
        self.dispatch.withdraw();
        let begun = received.iter().map(|(worker, trial)| (*worker, trial));
        let new = to_begin(rounds, own, self.dispatch.in_flight_by().chain(begun));
        for (round, only) in new.into_iter().zip(iter::once(own).chain(iter::repeat(None))) {
            // Consecutive numbers stay together.
            self.dispatch.offer(only, round.into_iter().zip(0..));
        }
        loop {
            self.hand_out()?;
            let Some((worker, _, trial, outcome)) = self.result() else { continue };
            let expected = own.is_some_and(|own| self.dispatch.expects(own, first));
            let came = trial == *first && (is_own(worker) || !expected);
            take(self.node_result(worker, trial, outcome));
            if came {
                return self.hand_out();
            }
        }
    }

    /// A result that names its node.
    fn node_result(
        &self,
        worker: usize,
        (setting, effort): Wanted,
        outcome: Result<Measurement, MeasureError>,
    ) -> NodeResult {
        let ConnectedWorker { node, scale, .. } = &self.workers[worker];
        let (node, scale) = (node.clone(), *scale);
        let outcome = outcome.map_err(|error| MeasureError {
            message: format!("node {node}: {}", error.message),
            ..error
        });
        NodeResult { node, setting, effort, outcome, scale }
    }

    /// The user asked to stop, or no node is left.
    fn check(&self) -> Result<(), MeasureError> {
        if self.interrupt.came() {
            return Err(MeasureError::interrupted());
        }
        if self.dispatch.workers().next().is_some() {
            return Ok(());
        }
        let last = self.lost.last().map_or_else(String::new, |error| format!("; {error}"));
        Err(MeasureError::new(Retry::Never, format!("no node is left that measures{last}")))
    }

    /// Gives trials that wait to workers that are idle, each a fair share.
    fn hand_out(&mut self) -> Result<(), MeasureError> {
        self.check()?;
        if self.dispatch.waiting() == 0 {
            return Ok(());
        }
        let idle = self.dispatch.idle();
        for (place, &worker) in idle.iter().enumerate() {
            let share = self.dispatch.waiting().div_ceil(idle.len() - place);
            // In real time what belongs together has consecutive numbers.
            let most = self.workers[worker].width().map_or(usize::MAX, |most| share.min(most));
            let handed = self.dispatch.hand_out(worker, most);
            if let Some(first) = handed.first() {
                let (ticket, number) = (first.ticket, first.number);
                let trials = handed.into_iter().map(|handed| handed.trial).collect();
                self.send(worker, ToWorker::Measure { ticket, number, trials });
            }
        }
        Ok(())
    }

    /// The next result that counts, with its worker, ticket and trial. `None`: there is none yet.
    fn result(&mut self) -> Option<WorkerResult> {
        let (worker, ticket, outcome, disturbances) = match self.next()? {
            (worker, Ok(FromWorker::Measured { ticket, outcome, disturbances })) => {
                (worker, ticket, outcome, disturbances)
            }
            (_, Ok(_)) => return None,
            (worker, Err(error)) => {
                self.end(worker, error);
                return None;
            }
        };
        let real = self.workers[worker].width().is_none();
        match &outcome {
            // The worker got a signal. That is its end, and not the campaign's.
            Err(error) if error.interrupted => {
                self.lose(worker, NodeLoss::Stopped);
                return None;
            }
            Err(error) if real && error.retry == Retry::Never && !error.expired => {
                self.lose(worker, NodeLoss::Failing(error.message.clone()));
                return None;
            }
            Err(error) => self.workers[worker].failure = Some(error.message.clone()),
            Ok(_) => {}
        }
        self.workers[worker].disturbances = *disturbances;
        let reference = self.references.as_ref().is_some_and(|known| known.has(ticket));
        if outcome.is_err() && real && !reference && self.dispatch.try_elsewhere(worker, ticket) {
            return None;
        }
        let (trial, failed) = self.dispatch.finish(worker, ticket)?;
        if outcome.is_ok() {
            self.workers[worker].failures = 0;
            failed.into_iter().for_each(|worker| self.failed(worker));
        }
        if let Some(references) = self.references.as_mut().filter(|_| !reference) {
            references.count();
        }
        Some((worker, ticket, trial, outcome))
    }

    /// Another node has measured what failed on this one.
    fn failed(&mut self, worker: usize) {
        self.workers[worker].failures += 1;
        if self.workers[worker].failures >= MOST_FAILURES {
            let why = self.workers[worker].failure.clone().unwrap_or_default();
            self.lose(worker, NodeLoss::Failing(why));
        }
    }

    /// The next message of a worker that is not lost. `None`: there was none for a moment.
    fn next(&mut self) -> Option<Heard> {
        for worker in self.watch.silent(Instant::now()) {
            self.lose(worker, NodeLoss::Silent(SILENCE));
        }
        match self.messages.recv_timeout(LOOK_EVERY) {
            Ok((number, message)) => {
                let alive = self.workers[number].alive;
                if alive {
                    self.watch.hear(number, Instant::now());
                }
                alive.then_some((number, message))
            }
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(LOOK_EVERY);
                None
            }
        }
    }

    fn send(&mut self, worker: usize, message: ToWorker) {
        // Where nobody writes any more, the reader says that the connection has ended.
        if let Some(input) = &self.workers[worker].input {
            drop(input.send(message));
        }
    }

    /// The connection of a worker has ended.
    fn end(&mut self, worker: usize, error: FrameError) {
        let loss = match error {
            FrameError::Closed | FrameError::Cut | FrameError::Failed(_) => {
                NodeLoss::Gone(self.workers[worker].said.last())
            }
            too_much @ FrameError::Unsendable(_) => NodeLoss::TooMuch(too_much),
            garbled => NodeLoss::Garbled(garbled),
        };
        self.lose(worker, loss);
    }

    /// A worker is lost. Its child is ended at the latest when this is dropped.
    fn lose(&mut self, worker: usize, loss: NodeLoss) {
        self.dispatch.lose(worker);
        self.watch.forget(worker);
        let lost = &mut self.workers[worker];
        if std::mem::replace(&mut lost.alive, false) {
            let node = lost.node.clone();
            self.note_lost(NodeError { node, loss });
        }
        // A worker that can still read breaks off and ends.
        self.workers[worker].input = None;
    }

    fn note_lost(&mut self, error: NodeError) {
        self.news.add(error.note());
        self.lost.push(error);
    }
}

/// Writes messages to a worker on a thread of their own, until the sender is dropped. After the
/// first one, it sends a ping whenever there was nothing to send for `every`.
fn write_to(
    worker: usize,
    mut input: impl Write + Send + 'static,
    every: Duration,
    errors: SyncSender<Heard>,
) -> Sender<ToWorker> {
    let (sender, messages) = channel::<ToWorker>();
    std::thread::spawn(move || {
        let mut first = messages.recv().ok();
        loop {
            let message = match first.take() {
                Some(first) => first,
                None => match messages.recv_timeout(every) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => ToWorker::Ping,
                    Err(RecvTimeoutError::Disconnected) => break,
                },
            };
            match write_frame(&mut input, &message) {
                Ok(()) => {}
                Err(error @ FrameError::Unsendable(_)) => {
                    drop(errors.send((worker, Err(error))));
                    break;
                }
                // The connection has ended, which its reader also says, with the reason.
                Err(_) => break,
            }
        }
    });
    sender
}

impl ConnectedWorker {
    fn width(&self) -> Option<usize> {
        self.opened.as_ref().and_then(|opened| opened.width)
    }
}

impl Drop for Workers {
    /// Ends every worker, and waits until it has put everything back. What does not end by itself
    /// is killed.
    fn drop(&mut self) {
        self.launches = None;
        for worker in &mut self.workers {
            if let Some(input) = worker.input.take() {
                drop(input.send(ToWorker::Bye));
            }
        }
        let slurm = matches!(self.nodes, Nodes::Slurm { .. });
        if slurm {
            cancel_jobs(&self.job, true);
        }
        let (workers, messages) = (&mut self.workers, &self.messages);
        let mut wait = |until: Instant| loop {
            // Nobody waits for a place.
            while messages.try_recv().is_ok() {}
            let runs = |worker: &mut ConnectedWorker| matches!(worker.child.try_wait(), Ok(None));
            let any = workers.iter_mut().any(runs);
            if !any || Instant::now() >= until {
                break any;
            }
            std::thread::sleep(LOOK_EVERY / 5);
        };
        let mut remain = wait(Instant::now() + FAREWELL);
        if slurm {
            cancel_jobs(&self.job, false);
            remain = wait(Instant::now() + FAREWELL);
        }
        if remain {
            for worker in &mut self.workers {
                drop(worker.child.kill());
                drop(worker.child.wait());
            }
        }
    }
}

#[cfg(test)]
mod tests;
