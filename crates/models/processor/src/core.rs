//! One core: what its pipes fetch in a cycle, and how its shared units answer.
//!
//! In a cycle, every pipe picks one instruction of a ready strand. Where pipes pick for the same
//! unit, one of them picks again. Then the divide unit and the port of the cache start what waits
//! for them, if they can. The rules are explained in docs/lab/simulator.md.
//!
//! The method [`Core::cycle`] does only that, cycle by cycle. The method [`Core::event`] does it
//! only in cycles that need a unit. From one of these to the next it runs each pipe alone
//! ([`pipe`]). The result is the same in less time. A pipe need not know what other cores could
//! still do to a line that it loads. Either no core can evict the line, or the core waits for its
//! turn.

mod divider;
mod pipe;
mod port;
mod reservation;
mod strand;

use crate::code::{Code, Cursor, Operation};
use crate::memory::{Hierarchy, Load};
use crate::processor::{Arbitration, Processor};
use divider::Divider;
use pipe::Pipe;
use port::{Fill, Port};
use reservation::Reservation;
pub(crate) use strand::Strand;
pub use strand::StrandCounters;

/// Most strands of a pipe, and pipes of a core ([`Processor`] checks).
const MOST_STRANDS: usize = 8;
const MOST_PIPES: usize = 4;
const NEVER: u64 = u64::MAX;

/// The units that pipes compete for within a cycle, as bits.
type Units = u8;
const FPX: Units = 1;
const LSU: Units = 2;

/// The strand that each pipe picks in a cycle.
type Picks = [Option<usize>; MOST_PIPES];

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
    /// The pipe that is due then, and whether nothing else is.
    first: usize,
    by_itself: bool,
}

impl Core {
    /// A core with these threads: by pipe, those on its strands.
    pub(crate) fn new(processor: &Processor, number: usize, threads: Vec<Vec<Strand>>) -> Self {
        let core = &processor.intra_core;
        let mut strands = Vec::new();
        let mut pipes = Vec::new();
        for threads in threads {
            let first = strands.len();
            strands
                .extend(threads.into_iter().map(|strand| Strand { pipe: pipes.len(), ..strand }));
            pipes.push(Pipe::new(first..strands.len(), processor.intra_pipe.fetch.after_load));
        }
        let last = pipes.len() - 1;
        Self {
            number,
            strands,
            pipes,
            divider: Divider::new(core.pipes as usize, core.fpd.handover),
            port: Port::new(core.lsu.fill, core.lsu.fill_patience),
            shared: [(FPX, core.fpx.arbitration), (LSU, core.lsu.arbitration)]
                .map(|(unit, arbitration)| Shared { unit, arbitration, last_user: last }),
            l1_latency: u64::from(core.l1d.latency),
            due: 0,
            first: 0,
            by_itself: false,
        }
    }

    /// Its strands.
    pub(crate) fn strands(&self) -> &[Strand] {
        &self.strands
    }

    /// What happens in cycle `now`: the rules and nothing else.
    pub(crate) fn cycle(&mut self, now: u64, code: &mut Code, memory: &mut Hierarchy) {
        let denied = self.shut(now);
        let mut picks = [None; MOST_PIPES];
        for (number, pick) in picks.iter_mut().enumerate().take(self.pipes.len()) {
            *pick = self.pick(number, now, denied);
        }
        self.arbitrate(denied, &mut picks, |core, number, denied| core.pick(number, now, denied));
        let mut port_used = false;
        for (number, strand) in picks.iter().enumerate() {
            if let Some(strand) = *strand {
                port_used |= self.strands[strand].unit() == LSU;
                self.issue(number, strand, now, code, memory);
            }
        }
        self.start_units(now, port_used, memory);
    }

    /// Runs cycle [`Core::due`], and then on to the next cycle that needs a unit. It stops at `end`
    /// at the latest.
    pub(crate) fn event(&mut self, end: u64, code: &mut Code, memory: &mut Hierarchy) {
        let now = self.due;
        let denied = self.shut(now);
        if self.by_itself {
            self.event_of(self.first, denied, end, code, memory);
            return self.go_on_alone(end, code, memory);
        }
        let mut picks = [None; MOST_PIPES];
        for (pipe, pick) in self.pipes.iter_mut().zip(&mut picks) {
            if pipe.due == now {
                pipe.rouse(now, &self.strands);
                *pick = pipe.pick(now, denied, &self.strands);
            }
        }
        let pick = |core: &Self, number: usize, denied| {
            core.pipes[number].pick(now, denied, &core.strands)
        };
        self.arbitrate(denied, &mut picks, pick);
        let mut port_used = false;
        for (number, strand) in picks.iter().enumerate() {
            if let Some(strand) = *strand {
                port_used |= self.strands[strand].unit() == LSU;
                self.issue(number, strand, now, code, memory);
                self.pipes[number].fetched(strand, &self.strands[strand], now + 1);
            }
        }
        self.start_units(now, port_used, memory);
        let units = self.divider.due(now).min(self.port.due(now));
        for number in 0..self.pipes.len() {
            if self.pipes[number].due == now {
                self.go_on(number, now, end.min(units.saturating_add(1)), end, code, memory);
            }
        }
        self.look_ahead(units);
    }

