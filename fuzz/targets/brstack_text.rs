//! What `perf script -F ip,brstack` prints, and text that is taken for it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_paths::{autofdo_text, read_branches, read_brstack_text};

fuzz_target!(|bytes: &[u8]| {
    // Whatever the first bytes say.
    let _ = read_branches(bytes);
    let Ok(recording) = read_brstack_text(bytes) else { return };
    assert!(recording.totals.branches <= bytes.len() as u64, "no branch without a byte");
    for seen in recording.binaries.values() {
        let runs = seen.fragments.straight_runs();
        assert!(runs.keys().all(|run| run.start <= run.end), "code runs forward");
        let lines = runs.len() + seen.fragments.branches().len() + seen.sampled.len() + 3;
        assert_eq!(autofdo_text(seen).lines().count(), lines);
    }
});
