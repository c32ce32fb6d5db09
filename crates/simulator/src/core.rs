//! One core: what its pipes fetch in a cycle, and how its shared units answer.
//!
//! In a cycle, every pipe picks one instruction of a ready strand; where pipes pick for the same unit, one of them picks again;
//! then the divide unit and the port of the cache, if they can, start what waits for them. The rules are explained in
//! docs/SIMULATOR.md.
//!
//! A core says when it is due next, so that cycles in which nothing can happen need not be looked at. The same
//! goes for a pipe: while all its ready strands have rows of one-cycle instructions, they fetch in turn, and how many each has
//! fetched is reckoned up when something else happens ([`Row`]).

mod divider;
mod port;

use crate::code::{Code, Cursor, Operation};
use crate::memory::{Hierarchy, Load};
use crate::processor::{Arbitration, Processor};
use divider::Divider;
use port::{Fill, Port};
use std::ops::Range;

/// What a thread has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Instructions fetched.
    pub instructions: u64,
    /// Units of work done ([`crate::program::Step::Done`]).
    pub work: u64,
    /// The cycle of the last of them.
    pub worked_at: u64,
    /// Loads that missed the first-level cache.
    pub l1_misses: u64,
    /// Loads and stores that missed the second-level cache.
    pub l2_misses: u64,
}

/// A hardware context with a thread on it.
#[derive(Clone, Debug)]
pub(crate) struct Strand {
    /// When it can fetch; [`NEVER`] while a unit that has not yet started on its instruction will say.
    ready_at: u64,
    /// One more than the cycle of its last fetch, 0 before the first.
    fetched: u64,
    /// When its store buffer is free.
    stored_at: u64,
    cursor: Cursor,
    counters: Counters,
    /// The thread, as the job counts.
    pub(crate) thread: usize,
}

/// The strands of a pipe and what the fetch unit remembers.
#[derive(Clone, Debug)]
struct Pipe {
    strands: Range<usize>,
    /// When it has to be looked at.
    due: u64,
    /// The cycle after its last load.
    after_load: u64,
    row: Row,
}

/// Strands that fetch one-cycle instructions in turn, nothing else being ready.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// When the first of them fetches first; may be yet to come.
    since: u64,
    /// They, in the order of their turns.
    turns: [u8; MOST_STRANDS],
    count: usize,
}

/// Most strands of a pipe, and pipes of a core ([`Processor`] checks).
const MOST_STRANDS: usize = 8;
const MOST_PIPES: usize = 4;
/// Bits that number the strands of a pipe.
const SLOT_BITS: u32 = MOST_STRANDS.trailing_zeros();
const NEVER: u64 = u64::MAX;

/// The units that pipes compete for within a cycle, as bits.
type Units = u8;
const FPX: Units = 1;
const LSU: Units = 2;

/// The strands of a pipe in one cycle.
#[derive(Clone, Copy, Debug)]
struct View {
    /// The strand that would fetch.
    pick: Option<u8>,
    /// The unit it needs.
    unit: Units,
    /// Whether it has a row of one-cycle instructions, and none that has something else comes before it.
    row: bool,
    /// How many are ready, whether or not their units are free.
    ready: u32,
    /// Of those that are ready for something else, the earliest last fetch (see [`Strand::fetched`]).
    other: u64,
    /// When the first of the others is ready.
    wakes: u64,
}

/// A unit that one pipe can use in a cycle.
#[derive(Clone, Copy, Debug)]
struct Shared {
    unit: Units,
    arbitration: Arbitration,
    last_user: usize,
}

/// One core.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    number: usize,
    strands: Vec<Strand>,
    pipes: Vec<Pipe>,
    divider: Divider,
    port: Port,
    /// [`FPX`] and [`LSU`].
    shared: [Shared; 2],
    l1_latency: u64,
    /// When it has to be looked at.
    pub(crate) due: u64,
}

impl Strand {
    /// A thread that may fetch from cycle `start` on.
    pub(crate) fn new(thread: usize, cursor: Cursor, start: u64) -> Self {
        Self { ready_at: start, fetched: 0, stored_at: 0, cursor, counters: Counters::default(), thread }
    }

    /// What its thread has done.
    pub(crate) fn counters(&self) -> Counters {
        Counters { work: self.cursor.work, worked_at: self.cursor.worked_at, ..self.counters }
    }

