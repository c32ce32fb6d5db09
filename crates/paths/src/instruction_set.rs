//! What an instruction does to the flow of control, and its text, for each processor.
//!
//! A decoder gives the same few answers for all of them. So graphs, paths and estimates know no
//! processor. Only jump tables do (`jump_table.rs`).

mod aarch64;
mod x86_64;

use object::elf::{EM_AARCH64, EM_X86_64};

/// The instructions that a binary is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// Of Intel and AMD, in 64-bit mode.
    X86_64,
    /// Of Arm, in 64-bit state.
    Aarch64,
}

/// What an instruction does to the flow of control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    Next,
    Jump(u64),
    Conditional(u64),
    IndirectJump,
    Call,
    Return,
    Stop,
}

impl InstructionSet {
    /// By the number in the header of an ELF file. `None`: pinwise decodes no such code.
    pub(crate) fn of_machine(machine: u16) -> Option<Self> {
        match machine {
            EM_X86_64 => Some(Self::X86_64),
            EM_AARCH64 => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// What an instruction does, and how many bytes it has. Bytes that are no instruction have
    /// none.
    pub(crate) fn transfer(self, code: &[u8], address: u64) -> (Transfer, u64) {
        match self {
            Self::X86_64 => x86_64::transfer(code, address),
            Self::Aarch64 => aarch64::transfer(code, address),
        }
    }

    /// The instructions of code at an address: where each is, and its text.
    pub(crate) fn disassembled(self, code: &[u8], address: u64) -> Vec<(u64, String)> {
        match self {
            Self::X86_64 => x86_64::disassembled(code, address),
            Self::Aarch64 => aarch64::disassembled(code, address),
        }
    }
}
