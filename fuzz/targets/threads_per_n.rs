//! Formulas of `--threads-per-n`: they make a thread at least, and do not shrink as n grows. The n
//! for a number of threads makes no more than that, if any n does.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_threads::ThreadsPerN;

fuzz_target!(|text: &str| {
    let Ok(formula) = text.parse::<ThreadsPerN>() else { return };
    let made: Vec<u32> = [1, 2, 3, 1000].iter().map(|&n| formula.threads(n)).collect();
    assert!(made[0] >= 1 && made.is_sorted(), "{made:?}");
    // With one thread for each n, the paper's search takes the number itself.
    if formula.threads(2) - formula.threads(1) > 1 {
        let n = formula.parameter(made[3]);
        assert!(formula.threads(n) <= made[3], "n = {n} makes {}", formula.threads(n));
    }
});
