//! Binaries with debugging information: the lines of all functions, or none.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_paths::{Binary, SourceLines};

fuzz_target!(|bytes: &[u8]| {
    let Ok(binary) = Binary::parse(bytes) else { return };
    let lines = SourceLines::new(bytes, binary.functions());
    for function in binary.functions() {
        if let Some(span) = lines.of(function.start, function.end) {
            assert!(0 < span.first && span.first <= span.last);
        }
    }
});
