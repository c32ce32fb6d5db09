//! A pipe: which of its strands fetches.
//!
//! A pipe keeps those of its strands that are ready in a queue, the one that fetched least recently
//! first. With it, the pipe also gets ahead of its core. Instructions that need only fetch slots
//! and time affect no other pipe. So it runs through them until it needs a unit ([`Pipe::go_on`]).

use super::reservation::{Clear, Reservation};
use super::{MOST_STRANDS, NEVER, Strand, Units};
use crate::AfterLoad;
use crate::code::{Code, Operation};
use std::ops::Range;

/// The strands of a pipe and what the fetch unit remembers.
#[derive(Clone, Debug)]
pub(super) struct Pipe {
    pub(super) strands: Range<usize>,
    /// Whether loads yield in the cycle after a load.
    loads_yield: bool,
    /// The cycle after its last load, where loads yield then.
    pub(super) after_load: u64,
    /// Strands whose instruction a unit has yet to start on.
    pub(super) waiting: usize,
    /// The cycle up to which it has been run. Then it needs a unit, or it is not known yet what
    /// happens.
    pub(super) due: u64,
    /// When the first strand that is not in the queue becomes ready.
    wakes: u64,
    queue: StrandQueue,
    /// When other pipes may want what this one takes while it runs alone.
    clear: Clear,
}

/// Up to [`MOST_STRANDS`] strands, counted from the first of the pipe: a byte each, the first
/// lowest.
#[derive(Clone, Copy, Debug, Default)]
struct StrandQueue {
    slots: u64,
    length: u32,
    /// Bit *s*: strand *s* is in it.
    members: u32,
}

impl Pipe {
    /// A pipe of these strands. None has fetched yet.
    pub(super) fn new(strands: Range<usize>, after_load: AfterLoad) -> Self {
        let loads_yield = after_load == AfterLoad::LoadsYield;
        let after_load = if loads_yield { 0 } else { NEVER };
        Self {
            strands,
            loads_yield,
            after_load,
            waiting: 0,
            due: 0,
            wakes: 0,
            queue: StrandQueue::default(),
            clear: [0; 2],
        }
    }

    /// Notes a load in cycle `now`.
    #[inline]
    pub(super) fn loads(&mut self, now: u64) {
        if self.loads_yield {
            self.after_load = now + 1;
        }
    }

    /// Strands whose time has come by cycle `now` join the queue.
    #[inline]
    pub(super) fn rouse(&mut self, now: u64, strands: &[Strand]) {
        if now >= self.wakes {
            self.fill_queue(now, strands);
        }
    }

    fn fill_queue(&mut self, now: u64, strands: &[Strand]) {
        let strands = &strands[self.strands.clone()];
        self.wakes = NEVER;
        let mut absent = !self.queue.members & ((1 << strands.len()) - 1);
        while absent != 0 {
            let slot = absent.trailing_zeros() as usize;
            absent &= absent - 1;
            if strands[slot].ready_at <= now {
                let older =
                    |other: usize| (strands[other].fetched, other) < (strands[slot].fetched, slot);
                // A strand that comes back has mostly waited for longer than all others.
                let before = if self.queue.length > 0 && older(self.queue.first()) {
                    self.queue.iter().take_while(|&other| older(other)).count()
                } else {
                    0
                };
                self.queue.insert(before, slot);
            } else {
                self.wakes = self.wakes.min(strands[slot].ready_at);
            }
        }
    }

    /// The strand that fetches in cycle `now` if the units in `denied` are not available.
    #[inline]
    pub(super) fn pick(&self, now: u64, denied: Units, strands: &[Strand]) -> Option<usize> {
        let strand = |slot: usize| &strands[self.strands.start + slot];
        let first = self.queue.first();
        if self.queue.length > 0
            && denied == 0
            && (self.after_load != now || !strand(first).is_load())
        {
            return Some(self.strands.start + first);
        }
        let mut candidates = self.queue.iter().filter(|&slot| strand(slot).unit() & denied == 0);
        let first = candidates.next()?;
        let yields = self.after_load == now && strand(first).is_load();
        let other = if yields { candidates.find(|&slot| !strand(slot).is_load()) } else { None };
        Some(self.strands.start + other.unwrap_or(first))
    }

    /// Strand `number` has fetched in the cycle before `now`.
    #[inline]
    pub(super) fn fetched(&mut self, number: usize, strand: &Strand, now: u64) {
        self.queue.remove(number - self.strands.start);
        if strand.ready_at <= now {
            self.queue.push(number - self.strands.start);
        } else {
            self.wakes = self.wakes.min(strand.ready_at);
        }
    }

    /// The unit that a strand waits for has started on its instruction. The strand is ready in
    /// cycle `at`.
    pub(super) fn wake(&mut self, at: u64) {
        self.waiting -= 1;
        self.wakes = self.wakes.min(at);
        self.due = self.due.min(at);
    }

