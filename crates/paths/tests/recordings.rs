//! Recordings by others, with totals that are known.

use pinwise_paths::{
    BinaryBranches, BranchInputError, BranchRecording, Dropped, StraightRun, autofdo_text,
    read_perf_data,
};
use pinwise_synthetic::shared_data;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

fn read(path: &Path) -> Result<BranchRecording, BranchInputError> {
    read_perf_data(BufReader::new(File::open(path).unwrap()))
}

/// The totals that AutoFDO's own test of this file has.
#[test]
fn a_recording_of_westmere_has_its_published_totals() {
    let Some(path) = shared_data("branches/test.lbr") else { return };
    let recording = read(&path).unwrap();
    let totals = &recording.totals;
    assert_eq!((totals.samples, totals.branches), (9_232, 147_712));
    assert_eq!((totals.empty_samples, totals.unreadable_samples), (0, 0));
    assert_eq!(totals.truncated_samples(), 9_232);

    let program: &BinaryBranches = &recording.binaries["/export/hda3/tmp/test.binary"];
    assert_eq!(program.dropped[&Dropped::RepeatedTop], 55);
    let runs = program.fragments.straight_runs();
    assert_eq!(runs.len(), 357);
    assert_eq!(runs[&StraightRun { start: 0x4e80, end: 0x4e8e }], 1_134);
    assert_eq!(runs.values().sum::<u64>(), 134_622);
    let bytes = runs.iter().map(|(run, times)| (run.end - run.start + 1) * times).sum::<u64>();
    assert_eq!(bytes, 5_383_657);

    let text = autofdo_text(program);
    assert!(text.starts_with("357\n") && text.contains("\n4e80-4e8e:1134\n"));
}

#[test]
fn a_recording_without_branches_says_how_to_record_them() {
    let Some(path) = shared_data("branches/ro_sample.perf") else { return };
    let error = read(&path).unwrap_err();
    assert!(matches!(error, BranchInputError::NoBranchRecords));
    assert_eq!(
        error.to_string(),
        "the recording has no branch records: record with `perf record -b -- COMMAND`"
    );
}
