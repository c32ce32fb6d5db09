//! Latency matrices that others wrote, and the levels that they imply.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_topology::{CpuSet, LatencyLevels, LatencyMatrix, MctFile};

fn judge(matrix: &LatencyMatrix) -> Option<LatencyLevels> {
    // Parsing is what is fuzzed; a thousand contexts take longer than they teach.
    let contexts: CpuSet = matrix.contexts().iter().copied().collect();
    if contexts.len() > 32 {
        return None;
    }
    let levels = LatencyLevels::of(matrix);
    for level in &levels.levels {
        let union = level.groups.iter().fold(CpuSet::new(), |union, group| union.union(group));
        assert_eq!(union, contexts);
        assert_eq!(level.groups.iter().map(CpuSet::len).sum::<usize>(), contexts.len());
    }
    assert_eq!(levels.levels.last().map(|level| level.groups.len()), Some(1));
    Some(levels)
}

fuzz_target!(|text: &str| {
    if let Ok(file) = MctFile::parse(text)
        && let Some(levels) = judge(&file.matrix)
    {
        let _ = file.check(&levels);
    }
    if let Ok(matrix) = LatencyMatrix::from_csv(text) {
        judge(&matrix);
    }
});
