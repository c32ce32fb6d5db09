//! From recorded branch stacks to fragments of each binary, with counts of the parts left out.
//!
//! A *branch stack* is the processor's record at one sample, newest branch first. Faults of such
//! stacks in practice, and their treatment here:
//!
//! - The newest entry repeats the next one (seen on Intel): it is dropped unless the loop is short.
//! - A branch leads into the kernel, or back: all fragments end, and the return starts another.
//! - A branch leads into another binary, or back: each of the two gets a fragment.
//! - Code cannot have run straight from one entry to the next: another fragment starts.
//! - A transaction aborted: the entry is no branch, and another fragment starts.
//! - A branch belongs to a wrong speculation, or was not taken: it is dropped.
//!
//! Interrupts may enter the kernel anywhere, so nothing is known of the path around it. A call to a
//! library comes back to where it was made: the caller's fragment goes on.
//!
//! The rule for the newest entry is that of AutoFDO (`PerfDataSampleReader::Append` in its
//! `sample_reader.cc`). The limit is the one behind its published totals.

use crate::address_space::{AddressSpaces, BinaryNumber, Whereabouts};
use crate::estimate::observation::SampledBy;
use crate::fragments::{Branch, ELSEWHERE, Fragments, add};
use crate::profile::PathMethod;
use crate::segments::Segments;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A loop of at most this length, in bytes, may repeat at the top of a stack.
const LONGEST_REPEATED_LOOP: u64 = 0x50;

/// Code does not run further than this, in bytes, without a taken branch (AutoFDO's limit).
const LONGEST_RUN: u64 = 1 << 20;

/// One entry of a branch stack: run-time addresses and what the processor noted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StackEntry {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) is_mispredicted: bool,
    /// Why it is no branch that was taken.
    pub(crate) flaw: Option<Dropped>,
}

/// Why an entry of a branch stack was dropped, or a straight run before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dropped {
    /// The newest entry says the same as the one before it.
    RepeatedTop,
    /// A transaction was aborted there.
    Aborted,
    /// It belongs to a wrong speculation.
    WrongPath,
    /// The branch was not taken.
    NotTaken,
    /// No entry: the run from the entry before it would go backwards, or be longer than 1 MiB.
    ImplausibleRun,
}

/// Counts over all of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingTotals {
    /// Samples with at least one branch.
    pub samples: u64,
    /// Samples without a branch.
    pub empty_samples: u64,
    /// Samples whose record is not of consecutive branches: of call stacks, or of one kind.
    pub filtered_samples: u64,
    /// Samples that could not be read.
    pub unreadable_samples: u64,
    /// Samples that the kernel says it lost.
    pub lost_samples: u64,
    /// Samples that were taken after a number of branches. The others were taken after a number of
    /// instructions or cycles, or the recording does not say.
    pub by_branches: u64,
    /// Entries of branch stacks, dropped ones included.
    pub branches: u64,
    /// Entries with a destination in the kernel.
    pub into_kernel: u64,
    /// Entries with a destination in no known binary.
    pub into_unknown: u64,
    /// What was dropped, and why.
    pub dropped: BTreeMap<Dropped, u64>,
    /// How many samples had how many entries.
    pub depths: BTreeMap<usize, u64>,
}

impl RecordingTotals {
    /// How many samples have as many entries as any: the record cut their path off.
    #[must_use]
    pub fn truncated_samples(&self) -> u64 {
        self.depths.last_key_value().map_or(0, |(_, samples)| *samples)
    }

    /// The recording says which branches followed each other. BOLT's text has each branch alone, as
    /// does a record of one branch. A profile of it must guess how branches go together, however
    /// many there are.
    #[must_use]
    pub fn has_sequences(&self) -> bool {
        self.depths.last_key_value().is_some_and(|(depth, _)| *depth > 1)
    }

    /// The profile has intervals and groups: `expand` has none, nor has a guess.
    #[must_use]
    pub fn has_intervals(&self, method: PathMethod) -> bool {
        method == PathMethod::Likelihood && self.has_sequences()
    }

    /// What most samples were taken by.
    #[must_use]
    pub fn sampled_by(&self) -> SampledBy {
        if self.by_branches * 2 > self.samples {
            SampledBy::TakenBranches
        } else {
            SampledBy::Instructions
        }
    }
}

