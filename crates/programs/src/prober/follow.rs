//! Whether the number of a program's threads follows its parameter.

/// A program that has work for so many contexts more than n does not take its number of threads
/// from it; a first thread that reads for the others has less.
const BUSIER: f64 = 0.8;

/// Whether a program that makes `threads` with every n that was probed, `least` and greater ones,
/// takes no notice of n. It may also be that its input has no work for more than `least`: then it
/// makes no more threads than that promises (`promised`, where that is known; else n or one beside
/// these, the first, that waits), two at least, and has work for no more contexts (`wanted`: those
/// its threads ran on or waited for).
pub(super) fn ignores(threads: u32, least: u32, promised: Option<u32>, wanted: f64) -> bool {
    let most = promised.unwrap_or(least + 1);
    !(2..=most).contains(&threads) || promised.is_none() && wanted > f64::from(least) + BUSIER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_work_for_more_threads_is_told_from_one_that_takes_no_notice_of_n() {
        assert!(!ignores(2, 1, None, 1.1), "one worker, and a first thread that waits for it");
        assert!(ignores(2, 1, None, 1.95), "both work though one was asked for");
        assert!(
            ignores(3, 1, None, 1.0) && ignores(1, 2, None, 1.0),
            "too many, or no worker at all"
        );
        assert!(!ignores(4, 8, None, 3.0), "input for four");
        assert!(ignores(24, 6, None, 20.0));
        // What n makes is known: more than that is not.
        assert!(
            !ignores(2, 1, Some(2), 1.95)
                && ignores(3, 1, Some(2), 1.0)
                && ignores(2, 1, Some(1), 1.0)
        );
    }
}
