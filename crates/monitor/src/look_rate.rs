//! The rate of looks at a program. It is the wanted rate, unless that costs the program too much.

use std::time::Duration;

/// The largest share of the program's CPU time that watching may take. This counts the CPU time of
/// the watching thread. Measured from outside, the cost is up to 2.6 times as much. Watching evicts
/// cache lines, and an interrupted thread delays those that wait for it.
pub(super) const SHARE: f64 = 0.008;
/// A program that uses little CPU time leaves some to spare. It still gets looks at this interval,
const SELDOM: Duration = Duration::from_millis(25);
/// unless the looks alone take more than this share of one CPU.
const SPARE: f64 = 0.01;

/// How often to look, from the cost of watching a program so far, in all windows.
#[derive(Debug, Default)]
pub(super) struct LookRate {
    looks: u32,
    /// CPU time of all looks but the first. The first opens the files and does not represent the
    /// others.
    looking: Duration,
    /// CPU time of beginnings and ends of windows.
    around: Duration,
    /// CPU time of the program, and in what time.
    ran: Duration,
    elapsed: Duration,
}

impl LookRate {
    /// Adds a look that took `spent` of CPU time.
    pub(super) fn take(&mut self, spent: Duration) {
        if self.looks > 0 {
            self.looking += spent;
        }
        self.looks = self.looks.saturating_add(1);
    }

    /// Adds the cost of the beginning or the end of a window.
    pub(super) fn charge(&mut self, spent: Duration) {
        self.around += spent;
    }

    /// The program has used `ran` of CPU time in `elapsed`.
    pub(super) fn earn(&mut self, ran: Duration, elapsed: Duration) {
        self.ran += ran;
        self.elapsed += elapsed;
    }

    pub(super) fn looks(&self) -> u32 {
        self.looks
    }

    /// The time between two looks: `wanted`, or longer. With it, watching stays within [`SHARE`] if
    /// looks cost what they did and the program goes on as it did. Each look pays its part of the
    /// other costs of windows.
    pub(super) fn pace(&self, wanted: Duration) -> Duration {
        let looks = f64::from(self.looks.saturating_sub(1).max(1));
        let (look, all) = (
            self.looking.as_secs_f64() / looks,
            (self.looking + self.around).as_secs_f64() / looks,
        );
        // Before anything is known of it, a program is taken to keep one CPU busy.
        let busy = if self.elapsed.is_zero() {
            1.0
        } else {
            self.ran.as_secs_f64() / self.elapsed.as_secs_f64()
        };
        let seldom = (look / SPARE).max(SELDOM.as_secs_f64());
        // A quotient by nothing is infinite, and the other one is less.
        wanted.max(Duration::from_secs_f64((all / (SHARE * busy)).min(seldom)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WANTED: Duration = Duration::from_millis(10);

    fn us(microseconds: u64) -> Duration {
        Duration::from_micros(microseconds)
    }

    #[test]
    fn cheap_looks_come_as_often_as_wanted_and_dear_ones_as_their_cost_allows() {
        let after = |looks: &[u64]| {
            let mut look_rate = LookRate::default();
            look_rate.earn(us(2_000_000), us(1_000_000));
            looks.iter().for_each(|&micros| look_rate.take(us(micros)));
            look_rate.pace(WANTED)
        };
        assert_eq!(after(&[]), WANTED);
        assert_eq!(after(&[9000]), WANTED, "the first look is another kind");
        assert_eq!(after(&[9000, 100, 50, 150]), WANTED);
        // 2 ms of 125 ms in which two CPUs were busy.
        assert_eq!(after(&[9000, 1000, 2000, 3000]), Duration::from_millis(125));
    }

    #[test]
    fn what_windows_take_is_paid_by_fewer_looks() {
        let mut look_rate = LookRate::default();
        look_rate.earn(us(1_000_000), us(1_000_000));
        (0..11).for_each(|_| look_rate.take(us(80)));
        assert_eq!(look_rate.pace(WANTED), WANTED);
        look_rate.charge(us(800));
        assert_eq!(look_rate.pace(WANTED), Duration::from_millis(20));
    }

    #[test]
    fn a_program_that_sleeps_is_looked_at_all_the_same_unless_a_look_takes_long() {
        let pace = |look: u64| {
            let mut look_rate = LookRate::default();
            look_rate.earn(Duration::ZERO, us(1_000_000));
            (0..3).for_each(|_| look_rate.take(us(look)));
            look_rate.pace(WANTED)
        };
        assert_eq!(pace(100), SELDOM);
        assert_eq!(pace(2000), Duration::from_millis(200));
    }

    proptest! {
        #[test]
        fn watching_keeps_to_its_share_of_the_programs_time_or_of_a_cpu_to_spare(
            looks in 1u32..1000,
            looking in 0u64..10_000_000,
            around in 0u64..1_000_000,
            ran in 0u64..10_000_000,
            elapsed in 1u64..1_000_000,
        ) {
            let looking = us(looking);
            let look_rate = LookRate {
                looks: looks + 1,
                looking,
                around: us(around),
                ran: us(ran),
                elapsed: us(elapsed),
            };
            let pace = look_rate.pace(WANTED).as_secs_f64();
            prop_assert!(pace >= WANTED.as_secs_f64());
            let (look, all) =
                ((looking / looks).as_secs_f64(), ((looking + us(around)) / looks).as_secs_f64());
            let busy = ran as f64 / elapsed as f64;
            let within = all <= pace * SHARE * busy + 1e-6;
            let spare = pace >= SELDOM.as_secs_f64() - 1e-6 && look <= pace * SPARE + 1e-6;
            prop_assert!(within || spare);
            // No longer than one of the two needs.
            let longer = pace > WANTED.as_secs_f64();
            prop_assert!(!longer || all >= pace * SHARE * busy - 1e-6);
            prop_assert!(!longer || pace <= SELDOM.as_secs_f64().max(look / SPARE) + 1e-6);
        }
    }
}
