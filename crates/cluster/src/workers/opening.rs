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
use std::io::{Read, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// How long the others may take to greet once the first worker is open. Slurm may have fewer nodes,
/// and gives one only when a job there ends.
const LATE: Duration = Duration::from_secs(15);

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
        let mut unlaunched = Vec::new();
        for (number, launched) in launched.into_iter().enumerate() {
            match launched.unwrap_or(Err(NodeLoss::Interrupted)) {
                Ok(mut launched) => {
                    numbers.push(number);
                    let streams = (launched.child.stdin.take(), launched.child.stdout.take());
                    all.connect(name(number), launched, streams, sender.clone());
                }
                Err(loss) => unlaunched.push(NodeError { node: name(number), loss }),
            }
        }
        drop(sender);
        unlaunched.into_iter().for_each(|error| all.note_lost(error));
        all.open(request, &numbers, queued);
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
        self.open(request, &[], &mut || ());
        self.keep_alike();
        if self.interrupt.came() || self.count() == 0 {
            let nobody = NodeError { node: "(none)".to_owned(), loss: NodeLoss::Interrupted };
            return Err(self.lost.pop().filter(|_| !self.interrupt.came()).unwrap_or(nobody));
        }
        Ok(())
    }

    pub(super) fn connect(
        &mut self,
        node: String,
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
        let (opened, disturbances) = (None, Disturbances::default());
        let (asked, failures, failure, alive) = (false, 0, None, true);
        self.workers.push(ConnectedWorker {
            node,
            child,
            input,
            said,
            asked,
            opened,
            disturbances,
            failures,
            failure,
            alive,
        });
    }

    /// Has each worker open the request. `numbers` are those of their nodes.
    pub(super) fn open(
        &mut self,
        request: &OpeningRequest<'_>,
        numbers: &[usize],
        queued: &mut dyn FnMut(),
    ) {
        let slurm = matches!(self.nodes, Nodes::Slurm { .. });
        let begin = Instant::now();
        let (mut late, mut quiet) = (None, slurm);
        while self.workers.iter().any(|worker| worker.alive && worker.opened.is_none())
            && !self.interrupt.came()
        {
            self.ask(request);
            // Slurm gives nodes when it has them; a host answers.
            if !slurm && begin.elapsed() > LOGIN {
                self.lose_unheard(|| NodeLoss::Hangs(LOGIN));
            }
            if late.is_some_and(|late| Instant::now() >= late) {
                self.lose_unheard(|| NodeLoss::Late(LATE));
                late = None;
                if slurm {
                    cancel_jobs(&self.job, true);
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
                    late = late.or(Some(Instant::now() + LATE));
                }
                Ok(FromWorker::Refused { error }) => self.lose(number, NodeLoss::Refused(error)),
                Ok(FromWorker::Pong | FromWorker::Measured { .. }) => {}
                Err(FrameError::Closed | FrameError::Cut) if !greeted[number] => {
                    // Its last words come on another way.
                    drop(ended(&mut self.workers[number].child, LAST_WORDS, &self.interrupt));
                    let said = self.workers[number].said.clone();
                    let loss = before_hello(&self.nodes, numbers[number], &self.own, &said);
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

    /// Loses those who have not greeted.
    fn lose_unheard(&mut self, loss: fn() -> NodeLoss) {
        for number in 0..self.workers.len() {
            if !self.watch.has_heard(number) {
                self.lose(number, loss());
            }
        }
    }
}
