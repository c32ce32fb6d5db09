//! The memory areas of a process: no text panics, and only words of nodes count.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_linux::memory::numa_maps;

fuzz_target!(|text: &str| {
    let pages = numa_maps(text, 4);
    assert!(pages.iter().all(|(_, pages)| pages > 0));
    assert!(pages.outside(&pages.home()) <= 0.1);
});
