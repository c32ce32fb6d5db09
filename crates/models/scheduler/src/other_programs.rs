//! [`OtherPrograms`]: what else runs on the machine and shares time with the program.
//!
//! Their threads compute for a while, pause, compute again. The clock alone says when, not how much
//! of the contexts they got. So their habit is a function of a seed and of the time. A program that
//! is started again within a burst has the rest of that burst.

use crate::time::Nanos;
use pinwise_topology::Random;
use serde::{Deserialize, Serialize};

/// Other programs, all of one habit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OtherPrograms {
    /// Threads of all of them together.
    pub threads: u32,
    /// How long each computes, mean, in seconds; uniform between 0 and twice this.
    pub burst_s: f64,
    /// How long each then pauses, mean; uniform between 0 and twice this. 0: it is always busy.
    pub pause_s: f64,
}

/// The bursts of one thread.
#[derive(Clone, Debug)]
pub(crate) struct BurstClock {
    habit: OtherPrograms,
    random: Random,
    pub(crate) busy: bool,
    /// When the burst or the pause ends.
    pub(crate) until: Nanos,
}

impl BurstClock {
    /// At the moment 0, with a burst or a pause under way.
    pub(crate) fn new(habit: OtherPrograms, seed: u64) -> Self {
        let mut random = Random::new(seed);
        if habit.pause_s <= 0.0 {
            return Self { habit, random, busy: true, until: Nanos::NEVER };
        }
        let busy = random.unit() * (habit.burst_s + habit.pause_s) < habit.burst_s;
        let mut clock = Self { habit, random, busy, until: Nanos(0) };
        let whole = clock.length();
        clock.until = Nanos((whole.0 as f64 * clock.random.unit()) as u64);
        clock
    }

    /// The same at a later moment.
    pub(crate) fn at(mut self, time: Nanos) -> Self {
        while self.until <= time {
            self.turn();
        }
        self
    }

    /// Goes on to the next burst or pause.
    pub(crate) fn turn(&mut self) {
        self.busy = !self.busy;
        let length = self.length();
        self.until += length;
    }

    fn length(&mut self) -> Nanos {
        let mean = if self.busy { self.habit.burst_s } else { self.habit.pause_s };
        // At least a moment, so that time goes on.
        Nanos(Nanos::from_seconds(2.0 * mean * self.random.unit()).0.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_the_same_from_wherever_one_looks_and_take_their_share() {
        let habit = OtherPrograms { threads: 1, burst_s: 0.2, pause_s: 0.6 };
        let at = |time: u64| BurstClock::new(habit, 7).at(Nanos(time * 1_000_000));
        let busy = (0..200_000).step_by(10).filter(|&time| at(time).busy).count();
        assert!((4600..5400).contains(&busy), "a quarter of 20,000: {busy}");
        let early = at(1_000);
        let later = early.clone().at(Nanos(30_000_000_000));
        assert_eq!((later.busy, later.until), (at(30_000).busy, at(30_000).until));
        let always = BurstClock::new(OtherPrograms { pause_s: 0.0, ..habit }, 7);
        assert!(always.busy && always.until == Nanos::NEVER);
    }
}