/// What the numbers in [`BinaryBranches`] are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Addressing {
    /// Offsets in the binary's file.
    FileOffsets,
    /// Virtual addresses as the file states them.
    #[default]
    Addresses,
}

/// The samples of one binary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BinaryBranches {
    /// What the numbers are.
    pub addressing: Addressing,
    /// Its fragments.
    pub fragments: Fragments,
    /// How often a branch inside of it was predicted wrongly. Others: never.
    pub mispredicted: BTreeMap<Branch, u64>,
    /// The instructions at which samples were taken.
    pub sampled: BTreeMap<u64, u64>,
    /// What was dropped, and why.
    pub dropped: BTreeMap<Dropped, u64>,
    /// The build ids of its file, as far as the recording tells. Two: the file changed meanwhile.
    pub build_ids: BTreeSet<Box<[u8]>>,
}

impl BinaryBranches {
    /// Entries of records that lead into the binary.
    pub fn entries(&self) -> u64 {
        self.fragments.iter().fold(0, |sum, (fragment, times)| {
            let into = fragment.iter().filter(|branch| branch.to != ELSEWHERE).count() as u64;
            sum.saturating_add(times.saturating_mul(into))
        })
    }

    /// The same with virtual addresses. What is not loaded is elsewhere.
    #[must_use]
    pub fn at_addresses(&self, segments: &Segments) -> Self {
        self.translated(Addressing::Addresses, |number| match self.addressing {
            Addressing::FileOffsets => segments.address_of(number),
            Addressing::Addresses => segments.offset_of(number).map(|_| number),
        })
    }

    /// The same with offsets in the file. What is not loaded is elsewhere.
    #[must_use]
    pub fn at_file_offsets(&self, segments: &Segments) -> Self {
        self.translated(Addressing::FileOffsets, |number| match self.addressing {
            Addressing::FileOffsets => segments.address_of(number).map(|_| number),
            Addressing::Addresses => segments.offset_of(number),
        })
    }

    fn translated(&self, addressing: Addressing, of: impl Fn(u64) -> Option<u64>) -> Self {
        let place = |number: u64| of(number).unwrap_or(ELSEWHERE);
        let mut found = Self {
            addressing,
            dropped: self.dropped.clone(),
            build_ids: self.build_ids.clone(),
            ..Self::default()
        };
        let mut part = Vec::new();
        for (fragment, times) in self.fragments.iter() {
            let branch = |b: &Branch| Branch { from: place(b.from), to: place(b.to) };
            part.extend(fragment.iter().map(branch).filter(|b| !b.is_outside()));
            found.fragments.add(&part, times);
            part.clear();
        }
        for (branch, times) in &self.mispredicted {
            let branch = Branch { from: place(branch.from), to: place(branch.to) };
            if branch.is_inside() {
                add(&mut found.mispredicted, branch, *times);
            }
        }
        for (number, times) in &self.sampled {
            of(*number).into_iter().for_each(|at| add(&mut found.sampled, at, *times));
        }
        found
    }
}

/// A recording of branches, summed up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchRecording {
    /// Counts over all of it.
    pub totals: RecordingTotals,
    /// The samples of each binary, by its path. The path is empty where the input names none.
    pub binaries: BTreeMap<String, BinaryBranches>,
}

/// Sums of one binary.
#[derive(Debug, Default)]
struct BinarySums {
    /// All but the fragments.
    seen: BinaryBranches,
    /// A hash finds a known fragment sooner than an order does.
    fragments: HashMap<Box<[Branch]>, u64>,
    /// The fragment at hand.
    at_hand: Vec<Branch>,
}

/// Sums up samples as they come.
#[derive(Debug, Default)]
pub(crate) struct SampleSums {
    pub(crate) spaces: AddressSpaces,
    pub(crate) totals: RecordingTotals,
    /// By the binary's number.
    binaries: Vec<BinarySums>,
    build_ids: HashMap<BinaryNumber, BTreeSet<Box<[u8]>>>,
    /// Binaries with a fragment at hand.
    at_hand: Vec<BinaryNumber>,
    /// Where the straight run at hand started, unless it is elsewhere.
    run: Option<(BinaryNumber, u64)>,
    /// All user addresses are those of one binary: the input has no mappings.
    as_they_are: Option<BinaryNumber>,
}

impl SampleSums {
    /// From now on all user addresses are those of one binary without a name.
    pub(crate) fn take_addresses_as_they_are(&mut self) {
        self.as_they_are = Some(self.spaces.binary(""));
    }

