//! Branches and straight runs in the formats of other tools.
//!
//! - BOLT's pre-aggregated text: `perf2bolt -pa -p FILE -o profile.fdata BINARY`. Its syntax is
//!   in `input/preaggregated.rs`.
//! - AutoFDO's text: `create_llvm_prof --profiler=text --profile=FILE --binary=BINARY`. Three
//!   lists, each after the number of its lines: straight runs, sampled instructions, branches.
//! - Folded stacks of paths: `flamegraph.pl FILE`, or any other reader of them. Each line has
//!   frames from the outermost on, separated by `;`, then a blank and a count.
//!
//! The first two know no sequences of branches, so the order of branches in a fragment gets lost.
//! Branches that enter or leave the binary are left out.

use crate::fragments::{Branch, ELSEWHERE, StraightRun, add, runs};
use crate::samples::BinaryBranches;
use std::collections::BTreeMap;
use std::fmt::Write;

/// BOLT's pre-aggregated text of branches with virtual addresses
/// ([`BinaryBranches::at_addresses`]).
///
/// BOLT wants to know of each run whether a branch of the same function led into it. A return into
/// the middle of a function looks the same otherwise. `function_of` gives anything that tells the
/// function of an address from others, such as its start.
#[must_use]
pub fn preaggregated_text(
    seen: &BinaryBranches,
    function_of: impl Fn(u64) -> Option<u64>,
) -> String {
    let mut counts: BTreeMap<(StraightRun, bool), u64> = BTreeMap::new();
    for (fragment, times) in seen.fragments.iter() {
        for (into, run) in runs(fragment) {
            let is_external =
                into.from == ELSEWHERE || function_of(into.from) != function_of(into.to);
            add(&mut counts, (run, is_external), times);
        }
    }
    let mut text = String::new();
    for ((StraightRun { start, end }, is_external), times) in counts {
        let kind = if is_external { 'f' } else { 'F' };
        line(&mut text, format_args!("{kind} {start:x} {end:x} {times}"));
    }
    for (branch, times) in seen.fragments.branches() {
        let mispredicted = seen.mispredicted.get(&branch).copied().unwrap_or_default();
        let Branch { from, to } = branch;
        line(&mut text, format_args!("B {from:x} {to:x} {times} {mispredicted}"));
    }
    text
}

/// AutoFDO's text of branches with file offsets ([`BinaryBranches::at_file_offsets`]).
#[must_use]
pub fn autofdo_text(seen: &BinaryBranches) -> String {
    let mut text = String::new();
    let runs = seen.fragments.straight_runs();
    line(&mut text, format_args!("{}", runs.len()));
    for (StraightRun { start, end }, times) in runs {
        line(&mut text, format_args!("{start:x}-{end:x}:{times}"));
    }
    line(&mut text, format_args!("{}", seen.sampled.len()));
    for (at, times) in &seen.sampled {
        line(&mut text, format_args!("{at:x}:{times}"));
    }
    let branches = seen.fragments.branches();
    line(&mut text, format_args!("{}", branches.len()));
    for (Branch { from, to }, times) in branches {
        line(&mut text, format_args!("{from:x}->{to:x}:{times}"));
    }
    text
}

