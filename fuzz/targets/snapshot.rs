//! Recorded machines. The input is a tar archive, or, since few mutations make one, lines of
//! `path=content`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_topology::{Machine, Snapshot};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(snapshot) = Snapshot::from_tar(bytes) {
        let _ = Machine::from_snapshot(&snapshot);
    }
    let mut snapshot = Snapshot::default();
    for line in String::from_utf8_lossy(bytes).lines() {
        let (path, content) = line.split_once('=').unwrap_or((line, ""));
        let _ = snapshot.insert(path, content.as_bytes().to_vec());
    }
    let _ = Machine::from_snapshot(&snapshot);
});