    /// The unit its next instruction has to get.
    #[inline]
    fn unit(&self) -> Units {
        const UNITS: [Units; 8] = {
            let mut units = [0; 8];
            units[Operation::Fpx as usize] = FPX;
            units[Operation::Load as usize] = LSU;
            units[Operation::Poll as usize] = LSU;
            units[Operation::Store as usize] = LSU;
            units[Operation::Publish as usize] = LSU;
            units
        };
        UNITS[self.cursor.operation as usize]
    }

    #[inline]
    fn is_load(&self) -> bool {
        (self.cursor.operation == Operation::Load) | (self.cursor.operation == Operation::Poll)
    }

    /// Fetches `count` instructions of a row, the last in cycle `last`.
    #[inline]
    fn fetch_row(&mut self, count: u64, last: u64, code: &mut Code) {
        self.counters.instructions += count;
        self.fetched = last + 1;
        self.ready_at = last + 1;
        self.cursor.row -= count as u32;
        if self.cursor.row == 0 {
            code.advance(&mut self.cursor, last);
            self.wait_for_store_buffer();
        }
    }

    fn wait_for_store_buffer(&mut self) {
        if matches!(self.cursor.operation, Operation::Store | Operation::Publish) {
            self.ready_at = self.ready_at.max(self.stored_at);
        }
    }
}

impl Core {
    /// A core with these threads: by pipe, those on its strands.
    pub(crate) fn new(processor: &Processor, number: usize, threads: Vec<Vec<Strand>>) -> Self {
        let core = &processor.intra_core;
        let mut strands = Vec::new();
        let mut pipes = Vec::new();
        for threads in threads {
            let first = strands.len();
            strands.extend(threads);
            let row = Row { since: 0, turns: [0; MOST_STRANDS], count: 0 };
            pipes.push(Pipe { strands: first..strands.len(), due: 0, after_load: 0, row });
        }
        let last = pipes.len() - 1;
        Self {
            number,
            strands,
            pipes,
            divider: Divider::new(core.pipes as usize, core.fpd.handover),
            port: Port::new(core.lsu.fill, core.lsu.fill_patience),
            shared: [(FPX, core.fpx.arbitration), (LSU, core.lsu.arbitration)].map(|(unit, arbitration)| Shared {
                unit,
                arbitration,
                last_user: last,
            }),
            l1_latency: u64::from(core.l1d.latency),
            due: 0,
        }
    }

    /// Its strands.
    pub(crate) fn strands(&self) -> &[Strand] {
        &self.strands
    }

    /// What happens in cycle `now`. `skip` lets pipes reckon rows of instructions at once.
    pub(crate) fn cycle(&mut self, now: u64, skip: bool, code: &mut Code, memory: &mut Hierarchy) {
        let shut = if self.port.closed(now) { LSU } else { 0 };
        let mut views = [None; MOST_PIPES];
        let (mut wanted, mut contended) = (0, false);
        for (number, view) in views.iter_mut().enumerate().take(self.pipes.len()) {
            if !skip || self.pipes[number].due <= now {
                self.settle(number, now, code);
                let seen = self.view(number, now, shut);
                contended |= wanted & seen.unit != 0;
                wanted |= seen.unit;
                *view = Some(seen);
            }
        }
        if contended {
            self.arbitrate(&mut views, now, shut);
        }
        let mut port_used = false;
        for (number, view) in views.iter().enumerate().take(self.pipes.len()) {
            let Some(view) = view else { continue };
            let due = match view.pick {
                Some(_) if skip && view.row => self.begin_row(number, now, view),
                Some(strand) => {
                    let strand = usize::from(strand);
                    port_used |= view.unit == LSU;
                    self.issue(number, strand, now, code, memory);
                    if view.ready > 1 { now + 1 } else { self.go_on(number, strand, skip).min(view.wakes) }
                }
                None if view.ready > 0 => now + 1,
                None => view.wakes,
            };
            self.pipes[number].due = due;
        }
        if let Some((strand, end)) = self.divider.start(now) {
            self.wake(strand, end);
        }
        if !port_used && let Some((fill, end)) = self.port.start(now) {
            memory.fill(self.number, fill.address);
            self.wake(fill.strand, end);
        }
        let pipes = self.pipes.iter().map(|pipe| pipe.due).min().unwrap_or(NEVER);
        self.due = pipes.min(self.divider.due(now)).min(self.port.due(now));
    }

