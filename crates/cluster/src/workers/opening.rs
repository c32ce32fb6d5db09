//! How workers start, and how each opens the request.
//!
//! Where the request depends on what the first node finds, that one opens it alone. The others get
//! what it found with their request.

use super::{
    ConnectedWorker, Heard, LAST_WORDS, MOST_AT_ONCE, MOST_MESSAGES, NodeError, Workers, write_to,
};
use crate::launch::{
    JobGuard, LOGIN, LaunchedWorker, NodeLoss, OwnProgram, before_hello, cancel_jobs, ended, launch,
};
use crate::message::{FrameError, FromWorker, Opened, PROTOCOL, ToWorker, read_frame};
use crate::node::Nodes;
use crate::watch::PING_EVERY;
use pinwise_measure::{Disturbances, Interrupt};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SendError, SyncSender, TryRecvError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the others may take to greet once the first worker is open. One that connects later has
/// as long from then. Slurm may have fewer nodes, and gives one only when a job there ends.
const LATE: Duration = Duration::from_secs(15);

/// How long the program may still be copied to a host once the first worker is open. Then the
/// others begin without it.
const COPYING: Duration = Duration::from_secs(60);

/// When the user hears that Slurm has no node yet.
const QUEUED: Duration = Duration::from_secs(3);

/// What workers are asked to open.
pub struct OpeningRequest<'a> {
    /// The request.
    pub request: Value,
    /// The request for the other nodes, with what the first one found. `None`: it is the same.
    pub informed: Option<&'a dyn Fn(&Opened) -> Value>,
}

