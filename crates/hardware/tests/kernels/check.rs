//! The machine code of the microbenchmarks alone. So the code of another architecture can run under
//! an emulator without building the rest. `./test` does so if a cross linker and qemu-user are
//! installed:
//!
//! ```text
//! rustc --edition 2024 --test --target aarch64-unknown-linux-gnu -C target-feature=+crt-static \
//!     -C linker=aarch64-linux-gnu-gcc crates/hardware/tests/kernels/check.rs -o check
//! qemu-aarch64-static ./check
//! ```

#[cfg_attr(target_arch = "x86_64", path = "../../src/microbenchmark/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "../../src/microbenchmark/aarch64.rs")]
mod kernel;
#[path = "../../src/microbenchmark/instruction_kind.rs"]
mod instruction_kind;

use instruction_kind::InstructionKind;

/// Memory whose beginning is a multiple of 16.
#[repr(align(64))]
struct Lines<const N: usize>([u64; N]);

const ARITHMETIC: [InstructionKind; 5] = [
    InstructionKind::Add,
    InstructionKind::Multiply,
    InstructionKind::Divide,
    InstructionKind::FloatAdd,
    InstructionKind::FloatDivide,
];

#[test]
fn there_are_programs_for_this_architecture() {
    assert!(kernel::PRESENT);
    let memory = [InstructionKind::Chase, InstructionKind::Stream, InstructionKind::Store];
    for kind in ARITHMETIC.into_iter().chain(memory) {
        assert!(kernel::operations(kind) > 0);
    }
    assert_eq!(
        kernel::operations(InstructionKind::Follow),
        kernel::operations(InstructionKind::Scatter)
    );
}

#[test]
fn arithmetic_ends_and_leaves_other_registers_alone() {
    for kind in ARITHMETIC {
        for passes in [1, 2, 1000] {
            // Values that the compiler keeps in registers across the program, as far as there are
            // registers.
            let (integers, floats) =
                std::hint::black_box(([3u64, 5, 7, 11, 13], [1.5f64, 2.5, 3.5, 4.5, 5.5]));
            let before = (integers.iter().product::<u64>(), floats.iter().sum::<f64>());
            kernel::compute(kind, passes);
            assert_eq!(
                (integers.iter().product::<u64>(), floats.iter().sum::<f64>()),
                before,
                "{kind:?}"
            );
        }
    }
}

#[test]
fn a_chase_goes_64_steps_a_pass() {
    let mut lines = Lines([0u64; 100]);
    let start = lines.0.as_mut_ptr();
    // A cycle of 100 with a stride of 37.
    for index in 0..100 {
        let next = start.wrapping_add((index + 37) % 100);
        // SAFETY: entry `index` of the array.
        unsafe { start.add(index).cast::<*mut u64>().write(next) };
    }
    for passes in [1u64, 2, 9] {
        // SAFETY: every entry holds the address of another.
        let end = unsafe { kernel::chase(start.cast_const().cast(), passes) };
        let expected = (passes as usize * 64 * 37) % 100;
        assert_eq!(end.addr(), start.wrapping_add(expected).addr(), "{passes}");
    }
}

#[test]
fn a_stream_reads_and_a_store_writes_what_it_is_told() {
    // Two passes and one that stays as it is.
    let mut lines = Lines([0u64; 3 * 512]);
    // SAFETY: two passes are 8,192 bytes of the 12,288.
    unsafe { kernel::stream(lines.0.as_ptr().cast(), 2) };
    assert!(lines.0.iter().all(|&word| word == 0));
    // SAFETY: as above; aligned to 64, and borrowed by nobody else.
    unsafe { kernel::store(lines.0.as_mut_ptr().cast(), 2) };
    assert!(lines.0[..1024].iter().all(|&word| word == 0x0101_0101_0101_0101));
    assert!(lines.0[1024..].iter().all(|&word| word == 0));
}
