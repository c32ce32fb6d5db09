//! Reads BOLT's pre-aggregated text.
//!
//! The syntax is that of BOLT's `DataAggregator.h`, with one record a line:
//!
//! - `B from to count mispredicted`: a branch.
//! - `F start end count`, also `f` and `r`: a straight run. What led into it is not kept.
//! - `T from to end count`, also `R`: a branch and the straight run after it.
//! - `S address count`: samples at an instruction.
//! - `E name`: the event of what follows. It is not used.
//!
//! Addresses are virtual addresses in hexadecimal. The prefix `X:` means that the address is in no
//! known object. A build id names its object. A branch is a fragment of one branch, so such a file
//! says less about paths than a recording.

use super::BranchInputError;
use super::lines::{NumberedLines, hexadecimal};
use crate::fragments::{Branch, ELSEWHERE, add};
use crate::samples::{BinaryBranches, BranchRecording};
use std::collections::BTreeMap;
use std::io::BufRead;

/// The letters that start a line.
pub(super) const KINDS: &[u8] = b"TRSEBFfr";

/// Reads the text. Memory grows with distinct records. Binaries have their build id as a path; the
/// main one has none.
///
/// # Errors
/// If a line cannot be read, or there is no branch.
pub fn read_preaggregated(input: impl BufRead) -> Result<BranchRecording, BranchInputError> {
    let mut lines = NumberedLines::new(input);
    let mut recording = BranchRecording::default();
    while let Some(line) = lines.next()? {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if !words.is_empty() {
            take_record(&mut recording, &words).ok_or_else(|| lines.bad())?;
        }
    }
    if recording.totals.branches == 0 {
        return Err(BranchInputError::NoBranchRecords);
    }
    Ok(recording)
}

fn take_record(recording: &mut BranchRecording, words: &[&str]) -> Option<()> {
    let BranchRecording { totals, binaries } = recording;
    let count = |word: &str| word.parse::<u64>().ok();
    match *words {
        ["E", ..] => {}
        ["S", at, times] => {
            if let ObjectPlace { object: Some(object), address } = ObjectPlace::parse(at)? {
                add(&mut of(binaries, object).sampled, address, count(times)?);
            }
        }
        ["B", from, to, times, mispredicted] => {
            let (from, to) = (ObjectPlace::parse(from)?, ObjectPlace::parse(to)?);
            let (times, mispredicted) = (count(times)?, count(mispredicted)?);
            add_fragment(binaries, &[(from, to)], times);
            let branch = Branch { from: from.address, to: to.address };
            if let (Some(object), true) = (from.object, from.object == to.object)
                && branch.is_inside()
                && mispredicted > 0
            {
                add(&mut of(binaries, object).mispredicted, branch, mispredicted);
            }
            totals.branches = totals.branches.saturating_add(times);
        }
        ["F" | "f" | "r", start, end, times] => {
            let (start, end, times) =
                (ObjectPlace::parse(start)?, ObjectPlace::parse(end)?, count(times)?);
            add_fragment(
                binaries,
                &[(ObjectPlace::UNKNOWN, start), (end, ObjectPlace::UNKNOWN)],
                times,
            );
        }
        ["T" | "R", from, to, end, times] => {
            let (from, to, end) =
                (ObjectPlace::parse(from)?, ObjectPlace::parse(to)?, ObjectPlace::parse(end)?);
            let times = count(times)?;
            // BOLT writes -1 where the run did not end in a branch.
            match end.address {
                u64::MAX => add_fragment(binaries, &[(from, to)], times),
                _ => add_fragment(binaries, &[(from, to), (end, ObjectPlace::UNKNOWN)], times),
            }
            totals.branches = totals.branches.saturating_add(times);
        }
        _ => return None,
    }
    Some(())
}

/// An address in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ObjectPlace<'a> {
    /// Its build id. Empty for the main binary.
    object: Option<&'a str>,
    address: u64,
}

impl<'a> ObjectPlace<'a> {
    const UNKNOWN: Self = Self { object: None, address: ELSEWHERE };

    fn parse(word: &'a str) -> Option<Self> {
        let (object, address) = word.rsplit_once(':').unwrap_or(("", word));
        let address = hexadecimal(address)?;
        Some(Self { object: (object != "X").then_some(object), address })
    }
}

