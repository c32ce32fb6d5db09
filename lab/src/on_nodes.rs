//! A study on several nodes, with `--on ssh:HOST,HOST` or `--on slurm[:PARTITION] --nodes N`.
//!
//! Each node runs the same study with the same words. Where the study comes to work on many items,
//! the coordinator hands out their numbers, and the nodes work on those. Then all nodes get all
//! results and go on. So a study needs no other code for that, and what it prints is that of one
//! machine. A node that dies costs what it was working on.
//!
//! *Limits.* What a study does between is done by each node. A node saves its results in its own
//! folder of that name.

use crate::parallel;
use pinwise_cluster::{
    ABANDONED, FrameError, Nodes, OpeningRequest, OwnProgram, Session, Workers, serve,
};
use pinwise_measure::{
    Detail, Effort, Interrupt, MeasureError, Measurement, Retry, Setting, Testbed, ThreadCount,
    Time, Unit, Workload,
};
use pinwise_topology::{Fingerprint, Machine};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::error::Error;
use std::fs::File;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What this process is to the others of its study; `None`: it is alone.
static ROLE: Mutex<Option<Role>> = Mutex::new(None);

enum Role {
    Coordinator(Box<Workers>),
    Node { orders: Receiver<Order>, results: Sender<Vec<Value>> },
}

/// What the coordinator asks a node to open.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Opened {
    /// The study, with its words.
    Study(Vec<String>),
    /// All results of the items that it is working on.
    Results(Vec<Value>),
}

enum Order {
    /// Work on the items with these numbers.
    Items(Vec<usize>),
    Results(Vec<Value>),
}

fn role() -> MutexGuard<'static, Option<Role>> {
    ROLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a study with the words of the command line, here or on the nodes that these name.
pub fn run(study: fn(Vec<String>) -> ExitCode) -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let ready = match &words[..] {
        [word] if word == "worker" => return ended(serve_study(study)),
        _ => start(&mut words),
    };
    match ready {
        Ok(coordinator) => *role() = coordinator,
        Err(error) => return ended(Err(error)),
    }
    let code = study(words);
    // Ends the workers.
    *role() = None;
    code
}

