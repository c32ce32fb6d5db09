//! How right are path profiles from a branch record? Compares both methods with exact counts.
//!
//! `lab/paths/traces FOLDER` makes traces of real programs: it needs gcc, and QEMU's user mode.
//! Then `cargo run --release -p pinwise-lab --example path_profiles -- FOLDER` prints a table. A
//! trace takes about a minute. One trace gives both the exact counts and the samples of several
//! runs of a modelled record, each some 500,000 instructions apart. The runs of a row together are
//! a second of native work or more. Each row repeats that, and says how often 90 % intervals of hot
//! paths hold.
//!
//! The graph is made from all branches of the trace, for both methods and the exact counts alike:
//! so that paths have the same blocks.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path as FilePath, PathBuf};

use pinwise_paths::{
    Binary, Branch, BranchRecord, Fragments, HOT, Path, PathCounter, PathMethod, PathProfile,
    ProgramGraph, SampledBy, weight_matching,
};
use pinwise_topology::Random;

const DEPTHS: [usize; 4] = [4, 8, 16, 32];
const PERIOD: u64 = 500_000;
/// Instructions that the runs of one row have together, at least.
const WORK: u64 = 3_000_000_000;
const REPEATS: u64 = 4;

fn main() -> io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).expect("the folder with traces"));
    let mut names: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| entry.map(|it| it.path())).collect::<Result<_, _>>()?;
    names.retain(|path| path.extension().is_some_and(|it| it == "trace"));
    names.sort();
    println!("program depth samples hot-paths expand likelihood hold too-high too-low in-groups");
    let mut means: BTreeMap<usize, Vec<Row>> = BTreeMap::new();
    for trace in names {
        for row in study(&trace)? {
            row.print(&trace.file_stem().unwrap_or_default().to_string_lossy());
            means.entry(row.depth).or_default().push(row);
        }
    }
    for (_, rows) in means {
        Row::mean(&rows).print("mean");
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, Default)]
struct Row {
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
}

impl Row {
    fn mean(rows: &[Row]) -> Row {
        let mean = |value: fn(&Row) -> f64| rows.iter().map(value).sum::<f64>() / rows.len() as f64;
        Row {
            depth: rows[0].depth,
            samples: mean(|row| row.samples),
            hot: mean(|row| row.hot),
            expand: mean(|row| row.expand),
            likelihood: mean(|row| row.likelihood),
            hold: mean(|row| row.hold),
            high: mean(|row| row.high),
            low: mean(|row| row.low),
            grouped: mean(|row| row.grouped),
        }
    }

    fn print(&self, name: &str) {
        let Row { depth, samples, hot, .. } = self;
        print!("{name:12} {depth:2} {samples:6.0} {hot:4.0}");
        let shares = [self.expand, self.likelihood, self.hold, self.high, self.low, self.grouped];
        shares.iter().for_each(|share| print!(" {:6.1}", 100.0 * share));
        println!();
    }
}

fn study(trace: &FilePath) -> io::Result<Vec<Row>> {
    // The program lies beside its trace.
    let program = fs::read(trace.with_extension(""))?;
    let binary = Binary::parse(&program).map_err(io::Error::other)?;
    let mut branches = HashSet::new();
    let mut instructions = 0;
    read(trace, &binary, |ran, branch| {
        instructions += ran;
        branches.insert(branch);
    })?;
    let branches: BTreeSet<Branch> = branches.into_iter().collect();
    let graph = ProgramGraph::new(&binary, branches.into_iter());
    let runs = WORK.div_ceil(instructions);
    let mut records: Vec<BranchRecord> = (0..REPEATS * runs)
        .map(|seed| BranchRecord::new(DEPTHS[3], PERIOD, PERIOD / 10, seed))
        .collect();
    let mut counter = PathCounter::new(&graph);
    read(trace, &binary, |ran, branch| {
        counter.take(branch);
        records.iter_mut().for_each(|record| record.take(ran, branch));
    })?;
    let (exact, _, breaks) = counter.finish();
    let total: u64 = exact.iter().map(|(_, count)| count).sum();
    eprintln!(
        "{}: {instructions} instructions, {} functions, {} paths, {total} executions, {breaks} \
         breaks, {runs} runs",
        trace.display(),
        graph.len(),
        exact.len()
    );
    let exact: BTreeMap<Path, f64> =
        exact.into_iter().map(|(path, count)| (path, count as f64 / total as f64)).collect();
    let mut samples = vec![Fragments::default(); REPEATS as usize];
    for (number, record) in records.into_iter().enumerate() {
        samples[number % REPEATS as usize].merge(&record.finish());
    }
    let row = |depth: usize| {
        let rows: Vec<Row> =
            samples.iter().map(|samples| judge(&graph, &exact, samples, depth)).collect();
        Row::mean(&rows)
    };
    Ok(DEPTHS.map(row).to_vec())
}

fn judge(
    graph: &ProgramGraph,
    exact: &BTreeMap<Path, f64>,
    samples: &Fragments,
    depth: usize,
) -> Row {
    let samples = samples.newest(depth);
    let by = SampledBy::Instructions;
    let expand = PathProfile::new(graph, &samples, by, PathMethod::Expand);
    let mut random = Random::new(1);
    let profile = PathProfile::with_intervals(graph, &samples, by, 0.9, &mut random);
    let intervals: HashMap<&Path, (f64, f64)> =
        profile.paths.iter().filter_map(|it| Some((&it.path, it.interval?))).collect();
    let hot: Vec<(&Path, f64)> =
        exact.iter().map(|(path, share)| (path, *share)).filter(|it| it.1 >= HOT).collect();
    // A path that was not found has an interval that is too low.
    let interval = |path: &Path| intervals.get(path).copied().unwrap_or_default();
    let high = hot.iter().filter(|(path, share)| *share < interval(path).0).count() as f64;
    let low = hot.iter().filter(|(path, share)| *share > interval(path).1).count() as f64;
    let count = hot.len() as f64;
    Row {
        depth,
        samples: samples.total() as f64,
        hot: count,
        expand: weight_matching(exact, &expand.shares(), HOT).unwrap_or_default(),
        likelihood: weight_matching(exact, &profile.shares(), HOT).unwrap_or_default(),
        hold: 1.0 - (high + low) / count,
        high: high / count,
        low: low / count,
        grouped: profile.paths.iter().filter(|it| it.group.is_some()).map(|it| it.share).sum(),
    }
}

/// Hands each branch of a trace to `each`, with the instructions that ran up to it. Addresses are
/// those of the binary's file.
fn read(trace: &FilePath, binary: &Binary, mut each: impl FnMut(u64, Branch)) -> io::Result<()> {
    const ADDRESS: u64 = (1 << 48) - 1;
    let mut file = BufReader::with_capacity(1 << 20, File::open(trace)?);
    let mut words = || {
        let mut bytes = [0; 16];
        match file.read_exact(&mut bytes) {
            Ok(()) => Ok(Some(u128::from_ne_bytes(bytes))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    };
    let Some(first) = words()? else { return Ok(()) };
    let moved = (first as u64).wrapping_sub(binary.lowest());
    while let Some(words) = words()? {
        let (from, to) = (words as u64, (words >> 64) as u64);
        let branch =
            Branch { from: (from & ADDRESS).wrapping_sub(moved), to: to.wrapping_sub(moved) };
        each(from >> 48, branch);
    }
    Ok(())
}
