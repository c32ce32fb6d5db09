//! Who measures what: a pure rule, without clock, connection or thread.
//!
//! Each trial that is offered gets a *ticket*, counting up. It waits until a worker takes it. Then
//! it is in flight until its first result comes, or until its worker is lost: it waits again then.
//! So each ticket has exactly one result, whatever dies and whatever comes late or twice.
//!
//! A worker takes trials whose tickets and numbers are consecutive: it knows all by the first.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A trial that a worker takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandedTrial<T> {
    /// By which its result is known.
    pub ticket: u64,
    /// Its number in the campaign.
    pub number: u64,
    /// The trial.
    pub trial: T,
}

/// The trials that wait or are in flight, and the workers.
#[derive(Clone, Debug)]
pub struct Dispatch<T> {
    /// The ticket of the next trial that is offered.
    next: u64,
    waiting: BTreeMap<u64, (u64, T)>,
    /// With the worker that has it.
    in_flight: BTreeMap<u64, (usize, u64, T)>,
    workers: BTreeSet<usize>,
}

impl<T> Default for Dispatch<T> {
    fn default() -> Self {
        let (waiting, in_flight, workers) = Default::default();
        Self { next: 0, waiting, in_flight, workers }
    }
}

impl<T: Clone> Dispatch<T> {
    /// Trials wait from now on, each with its number in the campaign. Returns their tickets.
    pub fn offer(&mut self, trials: impl IntoIterator<Item = (T, u64)>) -> Range<u64> {
        let first = self.next;
        for (trial, number) in trials {
            self.waiting.insert(self.next, (number, trial));
            self.next += 1;
        }
        first..self.next
    }

    /// Forgets the trials that wait. Those in flight stay.
    pub fn withdraw(&mut self) {
        self.waiting.clear();
    }

    /// A worker takes trials from now on.
    pub fn admit(&mut self, worker: usize) {
        self.workers.insert(worker);
    }

    /// A worker is dead, silent or set aside: it gets nothing more. Its trials wait again.
    pub fn lose(&mut self, worker: usize) {
        self.workers.remove(&worker);
        let held: Vec<u64> = self.of(worker).collect();
        for ticket in held {
            if let Some((_, number, trial)) = self.in_flight.remove(&ticket) {
                self.waiting.insert(ticket, (number, trial));
            }
        }
    }

    /// The workers that take trials, in order.
    pub fn workers(&self) -> impl Iterator<Item = usize> {
        self.workers.iter().copied()
    }

    /// Those of them without a trial.
    pub fn idle(&self) -> Vec<usize> {
        self.workers().filter(|worker| self.of(*worker).next().is_none()).collect()
    }

    /// The trials in flight, in the order of their tickets.
    pub fn in_flight(&self) -> impl Iterator<Item = (u64, &T)> {
        self.in_flight.iter().map(|(ticket, (_, _, trial))| (*ticket, trial))
    }

    /// How many trials wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn of(&self, worker: usize) -> impl Iterator<Item = u64> {
        let held = self.in_flight.iter().filter(move |(_, (by, _, _))| *by == worker);
        held.map(|(ticket, _)| *ticket)
    }

    /// The first trials that wait go to a worker, at most `most`, with consecutive tickets and
    /// numbers. None go to a worker that is lost.
    pub fn hand_out(&mut self, worker: usize, most: usize) -> Vec<HandedTrial<T>> {
        let mut handed: Vec<HandedTrial<T>> = Vec::new();
        while self.workers.contains(&worker) && handed.len() < most {
            let Some((&ticket, &(number, _))) = self.waiting.first_key_value() else { break };
            let follows = |last: &HandedTrial<T>| {
                (ticket, number) == (last.ticket + 1, last.number.wrapping_add(1))
            };
            if !handed.last().is_none_or(follows) {
                break;
            }
            if let Some((number, trial)) = self.waiting.remove(&ticket) {
                self.in_flight.insert(ticket, (worker, number, trial.clone()));
                handed.push(HandedTrial { ticket, number, trial });
            }
        }
        handed
    }

    /// A result has come. True if it is the first of its ticket: then it counts. A trial that waits
    /// again because its worker was lost may also have its result now.
    pub fn finish(&mut self, ticket: u64) -> bool {
        self.in_flight.remove(&ticket).is_some() || self.waiting.remove(&ticket).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_share_has_consecutive_numbers() {
        let mut dispatch = Dispatch::default();
        dispatch.offer([("a", 4), ("b", 5), ("x", 4)]);
        dispatch.admit(0);
        let share: Vec<u64> = dispatch.hand_out(0, 9).iter().map(|trial| trial.number).collect();
        assert_eq!(share, [4, 5], "the third is another guess of number 4");
        assert!(dispatch.hand_out(7, 9).is_empty(), "nobody knows worker 7");
    }

    #[derive(Clone, Debug)]
    enum Happening {
        Admit(usize),
        Lose(usize),
        HandOut(usize, usize),
        /// Any of the results that were ever under way, also of a lost worker, also again.
        Result(usize),
    }

    fn happening() -> impl Strategy<Value = Happening> {
        prop_oneof![
            1 => (0..4_usize).prop_map(Happening::Admit),
            1 => (0..4_usize).prop_map(Happening::Lose),
            2 => (0..4_usize, 1..5_usize)
                .prop_map(|(worker, most)| Happening::HandOut(worker, most)),
            4 => any::<usize>().prop_map(Happening::Result),
        ]
    }

    proptest! {
        #[test]
        fn every_trial_has_exactly_one_result(
            count in 0..40_u64,
            happenings in proptest::collection::vec(happening(), 0..200),
        ) {
            let mut dispatch = Dispatch::default();
            let tickets = dispatch.offer((0..count).map(|number| (number * 10, number)));
            let (mut under_way, mut results) = (Vec::new(), BTreeMap::new());
            let mut alive = BTreeSet::new();
            for happened in happenings {
                match happened {
                    Happening::Admit(worker) => {
                        alive.insert(worker);
                        dispatch.admit(worker);
                    }
                    Happening::Lose(worker) => {
                        alive.remove(&worker);
                        dispatch.lose(worker);
                    }
                    Happening::HandOut(worker, most) => {
                        let handed = dispatch.hand_out(worker, most);
                        prop_assert!(handed.is_empty() || alive.contains(&worker));
                        prop_assert!(handed.len() <= most);
                        under_way.extend(handed);
                    }
                    Happening::Result(any) if !under_way.is_empty() => {
                        let of: &HandedTrial<u64> = &under_way[any % under_way.len()];
                        prop_assert_eq!(of.trial, of.number * 10);
                        if dispatch.finish(of.ticket) {
                            prop_assert_eq!(results.insert(of.ticket, of.number), None);
                        }
                    }
                    Happening::Result(_) => (),
                }
                let open = dispatch.waiting() + dispatch.in_flight().count();
                prop_assert_eq!(open + results.len(), count as usize, "none lost, none doubled");
            }
            // Somebody new takes all that is left.
            (0..4).for_each(|worker| dispatch.lose(worker));
            dispatch.admit(9);
            loop {
                let handed = dispatch.hand_out(9, 3);
                if handed.is_empty() {
                    break;
                }
                for trial in handed {
                    prop_assert!(dispatch.finish(trial.ticket));
                    prop_assert_eq!(results.insert(trial.ticket, trial.number), None);
                }
            }
            prop_assert!(results.keys().copied().eq(tickets));
        }
    }
}
