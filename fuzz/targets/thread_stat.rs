//! What the kernel says of a thread (`/proc/TID/stat`, `schedstat`). A thread chooses its name: any
//! name comes back as it was, and the fields behind it are right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_linux::thread::{SchedulerTimes, Stat};

fuzz_target!(|bytes: &[u8]| {
    let _ = Stat::parse(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = SchedulerTimes::parse(text);
    }
    let name = &bytes[..bytes.len().min(64)];
    let fields = b") R 3 4 4 0 -1 64 5 0 6 0 7 8 0 0 20 0 1 0 99 0 0 0 0 0 0 0 0 0 0 0 0 0 0";
    let line = [b"7 (", name, fields].concat();
    let stat = Stat::parse(&line).expect("a line of the kernel");
    assert_eq!(stat.comm, String::from_utf8_lossy(name));
    assert_eq!((stat.state, stat.parent.0, stat.start.0), ('R', 3, 99));
});
