//! CPU lists and masks: what is read is written back as the same set.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_topology::CpuSet;

fuzz_target!(|text: &str| {
    if let Ok(set) = CpuSet::parse_list(text) {
        assert_eq!(CpuSet::parse_list(&set.to_string()).as_ref(), Ok(&set));
    }
    if let Ok(set) = CpuSet::parse_mask(text) {
        assert_eq!(CpuSet::parse_mask(&set.to_mask()).as_ref(), Ok(&set));
        assert_eq!(CpuSet::parse_mask(&set.to_hwloc()).as_ref(), Ok(&set));
    }
});