impl Workers {
    /// Starts a worker on each node, and has it open `request`. `job` is the name of the jobs of
    /// Slurm. `queued` is called once if Slurm lets everybody wait. What happened to nodes that
    /// cannot be used is in [`Self::news`].
    ///
    /// # Errors
    /// No node is left; why the first one is not. The user asked to stop.
    pub fn start(
        nodes: &Nodes,
        own: OwnProgram,
        job: String,
        request: &OpeningRequest<'_>,
        interrupt: &Interrupt,
        queued: &mut dyn FnMut(),
    ) -> Result<Self, NodeError> {
        let (sender, messages) = sync_channel(MOST_MESSAGES);
        let guard = matches!(nodes, Nodes::Slurm { .. }).then(|| JobGuard::new(&job));
        let mut all = Self::without_nodes(nodes.clone(), own, job, messages, interrupt.clone());
        all._guard = guard;
        all.launches = Some(Launches::begin(nodes, &all.own, &all.job, interrupt, sender));
        all.open(request, queued);
        let name = |number: usize| name(nodes, number);
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

    /// Has all nodes open something else in the place of what is open.
    ///
    /// # Errors
    /// No node is left; why the last one is not. The user asked to stop.
    pub fn reopen(&mut self, request: &OpeningRequest<'_>) -> Result<(), NodeError> {
        for number in 0..self.workers.len() {
            self.dispatch.lose(number);
            let worker = &mut self.workers[number];
            (worker.asked, worker.opened) = (false, None);
        }
        self.dispatch.withdraw();
        self.references = None;
        self.open(request, &mut || ());
        self.keep_alike();
        if self.interrupt.came() || self.count() == 0 {
            let nobody = NodeError { node: "(none)".to_owned(), loss: NodeLoss::Interrupted };
            return Err(self.lost.pop().filter(|_| !self.interrupt.came()).unwrap_or(nobody));
        }
        Ok(())
    }

    pub(super) fn connect(
        &mut self,
        (number, node): (usize, String),
        LaunchedWorker { child, said }: LaunchedWorker,
        (input, output): (Option<impl Write + Send + 'static>, Option<impl Read + Send + 'static>),
        sender: SyncSender<Heard>,
    ) {
        let worker = self.workers.len();
        let writer = sender.clone();
        let input = input.map(|input| write_to(worker, input, PING_EVERY, writer));
        if let Some(mut output) = output {
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
        let (opened, scale, disturbances) = (None, None, Disturbances::default());
        let (asked, failures, failure, alive) = (false, 0, None, true);
        let connected = Instant::now();
        self.workers.push(ConnectedWorker {
            node,
            number,
            connected,
            child,
            input,
            said,
            asked,
            opened,
            scale,
            disturbances,
            failures,
            failure,
            alive,
        });
    }

    /// Has each worker open the request, also those that are still being started.
    pub(super) fn open(&mut self, request: &OpeningRequest<'_>, queued: &mut dyn FnMut()) {
        let slurm = matches!(self.nodes, Nodes::Slurm { .. });
        let begin = Instant::now();
        let late_loss: fn() -> NodeLoss =
            if slurm { || NodeLoss::Late(LATE) } else { || NodeLoss::Hangs(LATE) };
        let (mut first_open, mut cancelled, mut quiet) = (None::<Instant>, false, slurm);
        while self.is_opening() && !self.interrupt.came() {
            self.connect_launched();
            self.ask(request);
            // Slurm gives nodes when it has them; a host answers.
            if !slurm {
                self.lose_unheard(LOGIN, || NodeLoss::Hangs(LOGIN));
            }
            let since = first_open.map_or(Duration::ZERO, |open| open.elapsed());
            if since >= LATE {
                self.lose_unheard(LATE, late_loss);
                if slurm && !std::mem::replace(&mut cancelled, true) {
                    cancel_jobs(&self.job, true);
                }
            }
            if since >= COPYING {
                let copying = self.launches.as_mut().map(Launches::leave_late).unwrap_or_default();
                for number in copying {
                    let (node, loss) = (name(&self.nodes, number), NodeLoss::Copying(COPYING));
                    self.note_lost(NodeError { node, loss });
                }
            }
            let greeted: Vec<bool> =
                (0..self.workers.len()).map(|number| self.watch.has_heard(number)).collect();
            if quiet && !greeted.contains(&true) && begin.elapsed() > QUEUED {
                quiet = false;
                queued();
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
                    if slurm {
                        self.workers[number].node = host;
                    }
                    // It hears something from now on, also while it waits for the first one.
                    self.send(number, ToWorker::Ping);
                }
                Ok(FromWorker::Opened(mut opened)) => {
                    opened.width = opened.width.map(|width| width.clamp(1, MOST_AT_ONCE));
                    self.workers[number].opened = Some(*opened);
                    self.dispatch.admit(number);
                    first_open.get_or_insert_with(Instant::now);
                }
                Ok(FromWorker::Refused { error }) => self.lose(number, NodeLoss::Refused(error)),
                Ok(FromWorker::Pong | FromWorker::Measured { .. }) => {}
                Err(FrameError::Closed | FrameError::Cut) if !greeted[number] => {
                    // Its last words come on another way.
                    drop(ended(&mut self.workers[number].child, LAST_WORDS, &self.interrupt));
                    let said = self.workers[number].said.clone();
                    let node = self.workers[number].number;
                    let loss = before_hello(&self.nodes, node, &self.own, &said);
                    self.lose(number, loss);
                }
                Err(error) => self.end(number, error),
            }
        }
    }

    /// Asks those who have greeted to open the request: all, or one before the others.
    fn ask(&mut self, request: &OpeningRequest<'_>) {
        let ready =
            |all: &Self, number: &usize| all.workers[*number].alive && all.watch.has_heard(*number);
        let asked: Vec<usize> =
            (0..self.workers.len()).filter(|number| ready(self, number)).collect();
        let opens =
            |number: &usize| self.workers[*number].asked && self.workers[*number].opened.is_none();
        let first = self.first().map(|opened| match request.informed {
            Some(informed) => informed(opened),
            None => request.request.clone(),
        });
        let alone = request.informed.is_some() && first.is_none();
        if alone && asked.iter().any(opens) {
            return;
        }
        let request = first.unwrap_or_else(|| request.request.clone());
        let new: Vec<usize> =
            asked.into_iter().filter(|number| !self.workers[*number].asked).collect();
        for number in new.into_iter().take(if alone { 1 } else { usize::MAX }) {
            self.workers[number].asked = true;
            self.send(number, ToWorker::Open { request: request.clone() });
        }
    }

    /// Whether a node may still be opened.
    fn is_opening(&self) -> bool {
        self.launches.as_ref().is_some_and(|launches| !launches.awaited.is_empty())
            || self.workers.iter().any(|worker| worker.alive && worker.opened.is_none())
    }

    /// Takes in the workers that were started meanwhile.
    fn connect_launched(&mut self) {
        while let Some((number, launched)) = self.launches.as_mut().and_then(Launches::take) {
            let node = name(&self.nodes, number);
            match (launched, self.launches.as_ref().map(|launches| launches.messages.clone())) {
                (Ok(mut launched), Some(messages)) => {
                    let streams = (launched.child.stdin.take(), launched.child.stdout.take());
                    self.connect((number, node), launched, streams, messages);
                }
                (Err(loss), _) => self.note_lost(NodeError { node, loss }),
                (Ok(_), None) => {}
            }
        }
    }

    /// Loses those who have not greeted for so long.
    pub(super) fn lose_unheard(&mut self, patience: Duration, loss: fn() -> NodeLoss) {
        for number in 0..self.workers.len() {
            let silent = self.workers[number].connected.elapsed() > patience;
            if silent && !self.watch.has_heard(number) {
                self.lose(number, loss());
            }
        }
    }
}

/// What a node is called before it has said how it calls itself.
fn name(nodes: &Nodes, number: usize) -> String {
    match nodes {
        Nodes::Ssh(hosts) => hosts[number].clone(),
        Nodes::Slurm { .. } => (number + 1).to_string(),
    }
}

/// Workers that are being started, each on a thread of its own. What is not taken in the end is
/// ended.
#[derive(Debug)]
pub(super) struct Launches {
    launched: Receiver<(usize, Result<LaunchedWorker, NodeLoss>)>,
    threads: Vec<JoinHandle<()>>,
    /// The numbers of the nodes that are still awaited.
    awaited: BTreeSet<usize>,
    /// The others do not wait any more.
    late: Arc<AtomicBool>,
    stop: Interrupt,
    /// For the messages of those that are connected.
    messages: SyncSender<Heard>,
}

impl Launches {
    fn begin(
        nodes: &Nodes,
        own: &OwnProgram,
        job: &str,
        interrupt: &Interrupt,
        messages: SyncSender<Heard>,
    ) -> Self {
        let (sender, launched) = channel();
        let (late, stop) = (Arc::new(AtomicBool::new(false)), interrupt.of_one());
        let begin = |number: usize| {
            let (nodes, own, job) = (nodes.clone(), own.clone(), job.to_owned());
            let (sender, late, stop) = (sender.clone(), Arc::clone(&late), stop.clone());
            std::thread::spawn(move || {
                let launched = launch(&nodes, number, &own, &job, &stop, &late);
                // Nobody waits for it any more.
                if let Err(SendError((_, Ok(mut launched)))) = sender.send((number, launched)) {
                    drop(launched.child.kill());
                    drop(launched.child.wait());
                }
            })
        };
        let awaited: BTreeSet<usize> = (0..nodes.count()).collect();
        let threads = awaited.iter().copied().map(begin).collect();
        Self { launched, threads, awaited, late, stop, messages }
    }

    /// The next one that was started, or could not be.
    fn take(&mut self) -> Option<(usize, Result<LaunchedWorker, NodeLoss>)> {
        loop {
            match self.launched.try_recv() {
                Ok((number, launched)) if self.awaited.remove(&number) => {
                    return Some((number, launched));
                }
                Ok(_) => {}
                Err(TryRecvError::Empty) => return None,
                Err(TryRecvError::Disconnected) => {
                    self.awaited.clear();
                    return None;
                }
            }
        }
    }

    /// Waits no longer for those that are not there yet. Returns their numbers.
    fn leave_late(&mut self) -> BTreeSet<usize> {
        self.late.store(true, Ordering::Relaxed);
        std::mem::take(&mut self.awaited)
    }
}

impl Drop for Launches {
    fn drop(&mut self) {
        self.stop.give_up();
        let threads = std::mem::take(&mut self.threads);
        threads.into_iter().for_each(|thread| drop(thread.join()));
        for (_, launched) in self.launched.try_iter() {
            if let Ok(mut launched) = launched {
                drop(launched.child.kill());
                drop(launched.child.wait());
            }
        }
    }
}
