//! How good BlackBox's choice is, and from how few experiments: the tables of
//! docs/method/prediction.md.
//!
//! `cargo run --release -p pinwise-lab --example blackbox -- DIR [gains|many] [PROGRAM…]` runs 6
//! and 24 threads on the simulated UltraSPARC T2. With `gains`, it compares with other ways to
//! place 6 to 24 threads instead. With `many`, instances have several processing threads. The
//! default programs are the paper's nine IPFwd programs. A program takes 2 to 4 minutes of CPU
//! time. DIR stores the measurements, so that they are not repeated. These are the full tables,
//! all assignments of 6 threads, and random ones of 24. A climb from the best by the full tables
//! follows. Everything is seeded: the same text comes out again.

mod gains;
mod many_threads;

use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_prediction::{
    BaseSpace, BlackBox, CoreLocal, Experiment, PlacedInstance, Predictor, Profiling, TableEntry,
    ThreadKinds,
};
use pinwise_processor::program::{PacketPipeline, PacketProgram};
use pinwise_processor::{Processor, SimulatedTestbed, SimulatedWindow};
use pinwise_topology::{
    Alike, Assignment, DomainKind, Machine, PerContext, Random, SharingTree, Space,
};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Share of the experiments that the reduced profile may make.
const SHARE: f64 = 0.1;
/// Share by which another prediction may be better in the end.
const WITHIN: f64 = 0.01;
/// Reduced profiles of each program, from seeds of their own.
const SEEDS: u64 = 3;
/// Assignments measured in the selection phase, and those they are chosen from.
const TOP: usize = 5;
const RANKED: usize = 32;
/// Steps of a search for the best predicted.
const STEPS: u64 = 1_000_000;
/// Windows that judge an assignment of 24 threads.
const JUDGING: f64 = 8.0;
/// Windows that decide on the way there.
const DECIDING: f64 = 4.0;
/// Windows of a step.
const CLIMBING: f64 = 2.0;
/// Rounds of a climb on the machine from the best known.
const ROUNDS: usize = 5;
/// Changes tried in a round.
const CHANGES: usize = 24;
/// How many of the best on the way are judged.
const JUDGED: usize = 8;
/// Random assignments of 24 threads; as many of the best of them are judged.
const RANDOM: usize = 1000;

type Performances = HashMap<Vec<u32>, f64>;

/// One program on the simulated processor.
struct Study {
    pipeline: PacketPipeline,
    processor: Processor,
    machine: Machine,
    tree: SharingTree,
    folder: PathBuf,
}

/// The measured tables.
struct Tables {
    base: BTreeMap<Vec<u32>, f64>,
    slowdown: HashMap<(usize, usize), f64>,
}

/// What assignments do.
struct Known {
    known: Performances,
    /// The best known.
    optimum: f64,
    /// Random ones, each measured once; none where all there are were.
    drawn: Vec<(Vec<u32>, f64)>,
    /// The best of these.
    random: Option<f64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let folder =
        PathBuf::from(arguments.next().ok_or("usage: blackbox DIR [gains|many] [PROGRAM…]")?);
    std::fs::create_dir_all(&folder)?;
    let table = arguments.next_if(|word| word == "gains" || word == "many");
    let named = |name: String| {
        PacketProgram::named(&name)
            .ok_or("there is no such program; pinwise workload --list names them")
    };
    let programs = arguments.map(named).collect::<Result<Vec<_>, _>>()?;
    let programs = if programs.is_empty() { PacketProgram::ALL[..9].to_vec() } else { programs };
    match table.as_deref() {
        Some("gains") => return print_gains(&programs, &folder),
        Some(_) => return print_many_threads(&programs, &folder),
        None => {}
    }
    println!(
        "| program | threads | full: experiments | top 1 | top 5 | reduced: experiments | top 1 | \
         top 5 | check: held | best of {RANDOM} random | of these alone, full: top 1, top 5 | \
         reduced |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for pipeline in programs {
        let study = Study::new(pipeline.into(), &folder)?;
        let tables = study.tables()?;
        for instances in [2, 8] {
            study.compare(&tables, instances)?;
        }
    }
    Ok(())
}

