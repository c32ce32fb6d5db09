//! Files of measurements given to `pinwise bound`. The reader is in the program, not in a library,
//! so it is included here.
#![no_main]

#[path = "../../crates/cli/src/command/bound/column.rs"]
mod column;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for wanted in [None, Some("1"), Some("pps")] {
        if let Ok(column) = column::read(text, wanted) {
            assert!(!column.values.is_empty());
            assert_eq!(column.skipped > 0, column.first_skipped.is_some());
        }
    }
});
