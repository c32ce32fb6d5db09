//! The workers of a campaign, as the coordinator sees them.
//!
//! One thread for each worker reads its messages. Everything else happens on the thread that asks
//! for measurements: it hands out what [`Dispatch`] says, and waits. A worker that is silent for
//! [`SILENCE`] is lost, and so is one whose connection ends. Its trials go to others. Where nobody
//! is left, the error names the node that was lost last, and why.

use crate::dispatch::Dispatch;
use crate::launch::{
    LaunchedWorker, NodeLoss, OwnProgram, Said, before_hello, cancel_jobs, launch,
};
use crate::likeness::{NodeDifference, difference};
use crate::message::{FrameError, FromWorker, Opened, PROTOCOL, ToWorker, read_frame, write_frame};
use crate::node::Nodes;
use pinwise_measure::{
    Disturbances, Effort, Interrupt, MeasureError, Measurement, NodeResult, OtherLoad, ProgramNote,
    Retry, Setting,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Nothing is heard from a worker for so long: it is lost. Longer than ssh waits by itself.
pub const SILENCE: Duration = Duration::from_secs(90);

/// How often workers are asked whether they are there.
const PING_EVERY: Duration = Duration::from_secs(5);

/// How long the others may take once the first worker is open. Slurm may have fewer nodes, and
/// gives one only when a job there ends.
const LATE: Duration = Duration::from_secs(15);

/// How often the request to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How long workers may take to put everything back, once they are told to end.
const FAREWELL: Duration = Duration::from_secs(20);

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
    /// What people are told about it at the end.
    pub fn note(&self) -> ProgramNote {
        ProgramNote::NodeLost { node: self.node.clone(), error: self.loss.to_string() }
    }
}

/// A trial.
type Wanted = (Setting, Effort);

#[derive(Debug)]
struct ConnectedWorker {
    node: String,
    child: Child,
    /// What its thread writes to it. A stopped worker stops that thread alone.
    input: Option<Sender<ToWorker>>,
    said: Said,
    opened: Option<Opened>,
    heard: Instant,
    disturbances: Disturbances,
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
    messages: Receiver<(usize, Result<FromWorker, FrameError>)>,
    dispatch: Dispatch<Wanted>,
    lost: Vec<NodeError>,
    pinged: Instant,
    interrupt: Interrupt,
}

