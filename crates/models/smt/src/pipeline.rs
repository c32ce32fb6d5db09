//! How micro-operations of two programs go through a core: simultaneous multithreading (SMT).
//!
//! **Terms.** A *context* is what a program runs on; the core has two. A *micro-operation* is what
//! the core executes. The front end takes them from the *trace cache*, which holds decoded code.
//! The *window* holds micro-operations that have begun and not retired.
//!
//! **Problem.** Contexts share execution units, caches and the bus. So what a program does beside
//! another depends on both. A co-scheduler needs such a core to be tried on.
//!
//! **Method.** [`SmtCore`] describes a core, [`crate::StreamProgram`] a program as a stream of
//! micro-operations with given statistics. The simulation takes micro-operations in the order in
//! which they enter the window. It computes for each when its operands are there, when a unit is
//! free, and when it retires. Both contexts share caches, bus and units. If both run, each has half
//! of the window. [`events`] returns what both did. A counter sees no more than [`CounterValues`].
//!
//! **Limits.** Branches are mispredicted at a rate of the program, whoever runs beside it. Virtual
//! addresses are physical ones, and there is no TLB. Caches see accesses in the order of the
//! stream, not of the window. A prefetcher knows streams by their description.

use crate::description::SmtCore;
use crate::program::{AccessPattern, DataSet, StreamProgram};
use pinwise_processor::{CachePolicy, CacheTags};
use pinwise_topology::Random;

/// What the counters of a context show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterValues {
    /// Cycles.
    pub cycles: u64,
    /// Micro-operations.
    pub micro_ops: u64,
    /// Branches.
    pub branches: u64,
    /// Of these, those that were mispredicted.
    pub mispredicted: u64,
    /// Lines that the trace cache did not have.
    pub trace_misses: u64,
    /// Loads and stores whose line the L1 did not have.
    pub l1_misses: u64,
    /// Lines that the L2 did not have, for code or data, prefetched ones included.
    pub l2_misses: u64,
    /// Floating point micro-operations.
    pub fp: u64,
}

impl CounterValues {
    fn since(self, before: Self) -> Self {
        Self {
            cycles: self.cycles - before.cycles,
            micro_ops: self.micro_ops - before.micro_ops,
            branches: self.branches - before.branches,
            mispredicted: self.mispredicted - before.mispredicted,
            trace_misses: self.trace_misses - before.trace_misses,
            l1_misses: self.l1_misses - before.l1_misses,
            l2_misses: self.l2_misses - before.l2_misses,
            fp: self.fp - before.fp,
        }
    }

    /// Micro-operations per cycle.
    pub fn per_cycle(&self) -> f64 {
        self.micro_ops as f64 / self.cycles as f64
    }
}

/// What one or two programs do on the core in `cycles` cycles, after `before` cycles in which the
/// caches fill. A program alone has the whole window.
///
/// # Panics
/// There are no programs, or more than two.
pub fn events(
    core: &SmtCore,
    programs: &[&StreamProgram],
    seed: u64,
    before: u64,
    cycles: u64,
) -> Vec<CounterValues> {
    assert!((1..=2).contains(&programs.len()), "a core has two contexts");
    let mut simulation = SmtRun::new(core, programs, seed);
    let first = simulation.run(before);
    let last = simulation.run(before + cycles);
    last.into_iter().zip(first).map(|(last, first)| last.since(first)).collect()
}

/// Units that begin up to `capacity` operations per cycle.
struct PortCalendar {
    capacity: u8,
    /// By cycle, modulo its length: the cycle, and how many begin in it.
    begun: Vec<(u64, u8)>,
}

/// Cycles that a unit knows. Operations wait longer than this for nothing but their operands.
const KNOWN_CYCLES: usize = 1 << 13;

impl PortCalendar {
    fn new(capacity: u8) -> Self {
        Self { capacity, begun: vec![(0, 0); KNOWN_CYCLES] }
    }

    /// The first cycle from `ready` on in which an operation can begin. It begins then.
    fn begin(&mut self, ready: u64) -> u64 {
        let mut cycle = ready;
        loop {
            let slot = &mut self.begun[cycle as usize % KNOWN_CYCLES];
            if slot.0 != cycle {
                *slot = (cycle, 0);
            }
            if slot.1 < self.capacity {
                slot.1 += 1;
                return cycle;
            }
            cycle += 1;
        }
    }
}

