//! Programs made ready to run: latencies looked up, jumps resolved, loops and walks with their positions.

use crate::processor::Processor;
use crate::program::{Address, Job, Program, Ring, Side, Step};
use pinwise_topology::Random;

/// What a strand does next, as far as its core has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A row of one-cycle instructions.
    Alu,
    /// Nothing but time: a branch, an access to an interface.
    Delay,
    /// An operation of the pipelined floating-point unit.
    Fpx,
    /// A division.
    Fpd,
    /// A load.
    Load,
    /// A load of a ring's index, which decides whether to go on.
    Poll,
    /// A store.
    Store,
    /// A store to a ring's index, which lets the other side go on.
    Publish,
}

/// A step, its latency where it has a fixed one, and where it leads.
#[derive(Clone, Copy, Debug)]
struct Instruction {
    step: Step,
    /// Cycles of a fixed latency.
    latency: u32,
    /// The step that follows.
    next: u32,
    /// Of a loop or poll: the step after its end. Of an end: the step that it closes.
    jump: u32,
    /// Of a loop: rounds left. Of a walk: bytes from its base.
    position: u64,
}

/// A ring's items.
#[derive(Clone, Copy, Debug)]
struct Traffic {
    ring: Ring,
    /// Items published by the producer and handed back by the consumer since the beginning.
    published: [u64; 2],
}

/// The programs of all threads, each with a copy of its own, and the rings between them.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    instructions: Vec<Instruction>,
    rings: Vec<Traffic>,
}

/// Where a thread is in its program, and its next instruction.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    /// Of the next instruction.
    pub(crate) operation: Operation,
    /// [`Operation::Alu`]: instructions left in the row.
    pub(crate) row: u32,
    /// The latency, or the address of a load or store.
    pub(crate) value: u64,
    /// Units of work done, and the cycle of the last.
    pub(crate) work: u64,
    pub(crate) worked_at: u64,
    /// The step after it, or the poll or publication itself.
    at: u32,
    random: Random,
}

impl Code {
    /// The programs of `job`, which was checked, for `processor`; and the first step of each thread.
    pub(crate) fn new(processor: &Processor, job: &Job) -> (Self, Vec<u32>) {
        let mut instructions = Vec::new();
        let begins = job.threads.iter().map(|program| append(processor, program, &mut instructions)).collect();
        let rings = job.rings.iter().map(|&ring| Traffic { ring, published: [0, 0] }).collect();
        (Self { instructions, rings }, begins)
    }

    /// A thread before its first instruction, which stands at `begin`.
    pub(crate) fn enter(&mut self, begin: u32, seed: u64) -> Cursor {
        let random = Random::new(seed);
        let mut cursor =
            Cursor { operation: Operation::Alu, row: 0, value: 0, work: 0, worked_at: 0, at: begin, random };
        self.advance(&mut cursor, 0);
        cursor
    }

    /// Goes on to the next instruction; the one before was fetched in cycle `now`.
    #[inline]
    pub(crate) fn advance(&mut self, cursor: &mut Cursor, now: u64) {
        loop {
            let at = cursor.at;
            let Instruction { step, latency, next, jump, position } = self.instructions[at as usize];
            cursor.at = next;
            cursor.value = u64::from(latency);
            cursor.operation = match step {
                Step::Alu(count) => {
                    cursor.row = count;
                    Operation::Alu
                }
                Step::Branch => Operation::Delay,
                Step::Multiply | Step::FpAdd => Operation::Fpx,
                Step::Divide(_) | Step::FpDivide => Operation::Fpd,
                Step::Wait { mean, spread } => {
                    cursor.value = draw(&mut cursor.random, mean, spread);
                    Operation::Delay
                }
                Step::Load(address) => {
                    cursor.value = self.resolve(address, at, position, &mut cursor.random);
                    Operation::Load
                }
                Step::Store(address) => {
                    cursor.value = self.resolve(address, at, position, &mut cursor.random);
                    Operation::Store
                }
                Step::Poll { ring, side } => {
                    cursor.at = at;
                    cursor.value = self.rings[ring].ring.index(other(side));
                    Operation::Poll
                }
                Step::Publish { ring, side } => {
                    cursor.at = at;
                    cursor.value = self.rings[ring].ring.index(side);
                    Operation::Publish
                }
                Step::Loop { times, spread } => {
                    let rounds = draw(&mut cursor.random, times, spread);
                    self.instructions[at as usize].position = rounds;
                    cursor.at = if rounds == 0 { jump } else { next };
                    continue;
                }
                Step::End => {
                    let opened = &mut self.instructions[jump as usize];
                    if matches!(opened.step, Step::Poll { .. }) {
                        cursor.at = jump;
                    } else {
                        opened.position -= 1;
                        cursor.at = if opened.position == 0 { next } else { opened.next };
                    }
                    continue;
                }
                Step::Done => {
                    cursor.work += 1;
                    cursor.worked_at = now;
                    continue;
                }
            };
            return;
        }
    }

