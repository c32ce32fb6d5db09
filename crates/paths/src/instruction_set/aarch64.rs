//! The instructions of AArch64. `yaxpeax-arm` gives their text.
//!
//! Each has four bytes. What it does to the flow of control follows from few bits: Arm Architecture
//! Reference Manual (DDI 0487), section C4.1, "Branches, Exception Generating and System
//! instructions". So an instruction that the library does not know, such as those of SVE, is no
//! end of the code. Such instructions are shown as their word.

use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

use super::Transfer;

const LENGTH: u64 = 4;

pub(super) fn transfer(code: &[u8], address: u64) -> (Transfer, u64) {
    match code.first_chunk() {
        Some(word) => (transfer_of(u32::from_le_bytes(*word), address), LENGTH),
        None => (Transfer::Stop, 0),
    }
}

fn transfer_of(word: u32, address: u64) -> Transfer {
    // A signed number of instructions, in `bits` bits from `low` on.
    let target = |low: u32, bits: u32| {
        let offset = (word << (32 - low - bits)) as i32 >> (32 - bits);
        address.wrapping_add_signed(i64::from(offset) * LENGTH as i64)
    };
    match word >> 24 {
        0x14..=0x17 => Transfer::Jump(target(0, 26)),
        0x94..=0x97 => Transfer::Call,
        // b.cond and bc.cond. The last two conditions are always true.
        0x54 if word & 0xe == 0xe => Transfer::Jump(target(5, 19)),
        // cbz and cbnz, of 32 and 64 bits.
        0x54 | 0x34 | 0x35 | 0xb4 | 0xb5 => Transfer::Conditional(target(5, 19)),
        // tbz and tbnz.
        0x36 | 0x37 | 0xb6 | 0xb7 => Transfer::Conditional(target(5, 14)),
        // Branches to a register, also with pointer authentication.
        0xd6 | 0xd7 => match word >> 21 & 0b1111 {
            0b0000 | 0b1000 => Transfer::IndirectJump,
            0b0001 | 0b1001 => Transfer::Call,
            0b0010 => Transfer::Return,
            _ => Transfer::Stop,
        },
        // Exceptions: brk and hlt stop. Calls to the system come back.
        0xd4 if matches!(word >> 21 & 0b111, 0b001 | 0b010) => Transfer::Stop,
        // udf
        0x00 if word >> 16 == 0 => Transfer::Stop,
        _ => Transfer::Next,
    }
}

pub(super) fn disassembled(code: &[u8], address: u64) -> Vec<(u64, String)> {
    let (words, _) = code.as_chunks::<4>();
    let texts = words.iter().zip((address..).step_by(LENGTH as usize)).map(|(word, at)| {
        let decoded = InstDecoder::default().decode(&mut U8Reader::new(word));
        let text = match decoded {
            Ok(instruction) => absolute(&instruction.to_string(), at),
            Err(_) => format!(".inst 0x{:08x}", u32::from_le_bytes(*word)),
        };
        (at, text)
    });
    texts.collect()
}

