//! A hardware context with a thread on it.

use super::{FPX, LSU, Units};
use crate::code::{Code, Cursor, Operation};

/// What a thread has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StrandCounters {
    /// Instructions fetched.
    pub instructions: u64,
    /// Units of work done ([`crate::program::ProgramStep::Done`]).
    pub work: u64,
    /// The cycle of the last of them.
    pub worked_at: u64,
    /// The cycle of the last that made their number even. Units differ by what is drawn, and draws
    /// come in pairs.
    pub paired_at: u64,
    /// Loads that missed the first-level cache.
    pub l1_misses: u64,
    /// Loads and stores that missed the second-level cache.
    pub l2_misses: u64,
}

/// A hardware context with a thread on it.
#[derive(Clone, Debug)]
pub(crate) struct Strand {
    /// When it can fetch. [`super::NEVER`] while it waits for a unit to start on its instruction.
    pub(super) ready_at: u64,
    /// One more than the cycle of its last fetch, 0 before the first.
    pub(super) fetched: u64,
    /// When its store buffer is free.
    pub(super) stored_at: u64,
    pub(super) cursor: Cursor,
    pub(super) counters: StrandCounters,
    /// The pipe it belongs to.
    pub(super) pipe: usize,
    /// The thread, as the job counts.
    pub(crate) thread: usize,
}

impl Strand {
    /// A thread that may fetch from cycle `start` on.
    pub(crate) fn new(thread: usize, cursor: Cursor, start: u64) -> Self {
        let counters = StrandCounters::default();
        Self { ready_at: start, fetched: 0, stored_at: 0, cursor, counters, pipe: 0, thread }
    }

    /// What its thread has done.
    pub(crate) fn counters(&self) -> StrandCounters {
        let Cursor { work, worked_at, paired_at, .. } = self.cursor;
        StrandCounters {
            instructions: self.cursor.fetched(),
            work,
            worked_at,
            paired_at,
            ..self.counters
        }
    }

    /// The unit its next instruction has to get.
    #[inline]
    pub(super) fn unit(&self) -> Units {
        match self.cursor.operation {
            _ if self.cursor.row > 0 => 0,
            Operation::Delay | Operation::Fpd => 0,
            Operation::Fpx => FPX,
            Operation::Load { .. } | Operation::Poll | Operation::Store | Operation::Publish => LSU,
        }
    }

    #[inline]
    pub(super) fn is_load(&self) -> bool {
        self.cursor.row == 0
            && matches!(self.cursor.operation, Operation::Load { .. } | Operation::Poll)
    }

    /// Fetches `count` instructions of its row, one after the other, the last in the cycle before
    /// `now`.
    #[inline]
    pub(super) fn fetch_row(&mut self, count: u32, now: u64) {
        self.cursor.row -= count;
        self.fetched = now;
    }

    /// Fetches an instruction in cycle `now` that takes `latency` cycles, and goes on behind it.
    #[inline]
    pub(super) fn fetch(&mut self, now: u64, latency: u64, code: &mut Code) {
        self.fetched = now + 1;
        self.ready_at = now + latency;
        code.advance(&mut self.cursor, now);
        self.wait_for_store_buffer();
    }

    /// Fetches whenever it is ready, up to the cycle before `end`. It is ready in cycle `now`.
    /// `now` becomes the cycle after its last fetch. Stops and returns true when it is ready for an
    /// instruction that needs a unit.
    #[inline]
    pub(super) fn run_alone(&mut self, now: &mut u64, end: u64, code: &mut Code) -> bool {
        loop {
            if self.cursor.row > 0 {
                let count = u64::from(self.cursor.row).min(end - *now);
                *now += count;
                self.fetch_row(count as u32, *now);
                if *now == end {
                    return false;
                }
            }
            if self.cursor.operation != Operation::Delay {
                return true;
            }
            self.fetch(*now, self.cursor.value, code);
            *now += 1;
            let next = self.ready_at.max(*now);
            if next >= end {
                return false;
            }
            *now = next;
        }
    }

    #[inline]
    pub(super) fn wait_for_store_buffer(&mut self) {
        if matches!(self.cursor.operation, Operation::Store | Operation::Publish) {
            self.ready_at = self.ready_at.max(self.stored_at);
        }
    }
}
