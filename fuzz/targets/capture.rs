//! Packet captures, and the header work on the frames that come out of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_workloads::{Capture, Layout};
use std::io::Write;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    // The reader takes a path; a file that has no name needs no cleaning up.
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(bytes).expect("room for it");
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    if let Ok(capture) = Capture::open(Path::new(&path)) {
        for n in 0..capture.traffic.frames() {
            let _ = Layout::of(capture.traffic.frame(n as u64));
        }
    }
});