/// The last few times, of which the oldest says when there is room again.
struct Slots {
    free_at: Vec<u64>,
    next: usize,
}

impl Slots {
    fn new(size: usize) -> Self {
        Self { free_at: vec![0; size], next: 0 }
    }

    fn free_at(&self) -> u64 {
        self.free_at[self.next]
    }

    fn take(&mut self, until: u64) {
        self.free_at[self.next] = until;
        self.next = (self.next + 1) % self.free_at.len();
    }
}

/// Caches and the bus, which contexts share.
struct SharedMemory {
    l1: CacheTags,
    l2: CacheTags,
    l1_cycles: u64,
    l2_cycles: u64,
    latency: u64,
    bus_cycles: u64,
    bus_free: u64,
    outstanding: Slots,
    prefetched: u32,
    /// By line, modulo its length: a line on its way, and when it arrives.
    arriving: Vec<(u32, u64)>,
}

impl SharedMemory {
    fn new(core: &SmtCore) -> Self {
        let cache = |bytes: u32, ways| {
            let line = core.memory.line_bytes;
            CacheTags::new(bytes as usize, ways, line, 1, CachePolicy::TreePlru)
        };
        Self {
            l1: cache(core.l1.bytes, core.l1.ways),
            l2: cache(core.l2.bytes, core.l2.ways),
            l1_cycles: core.l1.cycles,
            l2_cycles: core.l2.cycles,
            latency: core.memory_cycles(),
            bus_cycles: core.bus_cycles(),
            bus_free: 0,
            outstanding: Slots::new(core.memory.outstanding),
            prefetched: core.memory.prefetched_lines,
            arriving: vec![(u32::MAX, 0); 1 << 10],
        }
    }

    /// When data of a line are there. If the L1 did not have it, also how many lines the L2
    /// fetches.
    fn data(&mut self, line: u32, at: u64, stream: bool, is_load: bool) -> (u64, Option<u64>) {
        if self.l1.access(line).is_some() {
            return (self.on_its_way(line, at).max(at + self.l1_cycles), None);
        }
        let (there, missed) = self.second(line, at);
        self.l1.insert_new(line);
        let mut fetched = u64::from(missed);
        if stream {
            for ahead in 1..=self.prefetched {
                // No prefetch waits until a request may be made.
                if self.l2.access(line + ahead).is_none() && self.outstanding.free_at() <= at {
                    self.fetch(line + ahead, at);
                    fetched += 1;
                }
            }
        }
        if !is_load {
            // Lines that are written go back.
            self.bus_free += fetched * self.bus_cycles;
        }
        (there, Some(fetched))
    }

    /// The same from the L2 on.
    fn second(&mut self, line: u32, at: u64) -> (u64, bool) {
        match self.l2.access(line) {
            Some(_) => (self.on_its_way(line, at).max(at + self.l2_cycles), false),
            None => (self.fetch(line, at), true),
        }
    }

    /// When a line that is in a cache arrives there; `at` if it has.
    fn on_its_way(&self, line: u32, at: u64) -> u64 {
        let (arriving, time) = self.arriving[line as usize % self.arriving.len()];
        if arriving == line { time.max(at) } else { at }
    }

    fn fetch(&mut self, line: u32, at: u64) -> u64 {
        let begin = at.max(self.bus_free).max(self.outstanding.free_at());
        self.bus_free = begin + self.bus_cycles;
        let there = begin + self.latency;
        self.outstanding.take(there);
        self.l2.insert_new(line);
        let place = line as usize % self.arriving.len();
        self.arriving[place] = (line, there);
        there
    }
}

/// A program on a context.
struct StreamContext<'a> {
    program: &'a StreamProgram,
    random: Random,
    /// When its next micro-operation may enter the window.
    ready: u64,
    /// When the last micro-operations have results. More than dependencies reach back.
    results: Vec<u64>,
    window: Slots,
    loads: Slots,
    stores: Slots,
    retired: u64,
    code: CodeWalk,
    /// The micro-operation that waits for a buffer.
    waiting: Option<MicroOp>,
    /// By set of data its first line, the offset of its stream, and the result of its last load.
    data: Vec<(u32, u64, u64)>,
    events: CounterValues,
}

