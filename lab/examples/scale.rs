//! What several workers give, and how many results a second one coordinator takes.
//!
//!     cargo run --release -p pinwise-lab --example scale
//!
//! Workers are processes on this machine. A stand-in for `srun` starts each on a CPU of its own, as
//! far as there are CPUs. So everything but the network is real: the messages, the dispatch, the
//! store. It takes about two and a half minutes, and prints the tables of docs/lab/scale.md:
//!
//! - *simulated work*: placements on the simulated UltraSPARC T2 by 1, 2 and 4 workers, beside the
//!   same work without workers on one CPU. The results must be the same numbers.
//! - *results a second*: workers answer at once, so that the coordinator limits. Without a store,
//!   with one as simulated campaigns write it, and with one as real campaigns do: each result is on
//!   the disk before the next trial is handed out.
//! - *start*: how long workers take to start.
//! - *many nodes*, by arithmetic and by simulation. They use the start and what a result costs the
//!   coordinator. A search of random assignments shows that cost: it decides and stores for nodes
//!   that answer at once.

use pinwise_campaign::{Journal, Kind, NewCampaign, Purpose, Record, Store, Trial, drive};
use pinwise_cluster::{
    ABANDONED, Nodes, OpeningRequest, OwnProgram, REFERENCES, Session, Workers, serve,
};
use pinwise_measure::{
    Effort, Interrupt, MeasureError, Measurement, NodeResult, Setting, Testbed, Time, Unit,
    Workload, to_begin,
};
use pinwise_placement::{Budget, PlacementQuestion, PlacementSearch, StrategyName};
use pinwise_processor::program::PacketProgram;
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_topology::{
    Alike, Assignment, Fingerprint, Machine, PerContext, Random, SharingTree, Space,
};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::error::Error;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Instead of `srun`: the last two words are the program and `worker`. The first worker runs on the
/// first CPU, and so on.
const SRUN: &str = r#"#!/bin/sh
while [ $# -gt 2 ]; do shift; done
seat=0
until mkdir "$SCALE_SEATS/$seat" 2>/dev/null; do seat=$((seat + 1)); done
exec taskset -c $((seat % $(nproc --all))) "$@"
"#;

/// Simulated placements of a run.
const PLACEMENTS: usize = 1500;
/// How long results are counted.
const COUNTED: Duration = Duration::from_secs(4);

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => tables(),
        ["worker"] => worker(),
        ["alone"] => alone(),
        ["simulated", workers] => simulated(workers.parse()?),
        ["rate", workers, batch, store] => rate(workers.parse()?, batch.parse()?, store),
        ["start", workers] => started(workers.parse()?),
        ["decide", nodes] => decide(nodes.parse()?),
        _ => Err("usage: scale".into()),
    }
}

/// Runs each part in a process of its own, for which stand-ins are `srun` and `scancel`. The real
/// ones would start and end jobs.
fn tables() -> Result<()> {
    let folder = TempDir::new()?;
    for (name, script) in [("srun", SRUN), ("scancel", "#!/bin/sh\n")] {
        let file = folder.path().join(name);
        std::fs::write(&file, script)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))?;
    }
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH")?);
    let part = |before: &[&str], words: &[String]| -> Result<String> {
        let seats = TempDir::new()?;
        let mut command = Command::new("nice");
        command.args(["-n", "0"]).args(before).arg(std::env::current_exe()?).args(words);
        command.env("PATH", &path).env("SCALE_SEATS", seats.path());
        let output = command.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    let words = |words: &[&dyn ToString]| {
        words.iter().map(|word| word.to_string()).collect::<Vec<String>>()
    };
    let cpus = std::thread::available_parallelism()?.get();
    println!("| workers | placements a second | efficiency of {cpus} CPUs | same numbers |");
    println!("|---:|---:|---:|---|");
    let figures = |line: String| -> Result<(f64, String)> {
        let (rate, digest) = line.split_once(' ').ok_or("no figures")?;
        Ok((rate.parse()?, digest.to_owned()))
    };
    let (one, digest) = figures(part(&["taskset", "-c", "0"], &words(&[&"alone"]))?)?;
    println!("| none, one CPU | {one:.0} | | |");
    for workers in [1, 2, 4_usize] {
        let (rate, own) = figures(part(&[], &words(&[&"simulated", &workers]))?)?;
        let efficiency = 100.0 * rate / one / workers.min(cpus) as f64;
        let same = if own == digest { "yes" } else { "NO" };
        println!("| {workers} | {rate:.0} | {efficiency:.0} % | {same} |");
    }
    println!("\n| workers | trials in a message | no store | store of models | each on disk |");
    println!("|---:|---:|---:|---:|---:|");
    for workers in [1, 2, 4_usize] {
        for batch in [1, 16, 256_usize] {
            let rates: Result<Vec<String>> = ["none", "models", "disk"]
                .iter()
                .map(|store| part(&[], &words(&[&"rate", &workers, &batch, store])))
                .collect();
            println!("| {workers} | {batch} | {} |", rates?.join(" | "));
        }
    }
    println!("\n| workers | seconds until all are open |\n|---:|---:|");
    let mut starts = Vec::new();
    for workers in [1, 2, 4_usize] {
        let seconds: f64 = part(&[], &words(&[&"start", &workers]))?.parse()?;
        println!("| {workers} | {seconds:.2} |");
        starts.push(seconds);
    }
    // What one more worker takes, where all share these CPUs.
    let each = (starts[2] - starts[0]).max(0.0) / 3.0;
    println!(
        "\n| nodes | decisions, ms | experiment, s | limit of the coordinator, nodes | efficiency \
         by arithmetic | by simulation | hours for 727,776 |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for nodes in [4, 100, 1000_usize] {
        let rate: f64 = part(&[], &words(&[&"decide", &nodes]))?.parse()?;
        for experiment in [0.1, 2.0, 20.0] {
            let cluster =
                Coordinated { nodes, experiment, cost: 1.0 / rate, start: starts[0], each };
            let (ideal, took) =
                (EXPERIMENTS as f64 * experiment / nodes as f64, cluster.simulated());
            println!(
                "| {nodes} | {:.2} | {experiment} | {:.0} | {:.0} % | {:.0} % | {:.2} |",
                1000.0 / rate,
                experiment * rate + 1.0,
                100.0 * ideal / cluster.by_arithmetic(),
                100.0 * ideal / took,
                took / 3600.0,
            );
        }
    }
    Ok(())
}

