//! Chooses the layer that watches a program, and gives up one that costs the program too much.
//!
//! The cost of [`Layer::Perf`] and [`Layer::Ebpf`] is a product. It is what the kernel does at each
//! context switch, times the switches of the program. Nothing bounds this cost. The cost of looks
//! is bounded: they come less often if they cost much. So the first windows show whether such a
//! layer suits this program.

use crate::activity::Activity;
use crate::layer::{CostBase, Layer, Obstacle, Unavailable};
use crate::monitor::{Monitor, MonitorError, rest};
use pinwise_linux::Scope;
use std::io;
use std::time::Duration;

/// A layer may take this share of the program's CPU time, by its own account. Measured from
/// outside, the cost is 0.3 to 1.7 times that: about 2 % at most.
const MOST: f64 = 0.012;
/// A program that keeps less than half a CPU busy counts as one that keeps half a CPU busy. The
/// time that watching takes is not taken from it.
const IDLE: f64 = 0.5;

/// Which layer watches one program.
#[derive(Clone, Debug)]
pub struct LayerChoice {
    refused: Vec<Unavailable>,
    given_up: bool,
}

impl LayerChoice {
    /// Prepares the best permitted layer, which takes a while, and keeps it. A program that runs
    /// only for a moment would have ended meanwhile.
    pub fn new() -> io::Result<Self> {
        let monitor = Monitor::best(Scope::Processes(Vec::new()))?;
        Ok(Self { refused: monitor.refused().to_vec(), given_up: false })
    }

    /// A monitor of the processes in `scope` and those they create. It uses the best layer that is
    /// permitted and was not given up.
    pub fn monitor(&self, scope: Scope) -> io::Result<Monitor> {
        if !self.given_up {
            return Monitor::best(scope);
        }
        Monitor::with(scope, Layer::Proc).map_err(|error| match error {
            MonitorError::Threads(error) => error,
            MonitorError::Unavailable(unavailable) => io::Error::other(unavailable),
        })
    }

    /// Better layers than the one in use. The unusable ones come first, from the best on. Then
    /// comes the one that was given up.
    pub fn refused(&self) -> &[Unavailable] {
        &self.refused
    }

    /// Adds the cost of a window. Returns whether this gives the layer up: monitors from now on
    /// look at `/proc`.
    ///
    /// The time of the watching thread counts in full. With [`Layer::Perf`] the thread reads the
    /// records of all programs' switches, so the switches of others count through it.
    pub fn take_in(&mut self, seen: &Activity) -> bool {
        self.judge(seen, seen.overhead.watching + own_switching(seen))
    }

    /// Does the same for a stretch that is too short to show the cost of a window. It uses only the
    /// cost added to the context switches in the stretch. That is a part of the cost.
    pub fn foresee(&mut self, seen: &Activity) -> bool {
        self.judge(seen, own_switching(seen))
    }

    fn judge(&mut self, seen: &Activity, cost: Duration) -> bool {
        let (ran, idle) = (seen.ran(), seen.elapsed.mul_f64(IDLE));
        let (time, of) =
            if ran < idle { (idle, CostBase::HalfCpu) } else { (ran, CostBase::Program) };
        let (time, cost) = (time.as_secs_f64(), cost.as_secs_f64());
        // Of a window without length nothing is known.
        if self.given_up || seen.layer == Layer::Proc || time == 0.0 || cost <= MOST * time {
            return false;
        }
        let obstacle = Obstacle::TooCostly { share: cost / time, limit: MOST, of };
        self.refused.push(Unavailable { layer: seen.layer, obstacle });
        self.given_up = true;
        // Else it would go on costing the program what it does.
        rest(seen.layer);
        true
    }
}

