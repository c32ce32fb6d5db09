//! A selector as a user types it on the first line, and behind it the page that a program serves.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_metric::Selector;

fuzz_target!(|text: &str| {
    let (selector, page) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(selector) = selector.parse::<Selector>() else { return };
    if let Ok(sum) = selector.sum(page) {
        assert!(sum.is_finite());
        // A page that was read is read again with anything unreadable around it.
        assert_eq!(selector.sum(&format!("{{broken\n{page}\n# EOF\n")), Ok(sum));
    }
    // What a selector writes is a series that it matches.
    assert_eq!(selector.sum(&format!("{selector} 2")), Ok(2.0));
});