    /// Reckons up what rows have fetched before cycle `now`.
    pub(crate) fn pause(&mut self, now: u64, code: &mut Code) {
        for number in 0..self.pipes.len() {
            if self.pipes[number].row.count > 0 {
                self.settle(number, now, code);
                self.pipes[number].due = now;
                self.due = self.due.min(now);
            }
        }
    }

    /// The strands of pipe `number` as they are in cycle `now`, and which would fetch if the units in `denied` are not to be had.
    #[inline]
    fn view(&self, number: usize, now: u64, denied: Units) -> View {
        let pipe = &self.pipes[number];
        let after_load = pipe.after_load == now;
        let mut view = View { pick: None, unit: 0, row: false, ready: 0, other: NEVER, wakes: NEVER };
        // Whether it yields, when it fetched last, which it is: the least goes first. Nothing here is predictable, so nothing branches.
        let mut best = NEVER;
        for (slot, strand) in (0..).zip(&self.strands[pipe.strands.clone()]) {
            let ready = strand.ready_at <= now;
            let (unit, load) = (strand.unit(), strand.is_load());
            let row = strand.cursor.operation == Operation::Alu;
            view.ready += u32::from(ready);
            view.wakes = view.wakes.min(if ready { NEVER } else { strand.ready_at });
            view.other = view.other.min(if ready & !row { strand.fetched } else { NEVER });
            let rank = u64::from(after_load & load) << 63 | strand.fetched << SLOT_BITS | slot;
            best = best.min(if ready & (unit & denied == 0) { rank } else { NEVER });
        }
        if best != NEVER {
            let pick = pipe.strands.start + (best & ((1 << SLOT_BITS) - 1)) as usize;
            let strand = &self.strands[pick];
            view.pick = Some(pick as u8);
            view.unit = strand.unit();
            view.row = strand.cursor.operation == Operation::Alu && strand.fetched < view.other;
        }
        view
    }

    /// Where several pipes picked for one unit, its arbitration says which has it; the others pick again.
    #[cold]
    fn arbitrate(&self, views: &mut [Option<View>; MOST_PIPES], now: u64, shut: Units) {
        let pipes = self.pipes.len();
        let mut denied = [shut; MOST_PIPES];
        loop {
            let mut settled = true;
            for Shared { unit, arbitration, last_user } in self.shared {
                let picked = |view: Option<View>| view.filter(|view| view.unit == unit).and_then(|view| view.pick);
                let mut turns = (1..=pipes)
                    .map(|step| (last_user + step) % pipes)
                    .filter_map(|number| picked(views[number]).map(|strand| (number, strand)));
                let winner = match arbitration {
                    Arbitration::LastUserYields => turns.next(),
                    Arbitration::OldestFirst => {
                        turns.min_by_key(|&(_, strand)| self.strands[usize::from(strand)].fetched)
                    }
                };
                let Some((winner, _)) = winner else { continue };
                for number in 0..pipes {
                    if number != winner && picked(views[number]).is_some() {
                        denied[number] |= unit;
                        views[number] = Some(self.view(number, now, denied[number]));
                        settled = false;
                    }
                }
            }
            if settled {
                return;
            }
        }
    }

