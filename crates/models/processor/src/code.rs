//! Programs made ready to run: latencies looked up, jumps resolved, loops and walks with their
//! positions.

mod lasting_lines;
mod reach;
mod resolution;

use crate::processor::Processor;
use crate::program::{PacketRing, ProgramSet, Side, SimulatedProgram};
use lasting_lines::LastingLines;
use pinwise_topology::Random;
use reach::{Reach, reach};
use resolution::append;
use std::collections::HashMap;

/// What a strand does after a row of one-cycle instructions, as far as its core has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Nothing but time: the last of a row, a branch, an access to an interface.
    Delay,
    /// An operation of the pipelined floating-point unit.
    Fpx,
    /// A division.
    Fpd,
    /// A load.
    Load {
        /// Whether a line that it finds in the first level is there whatever other cores do
        /// meanwhile.
        lasts: bool,
    },
    /// A load of a ring's index, which decides whether to go on.
    Poll,
    /// A store.
    Store,
    /// A store to a ring's index, which lets the other side go on.
    Publish,
}

/// Where an instruction's latency or address comes from; or what happens on the way to the next
/// instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// It is known: `value`.
    Known,
    /// The same, and the thread stays here until the instruction is through.
    Stay,
    /// `value` and a random part.
    Draw,
    /// `value` and `position`, which goes on by `stride`.
    Walk,
    /// `value` and a random number of `stride`s.
    Random,
    /// The slot of a ring whose turn it is, and `value`.
    Slot,
    /// No instruction: sets the rounds of its end, `value` and a random part.
    Loop,
    /// No instruction: goes on with the next round, if there is one.
    EndLoop,
    /// No instruction: goes back to the poll.
    EndPoll,
    /// No instruction: a unit of work.
    Done,
}

/// A step, resolved.
#[derive(Clone, Copy, Debug)]
struct Instruction {
    flow: Flow,
    operation: Operation,
    side: Side,
    ring: u32,
    /// Of a poll, a publication and an access to a slot: which of [`Code::slots`].
    slot: u32,
    /// One-cycle instructions before it.
    row: u32,
    /// The step that follows.
    next: u32,
    /// Of a loop or poll: the step after its end. Of an end: where the next round begins.
    jump: u32,
    /// Of a loop: its end.
    end: u32,
    /// The latency, the address or the first one, the least number of rounds.
    value: u64,
    /// What [`Flow`] says; from one access to the next, in bytes.
    stride: u64,
    /// Of a walk: bytes. Where something is drawn: how many possibilities there are.
    length: u64,
    /// Of a walk: bytes from its base. For the end of a loop: rounds left.
    position: u64,
    /// Where something is drawn: the next draw, if it follows from the last.
    mirrored: Option<u64>,
}

impl Instruction {
    /// A uniform number below `length`. Draws come in pairs. If the first lies below the middle of
    /// the range, the second lies as far above it. So chance decides how draws follow each other,
    /// but hardly what they add up to.
    fn draw(&mut self, random: &mut Random) -> u64 {
        match self.mirrored.take() {
            Some(drawn) => drawn,
            None => {
                let drawn = random.below(self.length);
                self.mirrored = Some(self.length - 1 - drawn);
                drawn
            }
        }
    }
}

/// A ring's items.
#[derive(Clone, Copy, Debug)]
struct RingTraffic {
    ring: PacketRing,
    /// Items published by the producer and handed back by the consumer since the beginning.
    published: [u64; 2],
    /// Whether several threads are a side, and items that they have claimed since the beginning.
    shared: [bool; 2],
    claimed: [u64; 2],
}

/// The programs of all threads, each with its own copy, and the rings between them.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    instructions: Vec<Instruction>,
    rings: Vec<RingTraffic>,
    /// First by ring and side: where the slot lies whose turn it is. Then one for each thread of a
    /// side that several share: where the slot lies that it claimed last.
    slots: Vec<u64>,
    reach: Vec<Reach>,
    /// Whether loads can be of lines that no other core takes away.
    pub(crate) keeps: bool,
}

/// Where a thread is in its program: its next instructions.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    /// One-cycle instructions that come first.
    pub(crate) row: u32,
    /// What comes after them.
    pub(crate) operation: Operation,
    /// Its latency, or the address of a load or store.
    pub(crate) value: u64,
    /// Instructions up to and with it since the beginning.
    instructions: u64,
    /// Units of work done, the cycle of the last, and that of the last even one.
    pub(crate) work: u64,
    pub(crate) worked_at: u64,
    pub(crate) paired_at: u64,
    /// The step after it, or the poll or publication itself.
    at: u32,
    random: Random,
}

