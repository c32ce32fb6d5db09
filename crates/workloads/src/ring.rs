//! A bounded lock-free queue from one thread to one other (SPSC ring).
//!
//! *Positions* count every value ever passed and wrap around at 2^64. The slot of a position is its
//! lowest bits. The producer owns the `tail` (the next position to write), the consumer owns the
//! `head` (the next one to read). `tail - head` values are in the ring. Each side publishes its own
//! position with release and reads the other's with acquire. So a slot's value is visible before
//! the position that makes it readable. It is read before the position that makes it writable
//! again. There is no other synchronisation; no operation waits and none retries.
//!
//! Two things make it fast. Head and tail are on different cache lines. So the two threads do not
//! disturb each other when they use different ends (false sharing). And each side remembers the
//! last position of the other and reads it again only when it must. A burst then costs one transfer
//! of a cache line between CPUs instead of one per value.
//!
//! The slots are `AtomicU64`, read and written relaxed. That compiles to plain moves and needs no
//! unsafe code. A value is anything that fits into 64 bits, here the index of a packet buffer.

#[cfg(all(loom, test))]
use loom::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
#[cfg(not(all(loom, test)))]
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crossbeam_utils::CachePadded;

struct Ring {
    slots: Box<[AtomicU64]>,
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU64>,
}

impl Ring {
    fn slot(&self, position: u64) -> &AtomicU64 {
        // The number of slots is a power of two: the mask is always in range.
        &self.slots[position as usize & (self.slots.len() - 1)]
    }
}

/// The writing end of a ring.
pub struct Producer {
    ring: Arc<Ring>,
    tail: u64,
    head_seen: u64,
}

/// The reading end of a ring.
pub struct Consumer {
    ring: Arc<Ring>,
    head: u64,
    tail_seen: u64,
}

/// A ring that holds at least `capacity` values: the next power of two.
pub fn ring(capacity: usize) -> (Producer, Consumer) {
    let slots = (0..capacity.next_power_of_two()).map(|_| AtomicU64::new(0)).collect();
    let ring = Arc::new(Ring {
        slots,
        head: CachePadded::new(AtomicU64::new(0)),
        tail: CachePadded::new(AtomicU64::new(0)),
    });
    (
        Producer { ring: Arc::clone(&ring), tail: 0, head_seen: 0 },
        Consumer { ring, head: 0, tail_seen: 0 },
    )
}

impl Producer {
    /// How many values can be pushed now, counted no further than `enough`.
    pub fn vacant(&mut self, enough: usize) -> usize {
        let capacity = self.ring.slots.len() as u64;
        if capacity - self.tail.wrapping_sub(self.head_seen) < enough as u64 {
            self.head_seen = self.ring.head.load(Ordering::Acquire);
        }
        let vacant = capacity - self.tail.wrapping_sub(self.head_seen);
        vacant.min(enough as u64) as usize
    }

    /// Appends as many of `values` as there is room for, in order, and says how many those were.
    pub fn push(&mut self, values: &[u64]) -> usize {
        let pushed = self.vacant(values.len());
        for (offset, &value) in values[..pushed].iter().enumerate() {
            self.ring.slot(self.tail.wrapping_add(offset as u64)).store(value, Ordering::Relaxed);
        }
        if pushed > 0 {
            self.tail = self.tail.wrapping_add(pushed as u64);
            self.ring.tail.store(self.tail, Ordering::Release);
        }
        pushed
    }
}

