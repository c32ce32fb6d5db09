//! Metric specifications, patterns and Prometheus selectors as a user types them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_metric::{MetricSpec, Pattern, Selector};

fuzz_target!(|text: &str| {
    let _ = text.parse::<MetricSpec>();
    let _ = Pattern::new(text);
    if let Ok(selector) = text.parse::<Selector>() {
        assert_eq!(
            selector.to_string().parse::<Selector>().ok().as_ref(),
            Some(&selector),
            "{selector}"
        );
    }
});
