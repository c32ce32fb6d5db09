//! The machine under the scheduler: which contexts are near each other, and what the operating
//! system's actions cost.

use crate::time::Nanos;
use pinwise_topology::{DomainKind, Machine};

/// Contexts and costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Platform {
    machine: Machine,
    /// For each context the package it is in, packages numbered from 0 without gaps.
    package: Vec<usize>,
    /// For each package its contexts, ascending.
    members: Vec<Vec<usize>>,
    /// What the operating system's actions cost.
    pub costs: Costs,
    /// What else runs.
    pub daemons: Daemons,
    /// Each thread of the program stays on one context. Threads take the contexts in turn.
    pub bound: bool,
}

/// What the operating system's and the processor's actions cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Putting another thread on a context, system time.
    pub switch: Nanos,
    /// Waking a context that was idle, on top.
    pub idle_exit: Nanos,
    /// Making one sleeping thread ready, paid by the thread that wakes it, system time.
    pub wake: Nanos,
    /// Creating a thread, paid one after the other by the main thread.
    pub create: Nanos,
    /// An operation on a lock, a barrier or a queue nobody else is using.
    pub lock: Nanos,
    /// Moving a lock's cache line to another context, per contender.
    pub transfer: Nanos,
    /// How long a thread that finds a mutex taken spins before it sleeps. It stops if the owner
    /// releases it earlier.
    pub spin: Nanos,
    /// How long a thread at a barrier spins before it sleeps.
    pub barrier_spin: Nanos,
    /// How long a thread must have waited in a run queue before an idle context takes it away.
    pub nosteal: Nanos,
    /// A thread that ran within this time probably has its data in the cache of its last context.
    /// It is queued there.
    pub warmth: Nanos,
    /// Fetching one KiB of a working set again after a move within the package (from the shared
    /// third-level cache).
    pub refill_near: Nanos,
    /// The same after a move to another package (from memory, or that package's cache).
    pub refill_far: Nanos,
}

/// Background activity of the operating system and its tools: threads above all of the program's in
/// priority.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Daemons {
    /// How many.
    pub count: usize,
    /// How long each sleeps, mean; uniform between 0 and twice this.
    pub period: Nanos,
    /// How long each then computes, mean; uniform between 0 and twice this.
    pub burst: Nanos,
}

impl Platform {
    /// The most contexts that are modelled.
    pub const MOST_CONTEXTS: usize = 256;

    /// The contexts of `machine` by package (one package where it names none), with the costs of
    /// [`Costs::opensolaris`]. `None` for a machine without contexts or with more than
    /// [`Platform::MOST_CONTEXTS`].
    pub fn new(machine: &Machine) -> Option<Self> {
        let packages: Vec<_> =
            machine.domains(DomainKind::Package).map(|domain| domain.cpus.clone()).collect();
        let mut members = vec![Vec::new(); packages.len().max(1)];
        let mut package = Vec::new();
        for (index, context) in machine.contexts.iter().enumerate() {
            let inside = packages.iter().position(|cpus| cpus.contains(context.cpu)).unwrap_or(0);
            package.push(inside);
            members[inside].push(index);
        }
        members.retain(|members| !members.is_empty());
        let fits = (1..=Self::MOST_CONTEXTS).contains(&package.len());
        let (machine, costs) = (machine.clone(), Costs::opensolaris());
        fits.then_some(Self {
            machine,
            package,
            members,
            costs,
            daemons: Daemons::NONE,
            bound: false,
        })
    }

    /// The Dell PowerEdge R905 of the Thread Reinforcer paper, Table I, with its background
    /// activity.
    pub fn opteron_24() -> Self {
        let built_in = Machine::model("opteron-24").expect("a built-in machine");
        let platform = Self::new(&built_in).expect("a machine with 24 contexts");
        Self { daemons: Daemons::SERVER, ..platform }
    }

    /// The machine that is modelled.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How many contexts.
    pub fn contexts(&self) -> usize {
        self.package.len()
    }

    /// The package of `context`.
    pub fn package(&self, context: usize) -> usize {
        self.package[context]
    }

    /// The contexts of each package.
    pub fn packages(&self) -> &[Vec<usize>] {
        &self.members
    }

    /// The context after `context` in the ring of its package. A run queue that is too long hands
    /// its next thread to it.
    pub fn neighbour(&self, context: usize) -> usize {
        let members = &self.members[self.package[context]];
        let place = members.iter().position(|&member| member == context).unwrap_or(0);
        members[(place + 1) % members.len()]
    }

    /// What a thread with `working_set` KiB pays for its move between two contexts, in nanoseconds.
    pub fn refill(&self, from: usize, to: usize, working_set: f64) -> f64 {
        let per_kib = if self.package[from] == self.package[to] {
            self.costs.refill_near
        } else {
            self.costs.refill_far
        };
        per_kib.0 as f64 * working_set
    }
}

impl Costs {
    /// Orders of magnitude of OpenSolaris on a 2.4 GHz Opteron. `nosteal` (100 µs) and `warmth` (3
    /// ticks of 10 ms) are that system's defaults (`nosteal_nsec`, `rechoose_interval` of its
    /// dispatcher). Refills follow from 64-byte lines at about 50 ns near and 110 ns far with four
    /// misses under way. The others are assumptions, common to all programs.
    pub fn opensolaris() -> Self {
        Self {
            switch: Nanos::from_micros(3.0),
            idle_exit: Nanos::from_micros(4.0),
            wake: Nanos::from_micros(6.0),
            create: Nanos::from_micros(60.0),
            lock: Nanos(100),
            transfer: Nanos(250),
            spin: Nanos::from_micros(8.0),
            barrier_spin: Nanos::from_micros(50.0),
            nosteal: Nanos::from_micros(100.0),
            warmth: Nanos::from_millis(30.0),
            refill_near: Nanos(200),
            refill_far: Nanos(440),
        }
    }
}

impl Daemons {
    /// Nothing else runs.
    pub const NONE: Self = Self { count: 0, period: Nanos(0), burst: Nanos(0) };

    /// A server with its daemons, its clock and the two monitoring tools at a resolution of
    /// milliseconds. They take 2.4 % of 24 contexts. An assumption, common to all programs.
    pub const SERVER: Self = Self { count: 24, period: Nanos(20_000_000), burst: Nanos(500_000) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_form_a_ring_in_each_package() {
        let platform = Platform::opteron_24();
        assert_eq!([0, 4, 5, 6, 23].map(|context| platform.neighbour(context)), [1, 5, 0, 7, 18]);
        assert!(platform.refill(0, 1, 64.0) < platform.refill(0, 6, 64.0));
    }

    #[test]
    fn machines_of_up_to_256_contexts_are_taken() {
        let of = |shape| Platform::new(&Machine::from_shape(shape).unwrap());
        assert_eq!(of("8x16x2").map(|platform| platform.contexts()), Some(256));
        assert_eq!(of("257x1"), None);
    }
}
