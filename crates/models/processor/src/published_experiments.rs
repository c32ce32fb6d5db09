//! The experiments of V. Čakarević et al., MICRO 2009: how much a microbenchmark slows down with
//! others.
//!
//! A [`BenchmarkExperiment`] is a reference benchmark and copies of a stressing one. The copies are
//! in its pipe, in its core or on another core. Its slowdown is the reference's time per
//! instruction over that when it runs alone.
//!
//! As in the paper, every benchmark is measured in the steady state, over at least five passes
//! (FAME, section 3.3). The benchmarks load the caches themselves, in a few million cycles that are
//! simulated and not counted. This takes tens of millions if the arrays do not fit. The second
//! level then needs long to reach its regime.
//!
//! Threads without randomness lock into a rhythm that depends on their starts. One run is therefore
//! no answer. Each experiment runs with several sets of start offsets, and the range is part of the
//! result. The mean rate over them counts. Arrays that fit a first level alone may drive each other
//! out of it. Then a few sets miss what happens in a few of a hundred. So there are as many sets as
//! [`crate::ModelBench`] takes.

use crate::bench::MANY_STARTS;
use crate::parallel;
use crate::program::{ProgramSet, PublishedBenchmark};
use crate::{Chip, ClockMode, PlacedThread, PlacementError, Processor};
use pinwise_topology::Random;
use std::fmt;
use std::str::FromStr;

/// Where the stressing benchmarks run. The reference is on the first strand of the first core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StressorPlace {
    /// In the reference's pipe; when that is full, in the next pipe of the core.
    Pipe,
    /// In the next pipe of the core.
    Core,
    /// On the next core.
    Chip,
}

/// A reference benchmark with copies of a stressor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BenchmarkExperiment {
    /// The benchmark that is measured.
    pub reference: PublishedBenchmark,
    /// The one that runs with it.
    pub stressor: PublishedBenchmark,
    /// How often; 0: the reference runs alone.
    pub count: usize,
    /// Where.
    pub place: StressorPlace,
}

/// Cycles per instruction of the reference, one value per set of start offsets.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread(pub Vec<f64>);

/// A slowdown printed in the paper.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedSlowdown {
    /// What was measured.
    pub experiment: BenchmarkExperiment,
    /// Execution time over that in isolation.
    pub slowdown: PrintedSlowdown,
    /// The section and the figure.
    pub source: String,
}

/// What a paper says of a slowdown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PrintedSlowdown {
    /// A number.
    Number(f64),
    /// From the first number to the second.
    Range(f64, f64),
    /// Words that stand for about this number: "negligible", "no slowdown", "up to".
    Words(f64),
}

impl PrintedSlowdown {
    /// How far `ours` is from what is printed, as a share. Inside a range it is 0.
    pub fn off(self, ours: f64) -> f64 {
        let printed = match self {
            Self::Number(number) | Self::Words(number) => number,
            Self::Range(from, to) => ours.clamp(from, to),
        };
        ours / printed - 1.0
    }

    /// Whether `ours` agrees: within 5 % of a number, inside a range.
    pub fn agrees(self, ours: f64) -> bool {
        match self {
            Self::Number(_) | Self::Words(_) => self.off(ours).abs() <= 0.05,
            Self::Range(..) => self.off(ours) == 0.0,
        }
    }
}

impl fmt::Display for PrintedSlowdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Range(from, to) => write!(f, "{from} to {to}"),
            Self::Words(number) => write!(f, "~{number}"),
        }
    }
}

/// A value of the model that the paper does not print. It was found from some of its figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InferredValue {
    /// When a division of the other pipe starts.
    Handover,
    /// The cycles of `intdiv` in turn.
    DivideLatency,
    /// Which strand fetches after a load.
    AfterLoad,
    /// Which pipe the load/store unit serves first.
    LoadStoreArbitration,
    /// How long a line from the second level takes the first level's port.
    Fill,
    /// How much later a line from another row of the memory comes.
    RowConflict,
}

/// Offsets are uniform below this many cycles: longer than any instruction and any pass through the
/// first-level cache.
const OFFSETS: u64 = 1000;

impl fmt::Display for StressorPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pipe => "pipe",
            Self::Core => "core",
            Self::Chip => "chip",
        })
    }
}

impl FromStr for StressorPlace {
    type Err = String;

