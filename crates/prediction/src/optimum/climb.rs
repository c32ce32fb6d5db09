//! Local search: annealing over moves of threads, then climbing until no move is better.

use crate::optimum::TopN;
use crate::optimum::incremental::Incremental;
use pinwise_topology::Random;

/// Steps of an annealing per thread.
const STEPS: usize = 1200;
/// The share by which a prediction may get worse with probability 1/e, in the first step and in the
/// last.
const TEMPERATURES: (f64, f64) = (0.02, 0.000_1);

/// Improves `moving` and enters what is good into `top`; counts the moves that were tried.
pub(crate) fn climb(moving: &mut Incremental<'_>, top: &mut TopN, random: &mut Random) -> u64 {
    let (slots, threads) = (moving.slots(), moving.threads());
    if threads == 0 {
        top.enter(moving);
        return 0;
    }
    let steps = STEPS * threads;
    let mut now = moving.predicted().0;
    for step in 0..steps {
        let share = step as f64 / steps as f64;
        let temperature = TEMPERATURES.0 * (TEMPERATURES.1 / TEMPERATURES.0).powf(share);
        let from = moving.slot(random.below(threads as u64) as usize);
        let to = random.below(slots as u64) as usize;
        moving.exchange(from, to);
        let after = moving.predicted().0;
        if after >= now || random.unit() < ((after - now) / (temperature * now)).exp() {
            now = after;
            top.enter(moving);
        } else {
            moving.exchange(from, to);
        }
    }
    (steps + ascend(moving, top)) as u64
}

/// Takes the first move that is better, until there is none.
fn ascend(moving: &mut Incremental<'_>, top: &mut TopN) -> usize {
    let mut now = moving.predicted().0;
    let (mut looked, mut since) = (0, 0);
    let (threads, slots) = (moving.threads(), moving.slots());
    while since < threads * slots {
        let (thread, to) = (looked / slots % threads, looked % slots);
        let from = moving.slot(thread);
        (looked, since) = (looked + 1, since + 1);
        moving.exchange(from, to);
        top.enter(moving);
        let after = moving.predicted().0;
        if after > now {
            (now, since) = (after, 0);
        } else {
            moving.exchange(from, to);
        }
    }
    looked
}