    /// Runs from cycle `now` until a strand needs a unit that `reservation` does not cover, at most
    /// until cycle `limit`. Before that, no unit makes a waiting strand ready.
    pub(super) fn go_on(
        &mut self,
        mut now: u64,
        limit: u64,
        strands: &mut [Strand],
        code: &mut Code,
        reservation: &mut Reservation<'_>,
    ) {
        while now < limit {
            self.rouse(now, strands);
            if self.queue.length == 0 {
                now = self.wakes;
                continue;
            }
            let number = if self.queue.length == 1 {
                let number = self.strands.start + self.queue.first();
                let strand = &mut strands[number];
                if !strand.run_alone(&mut now, limit.min(self.wakes), code) {
                    if strand.ready_at > now {
                        self.fetched(number, strand, now);
                    }
                    continue;
                }
                number
            } else if self.after_load == now {
                self.pick(now, 0, strands).unwrap_or(self.strands.start)
            } else {
                self.take_turns(&mut now, limit.min(self.wakes), strands);
                if now >= limit.min(self.wakes) {
                    continue;
                }
                self.strands.start + self.queue.first()
            };
            let strand = &mut strands[number];
            if strand.cursor.row > 0 {
                strand.fetch_row(1, now + 1);
            } else {
                let wanted = (strand.cursor.operation, strand.cursor.value);
                let latency = match wanted.0 {
                    Operation::Delay => Some(wanted.1),
                    _ => reservation.take(wanted, now, &mut self.clear, strands, code),
                };
                let Some(latency) = latency else { break };
                let strand = &mut strands[number];
                if strand.is_load() {
                    self.loads(now);
                }
                strand.fetch(now, latency, code);
            }
            now += 1;
            self.fetched(number, &strands[number], now);
        }
        self.due = now.min(limit);
    }

    /// While the current strand has a row before it, the strands in the queue fetch one after the
    /// other. They do so from cycle `now` up to the cycle before `end`.
    #[inline]
    fn take_turns(&mut self, now: &mut u64, end: u64, strands: &mut [Strand]) {
        let strands = &mut strands[self.strands.clone()];
        let mut queue = self.queue;
        while *now < end {
            let strand = &mut strands[queue.first()];
            if strand.cursor.row == 0 {
                break;
            }
            *now += 1;
            strand.fetch_row(1, *now);
            queue.rotate();
        }
        self.queue = queue;
    }
}

impl StrandQueue {
    fn iter(self) -> impl Iterator<Item = usize> {
        (0..self.length).map(move |place| (self.slots >> (8 * place)) as usize & 0xff)
    }

    #[inline]
    fn first(self) -> usize {
        self.slots as usize & 0xff
    }

    /// Lets `slot` in behind the first `before`.
    fn insert(&mut self, before: usize, slot: usize) {
        debug_assert!((self.length as usize) < MOST_STRANDS && before <= self.length as usize);
        let front = (1 << (8 * before)) - 1;
        self.slots =
            self.slots & front | (slot as u64) << (8 * before) | (self.slots & !front) << 8;
        self.length += 1;
        self.members |= 1 << slot;
    }

    /// The first becomes the last.
    #[inline]
    fn rotate(&mut self) {
        self.slots = (self.slots >> 8) | (self.slots & 0xff) << (8 * (self.length - 1));
    }

    #[inline]
    fn push(&mut self, slot: usize) {
        self.slots |= (slot as u64) << (8 * self.length);
        self.length += 1;
        self.members |= 1 << slot;
    }

    /// Takes out `slot`, which is mostly the first.
    #[inline]
    fn remove(&mut self, slot: usize) {
        if self.first() == slot {
            self.slots >>= 8;
        } else {
            self.remove_from_within(slot);
        }
        self.length -= 1;
        self.members &= !(1 << slot);
    }

    #[cold]
    fn remove_from_within(&mut self, slot: usize) {
        let before = self.iter().take_while(|&other| other != slot).count();
        let front = (1 << (8 * before)) - 1;
        self.slots = self.slots & front | self.slots >> 8 & !front;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Random;

    #[test]
    fn a_queue_is_a_list() {
        let mut random = Random::new(1);
        let (mut queue, mut list) = (StrandQueue::default(), Vec::new());
        for _ in 0..10_000 {
            let slot = random.below(MOST_STRANDS as u64) as usize;
            assert_eq!(queue.members >> slot & 1 == 1, list.contains(&slot));
            if list.contains(&slot) {
                queue.remove(slot);
                list.retain(|&other| other != slot);
            } else if random.below(2) == 0 {
                queue.push(slot);
                list.push(slot);
            } else {
                let before = random.below(list.len() as u64 + 1) as usize;
                queue.insert(before, slot);
                list.insert(before, slot);
            }
            if !list.is_empty() {
                queue.rotate();
                list.rotate_left(1);
            }
            assert!(queue.iter().eq(list.iter().copied()), "{list:?}");
            assert!(list.first().is_none_or(|&first| queue.first() == first));
        }
    }
}