    /// `pipe`, `pipe+core`, `core` or `chip`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pipe" | "pipe+core" => Ok(Self::Pipe),
            "core" => Ok(Self::Core),
            "chip" => Ok(Self::Chip),
            _ => Err(format!("'{text}' is not a place: pipe, pipe+core, core or chip")),
        }
    }
}

impl BenchmarkExperiment {
    /// `reference` alone.
    pub fn alone(reference: PublishedBenchmark) -> Self {
        Self { reference, stressor: reference, count: 0, place: StressorPlace::Pipe }
    }

    /// Cycles per instruction of the reference, with each of `sets` sets of start offsets, or of
    /// [`BenchmarkExperiment::sets`]. In the first set, all start together. Error: the processor
    /// has too few contexts.
    pub fn cpi(&self, processor: &Processor, sets: usize) -> Result<Spread, PlacementError> {
        (0..self.sets(processor, sets))
            .map(|set| self.cpi_of_set(processor, set))
            .collect::<Result<_, _>>()
            .map(Spread)
    }

    /// How many sets of start offsets it takes where others take `usual`.
    pub fn sets(&self, processor: &Processor, usual: usize) -> usize {
        let arrays =
            [vec![self.reference.array()], vec![self.stressor.array(); self.count]].concat();
        let beyond = arrays.iter().any(|&array| processor.beyond_first_level(array));
        let contested = self.place != StressorPlace::Chip
            && !beyond
            && processor.first_level_contested(&arrays);
        if contested { usual.max(MANY_STARTS as usize) } else { usual }
    }

    fn cpi_of_set(&self, processor: &Processor, set: usize) -> Result<f64, PlacementError> {
        let strands = processor.intra_pipe.strands as usize;
        let first = match self.place {
            StressorPlace::Pipe => 1,
            StressorPlace::Core => strands,
            StressorPlace::Chip => processor.contexts_per_core(),
        };
        let benchmarks = [vec![self.reference], vec![self.stressor; self.count]].concat();
        let programs = (0..)
            .zip(&benchmarks)
            .map(|(instance, benchmark)| benchmark.program(instance))
            .collect();
        let mut random = Random::new(set as u64);
        let placed: Vec<PlacedThread> = (0..=self.count)
            .map(|thread| PlacedThread {
                context: if thread == 0 { 0 } else { first + thread - 1 },
                start: if set == 0 { 0 } else { random.below(OFFSETS) },
                seed: 0,
            })
            .collect();
        let mut chip =
            Chip::new(processor, &ProgramSet::independent(programs), &placed, ClockMode::Events)?;
        let (settle, measure) = duration(processor, &benchmarks);
        chip.run(settle);
        let before = chip.counters()[0].instructions;
        chip.run(measure);
        Ok(measure as f64 / (chip.counters()[0].instructions - before) as f64)
    }
}

/// Cycles until the steady state, and cycles to measure for.
fn duration(processor: &Processor, benchmarks: &[PublishedBenchmark]) -> (u64, u64) {
    let beyond_l1 =
        |benchmark: &&PublishedBenchmark| processor.beyond_first_level(benchmark.array());
    let arrays: u64 = benchmarks.iter().filter(beyond_l1).map(|benchmark| benchmark.array()).sum();
    if arrays == 0 {
        (50_000, 500_000)
    } else if arrays <= u64::from(processor.inter_core.l2.size_kib) << 10 {
        // Loading 24,576 lines of L2cache takes 5 M cycles, five passes through them 3 to 4 M.
        (8_000_000, 4_000_000)
    } else {
        // Five passes of mem take 92 M.
        (60_000_000, 100_000_000)
    }
}

impl Spread {
    /// The CPI of the mean rate over the sets of offsets; NaN if there is none.
    pub fn mean(&self) -> f64 {
        self.0.len() as f64 / self.0.iter().map(|cpi| 1.0 / cpi).sum::<f64>()
    }

    /// The least and the greatest.
    pub fn range(&self) -> (f64, f64) {
        self.0.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &value| {
            (least.min(value), most.max(value))
        })
    }

    /// All values over those of the reference alone: slowdowns.
    pub fn over(&self, alone: &Self) -> Self {
        let alone = alone.mean();
        Self(self.0.iter().map(|value| value / alone).collect())
    }
}

