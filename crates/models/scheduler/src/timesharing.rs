//! The time-sharing class of Solaris: 60 priorities. A thread that uses up a time slice falls, one
//! that waits or sleeps long rises.
//!
//! The default dispatch table of the class (`dispadmin -g -c TS`; `ts_dptbl(5)`). A thread that
//! uses up its slice falls by ten priorities and gets a longer slice there. Once a second each
//! thread's wait counter rises. A thread in a run queue may have a counter above the maximum (0
//! below priority 59: one tick). It is lifted to 50 or more, so that none starves. A thread that
//! returns from sleep with such a counter is lifted too.

use crate::time::Nanos;

/// The priority threads begin with, the highest of the class.
pub(crate) const TOP: u8 = 59;

/// The priority of the operating system's own threads, above the class.
pub(crate) const SYSTEM: u8 = 60;

/// How often waiting threads are looked at.
pub(crate) const LOOK: Nanos = Nanos(1_000_000_000);

/// The time slice at `priority`.
pub(crate) fn slice(priority: u8) -> Nanos {
    Nanos::from_millis(match priority {
        0..=9 => 200.0,
        10..=19 => 160.0,
        20..=29 => 120.0,
        30..=39 => 80.0,
        40..=58 => 40.0,
        _ => 20.0,
    })
}

/// The priority of a thread that used up its slice at `priority`.
pub(crate) fn expired(priority: u8) -> u8 {
    priority.min(TOP).saturating_sub(10)
}

/// The priority of a thread that waited too long at `priority`, in a run queue or asleep.
pub(crate) fn lifted(priority: u8) -> u8 {
    match priority {
        0..=9 => 50,
        10..=19 => 51,
        20..=29 => 52,
        30..=34 => 53,
        35..=39 => 54,
        40..=44 => 55,
        45 => 56,
        46 => 57,
        47..=48 => 58,
        _ => TOP,
    }
}

/// Whether a thread whose wait counter stands at `looks` has waited too long at `priority`.
pub(crate) fn waited_too_long(priority: u8, looks: u32) -> bool {
    priority < TOP && looks > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_computes_falls_to_long_slices_and_who_waits_comes_back() {
        let fall: Vec<u8> =
            std::iter::successors(Some(TOP), |&p| Some(expired(p))).take(8).collect();
        assert_eq!(fall, [59, 49, 39, 29, 19, 9, 0, 0]);
        assert!(fall.windows(2).all(|pair| slice(pair[0]) <= slice(pair[1])));
        assert!((0..TOP).all(|priority| lifted(priority) >= 50 && lifted(priority) > priority));
        assert!(waited_too_long(0, 1) && !waited_too_long(0, 0) && !waited_too_long(TOP, 9));
    }
}
