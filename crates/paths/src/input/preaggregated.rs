//! Reads BOLT's pre-aggregated text.
//!
//! The syntax is that of BOLT's `DataAggregator.h`, with one record a line:
//!
//! | line | it says |
//! |---|---|
//! | `B from to count mispredicted` | a branch |
//! | `F start end count`, also `f` and `r` | a straight run; what led into it is not kept |
//! | `T from to end count`, also `R` | a branch and the straight run after it |
//! | `S address count` | samples at an instruction |
//! | `E name` | the event of what follows; not used |
//!
//! Addresses are virtual addresses in hexadecimal. `X:` before one says that it is in no known
//! object, and a build id that it is in that object. A branch is a fragment of one branch, so
//! there is less of paths in such a file than in a recording.

use super::BranchInputError;
use super::lines::{Lines, hexadecimal};
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
    let mut lines = Lines::new(input);
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
            if let (true, Some(object), 1..) = (from.object == to.object, from.object, mispredicted)
            {
                let branch = Branch { from: from.address, to: to.address };
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
