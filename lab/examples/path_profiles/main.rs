//! How right are path profiles from a branch record? Compares both methods with exact counts, and
//! repeats figures 3 to 5 of the paper on hardware monitoring.
//!
//! `lab/paths/traces FOLDER` makes traces of real programs: it needs gcc, and QEMU's user mode.
//! Then `cargo run --release -p pinwise-lab --example path_profiles -- FOLDER [PROGRAM...]` prints
//! the tables of docs/lab/path-profiles.md. One trace gives both the exact counts and the samples
//! of several runs of a modelled record. The runs of a row together are a second of native work or
//! more.
//!
//! `-- FOLDER intervals [PROGRAM...]` prints its table of intervals.
//!
//! `-- FOLDER PROGRAM perf.data` writes a recording of 100 MB of this program instead. `pinwise
//! paths perf.data` reads it.
//!
//! The exact counts use the graph of all branches of the trace. An estimate uses the binary and the
//! branches in its samples alone, as a user has them. Their graphs differ: an indirect jump lacks
//! the edges that no sample saw. So paths are compared by the addresses that ran.

mod correlation;
mod edges;
mod trace;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use pinwise_paths::{
    Fragments, HOT, PathMethod, PathProfile, ProgramGraph, SampledBy, weight_matching,
};
use pinwise_synthetic::BranchRecordingWriter;
use pinwise_topology::Random;

use trace::{AddressPath, Traced, address_path};

const DEPTHS: [usize; 4] = [4, 8, 16, 32];
/// The depth of the paper's record.
const SHALLOW: usize = 4;
const PERIOD: u64 = 500_000;
const PERIODS: [u64; 8] =
    [50_000, 100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000];
/// Instructions that the runs of one row have together, at least.
const WORK: u64 = 3_000_000_000;
const REPEATS: u64 = 4;
/// Rows of each figure in the table of intervals.
const INTERVAL_REPEATS: u64 = 12;
const RUNS: [u64; 6] = [1, 2, 5, 10, 15, 20];
/// Samples of a recording, the branches of each, and its runs. This makes 100 MB.
const SAMPLES: u64 = 235_849;
const RECORD: usize = 16;
const RECORDING_RUNS: u64 = 20;
/// Cycles that a sample costs, *fitted*: the paper's 50 % at a period of 50,000 cycles.
const SAMPLE_CYCLES: f64 = 25_000.0;
const BY: SampledBy = SampledBy::Instructions;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("the folder with traces"));
    let mut chosen: Vec<String> = arguments.collect();
    let recording = chosen.pop_if(|it| it == "perf.data");
    let only_intervals = chosen.first().is_some_and(|it| it == "intervals");
    chosen.drain(..usize::from(only_intervals));
    let mut tables = Tables::default();
    for trace in trace::traces(&folder)? {
        let name = trace.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if chosen.is_empty() || chosen.contains(&name) {
            let path = trace.with_extension("").canonicalize()?;
            let program = std::fs::read(&path)?;
            let traced = Traced::new(name, &trace, &program)?;
            match &recording {
                Some(file) => record(&traced, &path, program.len() as u64, file)?,
                None if only_intervals => intervals(&traced),
                None => tables.add(&traced),
            }
        }
    }
    if recording.is_none() && !only_intervals {
        tables.print();
    }
    Ok(())
}

/// The samples of so many rows.
fn rows_of(traced: &Traced, jitter: u64, repeats: u64) -> Vec<Fragments> {
    let runs = WORK.div_ceil(traced.instructions());
    let mut samples = vec![Fragments::default(); repeats as usize];
    let records = traced.sampled_with(DEPTHS[3], PERIOD, jitter, 0..repeats * runs);
    for (run, record) in records.enumerate() {
        samples[run % repeats as usize].merge(&record);
    }
    samples
}

/// Prints how many intervals hold, by depth. First of samples at regular distances, then of samples
/// at any distance up to twice the period.
fn intervals(traced: &Traced) {
    print!("| {} |", traced.name);
    for jitter in [PERIOD / 10, PERIOD - 1] {
        let samples = rows_of(traced, jitter, INTERVAL_REPEATS);
        for depth in DEPTHS {
            let holds = samples.iter().map(|samples| {
                let samples = samples.newest(depth);
                let graph = traced.graph_of(&samples);
                let (high, low) = wrong_intervals(traced, &graph, &profile_of(&graph, &samples));
                1.0 - high - low
            });
            print!(" {:.1} |", 100.0 * holds.sum::<f64>() / INTERVAL_REPEATS as f64);
        }
    }
    println!();
}

/// Writes a recording of [`SAMPLES`] samples of a program with this path and size.
fn record(traced: &Traced, program: &Path, size: u64, file: &str) -> io::Result<()> {
    let code = [traced.binary.lowest(), size, 0];
    let file = BufWriter::new(File::create(file)?);
    let mut writer = BranchRecordingWriter::new(file, &program.to_string_lossy(), code)?;
    let mut left = SAMPLES;
    let period = traced.instructions() * RECORDING_RUNS / left;
    for run in traced.sampled(RECORD, period, 0..RECORDING_RUNS + 1) {
        for (fragment, times) in run.iter() {
            let stack: Vec<(u64, u64)> =
                fragment.iter().rev().map(|branch| (branch.from, branch.to)).collect();
            for _ in 0..times.min(left) {
                writer.sample(&stack)?;
                left -= 1;
            }
        }
    }
    Ok(())
}

