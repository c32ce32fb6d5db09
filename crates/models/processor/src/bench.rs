//! A model as a bench: the microbenchmarks of the characterization, any set of them on any
//! contexts.
//!
//! Arrays larger than the first-level cache are read through before anything runs
//! ([`Chip::read_through`]). The contents of the second level then depend on how long hits and
//! misses take, and hardly on the cores. If they do not fit together, that happens [`PASSES`]
//! times, since the contents settle over several passes. From then on all programs run, and FAME
//! decides.
//!
//! Arrays that fit there may still drive each other out of a first level. They do so for ever in
//! one of several ways, depending on the starts. Such a set, and one that does not settle, runs
//! from [`STARTS`] starts, and their mean rate counts. Another start shows more than a longer run
//! from the same one. If each array alone would fit a first level there are [`MANY_STARTS`]. Such
//! sets settle soon, most of them near one rate and a few at a fraction of it. Eight starts may
//! miss these. Arrays that do not fit the second level need all of the time for one start.
//!
//! A repetition is a pass through `L2cache`'s array, a fifth of one through `mem`'s, and some
//! thousand operations otherwise. Hits are not spread evenly over `mem`'s array, and FAME makes at
//! least five repetitions.

use crate::program::{ProgramSet, PublishedBenchmark, Region};
use crate::{Chip, ClockMode as Stepping, PlacedThread, Processor};
use pinwise_measure::{
    Bench, Fame, Interrupt, MeasureError, Microbenchmark, Pace, PaceUnit, Retry, Seat,
};
use pinwise_topology::{Alike, DomainKind, Machine, Random, SharingTree};

/// Start offsets are uniform below this many cycles: longer than any instruction.
const OFFSETS: u64 = 1000;
/// Passes through arrays that do not fit the second level, before anything runs.
const PASSES: u64 = 3;
/// Cycles between two looks at the counters.
const LOOK: u64 = 1000;
/// Cycles that all programs run together before repetitions count.
const SETTLING: u64 = 20_000;
/// No set of programs is simulated for longer than this many cycles, six passes of `L2cache`
/// through memory. Where arrays do not fit the second level, it may change its regime for ever.
const LONGEST: u64 = 30_000_000;
/// How many starts a set runs from if one is no answer, and arrays fit the second level. Each has
/// its part of [`LONGEST`].
const STARTS: u64 = 8;
/// The same if no array is larger than a first level.
pub(crate) const MANY_STARTS: u64 = 64;

/// A processor model on which sets of microbenchmarks run.
#[derive(Debug)]
pub struct ModelBench {
    processor: Processor,
    machine: Machine,
    /// The context of each leaf.
    contexts: Vec<usize>,
    benchmarks: Vec<Microbenchmark>,
    cancelled: Interrupt,
}

impl ModelBench {
    /// A bench on `processor`. Runs end soon after `cancelled` becomes true.
    pub fn new(processor: Processor, cancelled: Interrupt) -> Self {
        let machine = processor.machine();
        let tree = SharingTree::new(&machine, Alike::ByStructure);
        let contexts = tree.leaves().iter().map(|cpu| cpu.0 as usize).collect();
        Self {
            processor,
            machine,
            contexts,
            benchmarks: PublishedBenchmark::ALL.map(describe).to_vec(),
            cancelled,
        }
    }

    /// How often the arrays of these programs are read through beforehand.
    fn passes(&self, programs: &[PublishedBenchmark]) -> u64 {
        let arrays = programs.iter().filter(|&&program| self.beyond_first_level(program));
        if self.fits(arrays.map(|program| program.array()).sum()) { 1 } else { PASSES }
    }

    /// Whether the second level holds this many bytes.
    fn fits(&self, bytes: u64) -> bool {
        bytes <= u64::from(self.processor.inter_core.l2.size_kib) << 10
    }

    fn beyond_first_level(&self, program: PublishedBenchmark) -> bool {
        self.processor.beyond_first_level(program.array())
    }

    /// Whether the arrays of a core drive each other out of its first level.
    fn compete(&self, layout: &[Seat], programs: &[PublishedBenchmark]) -> bool {
        let core =
            |seat: &Seat| self.contexts[seat.leaf as usize] / self.processor.contexts_per_core();
        layout.iter().any(|of| {
            let beside = layout.iter().zip(programs).filter(|(seat, _)| core(seat) == core(of));
            self.processor.first_level_contested(
                &beside.map(|(_, program)| program.array()).collect::<Vec<_>>(),
            )
        })
    }

    /// Instructions in a repetition.
    fn repetition(&self, program: PublishedBenchmark) -> u64 {
        let lines = program.array() / u64::from(self.processor.inter_core.l2.line);
        match program {
            PublishedBenchmark::L2cache => lines,
            PublishedBenchmark::Mem => lines / 5,
            PublishedBenchmark::IntAdd | PublishedBenchmark::Dcache => 10_000,
            _ => 2_000,
        }
    }