fn ended(result: Result<(), Box<dyn Error>>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// What `of` makes of each item, in their order: on all nodes of the study, or here. `of` must not
/// call this.
///
/// # Panics
/// No node is left, or a result is no JSON.
pub fn each<T: Sync, R: Send + Serialize + DeserializeOwned>(
    items: &[T],
    of: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let mut role = role();
    let results = match &mut *role {
        None => {
            drop(role);
            return parallel::each(items, of);
        }
        Some(Role::Coordinator(workers)) => hand_out(workers, items.len()).expect("nodes work"),
        Some(Role::Node { orders, results }) => loop {
            match orders.recv() {
                Ok(Order::Items(numbers)) => {
                    let value = |number: &usize| serde_json::to_value(of(&items[*number]));
                    let made: Result<Vec<Value>, _> =
                        parallel::each(&numbers, value).into_iter().collect();
                    results.send(made.expect("results are JSON")).expect("somebody waits");
                }
                Ok(Order::Results(results)) => break results,
                // The connection has ended, and the process does so.
                Err(_) => loop {
                    std::thread::park();
                },
            }
        },
    };
    results.into_iter().map(|value| serde_json::from_value(value).expect("a result")).collect()
}

/// The workers that the words name, which are taken out of these.
fn start(words: &mut Vec<String>) -> Result<Option<Role>, Box<dyn Error>> {
    let mut value = |name: &str| {
        let place = words.iter().position(|word| word == name)?;
        let value = words.get(place + 1).cloned();
        words.drain(place..words.len().min(place + 2));
        Some(value.unwrap_or_default())
    };
    let (on, count) = (value("--on"), value("--nodes"));
    let Some(on) = on else { return Ok(None) };
    let nodes = Nodes::parse(&on, count.map(|count| count.parse()).transpose()?)?;
    let own = OwnProgram::read(&std::env::current_exe()?, env!("CARGO_PKG_VERSION"))?;
    let request = serde_json::to_value(Opened::Study(words.clone()))?;
    let asked = OpeningRequest { request, informed: None };
    let job = format!("pinwise-study-{}", std::process::id());
    let workers = Workers::start(&nodes, own, job, &asked, &Interrupt::default(), &mut || ())?;
    for note in workers.news().take() {
        eprintln!("note: {note:?}");
    }
    Ok(Some(Role::Coordinator(Box::new(workers))))
}

/// The results of all items. All nodes get them, too.
fn hand_out(workers: &mut Workers, count: usize) -> Result<Vec<Value>, Box<dyn Error>> {
    let trial = |number: u32| {
        let setting = Setting::Threads(ThreadCount::unpinned(Some(number)));
        ((setting, Effort::default()), u64::from(number))
    };
    let mut results = Vec::with_capacity(count);
    for outcome in workers.measure_all((0..count as u32).map(trial)) {
        results.push(outcome?.detail.ok_or("a node gave no result")?.read()?);
    }
    let request = serde_json::to_value(Opened::Results(results.clone()))?;
    workers.reopen(&OpeningRequest { request, informed: None })?;
    Ok(results)
}

/// The study of a node, as its worker sees it.
struct NodeStudy {
    machine: Machine,
    workload: Workload,
    unit: Unit,
    orders: Sender<Order>,
    results: Receiver<Vec<Value>>,
}

impl Testbed for NodeStudy {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn workload(&self) -> &Workload {
        &self.workload
    }

    fn unit(&self) -> &Unit {
        &self.unit
    }

    fn time(&self) -> Time {
        let width = std::thread::available_parallelism().map_or(1, |count| count.get());
        Time::Virtual { width }
    }

    fn measure(&mut self, setting: &Setting, effort: Effort) -> Result<Measurement, MeasureError> {
        let mut outcomes = self.measure_all(&[(setting.clone(), effort)]);
        outcomes.pop().unwrap_or_else(|| Err(MeasureError::interrupted()))
    }

    fn measure_all(
        &mut self,
        trials: &[(Setting, Effort)],
    ) -> Vec<Result<Measurement, MeasureError>> {
        let number = |(setting, _): &(Setting, Effort)| match setting {
            Setting::Threads(ThreadCount { n: Some(number), .. }) => Some(*number as usize),
            _ => None,
        };
        let numbers: Option<Vec<usize>> = trials.iter().map(number).collect();
        let made = numbers.and_then(|numbers| {
            self.orders.send(Order::Items(numbers)).ok()?;
            self.results.recv().ok()
        });
        let has_ended = || MeasureError::new(Retry::Never, "the study has ended on a node");
        match made {
            None => trials.iter().map(|_| Err(has_ended())).collect(),
            Some(results) => {
                let measured = |result: Value| {
                    let detail = Detail::of(&result);
                    Ok(Measurement { detail, ..Measurement::new(1.0, Duration::ZERO) })
                };
                results.into_iter().map(measured).collect()
            }
        }
    }
}

/// Runs the study for a coordinator.
fn serve_study(study: fn(Vec<String>) -> ExitCode) -> Result<(), Box<dyn Error>> {
    // What a study prints is not for the connection.
    let output = File::from(rustix::io::dup(std::io::stdout())?);
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    let mut running: Option<NodeStudy> = None;
    let open = |request: Value, session: &mut Session| {
        match (serde_json::from_value(request), &running) {
            (Ok(Opened::Study(words)), _) => {
                let (orders, own_orders) = channel();
                let (own_results, results) = channel();
                *role() = Some(Role::Node { orders: own_orders, results: own_results });
                std::thread::spawn(move || study(words));
                let machine = Machine::from_shape("1").expect("a shape");
                let (workload, unit) = (Workload::new("study", &[&["study"]]), Unit::rate("1/s"));
                running = Some(NodeStudy { machine, workload, unit, orders, results });
            }
            (Ok(Opened::Results(all)), Some(study)) => {
                // A study that has ended needs none.
                drop(study.orders.send(Order::Results(all)));
            }
            (Ok(Opened::Results(_)), None) => return session.refuse(&"no study runs"),
            (Err(error), _) => return session.refuse(&error),
        }
        let Some(study) = &mut running else { return Ok(()) };
        let fingerprint = Fingerprint::of(&study.machine);
        session.measure(study, fingerprint, Value::Null)
    };
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let ends = (&Interrupt::default(), ABANDONED);
    let served: Result<(), FrameError> =
        serve(std::io::stdin(), output, env!("CARGO_PKG_VERSION"), &host, ends, open);
    Ok(served?)
}
