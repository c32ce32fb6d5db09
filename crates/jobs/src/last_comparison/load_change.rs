//! Finds a change of a program's load in the rounds of a comparison.
//!
//! A service may get five times the requests while its numbers are compared. Windows from before
//! and after show the load then, not the numbers. Such a change moves all ways at once, to the same
//! side, and stays. A way that is slow in one round shows noise. A way that moves alone shows what
//! is compared.

use super::WindowsByWay;
use pinwise_measure::{jumped, starved, usual};

/// The load has changed if all ways jump in this number of rounds, one after the other.
const JUMPED_ROUNDS: usize = 2;
/// The fewest rounds before them. A program with two speeds shows both in as many.
const ROUNDS_BEFORE_JUMP: usize = 3;

/// A change of the program's load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LoadChange {
    /// The first way that shows it.
    pub(super) way: usize,
    /// The last window of this way, as a multiple of its usual window before the change.
    pub(super) times: f64,
}

/// The change that the last rounds show: there `ways` are far from all their earlier windows, all
/// to the same side. `windows` are the speeds or times of each round. `lost` is the share that
/// others took of what the program wanted. What others took or left explains no change.
pub(super) fn load_change(
    windows: &[WindowsByWay],
    lost: &[WindowsByWay],
    ways: &[usize],
) -> Option<LoadChange> {
    let before = windows.len().checked_sub(JUMPED_ROUNDS)?;
    if before < ROUNDS_BEFORE_JUMP {
        return None;
    }
    let of = |rounds: &[WindowsByWay], way: usize| -> Vec<f64> {
        rounds.iter().filter_map(|round| round[way]).collect()
    };
    let change = |way: usize| {
        let (earlier, lost_before) = (of(&windows[..before], way), of(&lost[..before], way));
        let most_lost = lost_before.iter().copied().fold(0.0, f64::max);
        // From nothing there is no factor.
        let usual_before = usual(&earlier).filter(|usual| *usual > 0.0)?;
        let times_in = |round: usize| {
            let (now, lost) = (windows[round][way]?, lost[round][way].unwrap_or_default());
            let eased = starved(most_lost, &[lost]).is_some();
            let times = now / usual_before;
            let explained = times < 1.0 && starved(lost, &lost_before).is_some();
            let far = |one: &f64| jumped(now / one, eased) && (now > *one) == (times > 1.0);
            (!explained && earlier.iter().all(far)).then_some(times)
        };
        let times: Option<Vec<f64>> = (before..windows.len()).map(times_in).collect();
        Some(LoadChange { way, times: times?.last().copied()? })
    };
    let changes: Vec<LoadChange> = ways.iter().map(|&way| change(way)).collect::<Option<_>>()?;
    let first = *changes.first()?;
    changes.iter().all(|own| (own.times > 1.0) == (first.times > 1.0)).then_some(first)
}