    /// What each of `programs` does in `layout` from one start drawn by chance. Also whether all of
    /// them settled within `longest` cycles.
    fn run_from_one_start(
        &self,
        layout: &[Seat],
        programs: &[PublishedBenchmark],
        fame: &Fame,
        longest: u64,
        random: &mut Random,
    ) -> Result<(Vec<Pace>, bool), MeasureError> {
        let failed = |message: String| MeasureError::new(Retry::Never, message);
        let place = |seat: &Seat| PlacedThread {
            context: self.contexts[seat.leaf as usize],
            start: random.below(OFFSETS),
            seed: 0,
        };
        let placed: Vec<PlacedThread> = layout.iter().map(place).collect();
        let job = ProgramSet::independent(
            (0..).zip(programs).map(|(instance, program)| program.program(instance)).collect(),
        );
        let mut chip = Chip::new(&self.processor, &job, &placed, Stepping::Events)
            .map_err(|error| failed(error.to_string()))?;
        let arrays = (0..)
            .zip(programs)
            .zip(&placed)
            .filter(|&((_, &program), _)| self.beyond_first_level(program));
        let arrays: Vec<(Region, u64)> = arrays
            .map(|((instance, program), placed)| (program.region(instance), placed.start))
            .collect();
        chip.read_through(&arrays, self.passes(programs));
        chip.run(OFFSETS + SETTLING);
        let mut series: Vec<RepetitionSeries> = (chip.counters().iter().zip(programs))
            .map(|(counters, &program)| {
                RepetitionSeries::new(self.repetition(program), chip.now(), counters.instructions)
            })
            .collect();
        let end = chip.now() + longest;
        while !series.iter().all(|series| series.over) && chip.now() < end {
            if self.cancelled.came() {
                return Err(MeasureError::interrupted());
            }
            chip.run(LOOK);
            for (series, counters) in series.iter_mut().zip(chip.counters()) {
                series.look(chip.now(), counters.instructions, fame);
            }
        }
        let pace = |series: &RepetitionSeries| {
            series.pace(fame).ok_or_else(|| failed("a program made no progress".into()))
        };
        let paces = series.iter().map(pace).collect::<Result<_, _>>()?;
        Ok((paces, series.iter().all(|series| series.over)))
    }
}

/// What a program stresses (MICRO 2009, Table 2).
fn describe(program: PublishedBenchmark) -> Microbenchmark {
    let (resource, level, pipelined) = match program {
        PublishedBenchmark::IntAdd => {
            ("instruction fetch and integer unit", DomainKind::Pipe, true)
        }
        PublishedBenchmark::IntMul => {
            ("floating-point unit, pipelined (multiply)", DomainKind::Core, true)
        }
        PublishedBenchmark::IntDiv => ("divide unit (integer)", DomainKind::Core, false),
        PublishedBenchmark::FpAdd => {
            ("floating-point unit, pipelined (add)", DomainKind::Core, true)
        }
        PublishedBenchmark::FpDiv => ("divide unit (floating point)", DomainKind::Core, false),
        PublishedBenchmark::Dcache => ("load/store unit and L1 data cache", DomainKind::Core, true),
        PublishedBenchmark::L2cache => ("crossbar and L2 cache", DomainKind::L2, true),
        PublishedBenchmark::Mem => ("memory controllers", DomainKind::Package, true),
    };
    Microbenchmark { name: program.name().into(), resource: resource.into(), level, pipelined }
}

impl Bench for ModelBench {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn benchmarks(&self) -> &[Microbenchmark] {
        &self.benchmarks
    }

    fn unit(&self) -> PaceUnit {
        PaceUnit::Cycles
    }

    fn at_once(&self) -> usize {
        std::thread::available_parallelism().map_or(1, usize::from)
    }

    fn run(&self, layout: &[Seat], fame: &Fame, seed: u64) -> Result<Vec<Pace>, MeasureError> {
        let programs: Vec<PublishedBenchmark> =
            layout.iter().map(|seat| PublishedBenchmark::ALL[seat.benchmark]).collect();
        let mut random = Random::new(seed);
        let compete = self.compete(layout, &programs);
        let beyond = programs.iter().any(|&program| self.beyond_first_level(program));
        let starts = match () {
            () if self.passes(&programs) > 1 => 1,
            () if compete && !beyond => MANY_STARTS,
            () => STARTS,
        };
        let mut start =
            || self.run_from_one_start(layout, &programs, fame, LONGEST / starts, &mut random);
        let (mut paces, settled) = start()?;
        if !settled || compete {
            for before in 1..starts {
                for (mean, pace) in paces.iter_mut().zip(start()?.0) {
                    let rate = 1.0 / mean.time;
                    mean.time = 1.0 / (rate + (1.0 / pace.time - rate) / (before + 1) as f64);
                    mean.repetitions += pace.repetitions;
                    mean.operations += pace.operations;
                    mean.steady &= pace.steady;
                }
            }
        }
        Ok(paces)
    }
}

/// The repetitions of one program.
struct RepetitionSeries {
    repetition: u64,
    /// When the current repetition began, and with how many instructions.
    began: (u64, u64),
    /// When the first began.
    first: (u64, u64),
    times: Vec<f64>,
    over: bool,
}

