//! The run queue of one context: highest priority first, within a priority in order of arrival.

use crate::synchronization::ThreadIndex;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
pub(crate) struct RunQueue {
    /// Priorities descending.
    waiting: VecDeque<(u8, ThreadIndex)>,
}

impl RunQueue {
    pub(crate) fn push_back(&mut self, thread: ThreadIndex, priority: u8) {
        let place = self.waiting.partition_point(|&(other, _)| other >= priority);
        self.waiting.insert(place, (priority, thread));
    }

    pub(crate) fn push_front(&mut self, thread: ThreadIndex, priority: u8) {
        let place = self.waiting.partition_point(|&(other, _)| other > priority);
        self.waiting.insert(place, (priority, thread));
    }

    pub(crate) fn pop(&mut self) -> Option<ThreadIndex> {
        self.waiting.pop_front().map(|(_, thread)| thread)
    }

    pub(crate) fn remove(&mut self, thread: ThreadIndex) {
        self.waiting.retain(|&(_, other)| other != thread);
    }

    /// The highest priority in it.
    pub(crate) fn top(&self) -> Option<u8> {
        self.waiting.front().map(|&(priority, _)| priority)
    }

    /// How many wait at exactly this priority.
    pub(crate) fn len_at(&self, priority: u8) -> usize {
        self.waiting.iter().filter(|&&(other, _)| other == priority).count()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u8, ThreadIndex)> {
        self.waiting.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_goes_first_then_arrival() {
        let mut queue = RunQueue::default();
        queue.push_back(1, 10);
        queue.push_back(2, 20);
        queue.push_back(3, 10);
        queue.push_front(4, 10);
        assert_eq!((queue.top(), queue.len_at(10), queue.len_at(20)), (Some(20), 3, 1));
        queue.remove(1);
        assert_eq!(std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>(), [2, 4, 3]);
    }
}
