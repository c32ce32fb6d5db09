//! Records in the order of time.
//!
//! perf writes rounds of records, and time jumps back within a round. A record waits here until no
//! older one can follow it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Records wait in at most so much memory. A file without rounds is put in order within it.
const LARGEST_ROUND: usize = 64 << 20;

/// A record that waits for its turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WaitingRecord {
    time: u64,
    /// Breaks ties: first in the file, first out.
    number: u64,
    pub(super) kind: u32,
    pub(super) misc: u16,
    pub(super) body: Box<[u8]>,
}

impl WaitingRecord {
    pub(super) fn new(time: Option<u64>, kind: u32, misc: u16, body: &[u8]) -> Self {
        Self { time: time.unwrap_or_default(), number: 0, kind, misc, body: body.into() }
    }

    /// About what it takes in memory.
    fn size(&self) -> usize {
        self.body.len() + size_of::<Self>()
    }
}

impl Ord for WaitingRecord {
    /// The oldest is the greatest: heaps give that first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl PartialOrd for WaitingRecord {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Puts records in the order of time.
#[derive(Debug, Default)]
pub(super) struct RecordQueue {
    heap: BinaryHeap<WaitingRecord>,
    size: usize,
    pushed: u64,
    /// The newest time seen, and that at the end of the round before.
    newest: u64,
    due: u64,
}

impl RecordQueue {
    /// Adds a record. If too much waits, gives the older half.
    pub(super) fn push(&mut self, mut record: WaitingRecord) -> Vec<WaitingRecord> {
        self.pushed += 1;
        record.number = self.pushed;
        self.newest = self.newest.max(record.time);
        self.size += record.size();
        self.heap.push(record);
        if self.size <= LARGEST_ROUND {
            return Vec::new();
        }
        let half = self.size / 2;
        std::iter::from_fn(|| self.pop_if(|queue, _| queue.size > half)).collect()
    }

    /// A round ends: gives what is due.
    pub(super) fn finish_round(&mut self) -> Vec<WaitingRecord> {
        let due = std::mem::replace(&mut self.due, self.newest);
        std::iter::from_fn(|| self.pop_if(|_, record| record.time <= due)).collect()
    }

    /// Gives all that waits.
    pub(super) fn finish(&mut self) -> Vec<WaitingRecord> {
        std::iter::from_fn(|| self.pop_if(|_, _| true)).collect()
    }

    fn pop_if(&mut self, is_due: impl Fn(&Self, &WaitingRecord) -> bool) -> Option<WaitingRecord> {
        self.heap.peek().filter(|record| is_due(self, record))?;
        let record = self.heap.pop()?;
        self.size -= record.size();
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_wait_in_bounded_memory_and_come_out_in_order() {
        let mut queue = RecordQueue::default();
        let mut taken = Vec::new();
        let body = [0; 40_000];
        // No round ever ends. Records of two processors take turns, 50 apart.
        for number in 0..4_000 {
            let time = if number % 2 == 0 { number } else { number + 50 };
            let record = WaitingRecord::new(Some(1 + time), super::super::SAMPLE, 0, &body);
            taken.extend(queue.push(record).into_iter().map(|record| record.time));
            assert!(queue.size <= LARGEST_ROUND);
        }
        taken.extend(queue.finish().into_iter().map(|record| record.time));
        assert_eq!((taken.len(), queue.size), (4_000, 0));
        assert!(taken.is_sorted());
    }
}