impl RepetitionSeries {
    fn new(repetition: u64, now: u64, instructions: u64) -> Self {
        Self {
            repetition,
            began: (now, instructions),
            first: (now, instructions),
            times: Vec::new(),
            over: false,
        }
    }

    /// Notes a repetition that has ended.
    fn look(&mut self, now: u64, instructions: u64, fame: &Fame) {
        let (cycles, done) = (now - self.began.0, instructions - self.began.1);
        if done >= self.repetition && self.times.len() < fame.most {
            self.times.push(cycles as f64 / done as f64);
            self.began = (now, instructions);
            self.over |= fame.over(&self.times);
        }
    }

    fn pace(&self, fame: &Fame) -> Option<Pace> {
        let pace = Pace::new(&self.times, self.repetition, fame)?;
        let (cycles, operations) = (self.began.0 - self.first.0, self.began.1 - self.first.1);
        Some(Pace { time: cycles as f64 / operations as f64, operations, ..pace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench() -> ModelBench {
        ModelBench::new(Processor::model("ultrasparc-t2").unwrap(), Interrupt::default())
    }

    fn seats(names: &[(u32, &str)]) -> Vec<Seat> {
        let find = |name: &str| {
            PublishedBenchmark::ALL.iter().position(|program| program.name() == name).unwrap()
        };
        names.iter().map(|&(leaf, name)| Seat { leaf, benchmark: find(name) }).collect()
    }

    #[test]
    fn paces_alone_are_those_of_table_2() {
        for (name, cpi) in
            [("intadd", 1.0), ("intmul", 5.0), ("FPadd", 6.0), ("FPdiv", 33.0), ("Dcache", 2.0)]
        {
            let pace = bench().run(&seats(&[(3, name)]), &Fame::default(), 1).unwrap()[0];
            assert!((pace.time / cpi - 1.0).abs() < 0.01 && pace.steady, "{name}: {pace:?}");
        }
    }

    #[test]
    fn equals_in_a_pipe_share_fetch_and_the_seed_decides_all() {
        let four = seats(&[(0, "intadd"), (1, "intadd"), (2, "intadd"), (3, "intadd")]);
        let paces = bench().run(&four, &Fame::default(), 1).unwrap();
        assert!(paces.iter().all(|pace| (pace.time / 4.0 - 1.0).abs() < 0.01), "{paces:?}");
        assert_eq!(paces, bench().run(&four, &Fame::default(), 1).unwrap());
    }

    #[test]
    fn what_does_not_settle_is_the_mean_of_several_starts() {
        let never = Fame { maiv: -1.0, least: 5, most: usize::MAX };
        let pace = bench().run(&seats(&[(0, "FPdiv")]), &never, 1).unwrap()[0];
        assert!((pace.time / 33.0 - 1.0).abs() < 0.01 && !pace.steady, "{pace:?}");
        // For each start, the operations up to the last whole repetition. In all it takes no more
        // cycles than a set that is watched once.
        let repetition = bench().repetition(PublishedBenchmark::FpDiv);
        let most = LONGEST as f64 / pace.time / repetition as f64;
        let repetitions = pace.repetitions as f64;
        assert!(
            repetitions <= most && repetitions > most - (2 * STARTS) as f64,
            "{repetitions} of {most}"
        );
        assert!(pace.operations >= pace.repetitions as u64 * repetition);
    }

    #[test]
    fn five_arrays_that_drive_each_other_out_are_the_rate_of_many_starts() {
        // MICRO 2009, figure 4c: Dcache is 1.40 times slower with four others in the other pipe. By
        // single starts it is 1.3, or 5 to 11.
        let five =
            seats(&[(0, "Dcache"), (4, "Dcache"), (5, "Dcache"), (6, "Dcache"), (7, "Dcache")]);
        for seed in [1, 5] {
            let pace = bench().run(&five, &Fame::default(), seed).unwrap()[0];
            assert!((pace.time / 2.0 / 1.40 - 1.0).abs() < 0.05, "{seed}: {pace:?}");
        }
    }

    #[test]
    fn arrays_compete_where_a_first_level_does_not_hold_them_together() {
        let compete = |names: &[(u32, &str)]| {
            let layout = seats(names);
            let programs: Vec<PublishedBenchmark> =
                layout.iter().map(|seat| PublishedBenchmark::ALL[seat.benchmark]).collect();
            bench().compete(&layout, &programs)
        };
        let in_a_core = |count: u32| (0..count).map(|leaf| (leaf, "Dcache")).collect::<Vec<_>>();
        assert!(!compete(&in_a_core(4)) && compete(&in_a_core(5)), "five arrays of 2 KiB in 8 KiB");
        assert!(
            compete(&[(0, "L2cache"), (4, "Dcache")]) && !compete(&[(0, "L2cache"), (8, "Dcache")])
        );
        assert!(!compete(&[(0, "L2cache"), (1, "L2cache")]), "neither finds anything there");
    }

    #[test]
    fn a_cancelled_run_says_so() {
        let bench = bench();
        bench.cancelled.give_up();
        assert!(bench.run(&seats(&[(0, "FPdiv")]), &Fame::default(), 1).unwrap_err().interrupted);
    }
}
