//! Who measures what: a pure rule, without clock, connection or thread.
//!
//! Each trial that is offered gets a *ticket*, counting up. It waits until a worker takes it. Then
//! it is in flight until its first result comes, or until its worker is lost: it waits again then.
//! So each ticket has exactly one result, whatever dies and whatever comes late or twice.
//!
//! Another worker may measure a trial that failed on one ([`Dispatch::try_elsewhere`]). Its result
//! says who is at fault: the trial or the worker.
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

/// A trial without a result.
#[derive(Clone, Debug)]
struct OpenTrial<T> {
    number: u64,
    trial: T,
    /// The worker that takes it, unless it fails there or that worker is lost.
    only: Option<usize>,
    /// The workers on which it failed.
    failed: Vec<usize>,
}

/// The trials that wait or are in flight, and the workers.
#[derive(Clone, Debug)]
pub struct Dispatch<T> {
    /// The ticket of the next trial that is offered.
    next: u64,
    waiting: BTreeMap<u64, OpenTrial<T>>,
    /// With the worker that has it.
    in_flight: BTreeMap<u64, (usize, OpenTrial<T>)>,
    /// The tickets of each worker that takes trials.
    held: BTreeMap<usize, BTreeSet<u64>>,
    /// Withdrawn trials with the workers on which they failed, the last [`Self::REMEMBERED`].
    failed: Vec<(T, Vec<usize>)>,
}

impl<T> Default for Dispatch<T> {
    fn default() -> Self {
        let (waiting, in_flight, held) = Default::default();
        Self { next: 0, waiting, in_flight, held, failed: Vec::new() }
    }
}

impl<T: Clone + PartialEq> Dispatch<T> {
    /// How many trials that failed are remembered after they were withdrawn.
    const REMEMBERED: usize = 64;

    /// Trials wait from now on, each with its number in the campaign. If they are for one worker
    /// `only`, others take them when it is lost, and those that failed on it. Returns their
    /// tickets.
    pub fn offer(
        &mut self,
        only: Option<usize>,
        trials: impl IntoIterator<Item = (T, u64)>,
    ) -> Range<u64> {
        let first = self.next;
        for (trial, number) in trials {
            let known = self.failed.iter().position(|(failed, _)| *failed == trial);
            let failed = known.map_or_else(Vec::new, |place| self.failed.swap_remove(place).1);
            self.waiting.insert(self.next, OpenTrial { number, trial, only, failed });
            self.next += 1;
        }
        first..self.next
    }

    /// Forgets the trials that wait, but not where they failed. Those in flight stay.
    pub fn withdraw(&mut self) {
        let waiting = std::mem::take(&mut self.waiting).into_values();
        let failed = waiting.filter(|open| !open.failed.is_empty());
        self.failed.extend(failed.map(|open| (open.trial, open.failed)));
        let above = self.failed.len().saturating_sub(Self::REMEMBERED);
        self.failed.drain(..above);
    }

    /// A worker takes trials from now on.
    pub fn admit(&mut self, worker: usize) {
        self.held.entry(worker).or_default();
    }

    /// A worker is dead, silent or set aside: it gets nothing more. Its trials wait again.
    pub fn lose(&mut self, worker: usize) {
        for ticket in self.held.remove(&worker).unwrap_or_default() {
            if let Some((_, trial)) = self.in_flight.remove(&ticket) {
                self.waiting.insert(ticket, trial);
            }
        }
    }

    /// The workers that take trials, in order.
    pub fn workers(&self) -> impl Iterator<Item = usize> {
        self.held.keys().copied()
    }

    /// Those of them without a trial.
    pub fn idle(&self) -> Vec<usize> {
        let idle = self.held.iter().filter(|(_, tickets)| tickets.is_empty());
        idle.map(|(worker, _)| *worker).collect()
    }

    /// The trials in flight, in the order of their tickets.
    pub fn in_flight(&self) -> impl Iterator<Item = (u64, &T)> {
        self.in_flight.iter().map(|(ticket, (_, open))| (*ticket, &open.trial))
    }

    /// The trials in flight, with their workers.
    pub fn in_flight_by(&self) -> impl Iterator<Item = (usize, &T)> {
        self.in_flight.values().map(|(worker, open)| (*worker, &open.trial))
    }

    /// How many trials wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a worker may take a trial: it is for no other one, and it has not failed there, or
    /// everywhere.
    fn may_take(&self, worker: usize, open: &OpenTrial<T>) -> bool {
        let own = open.only.filter(|own| self.is_for(*own, open));
        own.is_none_or(|own| own == worker) && !open.failed.contains(&worker)
            || self.held.keys().all(|worker| open.failed.contains(worker))
    }

