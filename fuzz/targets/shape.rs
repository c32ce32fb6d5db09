//! Machine shapes such as 8x2x4: a machine or a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_topology::Machine;

fuzz_target!(|text: &str| {
    let _ = Machine::from_shape(text);
});
