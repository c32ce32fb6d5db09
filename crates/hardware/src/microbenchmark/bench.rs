//! The host as a bench: one thread per program, each on its own context.

use super::footprint::MemoryFootprint;
use super::loaded_program::{BenchmarkProgram, LoadedProgram};
use super::run::BenchmarkRun;
use super::{InstructionKind, cache_sizes, kernel};
use pinwise_linux::sys;
use pinwise_measure::{
    Bench, Fame, Interrupt, MeasureError, Microbenchmark, Pace, PaceUnit, Retry, Seat, WorkingSets,
};
use pinwise_topology::{Alike, CpuId, CpuSet, DomainKind, Machine, Random, SharingTree};
use std::io;

/// The machine we run on.
#[derive(Debug)]
pub struct HostBench {
    machine: Machine,
    leaves: Vec<CpuId>,
    programs: Vec<BenchmarkProgram>,
    benchmarks: Vec<Microbenchmark>,
    footprint: MemoryFootprint,
    working_sets: Option<WorkingSets>,
    cancelled: Interrupt,
}

impl HostBench {
    /// A bench on `machine`, which has to be the one we run on. Runs end soon after `cancelled`
    /// becomes true.
    ///
    /// # Errors
    /// No context is allowed, or no programs were written for this architecture.
    pub fn new(machine: Machine, cancelled: Interrupt) -> Result<Self, MeasureError> {
        if !kernel::PRESENT {
            let message = format!(
                "no microbenchmarks for {}: they are assembly for x86_64 and aarch64; characterize \
                 a model with --machine ultrasparc-t2",
                std::env::consts::ARCH
            );
            return Err(MeasureError::new(Retry::Never, message));
        }
        let leaves = SharingTree::new(&machine, Alike::ByStructure).leaves().to_vec();
        let Some(&first) = leaves.first() else {
            let message = "no hardware context is allowed: check the cpuset and the affinity mask \
                (taskset -p $$)";
            return Err(MeasureError::new(Retry::Never, message));
        };
        let footprint = MemoryFootprint::new(&machine, first, leaves.len(), available());
        let (benchmarks, programs) = programs(&machine, first, footprint).into_iter().unzip();
        Ok(Self { machine, leaves, programs, benchmarks, footprint, working_sets: None, cancelled })
    }

    /// The context whose caches are looked at.
    pub fn first(&self) -> CpuId {
        self.leaves[0]
    }

    /// Measures what the first context gets of its caches. Takes some seconds.
    ///
    /// # Errors
    /// No memory; the context cannot be used; cancelled.
    pub fn look_at_caches(&self) -> Result<WorkingSets, MeasureError> {
        let first = self.first();
        let (footprint, cancelled) = (self.footprint, &self.cancelled);
        let measured = std::thread::scope(|scope| {
            let look = || {
                sys::set_affinity(0, &CpuSet::from_iter([first]))?;
                cache_sizes::measure(footprint.memory, footprint.line, cancelled)
            };
            let thread =
                std::thread::Builder::new().name("caches".into()).spawn_scoped(scope, look)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread died")))
        });
        let curve = measured.map_err(|error| match error.kind() {
            io::ErrorKind::Interrupted => MeasureError::interrupted(),
            _ => MeasureError::new(
                Retry::Same,
                format!("cannot look at the caches of CPU {}: {error}", first.0),
            ),
        })?;
        Ok(cache_sizes::working_sets(&self.machine, first, curve))
    }

    /// Sizes the programs by what a look at the caches found. If it found no last-level cache, its
    /// programs are left out.
    pub fn know_caches(&mut self, found: WorkingSets) {
        self.footprint = self.footprint.fitted(&found);
        (self.benchmarks, self.programs) =
            programs(&self.machine, self.leaves[0], self.footprint).into_iter().unzip();
        self.working_sets = Some(found);
    }