    /// Whether a trial waits for this worker alone.
    fn is_for(&self, worker: usize, open: &OpenTrial<T>) -> bool {
        open.only == Some(worker)
            && self.held.contains_key(&worker)
            && !open.failed.contains(&worker)
    }

    /// Whether a result of this trial will come from this worker, if nothing fails.
    pub fn expects(&self, worker: usize, trial: &T) -> bool {
        self.in_flight_by().any(|(by, flying)| by == worker && flying == trial)
            || self.waiting.values().any(|open| open.trial == *trial && self.is_for(worker, open))
    }

    /// The first trials that wait go to a worker, at most `most`, with consecutive tickets and
    /// numbers. None go to a worker that is lost.
    pub fn hand_out(&mut self, worker: usize, most: usize) -> Vec<HandedTrial<T>> {
        let mut handed: Vec<HandedTrial<T>> = Vec::new();
        if !self.held.contains_key(&worker) {
            return handed;
        }
        let first = self.waiting.iter().find(|(_, open)| self.may_take(worker, open));
        let Some((first, number)) = first.map(|(ticket, open)| (*ticket, open.number)) else {
            return handed;
        };
        for (ticket, place) in (first..).zip(0..most as u64) {
            let takes = |open: &OpenTrial<T>| {
                open.number == number.wrapping_add(place) && self.may_take(worker, open)
            };
            if !self.waiting.get(&ticket).is_some_and(takes) {
                break;
            }
            if let Some(open) = self.waiting.remove(&ticket) {
                let (number, trial) = (open.number, open.trial.clone());
                handed.push(HandedTrial { ticket, number, trial });
                self.in_flight.insert(ticket, (worker, open));
                self.held.entry(worker).or_default().insert(ticket);
            }
        }
        handed
    }

    /// A trial goes to this worker at once, also if it failed there before. Returns its ticket;
    /// `None`: the worker is lost.
    pub fn hand_to(&mut self, worker: usize, trial: T, number: u64) -> Option<u64> {
        let ticket = self.next;
        self.held.get_mut(&worker)?.insert(ticket);
        self.next += 1;
        let open = OpenTrial { number, trial, only: None, failed: Vec::new() };
        self.in_flight.insert(ticket, (worker, open));
        Some(ticket)
    }

    /// A trial has failed on its worker. It waits again if there is a worker on which it has not:
    /// then this is no result. False: it has failed on all.
    pub fn try_elsewhere(&mut self, worker: usize, ticket: u64) -> bool {
        let Some((_, open)) = self.in_flight.get(&ticket).filter(|(by, _)| *by == worker) else {
            return false;
        };
        let untried = |other: &usize| *other != worker && !open.failed.contains(other);
        if !self.held.keys().any(untried) {
            return false;
        }
        if let Some((_, mut open)) = self.in_flight.remove(&ticket) {
            open.failed.push(worker);
            self.waiting.insert(ticket, open);
        }
        self.held.entry(worker).or_default().remove(&ticket);
        true
    }