/// The gains as soon as they are known, then the selection phase.
fn print_gains(programs: &[PacketProgram], folder: &Path) -> Result<(), Box<dyn Error>> {
    println!("{}", gains::HEADING);
    let mut selection = vec![gains::Selection::heading()];
    for &pipeline in programs {
        let study = Study::new(pipeline.into(), folder)?;
        let tables = study.tables()?;
        for instances in gains::INSTANCES {
            let (row, gains::Selection(rows)) = study.gains(&tables, instances)?;
            println!("{row}");
            selection.extend(rows);
        }
    }
    println!("\n{}", selection.join("\n"));
    Ok(())
}

fn print_many_threads(programs: &[PacketProgram], folder: &Path) -> Result<(), Box<dyn Error>> {
    println!("{}", many_threads::HEADING);
    for &program in programs {
        for (processors, instances) in many_threads::SHAPES {
            let study = Study::new(PacketPipeline { program, processors }, folder)?;
            println!("{}", study.many_threads(instances)?);
        }
    }
    Ok(())
}

impl Study {
    fn new(pipeline: PacketPipeline, folder: &Path) -> Result<Self, Box<dyn Error>> {
        let processor = Processor::model("ultrasparc-t2")?;
        let machine = processor.machine();
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        Ok(Self { pipeline, processor, machine, tree, folder: folder.to_owned() })
    }

    fn testbed(&self, instances: usize, seed: u64) -> Result<SimulatedTestbed, Box<dyn Error>> {
        let (processor, machine, programs) =
            (self.processor.clone(), self.machine.clone(), vec![self.pipeline; instances]);
        let window = SimulatedWindow::of(&programs);
        Ok(SimulatedTestbed::new(processor, machine, programs, window, seed)?)
    }

    fn measure(
        &self,
        instances: usize,
        seed: u64,
        settings: Vec<Setting>,
        windows: f64,
    ) -> Result<Vec<f64>, Box<dyn Error>> {
        let trials: Vec<_> =
            settings.into_iter().map(|setting| (setting, Effort { windows })).collect();
        let measured = self.testbed(instances, seed)?.measure_all(&trials);
        Ok(measured
            .into_iter()
            .map(|measured| measured.map(|measured| measured.performance))
            .collect::<Result<_, _>>()?)
    }

    /// The file of what is stored.
    fn stored(&self, what: &str) -> PathBuf {
        self.folder.join(format!("{}.{what}", self.pipeline.to_string().replace('/', "-")))
    }

    /// Lines of a name and a number, read from a file or made once.
    fn kept(
        &self,
        what: &str,
        make: impl FnOnce() -> Result<Vec<(String, f64)>, Box<dyn Error>>,
    ) -> Result<Vec<(String, f64)>, Box<dyn Error>> {
        let path = self.stored(what);
        if !path.exists() {
            let mut text = String::new();
            make()?.iter().try_for_each(|(name, value)| writeln!(text, "{name} {value}"))?;
            std::fs::write(&path, text)?;
        }
        let text = std::fs::read_to_string(&path)?;
        let line = |line: &str| {
            let (name, value) = line.rsplit_once(' ').ok_or("a line without a number")?;
            Ok((name.to_owned(), value.parse()?))
        };
        text.lines().map(line).collect()
    }