/// Folded stacks: the frames of each, and how often it was seen. Counts are rounded, and what
/// rounds to zero is left out. Names lose what the syntax needs for itself.
#[must_use]
pub fn folded_text(stacks: impl Iterator<Item = (Vec<String>, f64)>) -> String {
    let mut text = String::new();
    for (frames, count) in stacks {
        let frames: Vec<String> = frames
            .iter()
            .map(|frame| frame.replace(';', ":").replace(|c: char| c.is_control(), "?"))
            .collect();
        let count = count.round() as u64;
        if count > 0 {
            line(&mut text, format_args!("{} {count}", frames.join(";")));
        }
    }
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("a string takes all");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragments::Fragments;
    use crate::input::read_preaggregated;
    use proptest::prelude::*;

    /// Anything that readers give: it comes from elsewhere, goes there and comes back.
    fn binary_branches() -> impl Strategy<Value = BinaryBranches> {
        let branch = (0..40_u64, 0..40_u64).prop_map(|(from, to)| Branch { from, to });
        let fragment = (prop::collection::vec(branch, 1..6), any::<[bool; 3]>());
        let fragments = prop::collection::vec((fragment, 1..1000_u64), 0..20);
        let sampled = prop::collection::btree_map(0..40_u64, 1..9_u64, 0..5);
        (fragments, sampled).prop_map(|(list, sampled)| {
            let mut fragments = Fragments::default();
            for ((mut fragment, [enters, leaves, comes_back]), times) in list {
                if enters {
                    fragment.insert(0, Branch { from: ELSEWHERE, to: 3 });
                }
                if leaves {
                    fragment.push(Branch { from: 4, to: ELSEWHERE });
                    if comes_back {
                        fragment.push(Branch { from: ELSEWHERE, to: 5 });
                        fragment.push(Branch { from: 6, to: 3 });
                    }
                }
                fragments.add(&fragment, times);
            }
            let mispredicted =
                fragments.branches().into_iter().filter(|(branch, _)| branch.from % 2 == 0);
            let mispredicted =
                mispredicted.map(|(branch, times)| (branch, times / 2 + 1)).collect();
            BinaryBranches { fragments, mispredicted, sampled, ..BinaryBranches::default() }
        })
    }

    type Autofdo = (BTreeMap<StraightRun, u64>, BTreeMap<u64, u64>, BTreeMap<Branch, u64>);

    /// Reads as AutoFDO's `TextSampleReaderWriter::Append` does.
    fn read_autofdo(text: &str) -> Autofdo {
        let mut lines = text.lines();
        let mut list = |separator: &str| -> Vec<(Vec<u64>, u64)> {
            let length = lines.next().unwrap().parse().unwrap();
            let record = |line: &str| {
                let (key, times) = line.rsplit_once(':').unwrap();
                let hexadecimal = |digits| u64::from_str_radix(digits, 16).unwrap();
                (key.split(separator).map(hexadecimal).collect(), times.parse().unwrap())
            };
            let records: Vec<_> = lines.by_ref().take(length).map(record).collect();
            assert_eq!(records.len(), length);
            records
        };
        let runs = list("-").into_iter();
        let runs = runs.map(|(key, times)| (StraightRun { start: key[0], end: key[1] }, times));
        let runs = runs.collect();
        let sampled = list(" ").into_iter().map(|(key, times)| (key[0], times)).collect();
        let branches = list("->").into_iter();
        let branches = branches.map(|(key, times)| (Branch { from: key[0], to: key[1] }, times));
        (runs, sampled, branches.collect())
    }

    proptest! {
        #[test]
        fn what_was_written_for_bolt_reads_the_same(seen in binary_branches()) {
            let text = preaggregated_text(&seen, |address| Some(address / 8));
            let Ok(recording) = read_preaggregated(text.as_bytes()) else {
                prop_assert!(seen.fragments.branches().is_empty());
                return Ok(());
            };
            let read = &recording.binaries[""];
            prop_assert_eq!(read.fragments.branches(), seen.fragments.branches());
            prop_assert_eq!(read.fragments.straight_runs(), seen.fragments.straight_runs());
            prop_assert_eq!(&read.mispredicted, &seen.mispredicted);
        }

        #[test]
        fn what_was_written_for_autofdo_reads_the_same(seen in binary_branches()) {
            let (runs, sampled, branches) = read_autofdo(&autofdo_text(&seen));
            prop_assert_eq!(runs, seen.fragments.straight_runs());
            prop_assert_eq!(sampled, seen.sampled);
            prop_assert_eq!(branches, seen.fragments.branches());
        }
    }

    #[test]
    fn a_stack_is_a_line_whatever_its_names_have() {
        let frames = |names: [&str; 2]| names.map(String::from).to_vec();
        let stacks = [(frames(["a;b", "c\nd"]), 2.6), (frames(["a", "b c"]), 0.4)];
        assert_eq!(folded_text(stacks.into_iter()), "a:b;c?d 3\n");
    }

    #[test]
    fn both_texts_of_a_call_and_a_loop() {
        let mut fragments = Fragments::default();
        let branch = |from, to| Branch { from, to };
        // A call to 0x2000, back into the middle of a loop, and out of the binary.
        let call = [branch(0x1010, 0x2000), branch(0x2004, 0x1015), branch(0x1020, 0x1008)];
        fragments.add(&[&call[..], &[branch(0x1030, ELSEWHERE)]].concat(), 2);
        let mispredicted = [(call[2], 1)].into();
        let sampled = [(0x1018, 2)].into();
        let seen = BinaryBranches { fragments, mispredicted, sampled, ..Default::default() };
        assert_eq!(
            preaggregated_text(&seen, |address| Some(address >> 12)),
            "F 1008 1030 2\nf 1015 1020 2\nf 2000 2004 2\n\
             B 1010 2000 2 0\nB 1020 1008 2 1\nB 2004 1015 2 0\n"
        );
        assert_eq!(
            autofdo_text(&seen),
            "3\n1008-1030:2\n1015-1020:2\n2000-2004:2\n1\n1018:2\n\
             3\n1010->2000:2\n1020->1008:2\n2004->1015:2\n"
        );
    }
}