    /// A result of a worker has come. It counts if the worker has the trial: then this returns the
    /// trial, and the workers on which it had failed before.
    pub fn finish(&mut self, worker: usize, ticket: u64) -> Option<(T, Vec<usize>)> {
        if self.in_flight.get(&ticket).is_none_or(|(by, _)| *by != worker) {
            return None;
        }
        if let Some(tickets) = self.held.get_mut(&worker) {
            tickets.remove(&ticket);
        }
        self.in_flight.remove(&ticket).map(|(_, open)| (open.trial, open.failed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_share_has_consecutive_numbers() {
        let mut dispatch = Dispatch::default();
        dispatch.offer(None, [("a", 4), ("b", 5), ("x", 4)]);
        dispatch.admit(0);
        let share: Vec<u64> = dispatch.hand_out(0, 9).iter().map(|trial| trial.number).collect();
        assert_eq!(share, [4, 5], "the third is another guess of number 4");
        assert!(dispatch.hand_out(7, 9).is_empty(), "nobody knows worker 7");
    }

    #[test]
    fn a_trial_that_fails_goes_to_each_other_worker_once() {
        let mut dispatch = Dispatch::default();
        let ticket = dispatch.offer(None, [("a", 0)]).start;
        (0..3).for_each(|worker| dispatch.admit(worker));
        assert_eq!(dispatch.hand_out(0, 1).len(), 1);
        assert!(!dispatch.try_elsewhere(1, ticket), "worker 1 does not have it");
        assert!(dispatch.try_elsewhere(0, ticket));
        dispatch.withdraw();
        let ticket = dispatch.offer(None, [("a", 0)]).start;
        assert!(dispatch.hand_out(0, 1).is_empty(), "not there again");
        assert_eq!(dispatch.hand_out(1, 1).len(), 1);
        assert_eq!(dispatch.finish(0, ticket), None, "the result of another one");
        assert!(dispatch.try_elsewhere(1, ticket));
        assert_eq!(dispatch.hand_out(2, 1).len(), 1);
        let mut measured = dispatch.clone();
        assert_eq!(measured.finish(2, ticket), Some(("a", vec![0, 1])));
        assert!(!dispatch.try_elsewhere(2, ticket), "it is the trial");
        // Where only those are left on which it failed, one of them takes it.
        dispatch.lose(2);
        assert_eq!(dispatch.hand_out(0, 1).len(), 1);
    }

    #[test]
    fn a_trial_may_be_given_to_a_worker_on_which_it_failed() {
        let mut dispatch = Dispatch::default();
        (0..2).for_each(|worker| dispatch.admit(worker));
        let ticket = dispatch.offer(None, [("a", 0)]).start;
        dispatch.hand_out(0, 1);
        assert!(dispatch.try_elsewhere(0, ticket));
        dispatch.withdraw();
        dispatch.offer(None, [("a", 0)]);
        assert!(dispatch.hand_out(0, 1).is_empty(), "it failed there");
        let given = dispatch.hand_to(0, "a", 0).unwrap();
        assert_eq!(dispatch.finish(0, given), Some(("a", vec![])));
        assert_eq!(dispatch.hand_to(7, "a", 0), None, "nobody knows worker 7");
    }

    #[test]
    fn a_trial_for_one_worker_goes_to_another_only_if_that_one_cannot() {
        let mut dispatch = Dispatch::default();
        (0..2).for_each(|worker| dispatch.admit(worker));
        dispatch.offer(Some(1), [("a", 0), ("b", 1)]);
        dispatch.offer(None, [("x", 0)]);
        let trials = |handed: Vec<HandedTrial<&'static str>>| -> Vec<&str> {
            handed.into_iter().map(|handed| handed.trial).collect()
        };
        let mut lost = dispatch.clone();
        assert_eq!(trials(dispatch.hand_out(0, 9)), ["x"]);
        assert!(dispatch.hand_out(0, 9).is_empty() && dispatch.expects(1, &"a"));
        assert_eq!(trials(dispatch.hand_out(1, 9)), ["a", "b"]);
        assert!(dispatch.expects(1, &"a") && !dispatch.expects(0, &"a"));
        assert!(dispatch.try_elsewhere(1, 0) && !dispatch.expects(1, &"a"));
        assert_eq!(trials(dispatch.hand_out(0, 9)), ["a"]);
        lost.lose(1);
        assert!(!lost.expects(1, &"a"));
        assert_eq!(trials(lost.hand_out(0, 9)), ["a", "b"]);
    }

    #[derive(Clone, Debug)]
    enum Happening {
        Admit(usize),
        Lose(usize),
        HandOut(usize, usize),
        /// Any of the results that were ever under way, also of a lost worker, also again.
        Result(usize),
        /// Such a trial fails.
        Failure(usize),
    }

    fn happening() -> impl Strategy<Value = Happening> {
        prop_oneof![
            1 => (0..4_usize).prop_map(Happening::Admit),
            1 => (0..4_usize).prop_map(Happening::Lose),
            2 => (0..4_usize, 1..5_usize)
                .prop_map(|(worker, most)| Happening::HandOut(worker, most)),
            4 => any::<usize>().prop_map(Happening::Result),
            1 => any::<usize>().prop_map(Happening::Failure),
        ]
    }

    proptest! {
        #[test]
        fn every_trial_has_exactly_one_result(
            count in 0..40_u64,
            only in proptest::option::of(0..4_usize),
            happenings in proptest::collection::vec(happening(), 0..200),
        ) {
            let mut dispatch = Dispatch::default();
            let tickets = dispatch.offer(only, (0..count).map(|number| (number * 10, number)));
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
                        under_way.extend(handed.into_iter().map(|trial| (worker, trial)));
                    }
                    Happening::Result(any) if !under_way.is_empty() => {
                        let (worker, of): &(usize, HandedTrial<u64>) =
                            &under_way[any % under_way.len()];
                        prop_assert_eq!(of.trial, of.number * 10);
                        if let Some((trial, _)) = dispatch.finish(*worker, of.ticket) {
                            prop_assert_eq!(trial, of.trial);
                            prop_assert_eq!(results.insert(of.ticket, of.number), None);
                        }
                    }
                    Happening::Failure(any) if !under_way.is_empty() => {
                        let (worker, of) = &under_way[any % under_way.len()];
                        dispatch.try_elsewhere(*worker, of.ticket);
                    }
                    Happening::Result(_) | Happening::Failure(_) => (),
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
                    prop_assert!(dispatch.finish(9, trial.ticket).is_some());
                    prop_assert_eq!(results.insert(trial.ticket, trial.number), None);
                }
            }
            prop_assert!(results.keys().copied().eq(tickets));
        }
    }
}
