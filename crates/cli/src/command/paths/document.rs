//! The answer of `pinwise paths` as JSON.

use pinwise_paths::{
    Addressing, BinaryBranches, CONFIDENCE, Dropped, HOT, PathBlock, PathMethod, ProfiledPath,
    RecordedProfile, SampledBy,
};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub(super) struct PathsJson {
    recording: String,
    method: &'static str,
    confidence: Option<f64>,
    hot: HotJson,
    coverage: f64,
    paths: Vec<PathJson>,
    groups: Vec<GroupJson>,
    binaries: Vec<SeenBinaryJson>,
    totals: PathTotalsJson,
}

#[derive(Serialize)]
struct HotJson {
    threshold: f64,
    paths: usize,
    flow: f64,
}

#[derive(Serialize)]
struct PathJson {
    function: String,
    binary: String,
    blocks: Vec<BlockJson>,
    /// Where it goes back to; `None`: it leaves the function.
    back_to: Option<String>,
    count: f64,
    flow: f64,
    flow_low: Option<f64>,
    flow_high: Option<f64>,
    group: Option<usize>,
}

#[derive(Serialize)]
struct BlockJson {
    start: String,
    end: String,
    file: Option<String>,
    first_line: Option<u32>,
    last_line: Option<u32>,
}

/// Paths that no fragment tells apart.
#[derive(Serialize)]
struct GroupJson {
    flow: f64,
    paths: usize,
}

#[derive(Serialize)]
struct SeenBinaryJson {
    name: String,
    file: Option<String>,
    problem: Option<String>,
    addresses: &'static str,
    branches: u64,
    functions: Option<usize>,
    coverage: Option<f64>,
    dropped: BTreeMap<&'static str, u64>,
    ranges: RangesJson,
}

/// Code that ran without a taken branch.
#[derive(Serialize)]
struct RangesJson {
    distinct: usize,
    count: u64,
    bytes: u64,
    list: Vec<RangeJson>,
}

#[derive(Serialize)]
struct RangeJson {
    start: String,
    end: String,
    count: u64,
}

#[derive(Serialize)]
struct PathTotalsJson {
    samples: u64,
    sampled_by: &'static str,
    empty_samples: u64,
    filtered_samples: u64,
    unreadable_samples: u64,
    lost_samples: u64,
    branches: u64,
    into_kernel: u64,
    into_unresolved: u64,
    dropped: BTreeMap<&'static str, u64>,
    depths: Vec<DepthJson>,
    truncated_samples: u64,
}

#[derive(Serialize)]
struct DepthJson {
    branches: usize,
    samples: u64,
}

impl PathsJson {
    pub(super) fn new(
        recording: String,
        method: PathMethod,
        profile: &RecordedProfile,
        top: Option<usize>,
    ) -> Self {
        let hot = profile.hot();
        let mut groups: Vec<GroupJson> =
            (0..profile.groups).map(|_| GroupJson { flow: 0.0, paths: 0 }).collect();
        for path in &profile.paths {
            if let Some(group) = path.group {
                groups[group].flow += path.share;
                groups[group].paths += 1;
            }
        }
        let totals = &profile.totals;
        Self {
            recording,
            method: match method {
                PathMethod::Expand => "expand",
                PathMethod::Likelihood => "likelihood",
            },
            confidence: profile.totals.has_intervals(method).then_some(CONFIDENCE),
            hot: HotJson {
                threshold: HOT,
                paths: hot.len(),
                flow: hot.iter().map(|path| path.share).sum(),
            },
            coverage: profile.coverage,
            paths: hot.iter().take(top.unwrap_or(hot.len())).map(|it| path(profile, it)).collect(),
            groups,
            binaries: binaries(profile),
            totals: PathTotalsJson {
                samples: totals.samples,
                sampled_by: match totals.sampled_by() {
                    SampledBy::Instructions => "instructions",
                    SampledBy::TakenBranches => "taken_branches",
                },
                empty_samples: totals.empty_samples,
                filtered_samples: totals.filtered_samples,
                unreadable_samples: totals.unreadable_samples,
                lost_samples: totals.lost_samples,
                branches: totals.branches,
                into_kernel: totals.into_kernel,
                into_unresolved: totals.into_unknown,
                dropped: dropped(&totals.dropped),
                depths: totals
                    .depths
                    .iter()
                    .map(|(branches, samples)| DepthJson { branches: *branches, samples: *samples })
                    .collect(),
                truncated_samples: totals.truncated_samples(),
            },
        }
    }
}

fn hexadecimal(number: u64) -> String {
    format!("0x{number:x}")
}

fn path(profile: &RecordedProfile, path: &ProfiledPath) -> PathJson {
    let binary = &profile.binaries[path.binary];
    let block = |PathBlock { start, end, source, .. }: PathBlock<'_>| BlockJson {
        start: hexadecimal(start),
        end: hexadecimal(end),
        file: source.map(|source| source.file.to_owned()),
        first_line: source.map(|source| source.first),
        last_line: source.map(|source| source.last),
    };
    PathJson {
        function: binary.function_name(&path.path).to_owned(),
        binary: binary.file.clone(),
        blocks: binary.blocks_of(&path.path).into_iter().map(block).collect(),
        back_to: binary.back_to(&path.path).map(|block| hexadecimal(block.start)),
        count: path.count,
        flow: path.share,
        flow_low: path.interval.map(|(low, _)| low),
        flow_high: path.interval.map(|(_, high)| high),
        group: path.group,
    }
}

fn binaries(profile: &RecordedProfile) -> Vec<SeenBinaryJson> {
    let read = profile.binaries.iter().map(|binary| SeenBinaryJson {
        file: Some(binary.file.clone()),
        functions: Some(binary.functions),
        coverage: Some(binary.coverage),
        ..seen_binary(&binary.name, binary.branches, &binary.seen)
    });
    let unread = profile.unread.iter().map(|binary| SeenBinaryJson {
        problem: Some(binary.reason.to_string()),
        ..seen_binary(&binary.name, binary.branches, &binary.seen)
    });
    read.chain(unread).collect()
}

fn seen_binary(name: &str, branches: u64, seen: &BinaryBranches) -> SeenBinaryJson {
    let runs = seen.fragments.straight_runs();
    SeenBinaryJson {
        name: name.to_owned(),
        file: None,
        problem: None,
        addresses: match seen.addressing {
            Addressing::FileOffsets => "file_offsets",
            Addressing::Addresses => "addresses",
        },
        branches,
        functions: None,
        coverage: None,
        dropped: dropped(&seen.dropped),
        ranges: RangesJson {
            distinct: runs.len(),
            count: runs.values().copied().fold(0, u64::saturating_add),
            bytes: runs
                .iter()
                .map(|(run, times)| {
                    run.end.saturating_sub(run.start).saturating_add(1).saturating_mul(*times)
                })
                .fold(0, u64::saturating_add),
            list: runs
                .iter()
                .map(|(run, times)| RangeJson {
                    start: hexadecimal(run.start),
                    end: hexadecimal(run.end),
                    count: *times,
                })
                .collect(),
        },
    }
}

fn dropped(of: &BTreeMap<Dropped, u64>) -> BTreeMap<&'static str, u64> {
    let key = |reason| match reason {
        Dropped::RepeatedTop => "repeated_top",
        Dropped::Aborted => "aborted",
        Dropped::WrongPath => "wrong_path",
        Dropped::NotTaken => "not_taken",
        Dropped::ImplausibleRun => "implausible_run",
    };
    of.iter().map(|(reason, times)| (key(*reason), *times)).collect()
}