/// Where a program is in its code, in lines of the trace cache.
struct CodeWalk {
    lines: u32,
    hot_lines: u32,
    loop_lines: u32,
    first: u32,
    at: u32,
    passes: u64,
    /// Micro-operations left of the line.
    left: u32,
}

/// Results that are kept. A dependency reaches back less far.
const RESULTS: usize = 256;

/// Every context has its own lines from here on, which leaves room for its data and code.
const CONTEXT_LINES: u32 = 1 << 29;

impl<'a> StreamContext<'a> {
    fn new(
        core: &SmtCore,
        index: u32,
        contexts: usize,
        program: &'a StreamProgram,
        seed: u64,
    ) -> Self {
        let per_line = core.front_end.line_micro_ops;
        // Code is at the beginning. Odd distances spread data over the sets of a cache.
        let mut line = index * CONTEXT_LINES + program.code / 8 + 1;
        let mut place = |data: &DataSet| {
            let first = line;
            line += data.kib * 1024 / core.memory.line_bytes + 61;
            (first, 0, 0)
        };
        Self {
            program,
            random: Random::new(seed ^ u64::from(index) << 32),
            ready: 0,
            results: vec![0; RESULTS],
            window: Slots::new(core.window.micro_ops / contexts),
            loads: Slots::new(core.window.loads / contexts),
            stores: Slots::new(core.window.stores / contexts),
            retired: 0,
            code: CodeWalk {
                lines: program.code.div_ceil(per_line),
                hot_lines: program.hot_code.div_ceil(per_line),
                loop_lines: program.loop_code.div_ceil(per_line),
                first: 0,
                at: 0,
                passes: 1,
                left: 0,
            },
            waiting: None,
            data: program.data.iter().map(&mut place).collect(),
            events: CounterValues::default(),
        }
    }

    /// A distance of 1 or more with this mean.
    fn distance(random: &mut Random, mean: f64) -> u64 {
        let stays = 1.0 - 1.0 / mean;
        if stays <= 0.0 {
            return 1;
        }
        // The inverse of a geometric distribution.
        1 + ((1.0 - random.unit()).ln() / stays.ln()) as u64
    }

    /// The next line of code.
    fn next_line(&mut self) -> u32 {
        let code = &mut self.code;
        code.at += 1;
        if code.at >= code.loop_lines {
            code.at = 0;
            code.passes -= 1;
        }
        if code.passes == 0 {
            code.passes = Self::distance(&mut self.random, self.program.passes);
            let hot = self.random.unit() < self.program.hot;
            let lines = if hot { code.hot_lines } else { code.lines };
            code.first = self.random.below(lines.into()) as u32;
        }
        (code.first + code.at) % code.lines
    }
}

/// One or two programs on a core.
struct SmtRun<'a> {
    core: &'a SmtCore,
    contexts: Vec<StreamContext<'a>>,
    memory: SharedMemory,
    trace: CacheTags,
    /// The cycle from which on the front end is free.
    front_end_free: u64,
    last: usize,
    integer: PortCalendar,
    fp: PortCalendar,
    load: PortCalendar,
    store: PortCalendar,
    retire: PortCalendar,
}

enum MicroOp {
    Load,
    Store,
    Branch,
    Fp,
    Integer,
}

impl MicroOp {
    fn draw(program: &StreamProgram, random: &mut Random) -> Self {
        let mut draw = random.unit();
        let shares = [program.load, program.store, program.branch, program.fp];
        let kinds = [Self::Load, Self::Store, Self::Branch, Self::Fp];
        let drawn = kinds.into_iter().zip(shares).find(|(_, share)| {
            draw -= share;
            draw < 0.0
        });
        drawn.map_or(Self::Integer, |(kind, _)| kind)
    }
}

