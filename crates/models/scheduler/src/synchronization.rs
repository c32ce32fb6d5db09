//! The objects that threads wait for: mutexes, condition variables, barriers, bounded queues.
//!
//! Plain state: who holds, who spins, who sleeps. The kernel asks what an operation does and
//! carries it out; nothing here knows time.

use std::collections::VecDeque;

/// A thread of the simulation.
pub(crate) type ThreadIndex = usize;

/// A lock with adaptive waiting: who finds it taken spins for a while, then sleeps. A release goes
/// to a spinning thread. If there is none, the first sleeper is woken and competes for the lock
/// with threads that arrive meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mutex {
    owner: Option<ThreadIndex>,
    spinners: VecDeque<ThreadIndex>,
    sleepers: VecDeque<ThreadIndex>,
}

/// The thread that goes on when a mutex is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heir {
    /// Nobody waits.
    Nobody,
    /// This spinning thread owns the mutex now; this many others go on spinning.
    Spinner(ThreadIndex, usize),
    /// This sleeping thread is to be woken and will try again.
    Sleeper(ThreadIndex),
}

impl Mutex {
    /// Takes the mutex if it is free.
    pub(crate) fn try_lock(&mut self, thread: ThreadIndex) -> bool {
        let free = self.owner.is_none();
        if free {
            self.owner = Some(thread);
        }
        free
    }

    pub(crate) fn spin(&mut self, thread: ThreadIndex) {
        self.spinners.push_back(thread);
    }

    pub(crate) fn stop_spinning(&mut self, thread: ThreadIndex) {
        self.spinners.retain(|&spinner| spinner != thread);
    }

    /// `again` for one that was woken in vain: it does not lose its place.
    pub(crate) fn sleep(&mut self, thread: ThreadIndex, again: bool) {
        if again { self.sleepers.push_front(thread) } else { self.sleepers.push_back(thread) }
    }

    pub(crate) fn unlock(&mut self) -> Heir {
        self.owner = None;
        if let Some(spinner) = self.spinners.pop_front() {
            self.owner = Some(spinner);
            return Heir::Spinner(spinner, self.spinners.len());
        }
        self.sleepers.pop_front().map_or(Heir::Nobody, Heir::Sleeper)
    }
}

/// Threads that sleep until they are notified.
#[derive(Clone, Debug, Default)]
pub(crate) struct Condition {
    waiting: VecDeque<ThreadIndex>,
}

impl Condition {
    pub(crate) fn wait(&mut self, thread: ThreadIndex) {
        self.waiting.push_back(thread);
    }

    pub(crate) fn notify_one(&mut self) -> Option<ThreadIndex> {
        self.waiting.pop_front()
    }

    pub(crate) fn notify_all(&mut self) -> VecDeque<ThreadIndex> {
        std::mem::take(&mut self.waiting)
    }
}

/// No thread goes on before all have arrived.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    parties: usize,
    come: usize,
    /// Waiting on a context, in a loop.
    pub(crate) spinners: Vec<ThreadIndex>,
    /// Waiting asleep.
    pub(crate) opened: Condition,
}

impl Barrier {
    pub(crate) fn new(parties: usize) -> Self {
        Self { parties, come: 0, spinners: Vec::new(), opened: Condition::default() }
    }

    /// Counts one in; whether it was the last, for whom the barrier opens and begins again.
    pub(crate) fn arrive(&mut self) -> bool {
        self.come += 1;
        let last = self.come == self.parties;
        if last {
            self.come = 0;
        }
        last
    }
}

/// A bounded queue between pipeline stages: a count, since items are alike.
#[derive(Clone, Debug)]
pub(crate) struct Queue {
    capacity: usize,
    items: usize,
    /// Threads that still may put something in.
    producers: usize,
    pub(crate) not_empty: Condition,
    pub(crate) not_full: Condition,
}

/// What became of taking from a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Item,
    /// Nothing there yet.
    Nothing,
    /// Nothing there, and nobody left to put anything in.
    End,
}

impl Queue {
    pub(crate) fn new(capacity: usize, producers: usize) -> Self {
        Self {
            capacity,
            items: 0,
            producers,
            not_empty: Condition::default(),
            not_full: Condition::default(),
        }
    }

    pub(crate) fn take(&mut self) -> Taken {
        if self.items > 0 {
            self.items -= 1;
            Taken::Item
        } else if self.producers == 0 {
            Taken::End
        } else {
            Taken::Nothing
        }
    }

    /// Whether there was room.
    pub(crate) fn put(&mut self) -> bool {
        let room = self.items < self.capacity;
        self.items += usize::from(room);
        room
    }

    /// One producer will put nothing more in; whether it was the last.
    pub(crate) fn leave(&mut self) -> bool {
        self.producers = self.producers.saturating_sub(1);
        self.producers == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_mutex_goes_to_a_spinner_before_a_sleeper() {
        let mut mutex = Mutex::default();
        assert!(mutex.try_lock(0) && !mutex.try_lock(1));
        mutex.sleep(1, false);
        mutex.spin(2);
        mutex.spin(3);
        mutex.stop_spinning(2);
        assert_eq!(mutex.unlock(), Heir::Spinner(3, 0));
        assert!(!mutex.try_lock(4), "the spinner owns it");
        assert_eq!(mutex.unlock(), Heir::Sleeper(1));
        assert!(mutex.try_lock(4), "a woken sleeper has to compete");
        mutex.sleep(5, false);
        mutex.sleep(1, true);
        assert_eq!(mutex.unlock(), Heir::Sleeper(1), "in vain costs no place");
    }

    #[test]
    fn a_barrier_opens_for_the_last_and_begins_anew() {
        let mut barrier = Barrier::new(3);
        assert_eq!([barrier.arrive(), barrier.arrive(), barrier.arrive()], [false, false, true]);
        assert!(!barrier.arrive());
    }

    #[test]
    fn a_queue_is_bounded_and_ends_when_its_producers_are_gone() {
        let mut queue = Queue::new(1, 2);
        assert_eq!(queue.take(), Taken::Nothing);
        assert!(queue.put() && !queue.put());
        assert!(!queue.leave() && queue.leave());
        assert_eq!([queue.take(), queue.take()], [Taken::Item, Taken::End]);
    }
}
