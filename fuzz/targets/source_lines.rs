//! Binaries with debugging information: the lines of all functions, or none. And where a separate
//! file may be.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_paths::{Binary, DebugFile, SourceLines};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    if let Some(wanted) = DebugFile::of(bytes) {
        wanted.is(bytes);
        for place in wanted.places(Path::new("/opt/app")) {
            let is_near = ["/opt", "/usr/lib/debug"].iter().any(|it| place.starts_with(it));
            assert!(is_near && !place.to_string_lossy().contains("/../"), "{place:?}");
        }
    }
    let Ok(binary) = Binary::with_debug_file(bytes, Some(bytes)) else { return };
    let lines = SourceLines::new(bytes, binary.functions());
    for function in binary.functions() {
        if let Some(span) = lines.of(function.start, function.end) {
            assert!(0 < span.first && span.first <= span.last);
        }
    }
});
