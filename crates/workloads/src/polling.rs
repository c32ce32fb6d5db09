//! How a thread shares its CPU. It polls its rings, as packet software does, and steps aside if
//! others need the CPU.
//!
//! *Waiting*: a thread that finds its ring empty (or full) looks again [`SPINS`] times. The
//! processor's pause instruction is in between. Then it sleeps for [`NAP`]. Linux makes that about
//! 50 us (its timer slack). Meanwhile the other end moves half a ringful, so neither end reaches
//! the other's limit. A sleep on an exclusive CPU costs no throughput. An endless spin would burn a
//! whole time slice, milliseconds, on a CPU shared with the thread it waits for. Yielding instead
//! of sleeping works among pollers alone. Next to a program that computes, it nearly stops the
//! pipeline. On Linux 6.18 a yield gives up the rest of the slice, so each wait of microseconds
//! costs milliseconds.
//!
//! *Working*: a thread that always finds something to do yields after each [`TURN`] packets.
//! Without that, it would hold its CPU for a time slice. A pipeline that has another stage there
//! would fill its ring within microseconds and stand still for the rest. On an exclusive CPU this
//! costs a system call per ringful, about a nanosecond a packet.
//!
//! The policy was chosen by measurement; see docs/reference/workloads.md.

use std::hint;
use std::thread;
use std::time::Duration;

/// Slots of a ring: the size that descriptor rings of network cards commonly have. If stages share
/// a CPU, a ringful is what one of them does in its turn. That is long enough for the context
/// switch not to matter.
pub(crate) const RING: usize = 1024;

/// Looks at the ring before a waiting thread sleeps.
const SPINS: u32 = 16;

/// What it asks for; real-time threads, which have no timer slack, get no more than that.
const NAP: Duration = Duration::from_micros(1);

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
            *self = Self::default();
            thread::sleep(NAP);
        }
    }

    /// There were `packets` packets to work on.
    pub(crate) fn worked(&mut self, packets: usize) {
        self.looks = 0;
        self.packets += packets;
        if self.packets >= TURN {
            self.packets = 0;
            thread::yield_now();
        }
    }
}