/// What is known about each program so far, in the order of the programs.
#[derive(Default)]
struct Tables {
    accuracy: Vec<Row>,
    periods: Vec<(String, [Found; PERIODS.len()])>,
    runs: Vec<(String, [Found; RUNS.len()])>,
    edges: Vec<(String, edges::EdgeError)>,
    correlations: Vec<String>,
}

/// Results from samples of the paper's record. They are distinct fragments, whole paths of the
/// published method, and the accuracy of both methods.
#[derive(Clone, Copy, Default)]
struct Found {
    fragments: f64,
    paths: f64,
    expand: f64,
    likelihood: f64,
}

#[derive(Clone, Default)]
struct Row {
    program: String,
    depth: usize,
    samples: f64,
    hot: f64,
    expand: f64,
    likelihood: f64,
    /// Shares of intervals: that hold, lie too high, and too low.
    hold: f64,
    high: f64,
    low: f64,
    /// The flow of paths in groups.
    grouped: f64,
    /// Accuracies with the graph of all branches.
    full_expand: f64,
    full_likelihood: f64,
}

impl Row {
    fn mean(program: &str, rows: &[Row]) -> Row {
        let mean = |value: fn(&Row) -> f64| rows.iter().map(value).sum::<f64>() / rows.len() as f64;
        Row {
            program: program.to_string(),
            depth: rows[0].depth,
            samples: mean(|row| row.samples),
            hot: mean(|row| row.hot),
            expand: mean(|row| row.expand),
            likelihood: mean(|row| row.likelihood),
            hold: mean(|row| row.hold),
            high: mean(|row| row.high),
            low: mean(|row| row.low),
            grouped: mean(|row| row.grouped),
            full_expand: mean(|row| row.full_expand),
            full_likelihood: mean(|row| row.full_likelihood),
        }
    }

    fn print(&self) {
        let Row { program, depth, samples, hot, .. } = self;
        print!("| {program} | {depth} | {samples:.0} | {hot:.0} |");
        let shares = [self.expand, self.likelihood, self.hold, self.high, self.low, self.grouped];
        let full = [self.full_expand, self.full_likelihood];
        shares.iter().chain(&full).for_each(|share| print!(" {:.1} |", 100.0 * share));
        println!();
    }
}

impl Tables {
    fn add(&mut self, traced: &Traced) {
        let runs = WORK.div_ceil(traced.instructions());
        let samples = rows_of(traced, PERIOD / 10, REPEATS);
        for depth in DEPTHS {
            let rows: Vec<Row> =
                samples.iter().map(|it| judge(traced, &it.newest(depth))).collect();
            let row = Row { depth, ..Row::mean(&traced.name, &rows) };
            row.print();
            self.accuracy.push(row);
        }
        self.periods.push((
            traced.name.clone(),
            PERIODS.map(|period| {
                let mut all = Fragments::default();
                traced.sampled(SHALLOW, period, 0..runs).for_each(|run| all.merge(&run));
                found(traced, &all)
            }),
        ));
        let single: Vec<Fragments> =
            traced.sampled(SHALLOW, PERIOD, 0..RUNS[RUNS.len() - 1]).collect();
        self.runs.push((
            traced.name.clone(),
            RUNS.map(|runs| {
                let mut all = Fragments::default();
                single[..runs as usize].iter().for_each(|run| all.merge(run));
                found(traced, &all)
            }),
        ));
        self.edges.push((traced.name.clone(), edges::error(&traced.paths, &traced.graph)));
        let deep = traced.graph_of(&samples[0]);
        let profile = PathProfile::new(&deep, &samples[0], BY, PathMethod::Likelihood);
        self.correlations.extend(correlation::strongest(traced, &deep, &profile));
    }