    /// The whole base time table, from longer windows, and the whole slowdown table, for as many
    /// instances as fit.
    fn tables(&self) -> Result<Tables, Box<dyn Error>> {
        let thread_kinds = ThreadKinds::new(self.testbed(8, 1)?.workload());
        let whole = Profiling::new(&self.tree, thread_kinds.clone(), self.local()?, 1.0, WITHIN)?;
        let base: Vec<Assignment> =
            BaseSpace::new(&self.tree, &thread_kinds, 0, 1)?.experiments().collect();
        let entries: Vec<(usize, usize)> = whole.entries().collect();
        let lines = self.kept("table", || {
            let alone = |assignment: &Assignment| {
                let placed =
                    PlacedInstance { application: 0, leaves: assignment.leaves().to_vec() };
                Experiment { instances: vec![placed] }.setting(&thread_kinds)
            };
            let beside = |&(kind, layout): &(usize, usize)| {
                let experiment = whole
                    .experiment(&TableEntry::Slowdown(kind, layout))
                    .ok_or("it does not fit")?;
                Ok::<_, Box<dyn Error>>(experiment.setting(&thread_kinds))
            };
            let mut trials: Vec<_> =
                base.iter().map(|base| (alone(base), Effort { windows: DECIDING })).collect();
            for entry in &entries {
                trials.push((beside(entry)?, Effort::default()));
            }
            let measured = self.testbed(8, 1)?.measure_all(&trials).into_iter();
            let names = base.iter().map(|base| format!("base {:?}", base.leaves()));
            let names =
                names.chain(entries.iter().map(|(kind, layout)| format!("slow {kind} {layout}")));
            names.zip(measured).map(|(name, measured)| Ok((name, measured?.performance))).collect()
        })?;
        let values = || lines.iter().map(|(_, value)| *value);
        Ok(Tables {
            base: base.iter().map(|base| base.leaves().to_vec()).zip(values()).collect(),
            slowdown: entries.into_iter().zip(values().skip(base.len())).collect(),
        })
    }

    fn local(&self) -> Result<CoreLocal, Box<dyn Error>> {
        Ok(CoreLocal::new(&self.tree, DomainKind::Core, 1)?)
    }

    /// A profile from the tables.
    fn profile(
        &self,
        tables: &Tables,
        space: &Space,
        thread_kinds: &ThreadKinds,
        share: f64,
        seed: u64,
    ) -> Result<Profiling, Box<dyn Error>> {
        let mut profiling =
            Profiling::new(&self.tree, thread_kinds.clone(), self.local()?, share, WITHIN)?;
        let mut random = Random::new(seed);
        loop {
            let entries = profiling.next(space, &mut random);
            if entries.is_empty() {
                return Ok(profiling);
            }
            for entry in entries {
                let measured = match &entry {
                    TableEntry::Base(_, assignment) => tables.base.get(assignment.leaves()),
                    TableEntry::Slowdown(kind, layout) => tables.slowdown.get(&(*kind, *layout)),
                };
                profiling.learn(&entry, measured.copied());
            }
        }
    }

