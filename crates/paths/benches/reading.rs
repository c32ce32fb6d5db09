//! How long it takes to read a `perf.data` of 100 MB, and the largest memory of the process.
//!
//! Each sample has 16 branches, each one of 200 loops. So nearly each fragment is seen once, which
//! is the most memory that so many samples may take.

use divan::counter::BytesCount;
use pinwise_paths::read_perf_data;
use pinwise_topology::Random;
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};

/// The size of the records, in bytes.
const SIZE: u64 = 100_000_000;
/// The instruction, the process, the time, and a branch stack of 16 entries.
const RECORD: u64 = 8 + 3 * 8 + 8 + 16 * 24;
/// `IP`, `TID`, `TIME` and `BRANCH_STACK` of the kernel's `perf_event_attr`.
const PARTS: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 11;
/// Any taken branch, in user mode.
const BRANCH_KINDS: u64 = 1 << 3 | 1;

fn main() {
    divan::main();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap());
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn read_100_mb(bencher: divan::Bencher<'_, '_>) {
    let file = tempfile::NamedTempFile::new().unwrap();
    write(BufWriter::new(file.as_file()));
    bencher.counter(BytesCount::new(SIZE)).bench_local(|| {
        let recording = read_perf_data(BufReader::new(File::open(file.path()).unwrap())).unwrap();
        assert_eq!(recording.totals.samples, SIZE / RECORD);
        recording
    });
}

/// A recording as perf lays it out: a header, one event without ids, a mapping and the samples.
fn write(mut file: impl Write) {
    let numbers = |file: &mut dyn Write, numbers: &[u64]| {
        numbers.iter().for_each(|number| file.write_all(&number.to_le_bytes()).unwrap());
    };
    let mapping = 8 + 8 + 3 * 8 + 24 + 8 + 16 + 2 * 8;
    let samples = SIZE / RECORD;
    let records = mapping + samples * RECORD;
    file.write_all(b"PERFILE2").unwrap();
    // The header's size, the events', where they are, and where the records are.
    numbers(&mut file, &[104, 144, 104, 144, 248, records, 0, 0, 0, 0, 0, 0]);
    let mut attributes = [0; 16];
    attributes[0] = 128 << 32;
    attributes[2] = 500_000;
    attributes[3] = PARTS;
    // Records of mappings have a time, too.
    attributes[5] = 1 << 18;
    attributes[9] = BRANCH_KINDS;
    numbers(&mut file, &attributes);
    numbers(&mut file, &[0, 0]);
    let header = |kind: u64, misc: u64, size: u64| kind | misc << 32 | size << 48;
    let ids = 7 << 32 | 7;
    // A mapping of code: its address, size and offset, then device and inode, then r-xp.
    let code = [0x40_0000, 0x1_0000, 0, 0, 0, 0, 2 << 32 | 5];
    numbers(&mut file, &[header(10, 2, mapping), ids]);
    numbers(&mut file, &code);
    file.write_all(b"/bin/program\0\0\0\0").unwrap();
    numbers(&mut file, &[ids, 1]);
    let mut random = Random::new(1);
    for sample in 0..samples {
        numbers(&mut file, &[header(9, 2, RECORD), 0x40_0000, ids, 2 + sample, 16]);
        for _ in 0..16 {
            let block = 0x40_0000 + 0x40 * random.below(200);
            numbers(&mut file, &[block + 0x30, block, 1 << 1]);
        }
    }
}