/// The library writes places as distances, `$-0x10`. Those of `adrp` are from the page.
fn absolute(text: &str, address: u64) -> String {
    let relative = || {
        let (front, distance) = text.split_once('$')?;
        let (sign, number) = distance.split_at_checked(1)?;
        let number = number.strip_prefix("0x")?;
        let end = number.find(|it: char| !it.is_ascii_hexdigit()).unwrap_or(number.len());
        let (digits, rest) = number.split_at(end);
        let distance = u64::from_str_radix(digits, 16).ok()?;
        let from = if text.starts_with("adrp") { address & !0xfff } else { address };
        let place = match sign {
            "-" => from.wrapping_sub(distance),
            _ => from.wrapping_add(distance),
        };
        Some(format!("{front}0x{place:x}{rest}"))
    };
    relative().unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Random;
    use std::process::Command;

    #[test]
    fn a_loop_reads_as_its_instructions() {
        // subs w0, w0, #1; b.ne to itself; adrp; tbz; ret; cntb of SVE, which is not known.
        let words: [u32; 6] =
            [0x7100_0400, 0x54ff_ffe1, 0xb000_0001, 0x3607_ffc0, 0xd65f_03c0, 0x0420_e3e0];
        let code = words.map(u32::to_le_bytes).concat();
        let texts: Vec<String> =
            disassembled(&code, 0x1040).into_iter().map(|(_, text)| text).collect();
        assert_eq!(
            texts,
            [
                "subs w0, w0, #0x1",
                "b.ne 0x1040",
                "adrp x1, 0x2000",
                "tbz w0, #0x0, 0x1044",
                "ret",
                ".inst 0x0420e3e0"
            ]
        );
        let transfers: Vec<Transfer> =
            words.iter().zip((0x1040..).step_by(4)).map(|(it, at)| transfer_of(*it, at)).collect();
        use Transfer::{Conditional, Next, Return};
        let expected = [Next, Conditional(0x1040), Next, Conditional(0x1044), Return, Next];
        assert_eq!(transfers, expected);
    }

    #[test]
    fn a_text_without_a_distance_stays() {
        for text in ["b $", "b $é", "b $+", "b $+0x", "b $+0xfffffffffffffffff", "nop"] {
            assert_eq!(absolute(text, 0x1040), text);
        }
        assert_eq!(absolute("tbz w0, #0x0, $-0x8 é", 0x1040), "tbz w0, #0x0, 0x1038 é");
    }

    /// Words of each class of instructions, and some of their operands.
    #[test]
    fn every_word_has_a_text() {
        let mut random = Random::new(1);
        for class in 0..1_u32 << 16 {
            let code = [0; 8].map(|_| (class << 16 | random.below(1 << 16) as u32).to_le_bytes());
            assert_eq!(disassembled(code.as_flattened(), u64::MAX - 31).len(), code.len());
        }
    }

    /// Of each instruction of a C library that the cross compiler brings.
    #[test]
    fn objdump_agrees() {
        let library = "/usr/aarch64-linux-gnu/lib/libc.so.6";
        let mut objdump = Command::new("aarch64-linux-gnu-objdump");
        let Ok(printed) = objdump.args(["-d", "-j", ".text", library]).output() else {
            return pinwise_synthetic::not_judged("no objdump for AArch64");
        };
        let printed = String::from_utf8(printed.stdout).unwrap();
        let mut transfers = 0;
        for line in printed.lines() {
            // "   27440:\t54000060 \tb.eq\t2744c <name+0xc>  // b.none"
            let fields: Vec<&str> = line.split('\t').collect();
            let [address, word, mnemonic, operands @ ..] = &fields[..] else { continue };
            let number = |text: &str| u64::from_str_radix(text, 16);
            let Ok(address) = number(address.trim().trim_end_matches(':')) else { continue };
            let Ok(word) = u32::from_str_radix(word.trim(), 16) else { continue };
            let target = || {
                let words = operands[0].split("  //").next().unwrap().split(" <").next().unwrap();
                number(words.rsplit(", ").next().unwrap().trim_start_matches("0x")).unwrap()
            };
            let expected = match *mnemonic {
                "b" => Transfer::Jump(target()),
                "cbz" | "cbnz" | "tbz" | "tbnz" => Transfer::Conditional(target()),
                conditional if conditional.starts_with("b.") => Transfer::Conditional(target()),
                "bl" | "blr" => Transfer::Call,
                "br" => Transfer::IndirectJump,
                "ret" => Transfer::Return,
                "brk" | "udf" => Transfer::Stop,
                _ => Transfer::Next,
            };
            transfers += u32::from(expected != Transfer::Next);
            assert_eq!(transfer_of(word, address), expected, "{line}");
        }
        if transfers == 0 {
            return pinwise_synthetic::not_judged("no C library for AArch64");
        }
        assert!(transfers > 10_000, "{transfers}");
    }
}
