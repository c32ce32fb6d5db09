//! The instructions of a function as text.

use iced_x86::{Decoder, DecoderOptions, FastFormatter};

/// The instructions of code at an address: where each is, and its text in the syntax of Intel.
pub(crate) fn disassembled(code: &[u8], address: u64) -> Vec<(u64, String)> {
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
