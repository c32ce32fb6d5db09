//! Branches in BOLT's text. What is read reads the same after it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_paths::{preaggregated_text, read_preaggregated};

fuzz_target!(|bytes: &[u8]| {
    let Ok(recording) = read_preaggregated(bytes) else { return };
    for seen in recording.binaries.values() {
        let text = preaggregated_text(seen, |address| Some(address >> 12));
        let branches = seen.fragments.branches();
        let Ok(again) = read_preaggregated(text.as_bytes()) else {
            assert!(branches.is_empty());
            continue;
        };
        let again = &again.binaries[""];
        assert_eq!(again.fragments.branches(), branches);
        assert_eq!(again.fragments.straight_runs(), seen.fragments.straight_runs());
        let mut mispredicted = seen.mispredicted.clone();
        mispredicted.retain(|branch, _| branches.contains_key(branch));
        assert_eq!(again.mispredicted, mispredicted);
    }
});