/// Adds a fragment to each object that a part of it is in.
fn add_fragment(
    binaries: &mut BTreeMap<String, BinaryBranches>,
    branches: &[(ObjectPlace<'_>, ObjectPlace<'_>)],
    times: u64,
) {
    let mut objects: Vec<&str> =
        branches.iter().flat_map(|(from, to)| [from.object, to.object]).flatten().collect();
    objects.sort_unstable();
    objects.dedup();
    for object in objects {
        let in_object = |place: &ObjectPlace<'_>| match place.object {
            Some(other) if other == object => place.address,
            _ => ELSEWHERE,
        };
        let part =
            branches.iter().map(|(from, to)| Branch { from: in_object(from), to: in_object(to) });
        let seen = of(binaries, object);
        let mut part: Vec<_> =
            part.filter(|branch| branch.from != ELSEWHERE || branch.to != ELSEWHERE).collect();
        // A run that starts in one object and ends in another is none.
        if let [first, second] = part[..]
            && (first.to == ELSEWHERE || second.from == ELSEWHERE)
        {
            seen.fragments.add(&[first], times);
            part = vec![second];
        }
        seen.fragments.add(&part, times);
    }
}

fn of<'a>(
    binaries: &'a mut BTreeMap<String, BinaryBranches>,
    object: &str,
) -> &'a mut BinaryBranches {
    if !binaries.contains_key(object) {
        binaries.insert(object.to_owned(), BinaryBranches::default());
    }
    binaries.entry(object.to_owned()).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fragments::StraightRun;

    fn read(text: &str) -> BranchRecording {
        read_preaggregated(text.as_bytes()).unwrap()
    }

    #[test]
    fn each_kind_of_line() {
        let recording = read(
            "E br_inst_retired.near_taken\nS 41be60 6\nF 41be50 41be5c 3\nf 41be90 41be90 4\n\
             r 41bea0 41beb0 5\nB 4b1942 39b57f0 3 1\nT 4b196f 4b19e0 4b19ef 2\n\
             R 4b19ef 4b1800 ffffffffffffffff 7\n\n",
        );
        assert_eq!(recording.totals.branches, 12);
        let seen = &recording.binaries[""];
        let branch = |from, to| Branch { from, to };
        let branches = [
            (branch(0x4b_1942, 0x39b_57f0), 3),
            (branch(0x4b_196f, 0x4b_19e0), 2),
            (branch(0x4b_19ef, 0x4b_1800), 7),
        ];
        assert_eq!(seen.fragments.branches(), branches.into());
        let run = |start, end| StraightRun { start, end };
        let runs = [
            (run(0x41_be50, 0x41_be5c), 3),
            (run(0x41_be90, 0x41_be90), 4),
            (run(0x41_bea0, 0x41_beb0), 5),
            (run(0x4b_19e0, 0x4b_19ef), 2),
        ];
        assert_eq!(seen.fragments.straight_runs(), runs.into());
        assert_eq!(seen.mispredicted, [(branch(0x4b_1942, 0x39b_57f0), 1)].into());
        assert_eq!(seen.sampled, [(0x41_be60, 6)].into());
    }

    #[test]
    fn objects_are_kept_apart() {
        let recording =
            read("B 10 abc:20 3 1\nB abc:28 X:0 2 0\nT abc:30 18 1c 5\nT 40 a0 abc:b0 1");
        let branch = |from, to| Branch { from, to };
        let main = &recording.binaries[""].fragments;
        let expected: [(&[Branch], u64); 3] = [
            (&[branch(0x10, ELSEWHERE)], 3),
            (&[branch(0x40, 0xa0)], 1),
            (&[branch(ELSEWHERE, 0x18), branch(0x1c, ELSEWHERE)], 5),
        ];
        assert_eq!(main.iter().collect::<Vec<_>>(), expected);
        let library = &recording.binaries["abc"];
        assert_eq!(library.fragments.total(), 3 + 2 + 5 + 1);
        assert!(library.fragments.straight_runs().is_empty() && library.mispredicted.is_empty());
    }

    #[test]
    fn lines_that_bolt_would_refuse() {
        for line in ["Q 1 2 3", "B 1 2 3", "B 1 2 3 4 5", "F 1 2 -3", "F 1 xyz 3", "T 1 2 3", "S 1"]
        {
            let error = read_preaggregated(format!("B 1 2 3 0\n{line}\n").as_bytes()).unwrap_err();
            assert!(matches!(error, BranchInputError::BadLine { line: 2 }), "{line}");
        }
        let no_branch = read_preaggregated(&b"F 1 2 3\n"[..]);
        assert!(matches!(no_branch, Err(BranchInputError::NoBranchRecords)));
    }
}
