//! The host as a bench: one thread per program, each on its own context.

use super::chase::{Chain, Strip};
use super::footprint::Footprint;
use super::{Kind, kernel};
use crate::sys;
use pinwise_testbed::{Bench, Fame, MeasureError, Microbenchmark, Pace, PaceUnit, Retry, Seat};
use pinwise_topology::{Alike, CpuId, CpuSet, DomainKind, Machine, Random, SharingTree};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// CPU time of one repetition when nothing disturbs: long against the reading of the clock (below 1 us), short against a time slice.
const REPETITION: Duration = Duration::from_millis(4);
/// What all programs run together before repetitions count.
const SETTLING: Duration = Duration::from_millis(12);
/// A set of programs that takes longer than this has no machine of its own.
const PATIENCE: Duration = Duration::from_secs(60);

/// The machine we run on.
#[derive(Debug)]
pub struct HostBench {
    machine: Machine,
    leaves: Vec<CpuId>,
    programs: Vec<Program>,
    benchmarks: Vec<Microbenchmark>,
    line: usize,
    cancelled: Arc<AtomicBool>,
}

/// What a thread executes, and over how many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Program {
    kind: Kind,
    footprint: usize,
    /// Whether its memory is to be in its cache before anything is timed.
    warm: bool,
}

impl HostBench {
    /// A bench on `machine`, which has to be the one we run on. Runs end soon after `cancelled` becomes true.
    ///
    /// # Errors
    /// No context is allowed, or no programs were written for this architecture.
    pub fn new(machine: Machine, cancelled: Arc<AtomicBool>) -> Result<Self, MeasureError> {
        if !kernel::PRESENT {
            let message = format!(
                "no microbenchmarks for the architecture {}: they are written in assembly for x86_64 and aarch64; characterize \
                 a model instead (--machine ultrasparc-t2)",
                std::env::consts::ARCH
            );
            return Err(MeasureError::new(Retry::Never, message));
        }
        let leaves = SharingTree::new(&machine, Alike::ByStructure).leaves().to_vec();
        let Some(&first) = leaves.first() else {
            let message = "no hardware context is allowed: check the cpuset and the affinity mask (taskset -p $$)";
            return Err(MeasureError::new(Retry::Never, message));
        };
        let footprint = Footprint::new(&machine, first, leaves.len(), available());
        let (benchmarks, programs) = programs(&machine, first, footprint).into_iter().unzip();
        Ok(Self { machine, leaves, programs, benchmarks, line: footprint.line, cancelled })
    }

    /// Bytes that each benchmark walks over, in their order; 0 for arithmetic.
    pub fn footprints(&self) -> Vec<usize> {
        self.programs.iter().map(|program| program.footprint).collect()
    }

    /// The thread of one seat: everything it does is in the run it is part of.
    fn work(&self, seat: Seat, fame: &Fame, seed: u64, run: &Run) -> Result<Pace, MeasureError> {
        let failed = |what: &str, error: std::io::Error| {
            run.failed.store(true, Ordering::Relaxed);
            let name = &self.benchmarks[seat.benchmark].name;
            MeasureError::new(
                Retry::Same,
                format!("{name} on CPU {}: {what}: {error}", self.leaves[seat.leaf as usize].0),
            )
        };
        let cpu = self.leaves[seat.leaf as usize];
        sys::set_affinity(0, &CpuSet::from_iter([cpu]))
            .map_err(|error| failed("cannot pin its thread there", error))?;
        let program = self.programs[seat.benchmark];
        let mut random = Random::new(seed ^ (u64::from(seat.leaf) << 32));
        let mut load = Load::new(program, self.line, &mut random).map_err(|error| failed("no memory for it", error))?;
        load.warm_up();
        let passes = load.calibrate();
        run.ready.fetch_add(1, Ordering::Relaxed);

        let mut settled: Option<Instant> = None;
        let mut times = Vec::new();
        let mut counted = Duration::ZERO;
        let mut done = false;
        let per_repetition = (passes * kernel::operations(program.kind)) as f64;
        let mut began = Instant::now();
        loop {
            let time = timed(|| load.run(passes));
            if self.cancelled.load(Ordering::Relaxed) {
                return Err(MeasureError::interrupted());
            }
            if run.failed.load(Ordering::Relaxed) || run.began.elapsed() > PATIENCE {
                run.failed.store(true, Ordering::Relaxed);
                let message = format!("the set of programs did not end within {} s", PATIENCE.as_secs());
                return Err(MeasureError::new(Retry::Same, message));
            }
            if run.ready.load(Ordering::Relaxed) < run.programs {
                continue;
            }
            let now = Instant::now();
            if now.duration_since(*settled.get_or_insert(now)) < SETTLING {
                began = Instant::now();
                continue;
            }
            counted += time;
            times.push(time.as_nanos() as f64 / per_repetition);
            if !done && fame.over(&times) {
                done = true;
                run.done.fetch_add(1, Ordering::Relaxed);
            }
            if run.done.load(Ordering::Relaxed) == run.programs {
                let share = (counted.as_secs_f64() / began.elapsed().as_secs_f64().max(1e-9)).min(1.0);
                // There is at least one repetition.
                return Pace::new(&times, per_repetition as u64, fame)
                    .map(|pace| Pace { share, ..pace })
                    .ok_or_else(|| MeasureError::new(Retry::Same, "the clock of CPU time stands still"));
            }
        }
    }
}