    /// The poll that `cursor` stands at has loaded its index: goes on behind it or into its body.
    #[inline]
    pub(crate) fn polled(&mut self, cursor: &mut Cursor, now: u64) {
        let Instruction { step, next, jump, .. } = self.instructions[cursor.at as usize];
        if let Step::Poll { ring, side } = step {
            cursor.at = if self.rings[ring].ready(side) { jump } else { next };
        }
        self.advance(cursor, now);
    }

    /// The publication that `cursor` stands at has been stored.
    #[inline]
    pub(crate) fn published(&mut self, cursor: &mut Cursor, now: u64) {
        let Instruction { step, next, .. } = self.instructions[cursor.at as usize];
        if let Step::Publish { ring, side } = step {
            self.rings[ring].published[side as usize] += 1;
        }
        cursor.at = next;
        self.advance(cursor, now);
    }

    /// The address that step `at` refers to now; a walk goes on.
    #[inline]
    fn resolve(&mut self, address: Address, at: u32, position: u64, random: &mut Random) -> u64 {
        match address {
            Address::Fixed(address) => address,
            Address::Walk { base, stride, length } => {
                let after = position + stride;
                self.instructions[at as usize].position = if after == length { 0 } else { after };
                base + position
            }
            Address::Random { base, length, grain } => base + random.below(length / grain) * grain,
            Address::Slot { ring, side, offset } => {
                let Traffic { ring, published } = &self.rings[ring];
                ring.slot(published[side as usize]) + offset
            }
        }
    }
}

impl Traffic {
    /// Whether there is a slot to fill or an item to read.
    fn ready(&self, side: Side) -> bool {
        let [produced, consumed] = self.published;
        match side {
            Side::Producer => produced < consumed + u64::from(self.ring.slots),
            Side::Consumer => consumed < produced,
        }
    }
}

fn other(side: Side) -> Side {
    match side {
        Side::Producer => Side::Consumer,
        Side::Consumer => Side::Producer,
    }
}

/// A uniform number from `middle - spread` to `middle + spread`.
fn draw(random: &mut Random, middle: u32, spread: u32) -> u64 {
    let least = u64::from(middle - spread);
    if spread == 0 { least } else { least + random.below(2 * u64::from(spread) + 1) }
}

/// Appends a program; returns where it begins.
fn append(processor: &Processor, program: &Program, instructions: &mut Vec<Instruction>) -> u32 {
    let begin = instructions.len() as u32;
    let end = begin + program.steps().len() as u32;
    let mut open = Vec::new();
    for (at, &step) in (begin..).zip(program.steps()) {
        let latency = match step {
            Step::Branch => processor.intra_pipe.integer.taken_branch,
            Step::Multiply => processor.intra_core.fpx.multiply,
            Step::FpAdd => processor.intra_core.fpx.fp_add,
            Step::Divide(cycles) => cycles,
            Step::FpDivide => processor.intra_core.fpd.fp_divide,
            _ => 0,
        };
        let next = if at + 1 == end { begin } else { at + 1 };
        let mut jump = 0;
        match step {
            Step::Loop { .. } | Step::Poll { .. } => open.push(at),
            Step::End => {
                // A checked program closes only what it opened.
                jump = open.pop().expect("a checked program is balanced");
                instructions[jump as usize].jump = next;
            }
            _ => {}
        }
        instructions.push(Instruction { step, latency, next, jump, position: 0 });
    }
    begin
}
