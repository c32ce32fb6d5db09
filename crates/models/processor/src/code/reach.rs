//! How soon a thread can need a unit, from its current step in its program.
//!
//! It is a lower bound: every load hits, every poll succeeds. For the loop that a thread is in, the
//! rounds left are known. For a later loop it takes the fewest rounds that the loop can have.

use super::{Code, Cursor, Flow, Instruction, Operation};

/// There is none to come; not in a loop.
const NONE: u32 = u32::MAX;

/// What is known about a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// The fewest cycles from it to the next operation of the pipelined floating-point unit, and to
    /// the next division. In a loop they count as if this were its last round.
    to: [u32; 2],
    /// The end of the innermost loop it is in.
    end: u32,
    /// The fewest cycles to there.
    to_end: u32,
    /// Of an end: the fewest cycles of a round, and whether it has such operations.
    round: u32,
    has: [bool; 2],
}

impl Code {
    /// The fewest cycles that pass from the next fetch of `cursor` to one of `operation`, which is
    /// [`Operation::Fpx`] or [`Operation::Fpd`].
    pub(crate) fn cycles_to(&self, cursor: &Cursor, operation: Operation) -> u64 {
        let row = u64::from(cursor.row);
        let own = match cursor.operation {
            next if next == operation => return row,
            Operation::Delay => cursor.value,
            // The cursor stands at it, not behind it.
            Operation::Poll | Operation::Publish => 0,
            _ => 1,
        };
        let which = usize::from(operation == Operation::Fpd);
        let at = &self.reach[cursor.at as usize];
        if at.to[which] == NONE {
            return u64::MAX;
        }
        let mut after = u64::from(at.to[which]);
        if at.end != NONE {
            let (end, last) = (&self.instructions[at.end as usize], &self.reach[at.end as usize]);
            if !last.has[which] {
                let rounds = u64::from(at.to_end) + (end.position - 1) * u64::from(last.round);
                after = rounds + u64::from(self.reach[end.next as usize].to[which]);
            }
        }
        row + own + after
    }
}

/// What is known about each step.
pub(super) fn reach(instructions: &[Instruction]) -> Vec<Reach> {
    let mut reach = vec![
        Reach { to: [NONE; 2], end: NONE, to_end: 0, round: 0, has: [false; 2] };
        instructions.len()
    ];
    // A loop begins after the one that it is in.
    for (begin, opening) in
        instructions.iter().enumerate().rev().filter(|(_, opening)| opening.flow == Flow::Loop)
    {
        let body = begin + 1..opening.end as usize;
        let units = instructions[body.clone()].iter().map(|instruction| instruction.operation);
        let has = [Operation::Fpx, Operation::Fpd]
            .map(|unit| units.clone().any(|operation| operation == unit));
        let round = cycles(instructions, &reach, body.start, body.end);
        for at in body.chain([opening.end as usize]) {
            if reach[at].end == NONE {
                let to_end = cycles(instructions, &reach, at, opening.end as usize);
                reach[at] = Reach { end: opening.end, to_end, ..reach[at] };
            }
        }
        reach[opening.end as usize] = Reach { round, has, ..reach[opening.end as usize] };
    }
    loop {
        let mut settled = true;
        for at in (0..instructions.len()).rev() {
            let to = [0, 1].map(|which| soonest(instructions, &reach, at, which));
            settled &= to == reach[at].to;
            reach[at].to = to;
        }
        if settled {
            return reach;
        }
    }
}

/// The fewest cycles from the step `at` to a step that needs the unit `which`, as far as known.
fn soonest(instructions: &[Instruction], reach: &[Reach], at: usize, which: usize) -> u32 {
    let instruction = &instructions[at];
    if instruction.operation == [Operation::Fpx, Operation::Fpd][which] {
        return instruction.row;
    }
    let [next, jump] =
        [instruction.next, instruction.jump].map(|step| reach[step as usize].to[which]);
    let own = own(instruction, reach);
    let after = match (instruction.flow, instruction.operation) {
        (Flow::Loop, _) if reach[instruction.end as usize].has[which] => return next.min(jump),
        (Flow::Loop | Flow::EndPoll, _) => jump,
        (_, Operation::Poll) => next.min(jump),
        // The end of a loop too, as if this were the last round. The exception is a next round that
        // is needed to get there.
        (Flow::EndLoop, _) => next.min(jump),
        _ => next,
    };
    if after == NONE { NONE } else { after.saturating_add(own).min(NONE - 1) }
}

/// The fewest cycles of a step, of a loop with all its rounds.
fn own(instruction: &Instruction, reach: &[Reach]) -> u32 {
    let value = u32::try_from(instruction.value).unwrap_or(NONE - 1);
    match (instruction.flow, instruction.operation) {
        (Flow::Loop, _) => value.saturating_mul(reach[instruction.end as usize].round),
        (Flow::EndLoop | Flow::EndPoll | Flow::Done, _) => 0,
        (_, Operation::Delay) => value.saturating_add(instruction.row),
        _ => instruction.row + 1,
    }
}

/// The fewest cycles from the step `at` to `end`, that of the loop it is in.
fn cycles(instructions: &[Instruction], reach: &[Reach], mut at: usize, end: usize) -> u32 {
    let mut cycles = 0u32;
    while at != end {
        let instruction = &instructions[at];
        cycles = cycles.saturating_add(own(instruction, reach));
        let passes = instruction.operation == Operation::Poll
            || matches!(instruction.flow, Flow::Loop | Flow::EndPoll);
        at = if passes { instruction.jump } else { instruction.next } as usize;
    }
    cycles
}
