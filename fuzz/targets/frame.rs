//! Frames between a coordinator and its workers: what is read is written and read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_cluster::{FromWorker, ToWorker, read_frame, write_frame};

fuzz_target!(|bytes: &[u8]| {
    let mut input = bytes;
    while let Ok(message) = read_frame::<ToWorker>(&mut input) {
        let mut written = Vec::new();
        write_frame(&mut written, &message).expect("it is as long as it was");
        assert_eq!(read_frame::<ToWorker>(&mut &written[..]).expect("it was written"), message);
    }
    let mut input = bytes;
    while let Ok(message) = read_frame::<FromWorker>(&mut input) {
        let mut written = Vec::new();
        write_frame(&mut written, &message).expect("it is as long as it was");
        assert_eq!(read_frame::<FromWorker>(&mut &written[..]).expect("it was written"), message);
    }
});