    /// The thread of one seat: everything it does is in the run it is part of.
    fn work(
        &self,
        index: usize,
        seat: Seat,
        fame: &Fame,
        seed: u64,
        run: &BenchmarkRun<'_>,
    ) -> Result<Pace, MeasureError> {
        let failed = |what: &str, error: io::Error| {
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
        let load = LoadedProgram::new(program, self.footprint.line, &mut random)
            .map_err(|error| failed("no memory for it", error))?;
        run.work(index, program, load, fame)
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

    fn working_sets(&self) -> Option<&WorkingSets> {
        self.working_sets.as_ref()
    }

    fn run(&self, layout: &[Seat], fame: &Fame, seed: u64) -> Result<Vec<Pace>, MeasureError> {
        let run = BenchmarkRun::new(layout.len(), &self.cancelled);
        let results: Vec<Result<Pace, MeasureError>> = std::thread::scope(|scope| {
            let start = |(index, &seat): (usize, &Seat)| {
                let builder =
                    std::thread::Builder::new().name(self.benchmarks[seat.benchmark].name.clone());
                let run = &run;
                let work = move || {
                    self.work(index, seat, fame, seed, run).inspect_err(|error| run.fail(error))
                };
                builder.spawn_scoped(scope, work).map_err(|error| {
                    let error = MeasureError::new(
                        Retry::Same,
                        format!("no thread for a microbenchmark: {error}"),
                    );
                    run.fail(&error);
                    error
                })
            };
            let threads: Vec<_> = layout.iter().enumerate().map(start).collect();
            let died = || MeasureError::new(Retry::Never, "a microbenchmark's thread died");
            let end = |thread: Result<std::thread::ScopedJoinHandle<'_, _>, MeasureError>| {
                thread.and_then(|thread| thread.join().unwrap_or_else(|_| Err(died())))
            };
            threads.into_iter().map(end).collect()
        });
        match run.error() {
            Some(error) => Err(error),
            None => results.into_iter().collect(),
        }
    }
}

/// The programs with what they stress on `machine`, around `cpu`.
fn programs(
    machine: &Machine,
    cpu: CpuId,
    footprint: MemoryFootprint,
) -> Vec<(Microbenchmark, BenchmarkProgram)> {
    let shared = |level: u8, kind: DomainKind| {
        let cache = machine.data_caches(level).find(|cache| cache.cpus.contains(cpu));
        let core = machine.domains(DomainKind::Core).find(|core| core.cpus.contains(cpu));
        match (cache, core) {
            (Some(cache), Some(core)) if !cache.cpus.is_subset(&core.cpus) => kind,
            _ => DomainKind::Core,
        }
    };
    let (second, small) = (footprint.second, footprint.third.unwrap_or(footprint.second));
    let mut programs = Vec::new();
    let mut add = |name: &str, resource: &str, level, pipelined, kind, footprint, warm| {
        let benchmark =
            Microbenchmark { name: name.into(), resource: resource.into(), level, pipelined };
        let far = matches!(
            kind,
            InstructionKind::Stream
                | InstructionKind::Store
                | InstructionKind::Follow
                | InstructionKind::Scatter
        ) || footprint > second;
        programs.push((benchmark, BenchmarkProgram { kind, footprint, small, warm, far }));
    };
    let core = DomainKind::Core;
    add("intadd", "integer units", core, true, InstructionKind::Add, 0, false);
    add("intmul", "integer multiplier", core, true, InstructionKind::Multiply, 0, false);
    add("intdiv", "integer divider", core, false, InstructionKind::Divide, 0, false);
    add("FPadd", "floating-point adders", core, true, InstructionKind::FloatAdd, 0, false);
    add("FPdiv", "floating-point divider", core, false, InstructionKind::FloatDivide, 0, false);
    add("Dcache", "L1 data cache", core, true, InstructionKind::Chase, footprint.first, true);
    add(
        "L2cache",
        "L2 cache",
        shared(2, DomainKind::L2),
        true,
        InstructionKind::Chase,
        footprint.second,
        true,
    );
    let third = shared(3, DomainKind::L3);
    if let Some(bytes) = footprint.third {
        add("L3cache", "L3 cache", third, true, InstructionKind::Chase, bytes, true);
    }
    if let Some(bytes) = footprint.edge {
        add(
            "L3full",
            "what the L3 cache holds",
            third,
            true,
            InstructionKind::Follow,
            bytes,
            false,
        );
    }
    let memory = DomainKind::Numa;
    add("mem", "memory latency", memory, true, InstructionKind::Chase, footprint.memory, false);
    add(
        "stream",
        "memory bandwidth, reading",
        memory,
        true,
        InstructionKind::Stream,
        footprint.memory,
        false,
    );
    add(
        "write",
        "memory bandwidth, writing",
        memory,
        true,
        InstructionKind::Store,
        footprint.memory,
        false,
    );
    add(
        "scatter",
        "memory, many loads at once",
        memory,
        true,
        InstructionKind::Scatter,
        footprint.scatter,
        false,
    );
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
        let interrupt = Interrupt::default();
        if cancelled {
            interrupt.give_up();
        }
        HostBench::new(pinwise_linux::this_machine().unwrap(), interrupt).unwrap()
    }

    #[test]
    fn every_program_runs_alone_at_a_plausible_pace() {
        let bench = bench(false);
        let fame = Fame { maiv: 0.5, least: 2, most: 4 };
        for (index, benchmark) in bench.benchmarks().iter().enumerate() {
            // The large ones are in the end-to-end test of the command.
            if bench.programs[index].footprint > 1 << 24 {
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
        let seats: Vec<Seat> = (0..bench.leaves.len().min(4))
            .map(|leaf| Seat { leaf: leaf as u32, benchmark: leaf % 2 })
            .collect();
        let paces = bench.run(&seats, &fame, 1).unwrap();
        assert_eq!(paces.len(), seats.len());
        assert!(paces.iter().all(|pace| pace.repetitions >= 3));
    }

    #[test]
    fn a_cancelled_run_says_so() {
        let error =
            bench(true).run(&[Seat { leaf: 0, benchmark: 0 }], &Fame::default(), 1).unwrap_err();
        assert!(error.interrupted);
    }

    #[test]
    fn a_context_that_is_not_there_is_an_error_of_one_program_that_ends_all() {
        let mut bench = bench(false);
        bench.leaves.push(CpuId(8190));
        let absent = Seat { leaf: bench.leaves.len() as u32 - 1, benchmark: 0 };
        let error =
            bench.run(&[absent, Seat { leaf: 0, benchmark: 0 }], &Fame::default(), 1).unwrap_err();
        assert!(error.message.contains("intadd on CPU 8190: cannot pin"), "{error}");
    }
}
