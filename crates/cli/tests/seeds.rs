//! The fuzz targets on their seeds, without the fuzzer: what was found once stays mended. Damaged
//! seeds are tried, too.

// A target takes the macro from this crate then.
extern crate self as libfuzzer_sys;

use pinwise_topology::Random;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Stands for the macro of the fuzzer: the target becomes a function.
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:block) => {
        pub(crate) fn on_bytes($input: &[u8]) $body
    };
    (|$input:ident: &str| $body:block) => {
        pub(crate) fn on_bytes(input: &[u8]) {
            if let Ok($input) = std::str::from_utf8(input) $body
        }
    };
}
pub(crate) use fuzz_target;

macro_rules! targets {
    ($($name:ident: $file:literal,)*) => {
        $(#[path = $file]
        #[allow(
            clippy::module_inception, dead_code, unused_attributes, unused_imports,
            reason = "the file is a program of its own"
        )]
        mod $name;)*

        const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name::on_bytes),)*];
    };
}

targets! {
    brstack_text: "../../../fuzz/targets/brstack_text.rs",
    capture: "../../../fuzz/targets/capture.rs",
    column: "../../../fuzz/targets/column.rs",
    counter_model: "../../../fuzz/targets/counter_model.rs",
    cpuset: "../../../fuzz/targets/cpuset.rs",
    estimate: "../../../fuzz/targets/estimate.rs",
    frame: "../../../fuzz/targets/frame.rs",
    guardian_entry: "../../../fuzz/targets/guardian_entry.rs",
    hwloc_xml: "../../../fuzz/targets/hwloc_xml.rs",
    latency: "../../../fuzz/targets/latency.rs",
    metric: "../../../fuzz/targets/metric.rs",
    nodes: "../../../fuzz/targets/nodes.rs",
    numa_maps: "../../../fuzz/targets/numa_maps.rs",
    path_graph: "../../../fuzz/targets/path_graph.rs",
    perf_data: "../../../fuzz/targets/perf_data.rs",
    perf_record: "../../../fuzz/targets/perf_record.rs",
    perf_stat: "../../../fuzz/targets/perf_stat.rs",
    plan: "../../../fuzz/targets/plan.rs",
    preaggregated: "../../../fuzz/targets/preaggregated.rs",
    processor: "../../../fuzz/targets/processor.rs",
    prometheus: "../../../fuzz/targets/prometheus.rs",
    scheduler_program: "../../../fuzz/targets/scheduler_program.rs",
    shape: "../../../fuzz/targets/shape.rs",
    smt_core: "../../../fuzz/targets/smt_core.rs",
    snapshot: "../../../fuzz/targets/snapshot.rs",
    source_lines: "../../../fuzz/targets/source_lines.rs",
    thread_stat: "../../../fuzz/targets/thread_stat.rs",
    threads_per_n: "../../../fuzz/targets/threads_per_n.rs",
}

/// How many damaged copies of each seed are tried.
const COPIES: u32 = 50;

fn names_in(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// A seed with a few of its bytes changed, or its end cut off.
fn damaged(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    let mut below = |limit: usize| random.below(limit as u64) as usize;
    for _ in 0..=below(4) {
        let at = below(bytes.len());
        bytes[at] = below(256) as u8;
    }
    if below(4) == 0 {
        bytes.truncate(below(bytes.len()));
    }
    bytes
}

#[test]
fn every_fuzz_target_holds_on_its_seeds() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let known = TARGETS.iter().map(|(name, _)| fuzz.join("targets").join(format!("{name}.rs")));
    assert_eq!(known.collect::<BTreeSet<_>>(), names_in(&fuzz.join("targets")));
    // Here the targets see what pinwise depends on, there only what their own file names.
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for target in names_in(&fuzz.join("targets")) {
        let source = fs::read_to_string(&target).unwrap();
        for name in source.split(|c: char| !c.is_alphanumeric() && c != '_') {
            let listed = manifest.contains(&format!("\n{} = ", name.replace('_', "-")));
            assert!(listed || !name.starts_with("pinwise_"), "{name}: {}", target.display());
        }
    }
    let mut random = Random::new(1);
    for (name, judge) in TARGETS {
        let seeds = names_in(&fuzz.join("seeds").join(name));
        assert!(!seeds.is_empty(), "{name} has no seed");
        for path in seeds {
            let seed = fs::read(&path).unwrap();
            judge(&seed);
            for copy in 0..COPIES {
                let bytes = damaged(&seed, &mut random);
                let judged = std::panic::catch_unwind(|| judge(&bytes));
                assert!(judged.is_ok(), "{}, copy {copy}: {bytes:?}", path.display());
            }
        }
    }
}