/// Runs experiments side by side on all processors of the host. The results are in the order of
/// `experiments` and do not depend on how many there are. Error: the processor has too few
/// contexts.
pub fn run(
    processor: &Processor,
    experiments: &[BenchmarkExperiment],
    sets: usize,
) -> Result<Vec<Spread>, PlacementError> {
    let sets: Vec<usize> =
        experiments.iter().map(|experiment| experiment.sets(processor, sets)).collect();
    let tasks: Vec<(usize, usize)> =
        sets.iter().enumerate().flat_map(|(e, &sets)| (0..sets).map(move |set| (e, set))).collect();
    let run =
        |&(experiment, set): &(usize, usize)| experiments[experiment].cpi_of_set(processor, set);
    let cpis: Result<Vec<f64>, _> =
        parallel::map(&tasks, parallel::host_threads(), run).into_iter().collect();
    let mut cpis = cpis?.into_iter();
    Ok(sets.iter().map(|&sets| Spread(cpis.by_ref().take(sets).collect())).collect())
}

impl PublishedSlowdown {
    /// Every row of `published/characterization.csv`. Error: the line, and what is wrong with it.
    pub fn parse_all(csv: &str) -> Result<Vec<Self>, String> {
        let rows = csv
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.starts_with('#') && !line.is_empty())
            .skip(1);
        rows.map(|(number, line)| {
            Self::parse(line).map_err(|reason| format!("line {}: {reason}", number + 1))
        })
        .collect()
    }

    fn parse(line: &str) -> Result<Self, String> {
        let fields: Vec<&str> = line.split(',').collect();
        let [reference, stressor, count, place, slowdown, exact, source] = fields[..] else {
            return Err(format!("{} fields, expected 7", fields.len()));
        };
        let benchmark = |name| {
            PublishedBenchmark::named(name)
                .ok_or_else(|| format!("'{name}' is not a microbenchmark"))
        };
        let number =
            |text: &str| text.parse::<f64>().map_err(|_| format!("'{text}' is not a number"));
        // The table has the middle of a range, and the range in percent beside its source.
        let range = source.split_once('(').and_then(|(_, range)| range.strip_suffix("%)"));
        let slowdown = match (range.and_then(|range| range.split_once('-')), exact) {
            (Some((from, to)), _) => {
                PrintedSlowdown::Range(1.0 + number(from)? / 100.0, 1.0 + number(to)? / 100.0)
            }
            (None, "1") => PrintedSlowdown::Number(number(slowdown)?),
            (None, _) => PrintedSlowdown::Words(number(slowdown)?),
        };
        let experiment = BenchmarkExperiment {
            reference: benchmark(reference)?,
            stressor: benchmark(stressor)?,
            count: count.parse().map_err(|_| format!("'{count}' is not a count"))?,
            place: place.parse()?,
        };
        Ok(Self { experiment, slowdown, source: source.into() })
    }

    /// The values of the model that were found from this figure. So it tests them only if another
    /// figure fixes them, too. Without one, the figure follows from what the paper prints of the
    /// processor.
    pub fn inferred(&self) -> &'static [InferredValue] {
        use InferredValue::{
            AfterLoad, DivideLatency, Fill, Handover, LoadStoreArbitration, RowConflict,
        };
        use PublishedBenchmark::{Dcache, FpDiv, IntAdd, IntDiv, L2cache, Mem};
        let BenchmarkExperiment { reference, stressor, count, place } = self.experiment;
        match (reference, stressor, place) {
            (IntDiv, IntDiv, StressorPlace::Core) => &[Handover, DivideLatency],
            (FpDiv, FpDiv, StressorPlace::Core) => &[Handover],
            (FpDiv, FpDiv, StressorPlace::Pipe) if count > 3 => &[Handover],
            (IntDiv, FpDiv, StressorPlace::Pipe | StressorPlace::Core)
            | (FpDiv, IntDiv, StressorPlace::Pipe | StressorPlace::Core)
            | (IntDiv, IntDiv, StressorPlace::Pipe) => &[DivideLatency],
            (IntAdd, Dcache, StressorPlace::Pipe) => &[AfterLoad],
            (Dcache, Dcache, StressorPlace::Core) => &[LoadStoreArbitration],
            (L2cache, Dcache, StressorPlace::Pipe | StressorPlace::Core) => &[Fill],
            (Mem, ..) => &[RowConflict],
            _ => &[],
        }
    }

    /// Why no model can agree with both this figure and the rest of the paper, if none can.
    pub fn contradiction(&self) -> Option<&'static str> {
        use PublishedBenchmark::{FpAdd, IntMul, L2cache, Mem};
        let BenchmarkExperiment { reference, stressor, count, place } = self.experiment;
        match (reference, stressor, count, place) {
            (IntMul, IntMul, 5.., StressorPlace::Pipe) => Some(
                "impossible with the CPI of 5 in Table 2. The unit takes one operation per cycle, \
                 so six, seven, eight threads need 6/5, 7/5, 8/5. The paper's 1, 7/6, 8/6 follow \
                 from a latency of 6, against figure 3",
            ),
            (IntMul | FpAdd, IntMul, 3 | 4, _) => Some(
                "against section 4.2: \"as long as the number of benchmarks running on the same \
                 core is less or equal to six, we detect no slowdown\"",
            ),
            (L2cache, Mem, 3, StressorPlace::Pipe) => Some(
                "bistable, as the range shows. Whether the array stays in the L2 depends on the \
                 start offsets. On another pipe or core the paper has 9.2",
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_the_table_is_read() {
        let csv = "# note\n\
                   reference,stressor,count,where,slowdown,exact,source\n\
                   FPdiv,FPdiv,4,pipe+core,7.6,1,4.2 fig4b\n";
        let experiment = BenchmarkExperiment {
            reference: PublishedBenchmark::FpDiv,
            stressor: PublishedBenchmark::FpDiv,
            count: 4,
            place: StressorPlace::Pipe,
        };
        let slowdown = PrintedSlowdown::Number(7.6);
        let figure = PublishedSlowdown { experiment, slowdown, source: "4.2 fig4b".into() };
        assert_eq!(PublishedSlowdown::parse_all(csv), Ok(vec![figure]));
        let range = csv.replace("fig4b", "(10-15%)");
        let [figure] = &PublishedSlowdown::parse_all(&range).unwrap()[..] else { unreachable!() };
        assert_eq!(figure.slowdown, PrintedSlowdown::Range(1.1, 1.15));
        assert!(figure.slowdown.agrees(1.12) && !figure.slowdown.agrees(1.09));
        assert!((figure.slowdown.off(1.045) + 0.05).abs() < 1e-9);
        let error = PublishedSlowdown::parse_all(&csv.replace("7.6", "much")).unwrap_err();
        assert_eq!(error, "line 3: 'much' is not a number");
    }

    #[test]
    fn additions_beside_loads_rest_on_loads_that_yield() {
        // Figure 2 of the paper has 2; the others of integer additions and loads are the same
        // without the rule.
        let slowdown = |after_load, reference, stressor| {
            let mut processor = Processor::model("ultrasparc-t2").unwrap();
            processor.intra_pipe.fetch.after_load = after_load;
            let beside =
                BenchmarkExperiment { reference, stressor, count: 3, place: StressorPlace::Pipe };
            let [alone, beside] = [BenchmarkExperiment::alone(reference), beside]
                .map(|e| e.cpi(&processor, 2).unwrap().mean());
            (beside / alone * 10.0).round() / 10.0
        };
        use crate::AfterLoad::{Alike, LoadsYield};
        use PublishedBenchmark::{Dcache, IntAdd};
        assert_eq!([LoadsYield, Alike].map(|rule| slowdown(rule, IntAdd, Dcache)), [2.0, 4.0]);
        for (reference, stressor) in [(Dcache, IntAdd), (Dcache, Dcache)] {
            assert_eq!(
                [LoadsYield, Alike].map(|rule| slowdown(rule, reference, stressor)),
                [2.0, 2.0]
            );
        }
    }

    #[test]
    fn experiments_run_side_by_side_give_what_they_give_alone() {
        let processor = Processor::model("ultrasparc-t2").unwrap();
        let beside = |count| BenchmarkExperiment {
            count,
            ..BenchmarkExperiment::alone(PublishedBenchmark::IntMul)
        };
        let experiments = [beside(0), beside(6)];
        let together = run(&processor, &experiments, 2).unwrap();
        assert_eq!(together[1], experiments[1].cpi(&processor, 2).unwrap());
        assert!(together[1].over(&together[0]).mean() > 1.3);
        assert!(matches!(
            run(&processor, &[beside(64)], 1),
            Err(PlacementError::Context { context: 64, .. })
        ));
    }
}