/// Those of the largest campaign of the papers.
const EXPERIMENTS: u64 = 727_776;

/// How much longer or shorter an experiment takes by chance, as a share.
const JITTER: f64 = 0.1;

/// The results of a node from one check of its likeness to the next.
const CHECK_EVERY: u64 = 100;

/// Nodes with one coordinator. Times are in seconds.
struct Coordinated {
    nodes: usize,
    experiment: f64,
    /// What a result costs the coordinator, which takes one after the other.
    cost: f64,
    /// Until the first worker is open, and until each further one is.
    start: f64,
    each: f64,
}

impl Coordinated {
    /// As if nothing ever waited: the nodes limit, or the coordinator does. All measure the
    /// reference at each check.
    fn by_arithmetic(&self) -> f64 {
        let count = EXPERIMENTS as f64;
        let references = 1.0 + REFERENCES as f64 / CHECK_EVERY as f64;
        let nodes = count * references * (self.experiment + self.cost) / self.nodes as f64;
        let coordinator = count * references * self.cost;
        self.start + self.each * self.nodes as f64 + nodes.max(coordinator)
    }

    /// Until all experiments have a result. Each node waits until the coordinator has taken its
    /// result and given it the next trial. A check begins when all are idle and ends when all have
    /// measured their references.
    fn simulated(&self) -> f64 {
        let mut random = Random::new(1);
        let mut takes = || self.experiment * (1.0 + JITTER * (2.0 * random.unit() - 1.0));
        // Positive times have the order of their bits.
        let mut ends: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
        let mut free = self.start + self.each * self.nodes as f64;
        let mut left = EXPERIMENTS;
        while left > 0 {
            // All begin with the references. The coordinator takes each as a result.
            let mut begin = free;
            for place in 0..=REFERENCES as u64 {
                for node in 0..self.nodes {
                    begin += self.cost;
                    ends.push(Reverse(((begin + takes()).to_bits(), node)));
                }
                if place < REFERENCES as u64 {
                    while let Some(Reverse((end, _))) = ends.pop() {
                        free = free.max(f64::from_bits(end));
                    }
                    begin = free;
                }
            }
            free = begin;
            let mut begun = self.nodes as u64;
            let until = left.min(CHECK_EVERY * self.nodes as u64);
            while let Some(Reverse((end, node))) = ends.pop() {
                free = free.max(f64::from_bits(end)) + self.cost;
                if begun < until {
                    begun += 1;
                    ends.push(Reverse(((free + takes()).to_bits(), node)));
                }
            }
            left -= until.max(self.nodes as u64).min(left);
        }
        free
    }
}

/// Nodes that answer at once, as a search sees them.
struct Immediate {
    inner: SimulatedTestbed,
    nodes: usize,
    begun: VecDeque<(Setting, Effort)>,
}

