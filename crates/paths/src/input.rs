//! The files that hold branch records, and the one error of their readers.

mod brstack_text;
mod lines;
mod perf_data;
mod preaggregated;

pub use brstack_text::read_brstack_text;
pub use perf_data::read_perf_data;
pub use preaggregated::read_preaggregated;

use crate::address_space::TooManyMappings;
use crate::samples::{BranchRecording, SampleSums};
use std::io::{self, BufRead};

/// Reads a recording of any of the three kinds. Its first bytes tell which it is.
///
/// # Errors
/// If it is none, has no branch records, or cannot be read to its end.
pub fn read_branches(mut input: impl BufRead) -> Result<BranchRecording, BranchInputError> {
    let start = input.fill_buf()?;
    if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
        return read_perf_data(input);
    }
    let is_text = !start.iter().any(|byte| matches!(byte, 0..=8 | 14..=31));
    let words = start.trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
    match words {
        [] => Err(BranchInputError::NotBranches),
        _ if !is_text => Err(BranchInputError::NotBranches),
        // BOLT's lines start with one letter, and have no slash.
        [kind, b' ', ..] if preaggregated::KINDS.contains(kind) && !words.contains(&b'/') => {
            read_preaggregated(input)
        }
        _ => read_brstack_text(input),
    }
}

/// Why there are no branches to be had from an input.
#[derive(Debug, thiserror::Error)]
pub enum BranchInputError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is of no known kind.
    #[error(
        "no recording of branches: give a perf.data, the text of `perf script -F ip,brstack`, or \
         BOLT's pre-aggregated text"
    )]
    NotBranches,
    /// Its samples have no branch stacks.
    #[error("the recording has no branch records: record with `perf record -b -- COMMAND`")]
    NoBranchRecords,
    /// A text without a branch stack, such as one of other fields.
    #[error(
        "no line has a branch record: print them with `perf script -F ip,brstack`, from what \
         `perf record -b -- COMMAND` recorded"
    )]
    NoBranchesInText,
    /// All branch stacks are empty.
    #[error(
        "all branch records are empty: record with `perf record -b -- COMMAND` on a processor \
         with branch records, not in a virtual machine without them"
    )]
    EmptyBranchRecords,
    /// It has a trace of the processor, which is to be decoded first.
    #[error(
        "the recording is a trace of the processor: decode it with `perf inject --itrace=i100usl \
         -i perf.data -o branches.data` and give that file"
    )]
    NotDecoded,
    /// The records are of call stacks, or of some kinds of branches only.
    #[error(
        "the branch records are call stacks or lack some kinds of branches: record all taken \
         branches with `perf record -j any,u -- COMMAND`, without `--call-graph lbr`"
    )]
    NotConsecutive,
    /// It comes from a machine whose bytes are in the other order.
    #[error(
        "the recording comes from a big-endian machine: give the text of `perf script -F \
             ip,brstack` made there"
    )]
    BigEndian,
    /// Its samples are of several kinds, and nothing says which is which.
    #[error(
        "the recording mixes events whose samples cannot be told apart: record one event with \
         `perf record -b -e EVENT -- COMMAND`"
    )]
    MixedEvents,
    /// It ends too early or contradicts itself.
    #[error("the recording is damaged at byte {at}: record again, and let `perf record` finish")]
    Damaged {
        /// The position in the file, in bytes.
        at: u64,
    },
    /// A line of a text cannot be read.
    #[error("line {line} is no branch record: give the text as perf or BOLT's tools wrote it")]
    BadLine {
        /// Its number, from one.
        line: u64,
    },
    /// It has more mappings than a recording has.
    #[error("the recording maps more files than programs do: it is damaged, record again")]
    TooManyMappings,
}

impl From<TooManyMappings> for BranchInputError {
    fn from(_: TooManyMappings) -> Self {
        Self::TooManyMappings
    }
}

/// The recording, if it has branches.
fn finished(sums: SampleSums) -> Result<BranchRecording, BranchInputError> {
    match &sums.totals {
        totals if totals.samples > 0 => Ok(sums.into_recording()),
        totals if totals.filtered_samples > 0 => Err(BranchInputError::NotConsecutive),
        totals if totals.empty_samples > 0 => Err(BranchInputError::EmptyBranchRecords),
        _ => Err(BranchInputError::NoBranchRecords),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_tell_the_kind() {
        let branches = |text: &str| read_branches(text.as_bytes()).map(|read| read.totals.branches);
        assert_eq!(branches("\nB 10 20 5 0\n").unwrap(), 5);
        assert_eq!(branches(" 0x20/0x10/P/-/-/0\n").unwrap(), 1);
        assert_eq!(branches("B 7     401015 0x20/0x10/P/-/-/0\n").unwrap(), 1, "a program named B");
        for other in ["", " \n", "\x7fELF\x02\x01", "PK\x03\x04"] {
            assert!(matches!(branches(other), Err(BranchInputError::NotBranches)), "{other:?}");
        }
        assert!(matches!(branches("any text"), Err(BranchInputError::NoBranchesInText)));
        assert!(matches!(branches("PERFILE2"), Err(BranchInputError::NotBranches)));
        assert!(matches!(branches("2ELIFREP12345678"), Err(BranchInputError::BigEndian)));
    }

    #[test]
    fn each_error_is_one_line() {
        let all = [
            BranchInputError::NotBranches,
            BranchInputError::NoBranchRecords,
            BranchInputError::NoBranchesInText,
            BranchInputError::EmptyBranchRecords,
            BranchInputError::NotDecoded,
            BranchInputError::NotConsecutive,
            BranchInputError::BigEndian,
            BranchInputError::MixedEvents,
            BranchInputError::Damaged { at: 7 },
            BranchInputError::BadLine { line: 7 },
            BranchInputError::TooManyMappings,
        ];
        for error in all.map(|error| error.to_string()) {
            assert!(!error.contains('\n') && !error.contains("  "), "{error}");
        }
    }
}
