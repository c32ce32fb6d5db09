//! Lines of the guardian's ledger and of undo notes (JSON): entries that are written and read
//! again, each as one line, or a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_linux::GuardianEntry;

fuzz_target!(|text: &str| {
    for line in text.lines() {
        let Ok(entry) = serde_json::from_str::<GuardianEntry>(line) else { continue };
        let written = serde_json::to_string(&entry).expect("an entry can be written");
        assert!(!written.contains('\n'), "{written}");
        assert_eq!(serde_json::from_str::<GuardianEntry>(&written).expect("it was written"), entry);
    }
});