/// The cost added to the switches to and from the program's threads. At most two count for each
/// time that one of them left its CPU.
///
/// A switch from one of them to another counts twice this way. So a program whose threads hand over
/// to each other also pays for up to as many other switches. The remaining switches of others are
/// no reason to give a layer up. A burst of them is over when the next window begins.
fn own_switching(seen: &Activity) -> Duration {
    let left: u64 = seen.threads.iter().map(|thread| thread.voluntary + thread.involuntary).sum();
    let share = (2 * left) as f64 / seen.overhead.switches.max(1) as f64;
    seen.overhead.switching.mul_f64(share.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::tests::{activity, thread};
    use crate::{Overhead, ThreadActivity};
    use proptest::prelude::*;

    /// A window of a second. The program ran for `ran` ms. Watching took `watching` µs itself, and
    /// `switching` µs at context switches.
    fn window(layer: Layer, ran: u64, watching: u64, switching: u64) -> Activity {
        let (watching, switching) =
            (Duration::from_micros(watching), Duration::from_micros(switching));
        // All switches of the machine are its own.
        let overhead = Overhead { watching, switching, switches: 1, ..Overhead::default() };
        let second = Duration::from_secs(1);
        let busy = ThreadActivity { voluntary: 1, ..thread(second, Duration::from_millis(ran)) };
        Activity { layer, overhead, ..activity(second, vec![busy]) }
    }

    #[test]
    fn what_others_switches_cost_is_no_reason() {
        let seen = |left: u64, switches: u64| {
            let mut seen = window(Layer::Ebpf, 1000, 0, 40_000);
            seen.overhead.switches = switches;
            seen.threads[0].voluntary = left;
            seen
        };
        assert!(!all_layers().foresee(&seen(1_000, 50_000)), "40 ms, of which 1.6 ms at its own");
        assert!(!all_layers().take_in(&seen(1_000, 50_000)));
        assert!(all_layers().foresee(&seen(10_000, 50_000)));
        assert_eq!(
            own_switching(&seen(30_000, 50_000)),
            Duration::from_millis(40),
            "no more than all"
        );
    }

    fn all_layers() -> LayerChoice {
        LayerChoice { refused: Vec::new(), given_up: false }
    }

    #[test]
    fn a_layer_that_costs_too_much_is_given_up_once_with_a_reason() {
        for layer in [Layer::Ebpf, Layer::Perf] {
            let mut layer_choice = all_layers();
            assert!(!layer_choice.take_in(&window(layer, 1000, 9_000, 3_000)), "1.2 % is allowed");
            assert!(layer_choice.refused().is_empty());
            assert!(layer_choice.take_in(&window(layer, 800, 9_000, 16_200)));
            let told = format!("{layer}: took 3.15 % of the program's CPU time, limit 1.2 %: ");
            assert!(
                layer_choice.refused()[0].to_string().starts_with(&told),
                "{}",
                layer_choice.refused()[0]
            );
            assert!(
                !layer_choice.take_in(&window(layer, 800, 9_000, 16_000))
                    && layer_choice.refused().len() == 1
            );
            assert_eq!(
                layer_choice.monitor(Scope::Processes(Vec::new())).unwrap().layer(),
                Layer::Proc
            );
        }
    }

    #[test]
    fn a_short_stretch_is_judged_by_its_switches() {
        let seen = window(Layer::Ebpf, 1000, 100_000, 12_000);
        assert!(!all_layers().foresee(&seen) && all_layers().take_in(&seen));
        assert!(all_layers().foresee(&window(Layer::Ebpf, 1000, 0, 12_001)));
    }

    #[test]
    fn looks_are_never_given_up_and_what_an_idle_program_has_to_spare_is_not_counted() {
        assert!(!all_layers().take_in(&window(Layer::Proc, 1000, 900_000, 0)));
        assert!(!all_layers().take_in(&window(Layer::Ebpf, 1, 3_500, 2_500)));
        for ran in [0, 1] {
            let mut layer_choice = all_layers();
            assert!(layer_choice.take_in(&window(Layer::Ebpf, ran, 3_500, 2_501)));
            assert_eq!(
                layer_choice.refused()[0].reason(),
                "took 1.20 % of half a CPU, limit 1.2 %"
            );
        }
        let none = Activity { elapsed: Duration::ZERO, ..window(Layer::Ebpf, 0, 3_500, 2_501) };
        assert!(!all_layers().take_in(&none), "of a window without length nothing is known");
    }

    proptest! {
        #[test]
        fn what_is_kept_costs_a_busy_program_no_more_than_its_share(
            ran in 500u64..2_000,
            watching in 0u64..50_000,
            switching in 0u64..50_000,
        ) {
            let seen = window(Layer::Ebpf, ran, watching, switching);
            let share = seen.overhead_share().unwrap();
            // On the limit itself rounding decides.
            prop_assume!((share / MOST - 1.0).abs() > 1e-9);
            prop_assert_eq!(all_layers().take_in(&seen), share > MOST);
        }
    }
}