    /// A file has this build id. The second one tells that the file changed, and others no more.
    pub(crate) fn note_build_id(&mut self, path: &str, id: &[u8]) {
        let known = self.build_ids.entry(self.spaces.binary(path)).or_default();
        if !id.is_empty() && known.len() < 2 {
            known.insert(id.into());
        }
    }

    /// Adds a sample: where it was taken, and its branch stack, newest entry first.
    pub(crate) fn add(&mut self, process: i32, at: Option<u64>, stack: &[StackEntry]) {
        if stack.is_empty() {
            self.totals.empty_samples += 1;
            return;
        }
        self.totals.samples += 1;
        self.totals.branches += stack.len() as u64;
        *self.totals.depths.entry(stack.len()).or_default() += 1;
        if let Some(Whereabouts::InBinary(binary, offset)) =
            at.map(|address| self.resolve(process, address))
        {
            add(&mut self.of(binary).seen.sampled, offset, 1);
        }
        let repeats = matches!(stack, [newest, next, ..] if repeats(*newest, *next));
        for (depth, entry) in stack.iter().enumerate().rev() {
            let from = self.resolve(process, entry.from);
            let to = self.resolve(process, entry.to);
            match to {
                Whereabouts::InBinary(..) => {}
                Whereabouts::Kernel => self.totals.into_kernel += 1,
                Whereabouts::Unknown | Whereabouts::Unrecorded => self.totals.into_unknown += 1,
            }
            match if depth == 0 && repeats { Some(Dropped::RepeatedTop) } else { entry.flaw } {
                None => self.follow(entry.is_mispredicted, from, to),
                Some(flaw) => {
                    self.drop(flaw, to);
                    if flaw == Dropped::Aborted {
                        self.finish();
                        self.reach(to);
                    }
                }
            }
        }
        self.finish();
    }

    /// Adds a branch to the fragments at hand, or ends them there.
    fn follow(&mut self, is_mispredicted: bool, from: Whereabouts, to: Whereabouts) {
        use Whereabouts::{InBinary, Kernel, Unknown, Unrecorded};
        let is_plausible = match (from, self.run) {
            (Kernel | Unrecorded, _) => {
                self.finish();
                true
            }
            (InBinary(binary, end), Some((before, start))) => {
                binary == before && end.checked_sub(start).is_some_and(|run| run <= LONGEST_RUN)
            }
            // Nobody came here: only the first entry may say so.
            (InBinary(..), None) => self.at_hand.is_empty(),
            (Unknown, run) => run.is_none(),
        };
        if !is_plausible {
            self.drop(Dropped::ImplausibleRun, from);
            self.finish();
        }
        match (from, to) {
            (InBinary(binary, from), InBinary(reached, to)) if binary == reached => {
                let branch = Branch { from, to };
                self.push(binary, branch);
                self.run = Some((binary, to));
                if is_mispredicted {
                    add(&mut self.of(binary).seen.mispredicted, branch, 1);
                }
            }
            _ => {
                if let InBinary(binary, from) = from {
                    self.push(binary, Branch { from, to: ELSEWHERE });
                }
                if let Kernel | Unrecorded = to {
                    self.finish();
                }
                self.reach(to);
            }
        }
    }

    /// A branch from elsewhere leads to here.
    fn reach(&mut self, to: Whereabouts) {
        self.run = match to {
            Whereabouts::InBinary(binary, to) => {
                self.push(binary, Branch { from: ELSEWHERE, to });
                Some((binary, to))
            }
            _ => None,
        };
    }

    fn push(&mut self, binary: BinaryNumber, branch: Branch) {
        let at_hand = &mut self.of(binary).at_hand;
        at_hand.push(branch);
        if at_hand.len() == 1 {
            self.at_hand.push(binary);
        }
    }

    /// Ends the fragments at hand.
    fn finish(&mut self) {
        self.run = None;
        for BinaryNumber(number) in self.at_hand.drain(..) {
            let BinarySums { fragments, at_hand, .. } = &mut self.binaries[number];
            match fragments.get_mut(&**at_hand) {
                Some(times) => *times += 1,
                None => {
                    fragments.insert(at_hand.as_slice().into(), 1);
                }
            }
            at_hand.clear();
        }
    }

