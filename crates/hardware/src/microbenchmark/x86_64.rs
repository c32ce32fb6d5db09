//! The programs for x86-64.
//!
//! Eight chains are in eight registers. A pass has 16 times eight instructions, then a decrement
//! and a branch. Cores fuse these two, so they are below 1 % of the work. Divisions are fewer in a
//! pass because each is long. Additions take both operands from registers. Recent cores execute
//! additions of constants while renaming, without the units that are to be stressed.

use super::InstructionKind;
use std::arch::asm;

/// Whether there are programs for this architecture.
pub(super) const PRESENT: bool = true;

/// Operations in one pass of a program.
pub(super) fn operations(kind: InstructionKind) -> u64 {
    match kind {
        InstructionKind::Add | InstructionKind::Multiply | InstructionKind::FloatAdd => 128,
        InstructionKind::Divide | InstructionKind::FloatDivide => 32,
        InstructionKind::Chase
        | InstructionKind::Stream
        | InstructionKind::Store
        | InstructionKind::Follow
        | InstructionKind::Scatter => 64,
    }
}

/// Executes `passes` (at least 1) of a program of arithmetic.
pub(super) fn compute(kind: InstructionKind, passes: u64) {
    debug_assert!(passes > 0);
    match kind {
        InstructionKind::Add => add(passes),
        InstructionKind::Multiply => multiply(passes),
        InstructionKind::Divide => divide(passes),
        InstructionKind::FloatAdd => float_add(passes),
        InstructionKind::FloatDivide => float_divide(passes),
        InstructionKind::Chase
        | InstructionKind::Stream
        | InstructionKind::Store
        | InstructionKind::Follow
        | InstructionKind::Scatter => {}
    }
}