impl Code {
    /// The programs of `job`, which was checked, for `processor`; and the first step of each
    /// thread.
    pub(crate) fn new(processor: &Processor, job: &ProgramSet) -> (Self, Vec<u32>) {
        let mut instructions = Vec::new();
        let lines = LastingLines::new(processor, job);
        let mut append =
            |program: &SimulatedProgram| append(processor, job, &lines, program, &mut instructions);
        let begins: Vec<u32> = job.threads.iter().map(&mut append).collect();
        let traffic = |(number, &ring): (usize, &PacketRing)| RingTraffic {
            ring,
            published: [0; 2],
            shared: job.shared(number),
            claimed: [0; 2],
        };
        let rings: Vec<RingTraffic> = job.rings.iter().enumerate().map(traffic).collect();
        let mut slots: Vec<u64> = job.rings.iter().flat_map(|ring| [ring.slot(0); 2]).collect();
        let ends = begins.iter().copied().skip(1).chain([instructions.len() as u32]);
        for (begin, end) in begins.iter().zip(ends) {
            let mut own = HashMap::new();
            for instruction in &mut instructions[*begin as usize..end as usize] {
                let Instruction { ring, side, .. } = *instruction;
                let of_ring = instruction.flow == Flow::Slot
                    || matches!(instruction.operation, Operation::Poll | Operation::Publish);
                let Some(traffic) = rings.get(ring as usize).filter(|_| of_ring) else { continue };
                instruction.slot = if traffic.shared[side as usize] {
                    *own.entry((ring, side)).or_insert_with(|| {
                        slots.push(traffic.ring.slot(0));
                        slots.len() as u32 - 1
                    })
                } else {
                    2 * ring + side as u32
                };
            }
        }
        let reach = reach(&instructions);
        (Self { instructions, rings, slots, reach, keeps: lines.fits }, begins)
    }

    /// A thread before its first instruction, which stands at `begin`.
    pub(crate) fn enter(&mut self, begin: u32, seed: u64) -> Cursor {
        let random = Random::new(seed);
        let operation = Operation::Delay;
        let mut cursor = Cursor {
            row: 0,
            operation,
            value: 0,
            instructions: 0,
            work: 0,
            worked_at: 0,
            paired_at: 0,
            at: begin,
            random,
        };
        self.advance(&mut cursor, 0);
        cursor
    }

    /// Goes on to the next instruction; the one before was fetched in cycle `now`.
    #[inline]
    pub(crate) fn advance(&mut self, cursor: &mut Cursor, now: u64) {
        loop {
            let at = &mut self.instructions[cursor.at as usize];
            let mut value = at.value;
            match at.flow {
                Flow::Known => cursor.at = at.next,
                Flow::Stay => {}
                Flow::Draw => {
                    value += at.draw(&mut cursor.random);
                    cursor.at = at.next;
                }
                Flow::Walk => {
                    value += at.position;
                    let after = at.position + at.stride;
                    at.position = if after == at.length { 0 } else { after };
                    cursor.at = at.next;
                }
                Flow::Random => {
                    value += cursor.random.below(at.length) * at.stride;
                    cursor.at = at.next;
                }
                Flow::Slot => {
                    value += self.slots[at.slot as usize];
                    cursor.at = at.next;
                }
                Flow::Loop => {
                    let rounds =
                        if at.length > 1 { value + at.draw(&mut cursor.random) } else { value };
                    cursor.at = if rounds == 0 { at.jump } else { at.next };
                    let end = at.end;
                    self.instructions[end as usize].position = rounds;
                    continue;
                }
                Flow::EndLoop => {
                    at.position -= 1;
                    cursor.at = if at.position == 0 { at.next } else { at.jump };
                    continue;
                }
                Flow::EndPoll => {
                    cursor.at = at.jump;
                    continue;
                }
                Flow::Done => {
                    cursor.work += 1;
                    cursor.worked_at = now;
                    if cursor.work.is_multiple_of(2) {
                        cursor.paired_at = now;
                    }
                    cursor.at = at.next;
                    continue;
                }
            }
            cursor.value = value;
            cursor.operation = at.operation;
            cursor.row = at.row;
            cursor.instructions += u64::from(at.row) + 1;
            return;
        }
    }

    /// The poll at `cursor` has loaded its index. Goes on behind it or into its body.
    #[inline]
    pub(crate) fn polled(&mut self, cursor: &mut Cursor, now: u64) {
        let Instruction { ring, side, slot, next, jump, .. } =
            self.instructions[cursor.at as usize];
        let traffic = &mut self.rings[ring as usize];
        let ready = traffic.ready(side);
        if ready && traffic.shared[side as usize] {
            let claimed = &mut traffic.claimed[side as usize];
            self.slots[slot as usize] = traffic.ring.slot(*claimed);
            *claimed += 1;
        }
        cursor.at = if ready { jump } else { next };
        self.advance(cursor, now);
    }

    /// The publication that `cursor` stands at has been stored.
    #[inline]
    pub(crate) fn published(&mut self, cursor: &mut Cursor, now: u64) {
        let Instruction { ring, side, slot, next, .. } = self.instructions[cursor.at as usize];
        let RingTraffic { ring, published, shared, .. } = &mut self.rings[ring as usize];
        published[side as usize] += 1;
        if !shared[side as usize] {
            self.slots[slot as usize] = ring.slot(published[side as usize]);
        }
        cursor.at = next;
        self.advance(cursor, now);
    }
}

impl Cursor {
    /// Instructions behind it.
    pub(crate) fn fetched(&self) -> u64 {
        self.instructions - u64::from(self.row) - 1
    }
}

impl RingTraffic {
    /// Whether there is a slot to fill or an item to read.
    fn ready(&self, side: Side) -> bool {
        // Who shares a side may not take what another has claimed.
        let taken = if self.shared[side as usize] { self.claimed } else { self.published };
        let [produced, consumed] = self.published;
        match side {
            Side::Producer => taken[0] < consumed + u64::from(self.ring.slots),
            Side::Consumer => taken[1] < produced,
        }
    }
}

fn other(side: Side) -> Side {
    match side {
        Side::Producer => Side::Consumer,
        Side::Consumer => Side::Producer,
    }
}
