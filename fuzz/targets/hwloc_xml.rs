//! Topologies that hwloc wrote.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_topology::Machine;

fuzz_target!(|text: &str| {
    let _ = Machine::from_hwloc_xml(text);
});
