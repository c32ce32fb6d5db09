//! How long it takes to read a `perf.data`, and the largest memory that takes.
//!
//! Each sample has 16 branches. Nearly each fragment is seen once, which is the most memory that so
//! many samples may take. Or there are few different fragments.

use divan::counter::BytesCount;
use pinwise_paths::read_perf_data;
use pinwise_synthetic::BranchRecordingWriter;
use pinwise_topology::Random;
use std::fs::File;
use std::io::{BufReader, BufWriter};

/// Branches of a sample, and the bytes of its record.
const DEPTH: usize = 16;
const RECORD: u64 = 8 + 4 * 8 + 24 * DEPTH as u64;
/// Megabytes of samples, and how many of them are different.
const RECORDINGS: [(u64, u64); 4] = [(10, 1_000), (100, 1_000), (10, u64::MAX), (100, u64::MAX)];

fn main() {
    divan::main();
}

#[divan::bench(args = RECORDINGS, sample_count = 5, sample_size = 1)]
fn read(bencher: divan::Bencher<'_, '_>, (megabytes, different): (u64, u64)) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let samples = megabytes * 1_000_000 / RECORD;
    let code = [0x40_0000, 0x1_0000, 0];
    let buffered = BufWriter::new(file.as_file());
    let mut writer = BranchRecordingWriter::new(buffered, "/bin/program", code).unwrap();
    for sample in 0..samples {
        // Each branch leads from the end of one of 200 blocks to another.
        let mut random = Random::new(sample % different);
        let blocks = [0; DEPTH + 1].map(|_| 0x40_0000 + 0x40 * random.below(200));
        let stack: Vec<(u64, u64)> =
            blocks.windows(2).map(|to_from| (to_from[1] + 0x30, to_from[0])).collect();
        writer.sample(&stack).unwrap();
    }
    drop(writer);
    // The peak of what came before is forgotten.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    bencher.counter(BytesCount::new(samples * RECORD)).bench_local(|| {
        let recording = read_perf_data(BufReader::new(File::open(file.path()).unwrap())).unwrap();
        assert_eq!(recording.totals.samples, samples);
        recording
    });
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    println!("{megabytes} MB, at most {different} different: {peak}");
}
