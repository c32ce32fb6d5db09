//! Plans: what is read is written back as the same plan.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_placement::Plan;

fuzz_target!(|text: &str| {
    if let Ok(plan) = Plan::parse(text) {
        let again = Plan::parse(&plan.to_toml());
        assert!(again.is_ok(), "{}", plan.to_toml());
        let _ = plan.cpus();
    }
});
