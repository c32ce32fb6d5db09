//! Recordings of branches, as perf leaves them in a file or writes them to a pipe.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_paths::{ELSEWHERE, read_perf_data};

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = read_perf_data(bytes) else { return };
    let totals = &recording.totals;
    let entries: u64 = totals.depths.iter().map(|(depth, times)| *depth as u64 * times).sum();
    assert_eq!((entries, totals.depths.values().sum()), (totals.branches, totals.samples));
    for (fragment, _) in recording.binaries.values().flat_map(|seen| seen.fragments.iter()) {
        assert!(!fragment.iter().any(|branch| branch.is_outside()));
        for pair in fragment.windows(2) {
            let goes_and_comes = (pair[0].to == ELSEWHERE) == (pair[1].from == ELSEWHERE);
            assert!(goes_and_comes, "who leaves comes back, or the fragment ends");
        }
    }
    let runs = recording.binaries.values().flat_map(|seen| seen.fragments.straight_runs());
    assert!(runs.into_iter().all(|(run, _)| run.start <= run.end), "code runs forward");
});