impl Testbed for Immediate {
    fn machine(&self) -> &Machine {
        self.inner.machine()
    }
    fn workload(&self) -> &Workload {
        self.inner.workload()
    }
    fn unit(&self) -> &Unit {
        self.inner.unit()
    }
    fn nodes(&self) -> Option<usize> {
        Some(self.nodes)
    }
    fn measure(
        &mut self,
        setting: &Setting,
        _: Effort,
    ) -> std::result::Result<Measurement, MeasureError> {
        let leaves =
            if let Setting::Pinned(assignment) = setting { assignment.leaves() } else { &[] };
        let sum: u32 = leaves.iter().zip(1..).map(|(leaf, weight)| leaf * weight % 31).sum();
        Ok(Measurement::new(1e6 + f64::from(sum), Duration::from_millis(50)))
    }
    fn measure_first(
        &mut self,
        rounds: &[Vec<(Setting, Effort)>],
        _: Option<&str>,
        take: &mut dyn FnMut(NodeResult),
    ) -> std::result::Result<(), MeasureError> {
        let new = to_begin(rounds, None, self.begun.iter().map(|trial| (0, trial)));
        let free = self.nodes.saturating_sub(self.begun.len());
        self.begun.extend(new.into_iter().flatten().take(free.max(1)));
        while let Some((setting, effort)) = self.begun.pop_front() {
            let outcome = self.measure(&setting, effort);
            let first =
                rounds.iter().flatten().next().is_some_and(|one| *one == (setting.clone(), effort));
            take(NodeResult { node: "here".into(), setting, effort, outcome, scale: None });
            if first {
                break;
            }
        }
        Ok(())
    }
}