    /// Prints the row of `instances` instances.
    fn compare(&self, tables: &Tables, instances: usize) -> Result<(), Box<dyn Error>> {
        let thread_kinds = ThreadKinds::new(self.testbed(instances, 1)?.workload());
        let space = Space::new(self.tree.clone(), thread_kinds.threads(), PerContext::AtMost(1))?;
        let ranked = |blackbox: &BlackBox| {
            let mut random = Random::new(9);
            blackbox
                .optima(&space, RANKED, &mut random, &mut |progress| progress.steps < STEPS)
                .ranked
        };
        let best = |blackbox: &BlackBox| -> Vec<Vec<u32>> {
            let (found, spread) = (ranked(blackbox), ranked(&blackbox.spread()));
            let selected = blackbox.selected(&space, &found, &spread, TOP).into_iter();
            selected.map(|selected| selected.assignment.leaves().to_vec()).collect()
        };
        let full = self.profile(tables, &space, &thread_kinds, 1.0, 1)?;
        let reduced = (1..=SEEDS)
            .map(|seed| self.profile(tables, &space, &thread_kinds, SHARE, seed))
            .collect::<Result<Vec<_>, _>>()?;
        let chosen = best(&full.blackbox());
        let few: Vec<Vec<Vec<u32>>> =
            reduced.iter().map(|reduced| best(&reduced.blackbox())).collect();
        let candidates: Vec<Vec<u32>> = few.iter().flatten().chain(&chosen).cloned().collect();
        let Known { known, optimum, drawn, random } = if instances == 2 {
            self.enumerated(&space)?
        } else {
            self.climbed(&space, &chosen, candidates)?
        };
        let random = random
            .map_or("-".into(), |random| format!("{:.1} %", 100.0 * (1.0 - random / optimum)));
        let losses = |ranked: &[Vec<u32>]| {
            let performance = |leaves: &Vec<u32>| known.get(leaves).copied().unwrap_or(f64::NAN);
            let best = ranked.iter().map(performance).fold(f64::NEG_INFINITY, f64::max);
            [1.0 - performance(&ranked[0]) / optimum, 1.0 - best / optimum]
        };
        let alone = |profiles: &[Profiling]| match drawn.is_empty() {
            true => "-".to_owned(),
            false => {
                let losses: Vec<[f64; 2]> =
                    profiles.iter().map(|profile| among(&profile.blackbox(), &drawn)).collect();
                let worst = |top: usize| {
                    100.0 * losses.iter().map(|losses| losses[top]).fold(0.0, f64::max)
                };
                format!("{:.2} %, {:.2} %", worst(0), worst(1))
            }
        };
        let of_few: Vec<[f64; 2]> = few.iter().map(|ranked| losses(ranked)).collect();
        let worst =
            |top: usize| of_few.iter().map(|losses| losses[top]).fold(f64::NEG_INFINITY, f64::max);
        let [one, five] = losses(&chosen);
        let (entries, _) = full.slowdown_entries();
        let asked = reduced.iter().map(|reduced| reduced.slowdown_entries().1).max().unwrap_or(0);
        let held: usize = reduced.iter().map(|reduced| reduced.checked().held).sum();
        let checks: usize = reduced.iter().map(|reduced| reduced.checked().drawn).sum();
        println!(
            "| {} | {} | {} | {:.2} % | {:.2} % | {} ({:.1} %) | {:.2} % | {:.2} % | {held} of \
             {checks} | {random} | {} | {} |",
            self.pipeline,
            thread_kinds.threads(),
            full.base_measured() + entries,
            100.0 * one,
            100.0 * five,
            full.base_measured() + asked,
            100.0 * (full.base_measured() + asked) as f64 / (full.base_measured() + entries) as f64,
            100.0 * worst(0),
            100.0 * worst(1),
            alone(std::slice::from_ref(&full)),
            alone(&reduced)
        );
        Ok(())
    }

    /// What every assignment of 6 threads does, and the best of them.
    fn enumerated(&self, space: &Space) -> Result<Known, Box<dyn Error>> {
        let classes: Vec<Assignment> = space.classes().collect();
        let lines = self.kept("six", || {
            let settings = classes.iter().map(|class| Setting::Pinned(class.clone())).collect();
            let names = classes.iter().map(|class| format!("{:?}", class.leaves()));
            Ok(names.zip(self.measure(2, 2, settings, CLIMBING)?).collect())
        })?;
        let known: Performances = classes
            .iter()
            .map(|class| class.leaves().to_vec())
            .zip(lines.iter().map(|(_, value)| *value))
            .collect();
        let optimum = known.values().copied().fold(f64::NEG_INFINITY, f64::max);
        Ok(Known { known, optimum, drawn: Vec::new(), random: None })
    }

