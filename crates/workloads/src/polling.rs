//! How a thread waits for its ring: it polls, as packet software does, and steps aside where others need its CPU.
//!
//! A thread that finds its ring empty (or full) looks again [`SPINS`] times, with the processor's pause instruction in between, and then
//! gives the CPU to whoever else is ready (`sched_yield`). On a CPU of its own that call comes straight back and
//! the thread polls on. On a shared CPU a spin is wasted time that the thread it waits for could have used, and an endless
//! spin would burn a whole time slice, milliseconds, for nothing. What the number should be was measured; see
//! docs/WORKLOADS.md.

use std::hint;
use std::thread;

/// Looks at the ring before the thread yields.
const SPINS: u32 = 16;

/// The state of one wait.
#[derive(Default)]
pub(crate) struct Poll {
    looks: u32,
}

impl Poll {
    /// Nothing to do: a short pause before the next look.
    pub(crate) fn idle(&mut self) {
        if self.looks < SPINS {
            self.looks += 1;
            hint::spin_loop();
        } else {
            self.looks = 0;
            thread::yield_now();
        }
    }

    /// There was something to do: the next wait starts anew.
    pub(crate) fn busy(&mut self) {
        self.looks = 0;
    }
}