    /// Strand `strand` of pipe `number` fetches its instruction.
    fn issue(&mut self, number: usize, strand: usize, now: u64, code: &mut Code, memory: &mut Hierarchy) {
        let core = self.number;
        let chosen = &mut self.strands[strand];
        let operation = chosen.cursor.operation;
        let value = chosen.cursor.value;
        if operation == Operation::Alu {
            return chosen.fetch_row(1, now, code);
        }
        chosen.counters.instructions += 1;
        chosen.fetched = now + 1;
        match operation {
            Operation::Alu => {}
            Operation::Delay => chosen.ready_at = now + value,
            Operation::Fpx => {
                chosen.ready_at = now + value;
                self.shared[0].last_user = number;
            }
            Operation::Fpd => {
                chosen.ready_at = NEVER;
                self.divider.enqueue(number, strand, value);
            }
            Operation::Load | Operation::Poll => {
                self.shared[1].last_user = number;
                self.pipes[number].after_load = now + 1;
                match memory.load(core, value, now) {
                    Load::Hit => chosen.ready_at = now + self.l1_latency,
                    Load::Arrives { at, from_memory } => {
                        chosen.ready_at = NEVER;
                        chosen.counters.l1_misses += 1;
                        chosen.counters.l2_misses += u64::from(from_memory);
                        self.port.expect(Fill { arrives: at, strand, address: value });
                    }
                }
            }
            Operation::Store | Operation::Publish => {
                self.shared[1].last_user = number;
                let (left, from_memory) = memory.store(core, value, now);
                chosen.stored_at = left;
                chosen.ready_at = now + 1;
                chosen.counters.l2_misses += u64::from(from_memory);
            }
        }
        match operation {
            Operation::Poll => code.polled(&mut chosen.cursor, now),
            Operation::Publish => code.published(&mut chosen.cursor, now),
            _ => code.advance(&mut chosen.cursor, now),
        }
        chosen.wait_for_store_buffer();
    }

    /// The ready strands of pipe `number` that have rows of one-cycle instructions, and whose turn is before that of any other, fetch
    /// in turn until something else can happen; returns when.
    fn begin_row(&mut self, number: usize, now: u64, view: &View) -> u64 {
        let Pipe { strands, row, .. } = &mut self.pipes[number];
        let mut count = 0;
        for index in strands.clone() {
            let strand = &self.strands[index];
            if strand.ready_at > now || strand.cursor.operation != Operation::Alu || strand.fetched >= view.other {
                continue;
            }
            // In the order of their turns: least recently fetched first, then by number.
            let mut place = count;
            while place > 0 && self.strands[usize::from(row.turns[place - 1])].fetched > strand.fetched {
                row.turns[place] = row.turns[place - 1];
                place -= 1;
            }
            row.turns[place] = index as u8;
            count += 1;
        }
        row.since = now;
        row.count = count;
        if view.other != NEVER {
            // After one turn each it is the other's.
            return view.wakes.min(now + count as u64);
        }
        // The strand whose row ends first is ready for something else in the cycle after.
        let ends = (1..).zip(&row.turns[..count]).map(|(turn, &index)| {
            let rounds = u64::from(self.strands[usize::from(index)].cursor.row) - 1;
            now + rounds * count as u64 + turn
        });
        ends.fold(view.wakes, u64::min)
    }

    /// When `strand`, which has just fetched, is due if no other strand of pipe `number` is before. A row of one-cycle instructions that
    /// it will have to itself begins by itself.
    #[inline]
    fn go_on(&mut self, number: usize, strand: usize, skip: bool) -> u64 {
        let Strand { ready_at, cursor, .. } = &self.strands[strand];
        if !skip || cursor.operation != Operation::Alu || *ready_at == NEVER {
            return *ready_at;
        }
        let row = &mut self.pipes[number].row;
        row.since = *ready_at;
        row.turns[0] = strand as u8;
        row.count = 1;
        *ready_at + u64::from(cursor.row)
    }

    /// Reckons up the row of pipe `number`, if it has one, to before cycle `now`.
    #[inline]
    fn settle(&mut self, number: usize, now: u64, code: &mut Code) {
        let Row { since, turns, count } = self.pipes[number].row;
        if count == 0 {
            return;
        }
        self.pipes[number].row.count = 0;
        if now <= since {
            // Something else came before the row began.
        } else if count == 1 {
            self.strands[usize::from(turns[0])].fetch_row(now - since, now - 1, code);
        } else {
            for (turn, &index) in (0..).zip(&turns[..count]) {
                let count = count as u64;
                let fetched = (now - since + count - 1 - turn) / count;
                if fetched > 0 {
                    self.strands[usize::from(index)].fetch_row(fetched, since + (fetched - 1) * count + turn, code);
                }
            }
        }
    }

    /// The unit that `strand` waits for has started on its instruction, which ends at `end`.
    fn wake(&mut self, strand: usize, end: u64) {
        self.strands[strand].ready_at = end;
        self.strands[strand].wait_for_store_buffer();
        let ready_at = self.strands[strand].ready_at;
        if let Some(pipe) = self.pipes.iter_mut().find(|pipe| pipe.strands.contains(&strand)) {
            pipe.due = pipe.due.min(ready_at);
        }
    }
}
