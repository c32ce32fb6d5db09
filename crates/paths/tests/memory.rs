//! The memory that reading takes. The test is alone in its process, whose peak it reads.

use pinwise_paths::read_perf_data;
use pinwise_synthetic::BranchRecordingWriter;
use pinwise_topology::Random;
use std::io::Read;

/// A recording that is made while it is read, so that it takes no memory itself.
struct MadeUp {
    writer: BranchRecordingWriter<Vec<u8>>,
    samples: u64,
    different: u64,
    made: u64,
}

impl MadeUp {
    fn new(samples: u64, different: u64) -> Self {
        let code = [0x40_0000, 0x1_0000, 0];
        let writer = BranchRecordingWriter::new(Vec::new(), "/bin/program", code).unwrap();
        Self { writer, samples, different, made: 0 }
    }
}

impl Read for MadeUp {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.writer.inner().is_empty() && self.made < self.samples {
            let mut random = Random::new(self.made % self.different);
            let blocks = [0; 17].map(|_| 0x40_0000 + 0x40 * random.below(200));
            let stack: Vec<(u64, u64)> =
                blocks.windows(2).map(|to_from| (to_from[1] + 0x30, to_from[0])).collect();
            self.writer.sample(&stack)?;
            self.made += 1;
        }
        let made = self.writer.inner();
        let read = (&made[..]).read(buffer)?;
        made.drain(..read);
        Ok(read)
    }
}

/// The largest memory of this process during some work, in kB.
fn peak_of(work: impl FnOnce()) -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    work();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn memory_grows_with_distinct_fragments_and_not_with_samples() {
    let read = |samples: u64, different: u64| {
        peak_of(|| {
            let recording = read_perf_data(MadeUp::new(samples, different)).unwrap();
            assert_eq!(recording.totals.samples, samples);
            let fragments = &recording.binaries["/bin/program"].fragments;
            assert_eq!(fragments.distinct() as u64, samples.min(different));
        })
    };
    let few = read(4_000, 1_000);
    // 14 MB more of samples.
    let more_samples = read(36_000, 1_000);
    assert!(more_samples < few + 1_000, "{few} kB, then {more_samples} kB");
    let more_fragments = read(36_000, 36_000);
    assert!(more_fragments > few + 8_000, "{few} kB, then {more_fragments} kB");
}
