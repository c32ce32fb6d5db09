//! How a thread shares its CPU: it polls its rings, as packet software does, and steps aside where others need the CPU.
//!
//! *Waiting*: a thread that finds its ring empty (or full) looks again [`SPINS`] times, with the processor's pause
//! instruction in between, and then offers the CPU to whoever else is ready (`sched_yield`). On a CPU of its own that call comes
//! straight back and the thread polls on. On a shared CPU each spin is time that the thread it waits for could have used, and
//! an endless spin would burn a whole time slice, milliseconds, for nothing.
//!
//! *Working*: a thread that always finds something to do offers the CPU after each [`TURN`] packets. Without that, it would
//! keep it for a time slice, while a pipeline that has another stage on this CPU fills its ring within microseconds and
//! stands still for the rest. On a CPU of its own this costs a system call per ringful, less than a nanosecond a packet.
//!
//! Both are for threads that poll beside threads that poll. Beside programs that never yield, a yielding thread gets less than
//! its share, on Linux 6.18 far less: a yield there gives up the rest of the slice. The numbers were chosen by
//! measurement; see docs/WORKLOADS.md.

use crate::pipeline::RING;
use std::hint;
use std::thread;

/// Looks at the ring before a waiting thread yields.
const SPINS: u32 = 16;

/// Packets after which a working thread yields: a ringful.
const TURN: usize = RING;

/// What a thread has used of its turn.
#[derive(Default)]
pub(crate) struct Turn {
    looks: u32,
    packets: usize,
}

impl Turn {
    /// Nothing to do: a short pause before the next look.
    pub(crate) fn idle(&mut self) {
        if self.looks < SPINS {
            self.looks += 1;
            hint::spin_loop();
        } else {
            self.end();
        }
    }

    /// There were `packets` packets to work on.
    pub(crate) fn worked(&mut self, packets: usize) {
        self.looks = 0;
        self.packets += packets;
        if self.packets >= TURN {
            self.end();
        }
    }

    fn end(&mut self) {
        *self = Self::default();
        thread::yield_now();
    }
}
