//! What `perf stat -x,` wrote, and what is computed from it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_counters::{Autocorrelation, RecordedFile};

fuzz_target!(|text: &str| {
    let Ok(file) = RecordedFile::parse(text) else { return };
    for counts in file.intervals.iter().flat_map(|interval| interval.values()) {
        assert!(counts.seconds >= 0.0 && counts.seconds.is_finite());
        assert!(counts.counted > 0.0 && counts.counted <= 1.0);
        assert!(counts.counts.values().all(|count| *count >= 0.0 && count.is_finite()));
    }
    for subject in file.subjects() {
        for found in Autocorrelation::of_events(&file.of_subject(subject), 2).values() {
            assert!(found.coefficient.is_finite());
        }
    }
});