    fn drop(&mut self, why: Dropped, place: Whereabouts) {
        add(&mut self.totals.dropped, why, 1);
        if let Whereabouts::InBinary(binary, _) = place {
            add(&mut self.of(binary).seen.dropped, why, 1);
        }
    }

    fn resolve(&self, process: i32, address: u64) -> Whereabouts {
        let place = self.spaces.resolve(process, address);
        match (place, self.as_they_are) {
            (Whereabouts::Unknown, Some(binary)) => Whereabouts::InBinary(binary, address),
            _ => place,
        }
    }

    fn of(&mut self, BinaryNumber(number): BinaryNumber) -> &mut BinarySums {
        if self.binaries.len() <= number {
            self.binaries.resize_with(number + 1, BinarySums::default);
        }
        &mut self.binaries[number]
    }

    /// The sums. Binaries without a sample are left out.
    pub(crate) fn into_recording(mut self) -> BranchRecording {
        let addressing = match self.as_they_are {
            Some(_) => Addressing::Addresses,
            None => Addressing::FileOffsets,
        };
        let paths = self.spaces.into_paths().into_iter().map(String::from);
        let seen = self.binaries.into_iter().map(|sums| BinaryBranches {
            addressing,
            fragments: sums.fragments.into_iter().collect(),
            ..sums.seen
        });
        let of_none = BinaryBranches { addressing, ..BinaryBranches::default() };
        let mut seen_at_all: Vec<_> =
            paths.zip(seen).enumerate().filter(|(_, (_, seen))| *seen != of_none).collect();
        for (number, (_, seen)) in &mut seen_at_all {
            seen.build_ids = self.build_ids.remove(&BinaryNumber(*number)).unwrap_or_default();
        }
        let binaries = seen_at_all.into_iter().map(|(_, binary)| binary).collect();
        BranchRecording { totals: self.totals, binaries }
    }
}

/// Whether the newest entry only repeats the next one. A short loop may do that in truth.
fn repeats(newest: StackEntry, next: StackEntry) -> bool {
    (newest.from, newest.to) == (next.from, next.to)
        && newest.from.wrapping_sub(newest.to) > LONGEST_REPEATED_LOOP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(addressing: Addressing) -> BinaryBranches {
        let branch = |from, to| Branch { from, to };
        let mut fragments = Fragments::default();
        let outside = 0x9_0000;
        fragments.add(
            &[branch(ELSEWHERE, 0x1010), branch(0x1018, outside), branch(outside + 4, 0x1020)],
            2,
        );
        fragments.add(&[branch(outside, outside + 8)], 5);
        let mispredicted = [(branch(0x1018, 0x1010), 3), (branch(outside, 0x1010), 1)].into();
        let sampled = [(0x1014, 4), (outside, 1)].into();
        let build_ids = [[7; 20].into()].into();
        BinaryBranches {
            addressing,
            fragments,
            mispredicted,
            sampled,
            dropped: [].into(),
            build_ids,
        }
    }

    /// One page of text at 0x401000, from offset 0x1000 of the file.
    fn segments() -> Segments {
        Segments::of([(0x1000, 0x40_1000, 0x1000)])
    }

    #[test]
    fn offsets_become_addresses_and_what_is_not_loaded_is_elsewhere() {
        let found = seen(Addressing::FileOffsets).at_addresses(&segments());
        let branch = |from, to| Branch { from, to };
        let mut fragments = Fragments::default();
        let (enters, leaves) = (branch(ELSEWHERE, 0x40_1010), branch(0x40_1018, ELSEWHERE));
        fragments.add(&[enters, leaves, branch(ELSEWHERE, 0x40_1020)], 2);
        assert_eq!(found.fragments, fragments);
        assert_eq!(found.mispredicted, [(branch(0x40_1018, 0x40_1010), 3)].into());
        assert_eq!(found.sampled, [(0x40_1014, 4)].into());
        assert_eq!(found.addressing, Addressing::Addresses);
        assert_eq!(found.build_ids, [[7; 20].into()].into());
        // Addresses stay as they are.
        assert_eq!(found.at_addresses(&segments()), found);
    }

    #[test]
    fn addresses_become_the_same_offsets_again() {
        let offsets = seen(Addressing::FileOffsets).at_file_offsets(&segments());
        let there_and_back = offsets.at_addresses(&segments()).at_file_offsets(&segments());
        assert_eq!(there_and_back, offsets);
        assert_eq!(offsets.fragments.total(), 2);
    }
}