impl<'a> SmtRun<'a> {
    fn new(core: &'a SmtCore, programs: &[&'a StreamProgram], seed: u64) -> Self {
        let contexts = programs.len();
        let ways = core.front_end.trace_ways;
        let trace_lines = core.trace_lines() as usize;
        let begin = |(index, program): (u32, &&'a StreamProgram)| {
            StreamContext::new(core, index, contexts, program, seed)
        };
        Self {
            core,
            contexts: (0..).zip(programs).map(begin).collect(),
            memory: SharedMemory::new(core),
            trace: CacheTags::new(trace_lines, ways, 1, 1, CachePolicy::TreePlru),
            front_end_free: 0,
            last: 0,
            integer: PortCalendar::new(core.units.integer),
            fp: PortCalendar::new(core.units.fp),
            load: PortCalendar::new(core.units.load),
            store: PortCalendar::new(core.units.store),
            retire: PortCalendar::new(core.window.retire),
        }
    }

    /// Runs until each context has come to cycle `end`. Returns what each has done until then.
    fn run(&mut self, end: u64) -> Vec<CounterValues> {
        let mut at_end = vec![None; self.contexts.len()];
        loop {
            for (at_end, context) in at_end.iter_mut().zip(&self.contexts) {
                if context.ready >= end && at_end.is_none() {
                    *at_end = Some(CounterValues { cycles: context.ready, ..context.events });
                }
            }
            if at_end.iter().all(Option::is_some) {
                return at_end.into_iter().flatten().collect();
            }
            // Contexts take turns. One that cannot go on leaves its turn to the other.
            let other = (self.last + 1) % self.contexts.len();
            let time = |index: usize| self.contexts[index].ready.max(self.front_end_free);
            let next = if time(other) <= time(self.last) { other } else { self.last };
            self.front_end_free = time(next) + 1;
            self.last = next;
            self.enter(next, self.front_end_free - 1);
        }
    }

    /// Lets micro-operations of a context enter the window in cycle `now`, as many as can.
    fn enter(&mut self, index: usize, now: u64) {
        let front_end = &self.core.front_end;
        self.contexts[index].ready = now + 1;
        for _ in 0..front_end.width {
            let context = &mut self.contexts[index];
            if context.window.free_at() > now {
                context.ready = context.window.free_at();
                return;
            }
            if context.code.left == 0 {
                context.code.left = front_end.line_micro_ops;
                let line = context.next_line();
                let base = index as u32 * CONTEXT_LINES;
                if self.trace.access(base + line).is_none() {
                    self.trace.insert_new(base + line);
                    context.events.trace_misses += 1;
                    let bytes = line * front_end.line_micro_ops * front_end.bytes_per_micro_op;
                    let code = base + bytes / self.core.memory.line_bytes;
                    let (there, missed) = self.memory.second(code, now);
                    context.events.l2_misses += u64::from(missed);
                    let build = u64::from(front_end.line_micro_ops) / front_end.build_micro_ops;
                    context.ready = there + build;
                    return;
                }
            }
            if !self.micro_op(index, now) {
                return;
            }
        }
    }

    /// Lets one micro-operation enter. Returns whether another one may follow in this cycle.
    fn micro_op(&mut self, index: usize, now: u64) -> bool {
        let (core, context) = (self.core, &mut self.contexts[index]);
        let program = context.program;
        let kind = match context.waiting.take() {
            Some(kind) => kind,
            None => MicroOp::draw(program, &mut context.random),
        };
        let buffer = match kind {
            MicroOp::Load => context.loads.free_at(),
            MicroOp::Store => context.stores.free_at(),
            _ => 0,
        };
        if buffer > now {
            (context.ready, context.waiting) = (buffer, Some(kind));
            return false;
        }
        let number = context.events.micro_ops;
        context.events.micro_ops += 1;
        context.code.left -= 1;
        let back = StreamContext::distance(&mut context.random, program.dependency);
        let needed = if back <= number && back < RESULTS as u64 {
            context.results[(number - back) as usize % RESULTS]
        } else {
            0
        };
        let ready = needed.max(now + 1);
        let mut follows = true;
        let (result, done) = match kind {
            MicroOp::Integer => {
                let result = self.integer.begin(ready) + core.units.integer_cycles;
                (result, result)
            }
            MicroOp::Fp => {
                context.events.fp += 1;
                let result = self.fp.begin(ready) + core.units.fp_cycles;
                (result, result)
            }
            MicroOp::Branch => {
                context.events.branches += 1;
                let result = self.integer.begin(ready) + core.units.integer_cycles;
                if context.random.unit() < program.mispredicted {
                    context.events.mispredicted += 1;
                    context.ready = result + core.front_end.mispredict_cycles;
                    follows = false;
                }
                (result, result)
            }
            MicroOp::Load | MicroOp::Store => {
                let is_load = matches!(kind, MicroOp::Load);
                let set = Self::choose(context);
                let (line, stream, chained) = Self::next_line(context, set, core);
                let ready = if is_load { ready.max(chained) } else { ready };
                let unit = if is_load { &mut self.load } else { &mut self.store };
                let begin = unit.begin(ready);
                let (there, fetched) = self.memory.data(line, begin, stream, is_load);
                context.events.l1_misses += u64::from(fetched.is_some());
                context.events.l2_misses += fetched.unwrap_or(0);
                if is_load {
                    context.data[set].2 = there;
                    (there, there)
                } else {
                    // A store retires once it knows address and data, and keeps its buffer.
                    (begin + 1, there)
                }
            }
        };
        context.results[number as usize % RESULTS] = result;
        context.retired = self.retire.begin(result.max(context.retired));
        context.window.take(context.retired + 1);
        match kind {
            MicroOp::Load => context.loads.take(context.retired + 1),
            MicroOp::Store => context.stores.take(done.max(context.retired) + 1),
            _ => {}
        }
        follows
    }

    fn choose(context: &mut StreamContext<'_>) -> usize {
        let mut draw = context.random.unit();
        let sets = &context.program.data;
        let chosen = sets.iter().position(|data| {
            draw -= data.share;
            draw < 0.0
        });
        chosen.unwrap_or(sets.len() - 1)
    }

    /// The line of the next access to a set of data. Also whether it belongs to a stream, and when
    /// its address is known.
    fn next_line(context: &mut StreamContext<'_>, set: usize, core: &SmtCore) -> (u32, bool, u64) {
        let (data, (first, offset, last)) = (&context.program.data[set], &mut context.data[set]);
        let (bytes, line_bytes) = (u64::from(data.kib) * 1024, u64::from(core.memory.line_bytes));
        match data.pattern {
            AccessPattern::Stream => {
                *offset = (*offset + 8) % bytes;
                (*first + (*offset / line_bytes) as u32, true, 0)
            }
            AccessPattern::Random | AccessPattern::Chain => {
                let line = context.random.below((bytes / line_bytes).max(1)) as u32;
                let chained = if data.pattern == AccessPattern::Chain { *last } else { 0 };
                (*first + line, false, chained)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Integer work without branches, memory or loops beyond the trace cache.
    fn integer() -> StreamProgram {
        let data = DataSet { kib: 1, share: 1.0, pattern: AccessPattern::Random };
        StreamProgram {
            name: "integer".to_owned(),
            load: 0.0,
            store: 0.0,
            branch: 0.0,
            fp: 0.0,
            mispredicted: 0.0,
            dependency: 1e6,
            code: 60,
            hot_code: 60,
            hot: 1.0,
            loop_code: 60,
            passes: 1e6,
            data: vec![data],
        }
    }

    fn rates(programs: &[&StreamProgram]) -> Vec<f64> {
        let core = SmtCore::northwood();
        let all = events(&core, programs, 1, 100_000, 200_000);
        all.iter().map(CounterValues::per_cycle).collect()
    }

    fn near(is: f64, wanted: f64) {
        assert!((is - wanted).abs() < 0.02 * wanted, "{is}, not {wanted}");
    }

    #[test]
    fn independent_work_fills_the_front_end_and_two_contexts_share_it() {
        let work = integer();
        near(rates(&[&work])[0], 3.0);
        rates(&[&work, &work]).into_iter().for_each(|rate| near(rate, 1.5));
    }

    #[test]
    fn a_chain_of_results_takes_a_cycle_each_and_another_program_runs_beside_it() {
        let chain = StreamProgram { dependency: 1.0, ..integer() };
        near(rates(&[&chain])[0], 1.0);
        rates(&[&chain, &chain]).into_iter().for_each(|rate| near(rate, 1.0));
    }

    #[test]
    fn the_fp_unit_begins_one_operation_a_cycle_for_both() {
        let fp = StreamProgram { fp: 1.0, ..integer() };
        near(rates(&[&fp])[0], 1.0);
        near(rates(&[&fp, &fp]).iter().sum(), 1.0);
        // Integer work is not in its way.
        let beside = rates(&[&fp, &integer()]);
        near(beside[0], 1.0);
        assert!(beside[1] > 1.4, "{beside:?}");
    }

    #[test]
    fn a_stream_is_as_fast_as_the_bus_and_two_share_it() {
        let data = vec![DataSet { kib: 1 << 16, share: 1.0, pattern: AccessPattern::Stream }];
        let stream = StreamProgram { load: 1.0, data, ..integer() };
        // A line has eight loads of eight bytes.
        let most = 8.0 / SmtCore::northwood().bus_cycles() as f64;
        let all = [rates(&[&stream])[0], rates(&[&stream, &stream]).iter().sum()];
        // Now and then the bus waits for one of the few requests that may be on their way.
        assert!(all.iter().all(|all| (0.9 * most..=most).contains(all)), "{all:?} of {most}");
    }

    #[test]
    fn a_chain_of_loads_takes_the_latency_of_where_its_data_are() {
        let chain = |kib| {
            let data = vec![DataSet { kib, share: 1.0, pattern: AccessPattern::Chain }];
            let loads = StreamProgram { load: 1.0, data, ..integer() };
            // Until all of it has come from memory.
            1.0 / events(&SmtCore::northwood(), &[&loads], 1, 6_000_000, 200_000)[0].per_cycle()
        };
        near(chain(2), 2.0);
        let (l2, memory) = (chain(64), chain(1 << 16));
        assert!((15.0..18.5).contains(&l2), "one in eight is in the L1: {l2}");
        assert!((300.0..306.0).contains(&memory), "{memory}");
    }

    #[test]
    fn mispredicted_branches_cost_the_stages_before_them() {
        let branches = StreamProgram { branch: 0.1, mispredicted: 1.0, ..integer() };
        // Ten operations take at least four cycles, then the front end begins again.
        let cycles = 10.0 / rates(&[&branches])[0];
        assert!((22.0..28.0).contains(&cycles), "{cycles}");
    }

    #[test]
    fn code_beyond_the_trace_cache_misses_it_and_data_of_two_programs_compete() {
        let core = SmtCore::northwood();
        let big = StreamProgram { code: 100_000, hot_code: 100_000, passes: 1.0, ..integer() };
        let missed = events(&core, &[&big], 1, 400_000, 200_000)[0];
        let per_line = missed.trace_misses as f64 / (missed.micro_ops as f64 / 6.0);
        // The trace cache has room for 12,288 of the 100,000.
        assert!((0.7..0.95).contains(&per_line), "{per_line}");
        let data = vec![DataSet { kib: 384, share: 1.0, pattern: AccessPattern::Random }];
        let fits = StreamProgram { load: 0.2, data, ..integer() };
        let misses = |programs: &[&StreamProgram]| {
            let all = events(&core, programs, 1, 2_000_000, 400_000);
            all[0].l2_misses as f64 / all[0].micro_ops as f64
        };
        let (alone, together) = (misses(&[&fits]), misses(&[&fits, &fits]));
        assert!(alone < 0.002 && together > 0.02, "{alone} {together}");
    }

    #[test]
    fn a_seed_decides_everything_and_more_cycles_only_add_events() {
        let core = SmtCore::northwood();
        let programs = StreamProgram::spec2000();
        let pair = [&programs[0], &programs[12]];
        let made = |seed, cycles| events(&core, &pair, seed, 10_000, cycles);
        assert_eq!(made(1, 50_000), made(1, 50_000));
        assert_ne!(made(1, 50_000), made(2, 50_000));
        let (short, long) = (made(1, 50_000)[0], made(1, 100_000)[0]);
        assert!(short.micro_ops < long.micro_ops && short.l2_misses <= long.l2_misses);
    }
}