impl Consumer {
    /// Takes the oldest values, as many as there are and `values` holds, and says how many those
    /// were.
    pub fn pop(&mut self, values: &mut [u64]) -> usize {
        if self.tail_seen.wrapping_sub(self.head) < values.len() as u64 {
            self.tail_seen = self.ring.tail.load(Ordering::Acquire);
        }
        let popped = self.tail_seen.wrapping_sub(self.head).min(values.len() as u64) as usize;
        for (offset, value) in values[..popped].iter_mut().enumerate() {
            *value = self.ring.slot(self.head.wrapping_add(offset as u64)).load(Ordering::Relaxed);
        }
        if popped > 0 {
            self.head = self.head.wrapping_add(popped as u64);
            self.ring.head.store(self.head, Ordering::Release);
        }
        popped
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::thread;

    #[derive(Clone, Debug)]
    enum RingStep {
        Push(usize),
        Pop(usize),
    }

    proptest! {
        /// Against the standard library's queue: same values, same order, same number taken by
        /// every call.
        #[test]
        fn it_behaves_like_a_bounded_fifo_queue(
            capacity in 1usize..20,
            steps in prop::collection::vec(
                prop_oneof![
                    (0usize..24).prop_map(RingStep::Push),
                    (0usize..24).prop_map(RingStep::Pop),
                ],
                0..200,
            ),
        ) {
            let (mut producer, mut consumer) = ring(capacity);
            let bound = capacity.next_power_of_two();
            let mut model = VecDeque::new();
            let mut next = 0u64;
            for step in steps {
                match step {
                    RingStep::Push(count) => {
                        let values: Vec<u64> = (next..next + count as u64).collect();
                        prop_assert_eq!(producer.vacant(usize::MAX), bound - model.len());
                        let pushed = producer.push(&values);
                        prop_assert_eq!(pushed, count.min(bound - model.len()));
                        model.extend(&values[..pushed]);
                        next += pushed as u64;
                    }
                    RingStep::Pop(count) => {
                        let mut values = vec![0; count];
                        let popped = consumer.pop(&mut values);
                        let expected: Vec<u64> = model.drain(..count.min(model.len())).collect();
                        prop_assert_eq!(&values[..popped], expected.as_slice());
                    }
                }
            }
        }
    }

    #[test]
    fn positions_wrap_around_without_losing_a_value() {
        let (mut producer, mut consumer) = ring(4);
        let near_the_end = u64::MAX - 2;
        producer.ring.head.store(near_the_end, Ordering::Relaxed);
        producer.ring.tail.store(near_the_end, Ordering::Relaxed);
        (producer.tail, producer.head_seen) = (near_the_end, near_the_end);
        (consumer.head, consumer.tail_seen) = (near_the_end, near_the_end);
        let mut values = [0; 4];
        for round in 0..3 {
            assert_eq!(producer.push(&[round, round + 1, round + 2, round + 3, 99]), 4);
            assert_eq!(consumer.pop(&mut values), 4);
            assert_eq!(values, [round, round + 1, round + 2, round + 3]);
        }
    }

    #[test]
    fn two_threads_pass_every_value_once_and_in_order() {
        // Small rings hand over with a switch of threads for each value or two. That takes long on
        // a busy machine.
        let rings = [(1, 1, 200), (2, 3, 500), (16, 5, 5_000), (256, 32, 50_000)];
        for (capacity, burst, total) in rings {
            let (mut producer, mut consumer) = ring(capacity);
            let writer = thread::spawn(move || {
                let mut next = 0;
                while next < total {
                    let values: Vec<u64> = (next..total.min(next + burst)).collect();
                    match producer.push(&values) {
                        0 => thread::yield_now(),
                        pushed => next += pushed as u64,
                    }
                }
            });
            let mut values = vec![0; burst as usize];
            let mut expected = 0;
            while expected < total {
                let popped = consumer.pop(&mut values);
                for &value in &values[..popped] {
                    assert_eq!(value, expected);
                    expected += 1;
                }
                if popped == 0 {
                    thread::yield_now();
                }
            }
            writer.join().unwrap();
        }
    }
}

/// Every interleaving, under every reordering the memory model allows:
/// `RUSTFLAGS="--cfg loom" cargo test --release -p pinwise-workloads --lib ring`.
#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;

    /// What the ring really carries is the right to use a buffer. The writer fills a buffer only
    /// when there is room for its index. With a ring of one, it reuses the first of two buffers
    /// after the reader has finished with it. If the ring does not order two accesses, loom reports
    /// a data race.
    #[test]
    fn a_buffer_is_never_used_from_both_sides_at_once() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(1);
            let buffers =
                Arc::new([loom::cell::UnsafeCell::new(()), loom::cell::UnsafeCell::new(())]);
            let filled = Arc::clone(&buffers);
            let writer = thread::spawn(move || {
                for value in 0..3 {
                    while producer.vacant(1) == 0 {
                        thread::yield_now();
                    }
                    filled[value as usize % 2].with_mut(|_| ());
                    assert_eq!(producer.push(&[value]), 1);
                }
            });
            for expected in 0..3 {
                let mut values = [0];
                while consumer.pop(&mut values) == 0 {
                    thread::yield_now();
                }
                assert_eq!(values, [expected]);
                buffers[expected as usize % 2].with_mut(|_| ());
            }
            writer.join().unwrap();
        });
    }

    #[test]
    fn bursts_arrive_once_and_in_order() {
        loom::model(|| {
            let (mut producer, mut consumer) = ring(2);
            let writer = thread::spawn(move || {
                let mut next = 1;
                while next <= 3 {
                    let values: Vec<u64> = (next..=3).collect();
                    match producer.push(&values) {
                        0 => thread::yield_now(),
                        pushed => next += pushed as u64,
                    }
                }
            });
            let mut values = [0; 3];
            let mut expected = 1;
            while expected <= 3 {
                let popped = consumer.pop(&mut values);
                for &value in &values[..popped] {
                    assert_eq!(value, expected);
                    expected += 1;
                }
                if popped == 0 {
                    thread::yield_now();
                }
            }
            writer.join().unwrap();
        });
    }
}
