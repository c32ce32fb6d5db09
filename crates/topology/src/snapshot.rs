//! The files of `/sys` and `/proc` that describe a machine, as a value.

use std::collections::BTreeMap;

/// Paths relative to the root (`sys/devices/system/cpu/cpu0/topology/core_id`) and their contents. Taken from the live
/// kernel, a directory or a tar archive; a [`crate::Machine`] is read from it without further access to anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    files: BTreeMap<String, Vec<u8>>,
}
