//! What a pipe may do with shared units while it runs by itself: use one that no other pipe can come to want meanwhile.
//!
//! From where a thread stands in its program there is a least number of cycles to its next multiplication or division ([`Code::cycles_to`]).
//! Until the first that this allows any thread of the other pipes, there is nothing to arbitrate.

use super::divider::Divider;
use super::{NEVER, Shared, Strand};
use crate::code::{Code, Operation};

/// The units of a core as one of its pipes sees them.
pub(super) struct Claim<'a> {
    /// The pipe.
    pub(super) pipe: usize,
    /// The cycle up to which every other pipe has been run.
    pub(super) others_due: u64,
    pub(super) fpx: &'a mut Shared,
    pub(super) divider: &'a mut Divider,
    /// The cycle before which no other pipe wants the one, and the other; once it was looked for.
    until: [Option<u64>; 2],
}

impl<'a> Claim<'a> {
    /// Pipe `pipe` is about to run, all others have been run up to cycle `others_due`.
    #[inline]
    pub(super) fn new(pipe: usize, others_due: u64, fpx: &'a mut Shared, divider: &'a mut Divider) -> Self {
        Self { pipe, others_due, fpx, divider, until: [None; 2] }
    }

    /// Whether a strand of the pipe may fetch `operation` of `latency` cycles in cycle `now`, and have its unit at once. If so it has it.
    pub(super) fn take(
        &mut self,
        operation: Operation,
        latency: u64,
        now: u64,
        strands: &[Strand],
        code: &Code,
    ) -> bool {
        match operation {
            Operation::Fpx if now < self.until(operation, strands, code) => {
                self.fpx.last_user = self.pipe;
                true
            }
            Operation::Fpd if self.divider.is_free(self.pipe, now) && now < self.until(operation, strands, code) => {
                self.divider.occupy(self.pipe, now + latency);
                true
            }
            _ => false,
        }
    }

    fn until(&mut self, operation: Operation, strands: &[Strand], code: &Code) -> u64 {
        let (pipe, others_due) = (self.pipe, self.others_due);
        *self.until[usize::from(operation == Operation::Fpd)].get_or_insert_with(|| {
            let first = |strand: &Strand| {
                // One that waits for a unit has at least not been served yet.
                let ready_at = if strand.ready_at == NEVER { 0 } else { strand.ready_at };
                others_due.max(ready_at).saturating_add(code.cycles_to(&strand.cursor, operation))
            };
            strands.iter().filter(|strand| strand.pipe != pipe).map(first).min().unwrap_or(NEVER)
        })
    }
}
