//! The instructions of x86-64, by `iced-x86`. Their text has the syntax of Intel.

use iced_x86::{Decoder, DecoderOptions, FastFormatter, FlowControl, Instruction, OpKind};

use super::Transfer;

pub(super) fn transfer(code: &[u8], address: u64) -> (Transfer, u64) {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    (transfer_of(&instruction), instruction.len() as u64)
}

fn transfer_of(instruction: &Instruction) -> Transfer {
    if instruction.is_invalid() {
        return Transfer::Stop;
    }
    let near = matches!(instruction.op0_kind(), OpKind::NearBranch64 | OpKind::NearBranch32);
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch if near => {
            Transfer::Jump(instruction.near_branch_target())
        }
        FlowControl::ConditionalBranch => Transfer::Conditional(instruction.near_branch_target()),
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => Transfer::IndirectJump,
        FlowControl::Return => Transfer::Return,
        FlowControl::Call if near => Transfer::Call,
        FlowControl::IndirectCall => Transfer::Call,
        FlowControl::Exception => Transfer::Stop,
        // A system call or an interrupt comes back to the next instruction.
        _ => Transfer::Next,
    }
}

pub(super) fn disassembled(code: &[u8], address: u64) -> Vec<(u64, String)> {
    let mut formatter = FastFormatter::new();
    formatter.options_mut().set_use_hex_prefix(true);
    formatter.options_mut().set_uppercase_hex(false);
    Decoder::with_ip(64, code, address, DecoderOptions::NONE)
        .iter()
        .map(|instruction| {
            let mut text = String::new();
            formatter.format(&instruction, &mut text);
            (instruction.ip(), text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_loop_reads_as_its_instructions() {
        // dec ecx; jne to itself; ret
        let code = [0xff, 0xc9, 0x75, 0xfc, 0xc3];
        let texts: Vec<String> = super::disassembled(&code, 0x40)
            .into_iter()
            .map(|(at, text)| format!("{at:x} {text}"))
            .collect();
        assert_eq!(texts, ["40 dec ecx", "42 jne 0x40", "44 ret"]);
    }
}