    fn print(&self) {
        for depth in DEPTHS {
            let of_depth = self.accuracy.iter().filter(|row| row.depth == depth);
            let rows: Vec<Row> = of_depth.cloned().collect();
            Row { depth, ..Row::mean("mean", &rows) }.print();
        }
        let series = |title: &str, columns: &[u64], rows: Vec<(&str, &[Found])>| {
            println!("\n{title} {columns:?}: fragments, paths\n");
            for (name, row) in &rows {
                print!("| {name} |");
                row.iter().for_each(|it| print!(" {:.0}, {:.0} |", it.fragments, it.paths));
                println!();
            }
            println!("\n{title} {columns:?}: accuracy of expand, likelihood\n");
            for (name, row) in &rows {
                print!("| {name} |");
                for Found { expand, likelihood, .. } in *row {
                    print!(" {:.1}, {:.1} |", 100.0 * expand, 100.0 * likelihood);
                }
                println!();
            }
            print!("| mean |");
            for column in 0..columns.len() {
                let mean = |value: fn(&Found) -> f64| {
                    100.0 * rows.iter().map(|row| value(&row.1[column])).sum::<f64>()
                        / rows.len() as f64
                };
                print!(" {:.1}, {:.1} |", mean(|it| it.expand), mean(|it| it.likelihood));
            }
            println!();
        };
        let periods = self.periods.iter().map(|(name, row)| (&**name, &row[..])).collect();
        series("Periods", &PERIODS, periods);
        print!("| overhead, % |");
        PERIODS.iter().for_each(|it| print!(" {:.2} |", 100.0 * SAMPLE_CYCLES / *it as f64));
        println!();
        series("Runs", &RUNS, self.runs.iter().map(|(name, row)| (&**name, &row[..])).collect());
        println!("\nEdges alone: hot paths, accuracy, wrong, far, never ran\n");
        let mean = |value: fn(&edges::EdgeError) -> f64| {
            self.edges.iter().map(|it| value(&it.1)).sum::<f64>() / self.edges.len() as f64
        };
        let of_mean = edges::EdgeError {
            accuracy: mean(|it| it.accuracy),
            hot: mean(|it| it.hot),
            wrong: mean(|it| it.wrong),
            far: mean(|it| it.far),
            false_hot: mean(|it| it.false_hot),
        };
        let of_mean = ("mean".to_string(), of_mean);
        for (name, error) in self.edges.iter().chain([&of_mean]) {
            println!(
                "| {name} | {:.0} | {:.1} | {:.1} | {:.1} | {:.0} |",
                error.hot,
                100.0 * error.accuracy,
                100.0 * error.wrong / error.hot,
                100.0 * error.far / error.hot,
                error.false_hot,
            );
        }
        println!();
        self.correlations.iter().for_each(|line| println!("{line}"));
    }
}

fn found(traced: &Traced, samples: &Fragments) -> Found {
    let graph = traced.graph_of(samples);
    let profile = |method| PathProfile::new(&graph, samples, BY, method);
    let expand = profile(PathMethod::Expand);
    Found {
        fragments: samples.distinct() as f64,
        paths: expand.paths.len() as f64,
        expand: accuracy(traced, &graph, &expand),
        likelihood: accuracy(traced, &graph, &profile(PathMethod::Likelihood)),
    }
}

fn accuracy(traced: &Traced, graph: &ProgramGraph, profile: &PathProfile) -> f64 {
    let mut shares: BTreeMap<AddressPath, f64> = BTreeMap::new();
    for count in &profile.paths {
        *shares.entry(address_path(graph, &count.path)).or_default() += count.share;
    }
    weight_matching(&traced.exact, &shares, HOT).unwrap_or_default()
}

fn profile_of(graph: &ProgramGraph, samples: &Fragments) -> PathProfile {
    PathProfile::with_intervals(graph, samples, BY, 0.9, &mut Random::new(1))
}

fn hot_paths<'traced>(
    traced: &'traced Traced,
) -> impl Iterator<Item = (&'traced AddressPath, f64)> + Clone {
    traced.exact.iter().map(|(path, share)| (path, *share)).filter(|it| it.1 >= HOT)
}

/// The shares of intervals of hot paths that lie too high and too low. A path that was not found
/// has one that is too low.
fn wrong_intervals(traced: &Traced, graph: &ProgramGraph, profile: &PathProfile) -> (f64, f64) {
    let intervals: HashMap<AddressPath, (f64, f64)> = profile
        .paths
        .iter()
        .filter_map(|it| Some((address_path(graph, &it.path), it.interval?)))
        .collect();
    let interval = |path: &AddressPath| intervals.get(path).copied().unwrap_or_default();
    let hot = hot_paths(traced);
    let count = hot.clone().count() as f64;
    let high = hot.clone().filter(|(path, share)| *share < interval(path).0).count() as f64;
    let low = hot.filter(|(path, share)| *share > interval(path).1).count() as f64;
    (high / count, low / count)
}

fn judge(traced: &Traced, samples: &Fragments) -> Row {
    let graph = traced.graph_of(samples);
    let expand = |graph| PathProfile::new(graph, samples, BY, PathMethod::Expand);
    let full = PathProfile::new(&traced.graph, samples, BY, PathMethod::Likelihood);
    let profile = profile_of(&graph, samples);
    let (high, low) = wrong_intervals(traced, &graph, &profile);
    Row {
        program: String::new(),
        depth: 0,
        samples: samples.total() as f64,
        hot: hot_paths(traced).count() as f64,
        expand: accuracy(traced, &graph, &expand(&graph)),
        likelihood: accuracy(traced, &graph, &profile),
        hold: 1.0 - high - low,
        high,
        low,
        grouped: profile.paths.iter().filter(|it| it.group.is_some()).map(|it| it.share).sum(),
        full_expand: accuracy(traced, &traced.graph, &expand(&traced.graph)),
        full_likelihood: accuracy(traced, &traced.graph, &full),
    }
}
