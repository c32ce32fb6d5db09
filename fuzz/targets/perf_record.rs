//! Records of context switches as they come out of the kernel's ring.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The parser is no part of the library's interface.
#[path = "../../crates/monitor/src/perf/record.rs"]
mod record;

fuzz_target!(|bytes: &[u8]| {
    // A record is a header of 8 bytes at least: what is read moves on with every one of them.
    assert!(record::records(bytes).count() <= bytes.len() / 8);
    for seen in record::records(bytes) {
        if let record::What::Comm(name) = seen.what {
            assert!(name.len() <= 3 * bytes.len(), "a name is what was there, with a sign for each \
                byte that is no text");
        }
    }
});