impl Bench for HostBench {
    fn machine(&self) -> &Machine {
        &self.machine
    }

    fn benchmarks(&self) -> &[Microbenchmark] {
        &self.benchmarks
    }

    fn unit(&self) -> PaceUnit {
        PaceUnit::Nanoseconds
    }

    fn at_once(&self) -> usize {
        1
    }

    fn run(&self, layout: &[Seat], fame: &Fame, seed: u64) -> Result<Vec<Pace>, MeasureError> {
        let run = Run {
            programs: layout.len(),
            began: Instant::now(),
            ready: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        };
        let results: Vec<Result<Pace, MeasureError>> = std::thread::scope(|scope| {
            let start = |&seat: &Seat| {
                let builder = std::thread::Builder::new().name(self.benchmarks[seat.benchmark].name.clone());
                let run = &run;
                builder.spawn_scoped(scope, move || self.work(seat, fame, seed, run)).inspect_err(|_| {
                    run.failed.store(true, Ordering::Relaxed);
                })
            };
            let threads: Vec<_> = layout.iter().map(start).collect();
            let end = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| match thread {
                Ok(thread) => thread
                    .join()
                    .unwrap_or_else(|_| Err(MeasureError::new(Retry::Never, "a microbenchmark's thread died"))),
                Err(error) => Err(MeasureError::new(Retry::Same, format!("no thread for a microbenchmark: {error}"))),
            };
            threads.into_iter().map(end).collect()
        });
        results.into_iter().collect()
    }
}

/// What the threads of one run know of each other.
struct Run {
    programs: usize,
    began: Instant,
    /// Threads that have their memory and run.
    ready: AtomicUsize,
    /// Threads that made enough repetitions.
    done: AtomicUsize,
    /// One of them cannot go on.
    failed: AtomicBool,
}

/// A program with its memory.
enum Load {
    Compute(Kind),
    Chain(Chain, bool),
    Strip(Strip),
}

impl Load {
    fn new(program: Program, line: usize, random: &mut Random) -> std::io::Result<Self> {
        Ok(match program.kind {
            Kind::Chase => Self::Chain(Chain::new(program.footprint, line, random)?, program.warm),
            Kind::Stream => Self::Strip(Strip::new(program.footprint)?),
            kind => Self::Compute(kind),
        })
    }

    /// Brings what belongs into a cache there: the chain twice from beginning to end.
    fn warm_up(&mut self) {
        if let Self::Chain(chain, true) = self {
            let passes = 2 * (chain.length as u64).div_ceil(kernel::operations(Kind::Chase));
            chain.follow(passes);
        }
    }

    fn run(&mut self, passes: u64) {
        match self {
            Self::Compute(kind) => kernel::compute(*kind, passes),
            Self::Chain(chain, _) => chain.follow(passes),
            Self::Strip(strip) => strip.read(passes),
        }
    }

    /// Passes that take about [`REPETITION`].
    fn calibrate(&mut self) -> u64 {
        let mut passes = 1;
        loop {
            let time = timed(|| self.run(passes));
            if time >= REPETITION / 8 {
                let more = REPETITION.as_secs_f64() / time.as_secs_f64();
                return ((passes as f64 * more).round() as u64).max(1);
            }
            passes *= 2;
        }
    }
}

/// The CPU time of the calling thread that `act` takes.
fn timed(act: impl FnOnce()) -> Duration {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        // CPU time is never negative.
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    };
    let before = now();
    act();
    now().saturating_sub(before)
}

