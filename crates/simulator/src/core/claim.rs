//! What a pipe may do with shared units while it runs by itself: use one that no other pipe can come to want meanwhile.
//!
//! From where a thread stands in its program there is a least number of cycles to its next multiplication or division ([`Code::cycles_to`]).
//! Until the first that this allows any thread of the other pipes, there is nothing to arbitrate. That stays true whatever happens.

use super::divider::Divider;
use super::{NEVER, Shared, Strand};
use crate::code::{Code, Operation};

/// The cycles before which no other pipe of the core wants the floating-point unit, and the divide unit, as far as has been looked.
pub(super) type Clear = [u64; 2];

/// The units of a core as one of its pipes sees them.
pub(super) struct Claim<'a> {
    /// The pipe.
    pub(super) pipe: usize,
    /// The cycle of the core's event, up to which every other pipe has been run at least.
    pub(super) now: u64,
    pub(super) fpx: &'a mut Shared,
    pub(super) divider: &'a mut Divider,
}

impl Claim<'_> {
    /// Whether a strand of the pipe may fetch `operation` of `latency` cycles in cycle `now`, and have its unit at once. If so it has it.
    #[inline]
    pub(super) fn take(
        &mut self,
        (operation, latency): (Operation, u64),
        now: u64,
        clear: &mut Clear,
        strands: &[Strand],
        code: &Code,
    ) -> bool {
        let clear = match operation {
            Operation::Fpx => &mut clear[0],
            Operation::Fpd if self.divider.is_free(self.pipe, now) => &mut clear[1],
            _ => return false,
        };
        if now >= *clear {
            *clear = self.clear(operation, strands, code);
        }
        let free = now < *clear;
        match operation {
            Operation::Fpx if free => self.fpx.last_user = self.pipe,
            _ if free => self.divider.occupy(self.pipe, now + latency),
            _ => {}
        }
        free
    }

    /// The first cycle in which another pipe may want the unit of `operation`.
    #[inline(never)]
    fn clear(&self, operation: Operation, strands: &[Strand], code: &Code) -> u64 {
        let first = |strand: &Strand| {
            // One that waits for a unit has at least not been served yet.
            let ready_at = if strand.ready_at == NEVER { 0 } else { strand.ready_at };
            self.now.max(ready_at).saturating_add(code.cycles_to(&strand.cursor, operation))
        };
        strands.iter().filter(|strand| strand.pipe != self.pipe).map(first).min().unwrap_or(NEVER)
    }
}