    /// The same if only pipe `number` is due and no unit can start. Then nobody competes.
    #[inline]
    fn event_of(
        &mut self,
        number: usize,
        denied: Units,
        end: u64,
        code: &mut Code,
        memory: &mut Hierarchy,
    ) {
        let now = self.due;
        let pipe = &mut self.pipes[number];
        pipe.rouse(now, &self.strands);
        if let Some(strand) = pipe.pick(now, denied, &self.strands) {
            let waiting = pipe.waiting;
            let port_used = self.strands[strand].unit() == LSU;
            self.issue(number, strand, now, code, memory);
            self.pipes[number].fetched(strand, &self.strands[strand], now + 1);
            if self.pipes[number].waiting > waiting {
                self.start_units(now, port_used, memory);
            }
        }
        let units = self.divider.due(now).min(self.port.due(now));
        self.go_on(number, now, end.min(units.saturating_add(1)), end, code, memory);
        self.look_ahead(units);
    }

    /// The next event may be one pipe's load of a line that no other core can evict. Then the core
    /// need not wait for its turn.
    #[inline]
    fn go_on_alone(&mut self, end: u64, code: &mut Code, memory: &mut Hierarchy) {
        while code.keeps && self.by_itself && self.due < end && self.port.is_idle(self.due) {
            let (now, number) = (self.due, self.first);
            let pipe = &mut self.pipes[number];
            pipe.rouse(now, &self.strands);
            let Some(strand) = pipe.pick(now, 0, &self.strands) else { return };
            let Cursor { row: 0, operation: Operation::Load { lasts: true }, value, .. } =
                self.strands[strand].cursor
            else {
                return;
            };
            if !memory.hits(self.number, value) {
                return;
            }
            self.shared[1].last_user = number;
            let chosen = &mut self.strands[strand];
            chosen.fetch(now, self.l1_latency, code);
            pipe.loads(now);
            pipe.fetched(strand, chosen, now + 1);
            let units = self.divider.due(now).min(self.port.due(now));
            self.go_on(number, now, end.min(units.saturating_add(1)), end, code, memory);
            self.look_ahead(units);
        }
    }

    /// Runs pipe `number` alone after cycle `now`, at most to `end`. It runs to `known`, if one of
    /// its strands waits for a unit.
    #[inline]
    fn go_on(
        &mut self,
        number: usize,
        now: u64,
        known: u64,
        end: u64,
        code: &mut Code,
        memory: &mut Hierarchy,
    ) {
        let others = self.pipes.iter().enumerate().filter(|&(other, _)| other != number);
        let [fpx, lsu] = &mut self.shared;
        let mut reservation = Reservation {
            pipe: number,
            now,
            others_due: if code.keeps {
                others.map(|(_, pipe)| pipe.due).min().unwrap_or(NEVER)
            } else {
                0
            },
            fpx,
            lsu,
            divider: &mut self.divider,
            port: &self.port,
            l1_latency: self.l1_latency,
            core: self.number,
            memory,
        };
        let pipe = &mut self.pipes[number];
        // What a unit starts on in a cycle ends in a later one.
        let limit = if pipe.waiting > 0 { known } else { end };
        pipe.go_on(now + 1, limit, &mut self.strands, code, &mut reservation);
    }

    /// Finds out what is due next. `units`: when a unit can start.
    #[inline]
    fn look_ahead(&mut self, units: u64) {
        (self.due, self.by_itself) = (units, false);
        for (number, pipe) in self.pipes.iter().enumerate() {
            self.by_itself =
                if pipe.due < self.due { true } else { self.by_itself && pipe.due > self.due };
            self.first = if pipe.due < self.due { number } else { self.first };
            self.due = self.due.min(pipe.due);
        }
    }

    /// The units that no strand can have in cycle `now`.
    #[inline]
    fn shut(&self, now: u64) -> Units {
        if self.port.closed(now) { LSU } else { 0 }
    }

