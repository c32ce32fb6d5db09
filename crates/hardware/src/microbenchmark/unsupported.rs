//! Stands in on architectures for which no programs were written. `HostBench::new` refuses there,
//! so nothing here is ever called.

use super::InstructionKind;

/// Whether there are programs for this architecture.
pub(super) const PRESENT: bool = false;

pub(super) fn operations(_kind: InstructionKind) -> u64 {
    1
}

pub(super) fn compute(_kind: InstructionKind, _passes: u64) {}

/// # Safety
/// None needed: nothing is done.
pub(super) unsafe fn chase(from: *const u8, _passes: u64) -> *const u8 {
    from
}

/// # Safety
/// None needed: nothing is done.
pub(super) unsafe fn stream(_from: *const u8, _passes: u64) {}

/// # Safety
/// None needed: nothing is done.
pub(super) unsafe fn store(_from: *mut u8, _passes: u64) {}