fn add(passes: u64) {
    // SAFETY: only registers are written, all of them declared.
    unsafe {
        asm!(
            "2:",
            ".rept 16",
            "add {a}, {k}", "add {b}, {k}", "add {c}, {k}", "add {d}, {k}",
            "add {e}, {k}", "add {f}, {k}", "add {g}, {k}", "add {h}, {k}",
            ".endr",
            "dec {n}",
            "jnz 2b",
            a = inout(reg) 1u64 => _, b = inout(reg) 2u64 => _,
            c = inout(reg) 3u64 => _, d = inout(reg) 4u64 => _,
            e = inout(reg) 5u64 => _, f = inout(reg) 6u64 => _,
            g = inout(reg) 7u64 => _, h = inout(reg) 8u64 => _,
            k = in(reg) 3u64, n = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
}

fn multiply(passes: u64) {
    // SAFETY: only registers are written, all of them declared.
    unsafe {
        asm!(
            "2:",
            ".rept 16",
            "imul {a}, {k}", "imul {b}, {k}", "imul {c}, {k}", "imul {d}, {k}",
            "imul {e}, {k}", "imul {f}, {k}", "imul {g}, {k}", "imul {h}, {k}",
            ".endr",
            "dec {n}",
            "jnz 2b",
            a = inout(reg) 1u64 => _, b = inout(reg) 2u64 => _,
            c = inout(reg) 3u64 => _, d = inout(reg) 4u64 => _,
            e = inout(reg) 5u64 => _, f = inout(reg) 6u64 => _,
            g = inout(reg) 7u64 => _, h = inout(reg) 8u64 => _,
            k = in(reg) 3u64, n = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
}

/// Every division has the same operands, since its time depends on them.
fn divide(passes: u64) {
    // SAFETY: only registers are written, all of them declared; the divisor is not 0 and the
    // quotient fits.
    unsafe {
        asm!(
            "2:",
            ".rept 32",
            "mov rax, {dividend}",
            "xor edx, edx",
            "div {divisor}",
            ".endr",
            "dec {n}",
            "jnz 2b",
            dividend = in(reg) 0x7234_5678_9abc_def1_u64, divisor = in(reg) 0x1_2345_6789_u64,
            n = inout(reg) passes => _, out("rax") _, out("rdx") _,
            options(nomem, nostack),
        );
    }
}

fn float_add(passes: u64) {
    // SAFETY: only registers are written, all of them declared.
    unsafe {
        asm!(
            "2:",
            ".rept 16",
            "addsd {a}, {k}", "addsd {b}, {k}", "addsd {c}, {k}", "addsd {d}, {k}",
            "addsd {e}, {k}", "addsd {f}, {k}", "addsd {g}, {k}", "addsd {h}, {k}",
            ".endr",
            "dec {n}",
            "jnz 2b",
            a = inout(xmm_reg) 1f64 => _, b = inout(xmm_reg) 2f64 => _,
            c = inout(xmm_reg) 3f64 => _,
            d = inout(xmm_reg) 4f64 => _, e = inout(xmm_reg) 5f64 => _,
            f = inout(xmm_reg) 6f64 => _,
            g = inout(xmm_reg) 7f64 => _, h = inout(xmm_reg) 8f64 => _,
            k = in(xmm_reg) 1.25f64, n = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
}

/// Quotients stay near 1: they alternate between x and 1/x, for an x without a short
/// representation.
fn float_divide(passes: u64) {
    // SAFETY: only registers are written, all of them declared.
    unsafe {
        asm!(
            "2:",
            ".rept 4",
            "divsd {a}, {k}", "divsd {b}, {k}", "divsd {c}, {k}", "divsd {d}, {k}",
            "divsd {a}, {r}", "divsd {b}, {r}", "divsd {c}, {r}", "divsd {d}, {r}",
            ".endr",
            "dec {n}",
            "jnz 2b",
            a = inout(xmm_reg) 1.1f64 => _, b = inout(xmm_reg) 1.2f64 => _,
            c = inout(xmm_reg) 1.3f64 => _,
            d = inout(xmm_reg) 1.7f64 => _,
            k = in(xmm_reg) 1.234_567_890_123_4f64, r = in(xmm_reg) 1.0 / 1.234_567_890_123_4f64,
            n = inout(reg) passes => _,
            options(nomem, nostack),
        );
    }
}

/// Follows `passes` (at least 1) times 64 pointers from `from`; the address of the next one.
///
/// # Safety
/// `from` is the address of an entry of a cycle of valid pointers to pointers.
pub(super) unsafe fn chase(from: *const u8, passes: u64) -> *const u8 {
    debug_assert!(passes > 0);
    let mut at = from;
    // SAFETY: the caller's promise makes every address that is loaded from valid; nothing is
    // written to memory.
    unsafe {
        asm!(
            "2:",
            ".rept 64",
            "mov {at}, qword ptr [{at}]",
            ".endr",
            "dec {n}",
            "jnz 2b",
            at = inout(reg) at, n = inout(reg) passes => _,
            options(readonly, nostack),
        );
    }
    at
}

/// Loads one word from each of `passes` (at least 1) times 64 successive cache lines of 64 bytes.
///
/// # Safety
/// `from` points to `passes` times 4,096 readable bytes.
pub(super) unsafe fn stream(from: *const u8, passes: u64) {
    debug_assert!(passes > 0);
    // SAFETY: the caller's promise makes every address that is loaded from valid; nothing is
    // written to memory.
    unsafe {
        asm!(
            "2:",
            ".rept 64",
            "mov {word}, qword ptr [{at}]",
            "add {at}, 64",
            ".endr",
            "dec {n}",
            "jnz 2b",
            at = inout(reg) from => _, word = out(reg) _, n = inout(reg) passes => _,
            options(readonly, nostack),
        );
    }
}

/// Writes each of `passes` (at least 1) times 64 successive cache lines of 64 bytes, past the
/// caches.
///
/// # Safety
/// `from` is a multiple of 16. It points to `passes` times 4,096 writable bytes to which nothing
/// else refers.
pub(super) unsafe fn store(from: *mut u8, passes: u64) {
    debug_assert!(passes > 0 && from.addr().is_multiple_of(16));
    // SAFETY: the caller's promise makes every address that is stored to valid and aligned; SSE2 is
    // part of x86-64. Stores of this kind are ordered with later ones by the fence only.
    unsafe {
        asm!(
            "2:",
            ".rept 64",
            "movntdq xmmword ptr [{at}], {word}",
            "movntdq xmmword ptr [{at} + 16], {word}",
            "movntdq xmmword ptr [{at} + 32], {word}",
            "movntdq xmmword ptr [{at} + 48], {word}",
            "add {at}, 64",
            ".endr",
            "dec {n}",
            "jnz 2b",
            "sfence",
            at = inout(reg) from => _, word = in(xmm_reg) std::arch::x86_64::_mm_set1_epi8(1),
            n = inout(reg) passes => _,
            options(nostack),
        );
    }
}