    /// What the candidates do, and the best known. That is the best of them, of random ones and of
    /// a climb on the processor from `start`.
    fn climbed(
        &self,
        space: &Space,
        start: &[Vec<u32>],
        mut candidates: Vec<Vec<u32>>,
    ) -> Result<Known, Box<dyn Error>> {
        let pinned = |leaves: &Vec<u32>| Setting::Pinned(Assignment::new(leaves.clone()));
        let decide = |all: &[Vec<u32>], seed| {
            self.measure(8, seed, all.iter().map(pinned).collect(), DECIDING)
        };
        let climbed = self.kept("climbed", || {
            let mut known: Performances = start.iter().cloned().zip(decide(start, 5)?).collect();
            let mut random = Random::new(11);
            for round in 0..ROUNDS as u64 {
                let (from, _) = highest(&known);
                let mut changed = || {
                    let mut leaves = from.clone();
                    let (thread, to) = (random.below(24) as usize, random.below(64) as u32);
                    if let Some(other) = leaves.iter().position(|leaf| *leaf == to) {
                        leaves[other] = leaves[thread];
                    }
                    leaves[thread] = to;
                    space.canonical(&Assignment::new(leaves)).leaves().to_vec()
                };
                let tried: Vec<Vec<u32>> = (0..CHANGES)
                    .map(|_| changed())
                    .filter(|leaves| !known.contains_key(leaves))
                    .collect();
                let measured =
                    self.measure(8, 20 + round, tried.iter().map(pinned).collect(), CLIMBING)?;
                let mut order: Vec<usize> = (0..tried.len()).collect();
                order.sort_by(|a, b| measured[*b].total_cmp(&measured[*a]));
                // Chosen for being high, they are measured again before they count.
                let hopeful: Vec<Vec<u32>> =
                    order.iter().take(3).map(|index| tried[*index].clone()).collect();
                known.extend(hopeful.iter().cloned().zip(decide(&hopeful, 40 + round)?));
            }
            Ok(known
                .into_iter()
                .map(|(leaves, performance)| (format!("{leaves:?}"), performance))
                .collect())
        })?;
        let drawn = self.kept("random", || {
            let mut random = Random::new(13);
            let drawn: Vec<Vec<u32>> =
                (0..RANDOM).map(|_| space.sample(&mut random).leaves().to_vec()).collect();
            let measured = self.measure(8, 60, drawn.iter().map(pinned).collect(), 1.0)?;
            Ok(drawn.iter().map(|leaves| format!("{leaves:?}")).zip(measured).collect())
        })?;
        let best_drawn = highest_of(drawn.clone())?;
        candidates.extend(highest_of(climbed)?);
        candidates.extend(best_drawn.iter().cloned());
        candidates.sort_unstable();
        candidates.dedup();
        // All in windows that were not chosen for their results.
        let judged = self.measure(8, 3, candidates.iter().map(pinned).collect(), JUDGING)?;
        let known: Performances = candidates.iter().cloned().zip(judged).collect();
        let random =
            best_drawn.iter().map(|leaves| known[leaves]).fold(f64::NEG_INFINITY, f64::max);
        let (_, optimum) = highest(&known);
        let parsed = |(name, value): (String, f64)| {
            Ok::<_, serde_json::Error>((serde_json::from_str(&name)?, value))
        };
        let drawn = drawn.into_iter().map(parsed).collect::<Result<_, _>>()?;
        Ok(Known { known, optimum, drawn, random: Some(random) })
    }
}

/// How far the best predicted of random assignments is below the best of them. The second figure is
/// for the best of the five best predicted. The paper measures it so for 24 threads (section 5.2),
/// by one window each.
fn among(blackbox: &BlackBox, drawn: &[(Vec<u32>, f64)]) -> [f64; 2] {
    let mut ranked: Vec<(f64, f64)> =
        drawn.iter().map(|(leaves, measured)| (blackbox.predict(leaves), *measured)).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best = |ranked: &[(f64, f64)]| {
        ranked.iter().map(|(_, measured)| *measured).fold(f64::NEG_INFINITY, f64::max)
    };
    [1, TOP].map(|top| 1.0 - best(&ranked[..top.min(ranked.len())]) / best(&ranked))
}

/// The best of assignments by name, as many as are judged.
fn highest_of(mut lines: Vec<(String, f64)>) -> Result<Vec<Vec<u32>>, serde_json::Error> {
    lines.sort_by(|a, b| b.1.total_cmp(&a.1));
    lines.iter().take(JUDGED).map(|(name, _)| serde_json::from_str(name)).collect()
}

fn highest(known: &Performances) -> (Vec<u32>, f64) {
    let best = known.iter().max_by(|a, b| a.1.total_cmp(b.1).then_with(|| b.0.cmp(a.0)));
    best.map(|(leaves, performance)| (leaves.clone(), *performance)).unwrap_or_default()
}
