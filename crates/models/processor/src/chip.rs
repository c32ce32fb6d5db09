//! A chip: cores that run threads, and the memory behind them.

use crate::code::Code;
use crate::core::{Core, Strand, StrandCounters};
use crate::memory::Hierarchy;
use crate::processor::Processor;
use crate::program::{ProgramSet, ProgramSetError, ProgramStep, Region};

/// Where and how a thread of a job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedThread {
    /// The hardware context, as [`Processor::machine`] numbers them.
    pub context: usize,
    /// The cycle of its first fetch.
    pub start: u64,
    /// What its random draws begin from.
    pub seed: u64,
}

/// How a chip gets through time. Both ways give the same result in every cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockMode {
    /// Every core in every cycle: slow, and plain to see that it is right.
    EveryCycle,
    /// Only the cycles in which something can happen.
    Events,
}

/// Why a job cannot be placed so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// The job itself is broken.
    #[error(transparent)]
    Job(#[from] ProgramSetError),
    /// Not one place per thread.
    #[error("{threads} threads, but {placed} places")]
    Count {
        /// Threads of the job.
        threads: usize,
        /// Places given.
        placed: usize,
    },
    /// No such context, or another thread is there.
    #[error("thread {thread}: context {context} does not exist or is taken")]
    Context {
        /// The thread.
        thread: usize,
        /// The context.
        context: usize,
    },
    /// A division takes a time that the processor's divide unit does not take.
    #[error(
        "thread {thread}: a division of {cycles} cycles; this processor takes {shortest} to \
         {longest}"
    )]
    Division {
        /// The thread.
        thread: usize,
        /// Cycles the program says.
        cycles: u32,
        /// Fewest cycles of the processor.
        shortest: u32,
        /// Most cycles.
        longest: u32,
    },
}

/// A job on a processor whose threads are not placed yet: what does not depend on where they run.
/// Its programs are resolved. The second-level cache holds what [`ProgramSet::resident`] says,
/// which takes longer to find than a copy of it.
#[derive(Clone, Debug)]
pub struct UnplacedJob {
    processor: Processor,
    code: Code,
    /// The first step of each thread.
    begins: Vec<u32>,
    memory: Hierarchy,
}

/// A processor with threads on it, at a point in time. At the beginning the caches are empty but
/// for [`ProgramSet::resident`].
#[derive(Clone, Debug)]
pub struct Chip {
    now: u64,
    pace: ClockMode,
    /// Those that have threads.
    cores: Vec<Core>,
    code: Code,
    memory: Hierarchy,
    threads: usize,
}

impl UnplacedJob {
    /// `job` on `processor`. Errors: the job is broken, or `processor` cannot run it.
    pub fn new(processor: &Processor, job: &ProgramSet) -> Result<Self, PlacementError> {
        job.check()?;
        check_divisions(processor, job)?;
        let (code, begins) = Code::new(processor, job);
        let mut memory = Hierarchy::new(processor);
        memory.preload(&job.resident);
        Ok(Self { processor: processor.clone(), code, begins, memory })
    }

    /// Thread *i* at `placed[i]`. Errors: not one place for each thread, or not one thread for a
    /// place.
    pub fn place(&self, placed: &[PlacedThread], pace: ClockMode) -> Result<Chip, PlacementError> {
        check_places(&self.processor, self.begins.len(), placed)?;
        let mut code = self.code.clone();
        let pipes = self.processor.intra_core.pipes as usize;
        let strands = self.processor.intra_pipe.strands as usize;
        let mut by_context: Vec<usize> = (0..placed.len()).collect();
        by_context.sort_by_key(|&thread| placed[thread].context);
        let mut cores: Vec<(usize, Vec<Vec<Strand>>)> = Vec::new();
        for thread in by_context {
            let PlacedThread { context, start, seed } = placed[thread];
            let core = context / (pipes * strands);
            if cores.last().is_none_or(|&(last, _)| last != core) {
                cores.push((core, vec![Vec::new(); pipes]));
            }
            let strand = Strand::new(thread, code.enter(self.begins[thread], seed), start);
            if let Some((_, threads)) = cores.last_mut() {
                threads[context / strands % pipes].push(strand);
            }
        }
        let mut memory = self.memory.clone();
        memory.add_cores(&self.processor, cores.len());
        let cores = cores.into_iter().enumerate();
        let cores = cores
            .map(|(number, (_, threads))| Core::new(&self.processor, number, threads))
            .collect();
        Ok(Chip { now: 0, pace, cores, code, memory, threads: placed.len() })
    }
}

