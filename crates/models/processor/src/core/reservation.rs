//! What a pipe may do with shared units while it runs alone. It may use a unit that no other pipe
//! can want meanwhile.
//!
//! A thread stands somewhere in its program. From there, a least number of cycles pass to its next
//! multiplication or division ([`Code::cycles_to`]). Before the earliest such cycle of all threads
//! of the other pipes, there is nothing to arbitrate. That stays true whatever happens.
//!
//! A load needs more. No fill may come in its way. The load must find its line in the first level,
//! and no other core may evict the line before. Such a load changes the recency of the line and the
//! last user of the unit. Only its own core observes that, and loads of that core stay in order. So
//! a pipe goes on with loads only until a cycle in which another pipe is due. A pipe that waits for
//! a unit is due by the cycle after the unit can start. Loads follow each other too closely for a
//! bound as above to be worth its time.

use super::divider::Divider;
use super::port::Port;
use super::{NEVER, Shared, Strand};
use crate::code::{Code, Operation};
use crate::memory::Hierarchy;

/// The cycles before which no other pipe of the core wants the floating-point unit, and the divide
/// unit. They are known only as far as the search went.
pub(super) type Clear = [u64; 2];

/// The units of a core as one of its pipes sees them.
pub(super) struct Reservation<'a> {
    /// The pipe.
    pub(super) pipe: usize,
    /// The cycle of the core's event, up to which every other pipe has been run at least.
    pub(super) now: u64,
    /// The first cycle in which another pipe is due.
    pub(super) others_due: u64,
    pub(super) fpx: &'a mut Shared,
    pub(super) lsu: &'a mut Shared,
    pub(super) divider: &'a mut Divider,
    pub(super) port: &'a Port,
    pub(super) l1_latency: u64,
    /// The core, as the memory counts.
    pub(super) core: usize,
    pub(super) memory: &'a mut Hierarchy,
}

impl Reservation<'_> {
    /// Whether a strand of the pipe may fetch `operation` in cycle `now` and have its unit at once.
    /// `value` is its latency or address. If so it has it; the latency is returned.
    #[inline]
    pub(super) fn take(
        &mut self,
        (operation, value): (Operation, u64),
        now: u64,
        clear: &mut Clear,
        strands: &[Strand],
        code: &Code,
    ) -> Option<u64> {
        let clear = match operation {
            Operation::Fpx => &mut clear[0],
            Operation::Fpd if self.divider.is_free(self.pipe, now) => &mut clear[1],
            Operation::Load { lasts: true } if now < self.others_due => {
                return self.load(value, now);
            }
            _ => return None,
        };
        if now >= *clear {
            *clear = self.clear(operation, now, strands, code);
            if now >= *clear {
                return None;
            }
        }
        match operation {
            Operation::Fpx => self.fpx.last_user = self.pipe,
            _ => self.divider.occupy(self.pipe, now + value),
        }
        Some(value)
    }

    /// The same for a load of a line that lasts, if no other pipe wants the load/store unit.
    #[inline]
    fn load(&mut self, address: u64, now: u64) -> Option<u64> {
        if !self.port.is_idle(now) || !self.memory.hits(self.core, address) {
            return None;
        }
        self.lsu.last_user = self.pipe;
        Some(self.l1_latency)
    }

    /// The first cycle in which another pipe may want the unit of `operation`. If that is not after
    /// `now`, one up to `now`.
    #[inline(never)]
    fn clear(&self, operation: Operation, now: u64, strands: &[Strand], code: &Code) -> u64 {
        let mut clear = NEVER;
        for strand in strands.iter().filter(|strand| strand.pipe != self.pipe) {
            // One that waits for a unit has at least not been served yet.
            let ready_at = if strand.ready_at == NEVER { 0 } else { strand.ready_at };
            let first =
                self.now.max(ready_at).saturating_add(code.cycles_to(&strand.cursor, operation));
            clear = clear.min(first);
            if clear <= now {
                break;
            }
        }
        clear
    }
}
