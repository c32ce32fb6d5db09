//! The programs for AArch64.
//!
//! As for x86-64: eight chains are in eight registers. A pass has 128 instructions (32 divisions),
//! then a decrement and a branch.

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
            "add {a}, {a}, {k}", "add {b}, {b}, {k}", "add {c}, {c}, {k}", "add {d}, {d}, {k}",
            "add {e}, {e}, {k}", "add {f}, {f}, {k}", "add {g}, {g}, {k}", "add {h}, {h}, {k}",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
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
            "mul {a}, {a}, {k}", "mul {b}, {b}, {k}", "mul {c}, {c}, {k}", "mul {d}, {d}, {k}",
            "mul {e}, {e}, {k}", "mul {f}, {f}, {k}", "mul {g}, {g}, {k}", "mul {h}, {h}, {k}",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
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
    // SAFETY: only registers are written, all of them declared.
    unsafe {
        asm!(
            "2:",
            ".rept 32",
            "udiv {quotient}, {dividend}, {divisor}",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            dividend = in(reg) 0x7234_5678_9abc_def1_u64, divisor = in(reg) 0x1_2345_6789_u64,
            quotient = out(reg) _, n = inout(reg) passes => _,
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
            "fadd {a:d}, {a:d}, \
             {k:d}", "fadd {b:d}, {b:d}, \
                {k:d}", "fadd {c:d}, {c:d}, \
                {k:d}", "fadd \
                {d:d}, {d:d}, {k:d}",
            "fadd {e:d}, {e:d}, \
             {k:d}", "fadd {f:d}, {f:d}, \
                {k:d}", "fadd {g:d}, {g:d}, \
                {k:d}", "fadd \
                {h:d}, {h:d}, {k:d}",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            a = inout(vreg) 1f64 => _, b = inout(vreg) 2f64 => _, c = inout(vreg) 3f64 => _,
            d = inout(vreg) 4f64 => _, e = inout(vreg) 5f64 => _, f = inout(vreg) 6f64 => _,
            g = inout(vreg) 7f64 => _, h = inout(vreg) 8f64 => _,
            k = in(vreg) 1.25f64, n = inout(reg) passes => _,
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
            "fdiv {a:d}, {a:d}, \
             {k:d}", "fdiv {b:d}, {b:d}, \
                {k:d}", "fdiv {c:d}, {c:d}, \
                {k:d}", "fdiv \
                {d:d}, {d:d}, {k:d}",
            "fdiv {a:d}, {a:d}, \
             {r:d}", "fdiv {b:d}, {b:d}, \
                {r:d}", "fdiv {c:d}, {c:d}, \
                {r:d}", "fdiv \
                {d:d}, {d:d}, {r:d}",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            a = inout(vreg) 1.1f64 => _, b = inout(vreg) 1.2f64 => _, c = inout(vreg) 1.3f64 => _,
            d = inout(vreg) 1.7f64 => _,
            k = in(vreg) 1.234_567_890_123_4f64, r = in(vreg) 1.0 / 1.234_567_890_123_4f64,
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
            "ldr {at}, [{at}]",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
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
            "ldr {word}, [{at}], #64",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            at = inout(reg) from => _, word = out(reg) _, n = inout(reg) passes => _,
            options(readonly, nostack),
        );
    }
}

/// Writes each of `passes` (at least 1) times 64 successive cache lines of 64 bytes. The writes
/// carry a hint to bypass the caches.
///
/// # Safety
/// `from` is a multiple of 16. It points to `passes` times 4,096 writable bytes to which nothing
/// else refers.
pub(super) unsafe fn store(from: *mut u8, passes: u64) {
    debug_assert!(passes > 0 && from.addr().is_multiple_of(16));
    // SAFETY: the caller's promise makes every address that is stored to valid and aligned. Stores
    // of this kind are ordered with later ones by the barrier only.
    unsafe {
        asm!(
            "2:",
            ".rept 64",
            "stnp {word}, {word}, [{at}]",
            "stnp {word}, {word}, [{at}, #16]",
            "stnp {word}, {word}, [{at}, #32]",
            "stnp {word}, {word}, [{at}, #48]",
            "add {at}, {at}, #64",
            ".endr",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            "dmb ishst",
            at = inout(reg) from => _, word = in(reg) 0x0101_0101_0101_0101_u64,
            n = inout(reg) passes => _,
            options(nostack),
        );
    }
}