impl Chip {
    /// `job` on `processor`, thread *i* at `placed[i]`. Errors: see [`PlacementError`].
    pub fn new(
        processor: &Processor,
        job: &ProgramSet,
        placed: &[PlacedThread],
        pace: ClockMode,
    ) -> Result<Self, PlacementError> {
        UnplacedJob::new(processor, job)?.place(placed, pace)
    }

    /// Fills the second level as threads would that go through `arrays` line by line. Each begins
    /// in the next cycle, and there are this many passes. Only latencies decide in what order they
    /// load. No time passes.
    pub fn read_through(&mut self, arrays: &[(Region, u64)], passes: u64) {
        self.memory.read_through(arrays, passes);
    }

    /// Cycles since the beginning.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Runs for this many cycles.
    pub fn run(&mut self, cycles: u64) {
        let end = self.now + cycles;
        let Self { cores, code, memory, .. } = self;
        match self.pace {
            ClockMode::EveryCycle => {
                for now in self.now..end {
                    cores.iter_mut().for_each(|core| core.cycle(now, code, memory));
                }
            }
            ClockMode::Events => {
                while let Some((first, second)) = turn(cores, end) {
                    let core = &mut cores[first];
                    while place(core.due, first) < second {
                        core.event(end, code, memory);
                    }
                }
            }
        }
        self.now = end;
    }

    /// What each thread has done so far.
    pub fn counters(&self) -> Vec<StrandCounters> {
        let mut counters = vec![StrandCounters::default(); self.threads];
        for strand in self.cores.iter().flat_map(Core::strands) {
            counters[strand.thread] = strand.counters();
        }
        counters
    }
}

/// Where an event of a core stands in the order of events. The order is by its cycle, and within a
/// cycle by the number of the core.
fn place(due: u64, core: usize) -> u64 {
    const CORES: u64 = 32;
    due.saturating_mul(CORES).saturating_add(core as u64)
}

/// The core that is due first, if it is due before `end`. Also the place before which it may go on.
/// That is the place of the second, since cores do not make each other due.
fn turn(cores: &[Core], end: u64) -> Option<(usize, u64)> {
    let (mut first, mut least, mut second) = (0, place(end, 0), place(end, 0));
    // Nothing here follows a pattern, so nothing branches.
    for (number, core) in cores.iter().enumerate() {
        let place = place(core.due, number);
        second = second.min(place.max(least));
        first = if place < least { number } else { first };
        least = least.min(place);
    }
    (least < place(end, 0)).then_some((first, second))
}

fn check_places(
    processor: &Processor,
    threads: usize,
    placed: &[PlacedThread],
) -> Result<(), PlacementError> {
    if placed.len() != threads {
        return Err(PlacementError::Count { threads, placed: placed.len() });
    }
    let mut taken = vec![false; processor.contexts()];
    for (thread, &PlacedThread { context, .. }) in placed.iter().enumerate() {
        match taken.get_mut(context) {
            Some(taken) if !*taken => *taken = true,
            _ => return Err(PlacementError::Context { thread, context }),
        }
    }
    Ok(())
}

fn check_divisions(processor: &Processor, job: &ProgramSet) -> Result<(), PlacementError> {
    let [shortest, longest] = processor.intra_core.fpd.divide;
    for (thread, program) in job.threads.iter().enumerate() {
        for step in program.steps() {
            if let ProgramStep::Divide(cycles) = *step
                && !(shortest..=longest).contains(&cycles)
            {
                return Err(PlacementError::Division { thread, cycles, shortest, longest });
            }
        }
    }
    Ok(())
}