/// The programs with what they stress on `machine`, around `cpu`.
fn programs(machine: &Machine, cpu: CpuId, footprint: Footprint) -> Vec<(Microbenchmark, Program)> {
    let shared = |level: u8, kind: DomainKind| {
        let cache = machine.data_caches(level).find(|cache| cache.cpus.contains(cpu));
        let core = machine.domains(DomainKind::Core).find(|core| core.cpus.contains(cpu));
        match (cache, core) {
            (Some(cache), Some(core)) if !cache.cpus.is_subset(&core.cpus) => kind,
            _ => DomainKind::Core,
        }
    };
    let mut programs = Vec::new();
    let mut add = |name: &str, resource: &str, level, pipelined, kind, footprint, warm| {
        let benchmark = Microbenchmark { name: name.into(), resource: resource.into(), level, pipelined };
        programs.push((benchmark, Program { kind, footprint, warm }));
    };
    let core = DomainKind::Core;
    add("intadd", "integer units", core, true, Kind::Add, 0, false);
    add("intmul", "integer multiplier", core, true, Kind::Multiply, 0, false);
    add("intdiv", "integer divider", core, false, Kind::Divide, 0, false);
    add("FPadd", "floating-point adders", core, true, Kind::FloatAdd, 0, false);
    add("FPdiv", "floating-point divider", core, false, Kind::FloatDivide, 0, false);
    add("Dcache", "L1 data cache", core, true, Kind::Chase, footprint.first, true);
    add("L2cache", "L2 cache", shared(2, DomainKind::L2), true, Kind::Chase, footprint.second, true);
    if let Some(third) = footprint.third {
        add("L3cache", "L3 cache", shared(3, DomainKind::L3), true, Kind::Chase, third, true);
    }
    add("mem", "memory latency", DomainKind::Numa, true, Kind::Chase, footprint.memory, false);
    add("stream", "memory bandwidth", DomainKind::Numa, true, Kind::Stream, footprint.memory, false);
    programs
}

/// Bytes of memory that programs may take without swapping (`/proc/meminfo`, MemAvailable).
fn available() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bench(cancelled: bool) -> HostBench {
        HostBench::new(crate::machine().unwrap(), Arc::new(AtomicBool::new(cancelled))).unwrap()
    }

    #[test]
    fn every_program_runs_alone_at_a_plausible_pace() {
        let bench = bench(false);
        let fame = Fame { maiv: 0.5, least: 2, most: 4 };
        for (index, benchmark) in bench.benchmarks().iter().enumerate() {
            // The large ones are in the end-to-end test of the command.
            if bench.footprints()[index] > 1 << 24 {
                continue;
            }
            let paces = bench.run(&[Seat { leaf: 0, benchmark: index }], &fame, 1).unwrap();
            let pace = paces[0];
            // No core executes 50 operations a nanosecond, and no cache takes 10 us.
            assert!(pace.time > 0.02 && pace.time < 10_000.0, "{}: {pace:?}", benchmark.name);
            assert!(pace.repetitions >= 2 && pace.operations > 0 && pace.share > 0.0, "{pace:?}");
        }
    }

    #[test]
    fn programs_that_run_together_are_all_timed() {
        let bench = bench(false);
        let fame = Fame { maiv: 0.5, least: 3, most: 6 };
        let seats: Vec<Seat> =
            (0..bench.leaves.len().min(4)).map(|leaf| Seat { leaf: leaf as u32, benchmark: leaf % 2 }).collect();
        let paces = bench.run(&seats, &fame, 1).unwrap();
        assert_eq!(paces.len(), seats.len());
        assert!(paces.iter().all(|pace| pace.repetitions >= 3));
    }

    #[test]
    fn a_cancelled_run_says_so() {
        let error = bench(true).run(&[Seat { leaf: 0, benchmark: 0 }], &Fame::default(), 1).unwrap_err();
        assert!(error.interrupted);
    }

    #[test]
    fn a_context_that_is_not_there_is_an_error_of_one_program_that_ends_all() {
        let mut bench = bench(false);
        bench.leaves.push(CpuId(8190));
        let absent = Seat { leaf: bench.leaves.len() as u32 - 1, benchmark: 0 };
        let error = bench.run(&[absent, Seat { leaf: 0, benchmark: 0 }], &Fame::default(), 1).unwrap_err();
        assert!(error.message.contains("intadd on CPU 8190: cannot pin"), "{error}");
    }
}