    /// The strand of pipe `number` that fetches in cycle `now` if the units in `denied` are not
    /// free. It is the ready one that fetched least recently. In the cycle after a load, those
    /// without a load go first.
    fn pick(&self, number: usize, now: u64, denied: Units) -> Option<usize> {
        let pipe = &self.pipes[number];
        let after_load = pipe.after_load == now;
        pipe.strands
            .clone()
            .filter(|&strand| {
                self.strands[strand].ready_at <= now && self.strands[strand].unit() & denied == 0
            })
            .min_by_key(|&strand| {
                (after_load && self.strands[strand].is_load(), self.strands[strand].fetched)
            })
    }

    /// The divide unit and the port of the cache, unless a load or store took it, start what they
    /// can.
    fn start_units(&mut self, now: u64, port_used: bool, memory: &mut Hierarchy) {
        if let Some((strand, end)) = self.divider.start(now) {
            self.wake(strand, end);
        }
        if !port_used && let Some((fill, end)) = self.port.start(now) {
            memory.fill(self.number, fill.address);
            self.wake(fill.strand, end);
        }
    }

    /// If several pipes picked for one unit, its arbitration decides which one gets it. The others
    /// pick again. No pipe can have the units in `shut`.
    fn arbitrate(
        &self,
        shut: Units,
        picks: &mut Picks,
        pick: impl Fn(&Self, usize, Units) -> Option<usize>,
    ) {
        let mut denied = [shut; MOST_PIPES];
        loop {
            let (mut wanted, mut contended) = (0, 0);
            for strand in picks.iter().flatten() {
                let unit = self.strands[*strand].unit();
                contended |= wanted & unit;
                wanted |= unit;
            }
            if contended == 0 {
                return;
            }
            for shared in self.shared.iter().filter(|shared| shared.unit & contended != 0) {
                let winner = self.winner(shared, picks);
                for number in 0..self.pipes.len() {
                    if number != winner
                        && picks[number]
                            .is_some_and(|strand| self.strands[strand].unit() == shared.unit)
                    {
                        denied[number] |= shared.unit;
                        picks[number] = pick(self, number, denied[number]);
                    }
                }
            }
        }
    }

    /// The pipe that has a unit of those that picked for it.
    fn winner(&self, shared: &Shared, picks: &Picks) -> usize {
        let pipes = self.pipes.len();
        let (mut winner, mut oldest) = (pipes, NEVER);
        // The last user comes last.
        for number in (shared.last_user + 1..pipes).chain(0..=shared.last_user) {
            let Some(strand) = picks[number].map(|strand| &self.strands[strand]) else { continue };
            if strand.unit() == shared.unit && (winner == pipes || strand.fetched < oldest) {
                (winner, oldest) = (number, strand.fetched);
                if shared.arbitration == Arbitration::LastUserYields {
                    break;
                }
            }
        }
        winner
    }

    /// Strand `strand` of pipe `number` fetches its instruction.
    fn issue(
        &mut self,
        number: usize,
        strand: usize,
        now: u64,
        code: &mut Code,
        memory: &mut Hierarchy,
    ) {
        let core = self.number;
        let chosen = &mut self.strands[strand];
        let operation = chosen.cursor.operation;
        let value = chosen.cursor.value;
        if chosen.cursor.row > 0 {
            return chosen.fetch_row(1, now + 1);
        }
        match operation {
            Operation::Delay => return chosen.fetch(now, value, code),
            Operation::Fpx => {
                chosen.ready_at = now + value;
                self.shared[0].last_user = number;
            }
            Operation::Fpd => {
                chosen.ready_at = NEVER;
                self.pipes[number].waiting += 1;
                self.divider.enqueue(number, strand, value);
            }
            Operation::Load { .. } | Operation::Poll => {
                self.shared[1].last_user = number;
                self.pipes[number].loads(now);
                match memory.load(core, value, now) {
                    Load::Hit => chosen.ready_at = now + self.l1_latency,
                    Load::Arrives { at, from_memory } => {
                        chosen.ready_at = NEVER;
                        self.pipes[number].waiting += 1;
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
        chosen.fetched = now + 1;
        match operation {
            Operation::Poll => code.polled(&mut chosen.cursor, now),
            Operation::Publish => code.published(&mut chosen.cursor, now),
            _ => code.advance(&mut chosen.cursor, now),
        }
        chosen.wait_for_store_buffer();
    }

    /// The unit that `strand` waits for has started on its instruction, which ends at `end`.
    fn wake(&mut self, strand: usize, end: u64) {
        let strand = &mut self.strands[strand];
        strand.ready_at = end;
        strand.wait_for_store_buffer();
        self.pipes[strand.pipe].wake(strand.ready_at);
    }
}