/// Counts results of a search that decides and stores for so many nodes.
fn decide(nodes: usize) -> Result<()> {
    let folder = TempDir::new_in(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"))?;
    let mut file = Store::open(&folder.path().join("scale.db"))?;
    let new = campaign()?;
    let id = file.create(&new)?;
    let question = PlacementQuestion {
        per_context: Some(1),
        ..PlacementQuestion::new(StrategyName::Random, Budget::Measurements(10_000_000))
    };
    let tree = SharingTree::new(&new.machine, new.alike);
    let mut search = PlacementSearch::new(&question, &tree, &new.workload)?;
    let mut testbed = Immediate { inner: model()?, nodes, begun: VecDeque::new() };
    let begin = Instant::now();
    let (clock, stop) = (|| begin.elapsed(), || begin.elapsed() >= COUNTED);
    let mut made = 0_u64;
    let mut observe = |_: &Record| made += 1;
    drive(&mut file.journal(id)?, &mut search, &mut testbed, &clock, &stop, &mut observe)?;
    println!("{:.1}", made as f64 / begin.elapsed().as_secs_f64());
    Ok(())
}

/// How long workers take until they are open.
fn started(workers: usize) -> Result<()> {
    let begin = Instant::now();
    let all = start(workers, &Value::Null)?;
    println!("{}", begin.elapsed().as_secs_f64());
    drop(all);
    Ok(())
}

/// Two instances of a packet program on the model.
fn model() -> Result<SimulatedTestbed> {
    let pipeline = PacketProgram::named("intadd").ok_or("there is no such program")?;
    let processor = Processor::model("ultrasparc-t2")?;
    let machine = processor.machine();
    let window = SimulatedWindow::of(&[pipeline; 2]);
    Ok(SimulatedTestbed::new(processor, machine, vec![pipeline; 2], window, 1)?)
}

/// Placements of two instances, as a search draws them.
fn placements() -> Result<Vec<(Setting, Effort)>> {
    let tree = SharingTree::new(&Processor::model("ultrasparc-t2")?.machine(), Alike::ByStructure);
    let all: Vec<Assignment> = Space::new(tree, 6, PerContext::AtMost(1))?.classes().collect();
    let mut random = Random::new(1);
    let mut draw = || all[random.below(all.len() as u64) as usize].clone();
    Ok((0..PLACEMENTS).map(|_| (Setting::Pinned(draw()), Effort::default())).collect())
}

/// The bits of all results, in their order.
fn digest(outcomes: &[std::result::Result<Measurement, MeasureError>]) -> u64 {
    outcomes.iter().fold(0, |digest: u64, outcome| {
        let bits = outcome.as_ref().map_or(1, |measured| measured.performance.to_bits());
        digest.rotate_left(5).wrapping_mul(0x0100_0000_01b3) ^ bits
    })
}

/// `width` trials at a time, as a campaign foresees them.
fn measure_in_parts(
    trials: &[(Setting, Effort)],
    width: usize,
    mut measure: impl FnMut(
        u64,
        &[(Setting, Effort)],
    ) -> Vec<std::result::Result<Measurement, MeasureError>>,
) {
    let begin = Instant::now();
    let mut outcomes = Vec::new();
    for part in trials.chunks(width) {
        outcomes.extend(measure(outcomes.len() as u64, part));
    }
    let rate = outcomes.len() as f64 / begin.elapsed().as_secs_f64();
    println!("{rate} {:016x}", digest(&outcomes));
}

fn alone() -> Result<()> {
    let mut testbed = model()?;
    let Time::Virtual { width } = testbed.time() else { return Err("time is virtual".into()) };
    measure_in_parts(&placements()?, width, |number, part| {
        testbed.seek(number);
        testbed.measure_all(part)
    });
    Ok(())
}

fn start(workers: usize, request: &Value) -> Result<Workers> {
    let own = OwnProgram::read(&std::env::current_exe()?, env!("CARGO_PKG_VERSION"))?;
    let nodes = Nodes::Slurm { partition: None, count: workers };
    let asked = OpeningRequest { request: request.clone(), informed: None };
    let stop = Interrupt::default();
    let all = Workers::start(&nodes, own, "scale".into(), &asked, &stop, &mut || ())?;
    if all.count() == workers { Ok(all) } else { Err(format!("{:?}", all.news().take()).into()) }
}

fn simulated(workers: usize) -> Result<()> {
    let mut workers = start(workers, &Value::Null)?;
    let width = workers.width().ok_or("time is virtual")?;
    measure_in_parts(&placements()?, width, |number, part| {
        workers.measure_all(part.iter().cloned().zip(number..))
    });
    Ok(())
}

/// Counts results of workers that answer at once.
fn rate(workers: usize, batch: usize, store: &str) -> Result<()> {
    let mut workers = start(workers, &json!({ "batch": batch }))?;
    let width = workers.width().ok_or("time is virtual")?;
    // Not in memory: the temporary folder may be a disk in memory.
    let folder = TempDir::new_in(Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"))?;
    let mut file = Store::open(&folder.path().join("scale.db"))?;
    let id = file.create(&campaign()?)?;
    let mut journal = file.journal(id)?;
    journal.sync_each(store == "disk")?;
    let trials = placements()?;
    let (begin, mut number) = (Instant::now(), 0);
    while begin.elapsed() < COUNTED {
        let first = number as usize % (trials.len() - width);
        let part = &trials[first..][..width];
        let outcomes = workers.measure_all(part.iter().cloned().zip(number..));
        for ((setting, effort), outcome) in part.iter().zip(outcomes) {
            let (setting, effort, purpose) = (setting.clone(), *effort, Purpose::Sample);
            let (trial, elapsed) = (Trial { setting, purpose, effort }, begin.elapsed());
            let outcome = Ok(outcome?);
            if store != "none" {
                journal.append(&Record { number, trial, outcome, elapsed })?;
            }
            number += 1;
        }
    }
    println!("{:.0}", number as f64 / begin.elapsed().as_secs_f64());
    Ok(())
}

fn campaign() -> Result<NewCampaign> {
    let testbed = model()?;
    Ok(NewCampaign {
        kind: Kind::Place,
        parent: None,
        command: vec!["scale".into()],
        machine: testbed.machine().clone(),
        alike: Alike::ByStructure,
        workload: testbed.workload().clone(),
        unit: testbed.unit().clone(),
        simulated: true,
        question: Value::Null,
        seed: 1,
    })
}

/// Answers at once.
struct AtOnce {
    inner: SimulatedTestbed,
    batch: usize,
}

impl Testbed for AtOnce {
    fn machine(&self) -> &Machine {
        self.inner.machine()
    }
    fn workload(&self) -> &Workload {
        self.inner.workload()
    }
    fn unit(&self) -> &Unit {
        self.inner.unit()
    }
    fn time(&self) -> Time {
        Time::Virtual { width: self.batch }
    }
    fn measure(
        &mut self,
        _: &Setting,
        _: Effort,
    ) -> std::result::Result<Measurement, MeasureError> {
        Ok(Measurement::new(1_234_567.8, Duration::from_millis(50)))
    }
}

fn worker() -> Result<()> {
    let open = |request: Value, session: &mut Session| {
        let inner = match model() {
            Ok(inner) => inner,
            Err(error) => return session.refuse(&error),
        };
        let fingerprint = Fingerprint::of(inner.machine());
        let mut testbed: Box<dyn Testbed> = match request["batch"].as_u64() {
            Some(batch) => Box::new(AtOnce { inner, batch: batch as usize }),
            None => Box::new(inner),
        };
        session.measure(&mut *testbed, fingerprint, Value::Null)
    };
    let (input, output) = (std::io::stdin(), std::io::stdout());
    let version = env!("CARGO_PKG_VERSION");
    serve(input, output, version, "here", (&Interrupt::default(), ABANDONED), open)?;
    Ok(())
}
