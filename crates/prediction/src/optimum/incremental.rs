//! An assignment whose threads move, and its BlackBox prediction, kept up to date.
//!
//! A move changes what is in one or two core-local domains. Only the threads there get other
//! shares. Only their instances and those of the moved threads get another performance. So a move
//! costs a small part of a prediction. It caches shares by the contents of a domain, and base
//! performances by the places of an instance. It computes each from the tables when it first needs
//! it.
//!
//! The prediction is the sum of the same numbers in the same order as [`BlackBox::performance`]:
//! equal to the last bit.

use crate::{BlackBox, CoreLocal};
use pinwise_topology::Assignment;
use std::collections::HashMap;

/// What the tables say of an assignment. Every instance has its application, its base entry, and
/// the kinds and layouts of its threads, sorted. Assignments of one description are predicted the
/// same from the same entries.
pub(crate) type AssignmentEntries = Vec<(usize, usize, Vec<(usize, usize)>)>;

/// The number of a base entry, or its shape in a sampled table, and what it says; NaN if there is
/// none.
type Base = (usize, f64);

/// By what a domain holds, layout and share of every slot.
type Shares = HashMap<Box<[u8]>, Vec<(usize, f64)>>;

/// Most cached entries of either sort. Beyond that, the cache is emptied.
const MOST_KEPT: usize = 1 << 17;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Incremental<'a> {
    blackbox: &'a BlackBox,
    instance_of: Vec<usize>,
    /// The thread on every slot.
    threads: Vec<Option<usize>>,
    /// By slot, 0 or 1 + the kind of the thread there.
    held: Vec<u8>,
    slot_of: Vec<usize>,
    /// By instance, of its threads.
    leaves: Vec<Vec<u32>>,
    /// By thread: where in its instance.
    position: Vec<usize>,
    share: Vec<f64>,
    layout: Vec<usize>,
    /// By instance: which base entry, and what it says.
    base: Vec<Base>,
    performance: Vec<f64>,
    /// By build.
    domains: Vec<Shares>,
    /// By application and where an instance's threads are.
    bases: Vec<HashMap<Box<[u32]>, Base>>,
    names: Vec<HashMap<Assignment, usize>>,
}

impl<'a> Incremental<'a> {
    /// Starts with the threads on these leaves.
    ///
    /// # Panics
    /// If there are fewer leaves than threads, a leaf is absent, or a context holds too many
    /// threads.
    pub(crate) fn new(blackbox: &'a BlackBox, leaves: &[u32]) -> Self {
        let (thread_kinds, local) = (blackbox.thread_kinds(), blackbox.local());
        let slots = local.contexts() as usize * local.per_context();
        let (mut instance_of, mut position) =
            (vec![0; thread_kinds.threads()], vec![0; thread_kinds.threads()]);
        for (number, instance) in thread_kinds.instances().iter().enumerate() {
            for (place, &thread) in instance.threads.iter().enumerate() {
                (instance_of[thread], position[thread]) = (number, place);
            }
        }
        let mut moving = Self {
            blackbox,
            instance_of,
            position,
            threads: vec![None; slots],
            held: vec![0; slots],
            slot_of: vec![0; thread_kinds.threads()],
            leaves: Vec::new(),
            share: vec![f64::NAN; thread_kinds.threads()],
            layout: vec![0; thread_kinds.threads()],
            base: vec![(0, f64::NAN); thread_kinds.instances().len()],
            performance: vec![f64::NAN; thread_kinds.instances().len()],
            domains: vec![HashMap::new(); local.builds().len()],
            bases: vec![HashMap::new(); thread_kinds.applications()],
            names: vec![HashMap::new(); thread_kinds.applications()],
        };
        moving.place(leaves);
        moving
    }