impl Workers {
    /// Starts a worker on each node, and has it open `request`. `job` is the name of the jobs of
    /// Slurm. Nodes that cannot are in [`Self::lost`]. Those that differ from the first are there,
    /// too.
    ///
    /// # Errors
    /// No node is left; why the first one is not. The user asked to stop.
    pub fn start(
        nodes: &Nodes,
        own: OwnProgram,
        job: String,
        request: &Value,
        interrupt: &Interrupt,
    ) -> Result<Self, NodeError> {
        let (sender, messages) = channel();
        let mut all = Self {
            nodes: nodes.clone(),
            own,
            job,
            workers: Vec::new(),
            messages,
            dispatch: Dispatch::default(),
            lost: Vec::new(),
            pinged: Instant::now(),
            interrupt: interrupt.clone(),
        };
        let name = |number: usize| match nodes {
            Nodes::Ssh(hosts) => hosts[number].clone(),
            Nodes::Slurm { .. } => (number + 1).to_string(),
        };
        let launched: Vec<_> = std::thread::scope(|scope| {
            let (own, job) = (&all.own, &all.job);
            let launch = |number| move || launch(nodes, number, own, job, interrupt);
            let threads: Vec<_> =
                (0..nodes.count()).map(|number| scope.spawn(launch(number))).collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let mut numbers = Vec::new();
        for (number, launched) in launched.into_iter().enumerate() {
            match launched.unwrap_or(Err(NodeLoss::Interrupted)) {
                Ok(launched) => {
                    numbers.push(number);
                    all.connect(name(number), launched, sender.clone());
                }
                Err(loss) => all.lost.push(NodeError { node: name(number), loss }),
            }
        }
        drop(sender);
        all.open(request, &numbers);
        if interrupt.came() {
            let node = name(0);
            return Err(NodeError { node, loss: NodeLoss::Interrupted });
        }
        // The first that was named comes first, whoever was quicker.
        let names: Vec<String> = (0..nodes.count()).map(name).collect();
        all.lost.sort_by_key(|lost| names.iter().position(|name| *name == lost.node));
        all.keep_alike();
        if all.count() > 0 {
            return Ok(all);
        }
        let nobody = NodeError { node: "(none)".to_owned(), loss: NodeLoss::Interrupted };
        Err(all.lost.drain(..).next().unwrap_or(nobody))
    }

    fn connect(
        &mut self,
        node: String,
        LaunchedWorker { mut child, said }: LaunchedWorker,
        sender: Sender<(usize, Result<FromWorker, FrameError>)>,
    ) {
        let worker = self.workers.len();
        let input = child.stdin.take().map(|input| write_to(worker, input, sender.clone()));
        if let Some(mut output) = child.stdout.take() {
            std::thread::spawn(move || {
                loop {
                    let message = read_frame(&mut output);
                    let over = message.is_err();
                    if sender.send((worker, message)).is_err() || over {
                        break;
                    }
                }
            });
        }
        let (opened, heard, disturbances) = (None, Instant::now(), Disturbances::default());
        let alive = true;
        self.workers.push(ConnectedWorker {
            node,
            child,
            input,
            said,
            opened,
            heard,
            disturbances,
            alive,
        });
    }

    /// Has each worker open the request. `numbers` are those of their nodes.
    fn open(&mut self, request: &Value, numbers: &[usize]) {
        let mut greeted = vec![false; self.workers.len()];
        let order = ToWorker::Open { request: request.clone() };
        let mut late = None;
        while self.workers.iter().any(|worker| worker.alive && worker.opened.is_none())
            && !self.interrupt.came()
        {
            // Slurm gives nodes when it has them. What has not greeted cannot answer a ping.
            for (worker, greeted) in self.workers.iter_mut().zip(&greeted) {
                if !greeted {
                    worker.heard = Instant::now();
                }
            }
            if late.is_some_and(|late| Instant::now() >= late) {
                for number in (0..self.workers.len()).filter(|number| !greeted[*number]) {
                    self.lose(number, NodeLoss::Late(LATE));
                }
                late = None;
                if matches!(self.nodes, Nodes::Slurm { .. }) {
                    cancel_jobs(&self.job, true);
                }
            }
            let Some((number, message)) = self.next() else { continue };
            match message {
                Ok(FromWorker::Hello { protocol, version, host }) => {
                    let own = self.own.version().to_owned();
                    if protocol != PROTOCOL || version != own {
                        let theirs = format!("{version} (protocol {protocol})");
                        self.lose(number, NodeLoss::OtherVersion { theirs, own });
                        continue;
                    }
                    greeted[number] = true;
                    if matches!(self.nodes, Nodes::Slurm { .. }) {
                        self.workers[number].node = host;
                    }
                    self.send(number, order.clone());
                }
                Ok(FromWorker::Opened(opened)) => {
                    self.workers[number].opened = Some(*opened);
                    self.dispatch.admit(number);
                    late = late.or(Some(Instant::now() + LATE));
                }
                Ok(FromWorker::Refused { error }) => self.lose(number, NodeLoss::Refused(error)),
                Ok(FromWorker::Pong | FromWorker::Measured { .. }) => {}
                Err(FrameError::Closed | FrameError::Cut) if !greeted[number] => {
                    // Its last words come on another way.
                    drop(self.workers[number].child.wait());
                    std::thread::sleep(LOOK_EVERY);
                    let said = self.workers[number].said.clone();
                    let loss = before_hello(&self.nodes, numbers[number], &self.own, &said);
                    self.lose(number, loss);
                }
                Err(error) => self.end(number, error),
            }
        }
    }

    /// Sets nodes aside that differ from the first one.
    fn keep_alike(&mut self) {
        let open: Vec<usize> = self.dispatch.workers().collect();
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

    /// The first node that measures, as it is open there.
    pub fn first(&self) -> Option<&Opened> {
        self.dispatch.workers().next().and_then(|number| self.workers[number].opened.as_ref())
    }

    /// The nodes that measure, with their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.dispatch.workers().map(|number| self.workers[number].node.as_str())
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

    /// The nodes that do not measure, or not any more, in the order in which they were lost.
    pub fn lost(&self) -> &[NodeError] {
        &self.lost
    }

    /// What has disturbed the measurements on all nodes, and which nodes were lost.
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
        all
    }

    /// The results of trials with consecutive numbers from `number`, in their order. Those of a
    /// worker that is lost are measured by another one.
    pub fn measure_all(
        &mut self,
        number: u64,
        trials: &[Wanted],
    ) -> Vec<Result<Measurement, MeasureError>> {
        self.dispatch.withdraw();
        let tickets = self.dispatch.offer(trials.iter().cloned().zip(number..));
        let mut outcomes = BTreeMap::new();
        while outcomes.len() < trials.len() {
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

    /// Measures trials in real time, one at a time on each node, until the first of them has a
    /// result. Meanwhile nodes that are free begin the others, in their order. What is in flight
    /// already is not begun again. `take` gets each result when it comes, also of trials that were
    /// wanted earlier.
    ///
    /// # Errors
    /// No node is left; the user asked to stop.
    pub fn measure_first(
        &mut self,
        trials: &[Wanted],
        take: &mut dyn FnMut(NodeResult),
    ) -> Result<(), MeasureError> {
        let Some(first) = trials.first() else { return Ok(()) };
        self.dispatch.withdraw();
        let mut flying: Vec<&Wanted> = self.dispatch.in_flight().map(|(_, trial)| trial).collect();
        let mut new = trials.to_vec();
        new.retain(|trial| match flying.iter().position(|flying| *flying == trial) {
            Some(place) => {
                flying.swap_remove(place);
                false
            }
            None => true,
        });
        self.dispatch.offer(new.into_iter().zip(0..));
        loop {
            self.hand_out()?;
            let Some((worker, _, trial, outcome)) = self.result() else { continue };
            let came = trial == *first;
            let node = self.workers[worker].node.clone();
            let (setting, effort) = trial;
            let outcome = outcome.map_err(|error| MeasureError {
                message: format!("node {node}: {}", error.message),
                ..error
            });
            take(NodeResult { node, setting, effort, outcome });
            if came {
                return Ok(());
            }
        }
    }

    /// Measures one setting `times` on each node, and sets nodes aside whose performance differs.
    ///
    /// # Errors
    /// No node is left; the user asked to stop.
    pub fn keep_alike_in(
        &mut self,
        setting: &Setting,
        effort: Effort,
        times: usize,
    ) -> Result<(), MeasureError> {
        let judged: Vec<usize> = self.dispatch.workers().collect();
        let mut values: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        let mut left: BTreeMap<usize, usize> = judged.iter().map(|&w| (w, times)).collect();
        while left.values().any(|times| *times > 0) {
            self.dispatch.withdraw();
            for worker in self.dispatch.idle() {
                if let Some(times) = left.get_mut(&worker).filter(|times| **times > 0) {
                    *times -= 1;
                    self.dispatch.offer([((setting.clone(), effort), 0)]);
                    self.hand_to(worker, 1);
                }
            }
            self.wait_for_any(&mut values)?;
            left.retain(|worker, _| self.workers[*worker].alive);
        }
        while self.dispatch.in_flight().next().is_some() {
            self.wait_for_any(&mut values)?;
        }
        let judged: Vec<usize> =
            judged.into_iter().filter(|worker| self.workers[*worker].alive).collect();
        let of = |worker: &usize| values.remove(worker).unwrap_or_default();
        let values: Vec<Vec<f64>> = judged.iter().map(of).collect();
        for (place, by) in crate::likeness::unlike(&values) {
            self.lose(judged[place], NodeLoss::Unlike(NodeDifference::Performance { by }));
        }
        Ok(())
    }

    /// Waits for a message. A result goes to the values of its worker.
    fn wait_for_any(&mut self, values: &mut BTreeMap<usize, Vec<f64>>) -> Result<(), MeasureError> {
        self.check()?;
        if let Some((worker, _, _, Ok(measured))) = self.result() {
            values.entry(worker).or_default().push(measured.performance);
        }
        // What a lost worker had is not measured by another one.
        self.dispatch.withdraw();
        Ok(())
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
        loop {
            self.check()?;
            let idle = self.dispatch.idle();
            let Some(&worker) = idle.first().filter(|_| self.dispatch.waiting() > 0) else {
                return Ok(());
            };
            let most = self.workers[worker].width().unwrap_or(1);
            self.hand_to(worker, self.dispatch.waiting().div_ceil(idle.len()).min(most));
        }
    }

    fn hand_to(&mut self, worker: usize, most: usize) {
        let handed = self.dispatch.hand_out(worker, most);
        if let Some(first) = handed.first() {
            let (ticket, number) = (first.ticket, first.number);
            let trials = handed.into_iter().map(|handed| handed.trial).collect();
            self.send(worker, ToWorker::Measure { ticket, number, trials });
        }
    }

    /// The next result that counts, with its worker, ticket and trial. `None`: there is none yet.
    fn result(&mut self) -> Option<(usize, u64, Wanted, Result<Measurement, MeasureError>)> {
        match self.next()? {
            // The worker got a signal. That is its end, and not the campaign's.
            (worker, Ok(FromWorker::Measured { outcome: Err(error), .. })) if error.interrupted => {
                self.lose(worker, NodeLoss::Stopped);
                None
            }
            (worker, Ok(FromWorker::Measured { ticket, outcome, disturbances })) => {
                self.workers[worker].disturbances = *disturbances;
                let trial = self.dispatch.in_flight().find(|(known, _)| *known == ticket);
                let trial = trial.map(|(_, trial)| trial.clone())?;
                self.dispatch.finish(ticket).then_some((worker, ticket, trial, outcome))
            }
            (_, Ok(_)) => None,
            (worker, Err(error)) => {
                self.end(worker, error);
                None
            }
        }
    }

    /// The next message of a worker that is not lost. `None`: there was none for a moment.
    fn next(&mut self) -> Option<(usize, Result<FromWorker, FrameError>)> {
        if self.pinged.elapsed() >= PING_EVERY {
            self.pinged = Instant::now();
            for number in 0..self.workers.len() {
                let worker = &self.workers[number];
                if worker.alive && worker.heard.elapsed() > SILENCE {
                    self.lose(number, NodeLoss::Silent(SILENCE));
                }
                // One that has not greeted reads nothing yet; its pipe has room for that.
                if self.workers[number].opened.is_some() {
                    self.send(number, ToWorker::Ping);
                }
            }
        }
        match self.messages.recv_timeout(LOOK_EVERY) {
            Ok((number, message)) => {
                self.workers[number].heard = Instant::now();
                self.workers[number].alive.then_some((number, message))
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
                std::thread::sleep(LOOK_EVERY);
                NodeLoss::Gone(self.workers[worker].said.last())
            }
            garbled => NodeLoss::Garbled(garbled),
        };
        self.lose(worker, loss);
    }

    /// A worker is lost. Its child is ended at the latest when this is dropped.
    fn lose(&mut self, worker: usize, loss: NodeLoss) {
        self.dispatch.lose(worker);
        let lost = &mut self.workers[worker];
        if std::mem::replace(&mut lost.alive, false) {
            let node = lost.node.clone();
            self.lost.push(NodeError { node, loss });
        }
        // A worker that can still read breaks off and ends.
        lost.input = None;
    }
}

/// Writes messages to a worker on a thread of their own, until the sender is dropped. A message
/// that is too long is an error of the worker.
fn write_to(
    worker: usize,
    mut input: ChildStdin,
    errors: Sender<(usize, Result<FromWorker, FrameError>)>,
) -> Sender<ToWorker> {
    let (sender, messages) = channel::<ToWorker>();
    std::thread::spawn(move || {
        for message in messages {
            match write_frame(&mut input, &message) {
                Ok(()) => {}
                Err(error @ FrameError::TooLong(_)) => {
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
        for worker in &mut self.workers {
            if let Some(input) = worker.input.take() {
                drop(input.send(ToWorker::Bye));
            }
        }
        let slurm = matches!(self.nodes, Nodes::Slurm { .. });
        if slurm {
            cancel_jobs(&self.job, true);
        }
        let workers = &mut self.workers;
        let mut wait = |until: Instant| loop {
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
