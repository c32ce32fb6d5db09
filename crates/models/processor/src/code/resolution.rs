//! From the steps of a program to instructions: latencies looked up, jumps resolved.

use super::lasting_lines::LastingLines;
use super::{Flow, Instruction, Operation, other};
use crate::processor::Processor;
use crate::program::{Address, ProgramSet, ProgramStep, Side, SimulatedProgram};

/// Appends a program; returns where it begins.
pub(super) fn append(
    processor: &Processor,
    job: &ProgramSet,
    lines: &LastingLines,
    program: &SimulatedProgram,
    instructions: &mut Vec<Instruction>,
) -> u32 {
    let begin = instructions.len() as u32;
    let last = begin + program.steps().len() as u32 - 1;
    let mut open: Vec<u32> = Vec::new();
    for (at, &step) in (begin..).zip(program.steps()) {
        let next = if at == last { begin } else { at + 1 };
        let mut instruction = Instruction { next, ..resolve(processor, job, lines, step) };
        match step {
            ProgramStep::Loop { .. } | ProgramStep::Poll { .. } => open.push(at),
            ProgramStep::End => {
                // A checked program closes only what it opened.
                let opened = open.pop().expect("a checked program is balanced");
                let opening = &mut instructions[opened as usize];
                opening.jump = next;
                opening.end = at;
                (instruction.flow, instruction.jump) = match opening.flow {
                    Flow::Loop => (Flow::EndLoop, opened + 1),
                    _ => (Flow::EndPoll, opened),
                };
            }
            _ => {}
        }
        instructions.push(instruction);
    }
    join_rows(program.steps(), &mut instructions[begin as usize..]);
    begin
}

/// Merges a row of one-cycle instructions with the next instruction, if that is ready when the row
/// is over. A store may have to wait for the store before. Nothing else leads to the second of two
/// steps, unless the first is a loop, poll or end.
fn join_rows(steps: &[ProgramStep], instructions: &mut [Instruction]) {
    for at in 1..steps.len() {
        if let (
            ProgramStep::Alu(row),
            ProgramStep::Branch
            | ProgramStep::Multiply
            | ProgramStep::FpAdd
            | ProgramStep::Divide(_)
            | ProgramStep::FpDivide
            | ProgramStep::Load(_)
            | ProgramStep::Wait { .. },
        ) = (steps[at - 1], steps[at])
        {
            instructions[at - 1] = Instruction { row, ..instructions[at] };
        }
    }
}

/// A step alone, without its place among others.
fn resolve(
    processor: &Processor,
    job: &ProgramSet,
    lines: &LastingLines,
    step: ProgramStep,
) -> Instruction {
    let mut instruction = Instruction {
        flow: Flow::Known,
        operation: Operation::Delay,
        side: Side::Producer,
        ring: 0,
        slot: 0,
        row: 0,
        next: 0,
        jump: 0,
        end: 0,
        value: 0,
        stride: 0,
        length: 1,
        position: 0,
        mirrored: None,
    };
    let (fpx, fpd) = (&processor.intra_core.fpx, &processor.intra_core.fpd);
    let (operation, value) = match step {
        ProgramStep::Alu(count) => {
            instruction.row = count - 1;
            (Operation::Delay, 1)
        }
        ProgramStep::Branch => (Operation::Delay, processor.intra_pipe.integer.taken_branch),
        ProgramStep::Multiply => (Operation::Fpx, fpx.multiply),
        ProgramStep::FpAdd => (Operation::Fpx, fpx.fp_add),
        ProgramStep::Divide(cycles) => (Operation::Fpd, cycles),
        ProgramStep::FpDivide => (Operation::Fpd, fpd.fp_divide),
        ProgramStep::Wait { mean, spread } => {
            // Where nothing is left to chance, nothing is drawn.
            if spread > 0 {
                instruction.flow = Flow::Draw;
                instruction.length = 2 * u64::from(spread) + 1;
            }
            (Operation::Delay, mean - spread)
        }
        ProgramStep::Loop { times, spread } => {
            instruction.flow = Flow::Loop;
            instruction.length = 2 * u64::from(spread) + 1;
            (Operation::Delay, times - spread)
        }
        ProgramStep::Load(address) => {
            let lasts = lines.lasts(job, address);
            return Instruction {
                operation: Operation::Load { lasts },
                ..access(instruction, address)
            };
        }
        ProgramStep::Store(address) => {
            return Instruction { operation: Operation::Store, ..access(instruction, address) };
        }
        ProgramStep::Poll { ring, side } => {
            let value = job.rings[ring].index(other(side));
            return Instruction {
                flow: Flow::Stay,
                operation: Operation::Poll,
                side,
                ring: ring as u32,
                value,
                ..instruction
            };
        }
        ProgramStep::Publish { ring, side } => {
            let value = job.rings[ring].index(side);
            return Instruction {
                flow: Flow::Stay,
                operation: Operation::Publish,
                side,
                ring: ring as u32,
                value,
                ..instruction
            };
        }
        ProgramStep::Done => {
            instruction.flow = Flow::Done;
            (Operation::Delay, 0)
        }
        ProgramStep::End => (Operation::Delay, 0),
    };
    Instruction { operation, value: u64::from(value), ..instruction }
}

/// `instruction` as an access to `address`.
fn access(instruction: Instruction, address: Address) -> Instruction {
    match address {
        Address::Fixed(value) => Instruction { value, ..instruction },
        Address::Walk { base, stride, length } => {
            Instruction { flow: Flow::Walk, value: base, stride, length, ..instruction }
        }
        Address::Random { base, length, grain } => Instruction {
            flow: Flow::Random,
            value: base,
            stride: grain,
            length: length / grain,
            ..instruction
        },
        Address::Slot { ring, side, offset } => {
            Instruction { flow: Flow::Slot, value: offset, ring: ring as u32, side, ..instruction }
        }
    }
}