    /// Puts all threads elsewhere.
    ///
    /// # Panics
    /// As [`Incremental::new`].
    pub(crate) fn place(&mut self, leaves: &[u32]) {
        let thread_kinds = self.blackbox.thread_kinds();
        self.threads.fill(None);
        self.held.fill(0);
        for (thread, leaf) in leaves[..thread_kinds.threads()].iter().enumerate() {
            let first = *leaf as usize * self.local().per_context();
            let free = self.threads[first..first + self.local().per_context()]
                .iter()
                .position(Option::is_none);
            let slot = first + free.expect("a context holds no more threads than the space allows");
            self.threads[slot] = Some(thread);
            self.held[slot] = 1 + thread_kinds.kind(thread) as u8;
            self.slot_of[thread] = slot;
        }
        let of = |instance: &crate::Instance| {
            instance.threads.iter().map(|&thread| leaves[thread]).collect()
        };
        self.leaves = thread_kinds.instances().iter().map(of).collect();
        (0..self.leaves.len()).for_each(|instance| self.locate(instance));
        (0..self.local().domains()).for_each(|domain| self.crowd(domain));
        (0..self.leaves.len()).for_each(|instance| self.perform(instance));
    }

    fn local(&self) -> &'a CoreLocal {
        self.blackbox.local()
    }

    /// How many slots there are: places for one thread.
    pub(crate) fn slots(&self) -> usize {
        self.threads.len()
    }

    /// How many threads.
    pub(crate) fn threads(&self) -> usize {
        self.slot_of.len()
    }

    /// The slot of a thread.
    pub(crate) fn slot(&self, thread: usize) -> usize {
        self.slot_of[thread]
    }

    /// The sum of the predictions of the instances. An instance for which a table lacks an entry
    /// counts as 0. The second value says whether no entry was missing.
    pub(crate) fn predicted(&self) -> (f64, bool) {
        let (mut sum, mut known) = (0.0, true);
        for performance in &self.performance {
            if performance.is_nan() {
                known = false;
            } else {
                sum += performance;
            }
        }
        (sum, known)
    }

    /// The leaf of every thread.
    pub(crate) fn leaves(&self) -> Vec<u32> {
        self.slot_of.iter().map(|slot| (slot / self.local().per_context()) as u32).collect()
    }

    /// The share that every thread lets its instance keep.
    pub(crate) fn shares(&self) -> &[f64] {
        &self.share
    }

    /// What the tables say of it.
    pub(crate) fn description(&self) -> AssignmentEntries {
        let thread_kinds = self.blackbox.thread_kinds();
        let describe = |(number, instance): (usize, &crate::Instance)| {
            let threads = instance.threads.iter();
            let mut threads: Vec<_> =
                threads.map(|&thread| (thread_kinds.kind(thread), self.layout[thread])).collect();
            threads.sort_unstable();
            (instance.application, self.base[number].0, threads)
        };
        let mut description: AssignmentEntries =
            thread_kinds.instances().iter().enumerate().map(describe).collect();
        description.sort_unstable();
        description
    }

    /// Exchanges what two slots hold, which may be nothing. Doing it again undoes it.
    pub(crate) fn exchange(&mut self, a: usize, b: usize) {
        self.threads.swap(a, b);
        self.held.swap(a, b);
        let moved = [(a, self.threads[a]), (b, self.threads[b])];
        for (slot, thread) in moved {
            if let Some(thread) = thread {
                self.slot_of[thread] = slot;
                let leaf = (slot / self.local().per_context()) as u32;
                self.leaves[self.instance_of[thread]][self.position[thread]] = leaf;
            }
        }
        for thread in moved.iter().filter_map(|(_, thread)| *thread) {
            self.locate(self.instance_of[thread]);
        }
        let (first, second) = (self.local().context(a).1, self.local().context(b).1);
        self.crowd(first);
        if second != first {
            self.crowd(second);
        }
        for thread in moved.iter().filter_map(|(_, thread)| *thread) {
            self.perform(self.instance_of[thread]);
        }
        for domain in [first, second] {
            for slot in self.local().slots(domain) {
                if let Some(thread) = self.threads[slot] {
                    self.perform(self.instance_of[thread]);
                }
            }
        }
    }

    /// Finds an instance's base performance.
    fn locate(&mut self, instance: usize) {
        let application = self.blackbox.thread_kinds().instances()[instance].application;
        let leaves = &self.leaves[instance][..];
        if let Some(known) = self.bases[application].get(leaves) {
            self.base[instance] = *known;
            return;
        }
        let table = self.blackbox.base(application);
        let found = match table.sampled(leaves) {
            Some((shape, value)) => (shape as usize, value.unwrap_or(f64::NAN)),
            None => {
                let name = table.name(&Assignment::new(leaves.to_vec()));
                let next = self.names[application].len();
                let value = table.named(&name).unwrap_or(f64::NAN);
                (*self.names[application].entry(name).or_insert(next), value)
            }
        };
        if self.bases[application].len() >= MOST_KEPT {
            self.bases[application].clear();
        }
        self.bases[application].insert(leaves.into(), found);
        self.base[instance] = found;
    }

    /// Gives the threads of a domain their layouts and shares.
    fn crowd(&mut self, domain: usize) {
        let (range, build) = (self.local().slots(domain), self.local().build(domain));
        let held = &self.held[range.clone()];
        let known = &mut self.domains[build];
        if !known.contains_key(held) {
            if known.len() >= MOST_KEPT {
                known.clear();
            }
            known.insert(held.into(), self.blackbox.slowdown().shares_within(build, held));
        }
        let shares = &known[held];
        for (thread, (layout, share)) in self.threads[range].iter().zip(shares) {
            if let Some(thread) = *thread {
                (self.layout[thread], self.share[thread]) = (*layout, *share);
            }
        }
    }

    /// Puts an instance's performance together.
    fn perform(&mut self, instance: usize) {
        let mut kept = f64::INFINITY;
        for &thread in &self.blackbox.thread_kinds().instances()[instance].threads {
            let share = self.share[thread];
            // What is not known makes the whole unknown; f64::min would pass over it.
            kept = if share.is_nan() {
                f64::NAN
            } else if share < kept {
                share
            } else {
                kept
            };
            if kept.is_nan() {
                break;
            }
        }
        self.performance[instance] = self.base[instance].1 * kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::blackbox::tests::Obedient;
    use crate::tables::core_local::tests::hybrid;
    use pinwise_topology::{DomainKind, Random};

    #[test]
    fn after_any_moves_the_prediction_is_that_of_the_tables_to_the_last_bit() {
        for (shape, obedient) in [
            (
                "8x2x4",
                Obedient::new("8x2x4", DomainKind::Package, "RPT RPT RPT RPT RPT RPT RPT RPT"),
            ),
            ("8x2x4, two programs", Obedient::new("8x2x4", DomainKind::Core, "RPT RPT AB AB")),
            ("2x3x2", Obedient::new("2x3x2", DomainKind::Core, "RWW RWW")),
            ("hybrid", Obedient::on(hybrid(3, 2), DomainKind::L2, "RPT RPT AB")),
        ] {
            let blackbox = obedient.profile();
            let mut random = Random::new(3);
            let mut moving =
                Incremental::new(&blackbox, obedient.space().sample(&mut random).leaves());
            let mut seen = HashMap::new();
            for _ in 0..2000 {
                let slots = moving.slots() as u64;
                let (a, b) = (random.below(slots) as usize, random.below(slots) as usize);
                moving.exchange(a, b);
                let performance = blackbox.performance(&moving.leaves()).unwrap();
                assert_eq!(moving.predicted(), (performance, true), "{shape}");
                let fresh = Incremental::new(&blackbox, &moving.leaves());
                assert_eq!(fresh.share, moving.share);
                // The same figures, added in another order.
                let first: f64 = *seen.entry(moving.description()).or_insert(performance);
                assert!((first / performance - 1.0).abs() < 1e-12);
                if random.below(3) == 0 {
                    moving.exchange(a, b);
                }
            }
            assert!(seen.len() > 20, "{}", seen.len());
        }
    }
}
