use super::fixture::{ANY_OF_USER, ATTRIBUTE_SIZE, PerfDataWriter, RecordedEvent, build_id, entry};
use super::*;
use crate::fragments::{Branch, ELSEWHERE, Fragments};
use crate::samples::{Addressing, BinaryBranches};

const KERNEL: u64 = 0xffff_ffff_8100_0000;

fn read(file: &PerfDataWriter) -> BranchRecording {
    read_perf_data(&*file.file()).unwrap()
}

/// What was seen of the only binary.
fn only(recording: &BranchRecording) -> &BinaryBranches {
    let [(_, seen)] = recording.binaries.iter().collect::<Vec<_>>()[..] else {
        panic!("{:?}", recording.binaries.keys())
    };
    seen
}

fn fragments<const N: usize>(expected: [(&[(u64, u64)], u64); N]) -> Fragments {
    let mut fragments = Fragments::default();
    for (fragment, times) in expected {
        let branch = |(from, to): &(u64, u64)| Branch { from: *from, to: *to };
        fragments.add(&fragment.iter().map(branch).collect::<Vec<_>>(), times);
    }
    fragments
}

#[test]
fn a_stack_is_a_fragment_oldest_branch_first() {
    let mut file = PerfDataWriter::of_program();
    let stack = [entry(0x40_0040, 0x40_0010), entry(0x40_0020, 0x40_0030)];
    file.sample(7, &stack);
    file.sample(7, &stack);
    let recording = read(&file);
    let seen = only(&recording);
    assert_eq!(seen.addressing, Addressing::FileOffsets);
    assert_eq!(seen.fragments, fragments([(&[(0x20, 0x30), (0x40, 0x10)], 2)]));
    assert_eq!(seen.sampled, [(0x10, 2)].into());
    assert_eq!((recording.totals.samples, recording.totals.branches), (2, 4));
}

#[test]
fn a_position_independent_program_is_one_binary_wherever_it_lies() {
    let mut file = PerfDataWriter::new();
    for (process, base) in [(7, 0x5555_5555_4000), (8, 0x5612_3456_7000)] {
        file.map(process, base + 0x1000, 0x3000, 0x1000, "/bin/program");
        file.sample(process, &[entry(base + 0x1020, base + 0x1010)]);
    }
    let recording = read(&file);
    assert_eq!(only(&recording).fragments, fragments([(&[(0x1020, 0x1010)], 2)]));
}

#[test]
fn several_mappings_of_a_file_are_one_binary() {
    let mut file = PerfDataWriter::new();
    // As if the middle had been replaced by a library, with a part of another protection.
    file.map(7, 0x40_0000, 0x4000, 0, "/bin/program");
    file.map(7, 0x40_1000, 0x1000, 0x8000, "/lib/hooks.so");
    file.sample(7, &[entry(0x40_0020, 0x40_3010), entry(0x40_3020, 0x40_0010)]);
    file.sample(7, &[entry(0x40_1020, 0x40_1010)]);
    let recording = read(&file);
    let program = fragments([(&[(0x3020, 0x10), (0x20, 0x3010)], 1)]);
    assert_eq!(recording.binaries["/bin/program"].fragments, program);
    let hooks = fragments([(&[(0x8020, 0x8010)], 1)]);
    assert_eq!(recording.binaries["/lib/hooks.so"].fragments, hooks);
}

#[test]
fn a_library_opened_late_is_known_from_then_on() {
    let mut file = PerfDataWriter::of_program();
    let stack = [entry(0x7f00_0000_0040, 0x7f00_0000_0020)];
    file.sample(7, &stack);
    // Another processor's records come later in the file, though they were made before.
    let (late, opened) = (file.now + 10_000, file.now + 1_000);
    file.now = late;
    file.sample(7, &stack);
    file.now = opened;
    file.map(7, 0x7f00_0000_0000, 0x1000, 0x2000, "/lib/late.so");
    file.round();
    let recording = read(&file);
    let late = &recording.binaries["/lib/late.so"];
    assert_eq!(late.fragments, fragments([(&[(0x2040, 0x2020)], 1)]));
    assert_eq!(recording.totals.into_unknown, 1);
}

#[test]
fn forks_inherit_mappings_and_programs_that_start_have_none() {
    let mut file = PerfDataWriter::of_program();
    let stack = [entry(0x40_0020, 0x40_0010)];
    file.fork(7, 9);
    file.sample(9, &stack);
    file.execute(9);
    file.map(9, 0x40_0000, 0x1000, 0x1000, "/bin/other");
    file.sample(9, &stack);
    file.exit(7);
    file.sample(7, &stack);
    let recording = read(&file);
    let program = &recording.binaries["/bin/program"];
    assert_eq!(program.fragments, fragments([(&[(0x20, 0x10)], 2)]));
    let other = &recording.binaries["/bin/other"];
    assert_eq!(other.fragments, fragments([(&[(0x1020, 0x1010)], 1)]));
}

#[test]
fn a_process_that_ran_before_the_recording_has_its_own_mappings() {
    let mut file = PerfDataWriter::of_program();
    // As perf tells of processes that it finds: the parent's mappings are not the child's.
    file.record(FORK, 1 << 13, &[9, 7, 9, 7].map(i32::to_le_bytes).concat());
    file.sample(9, &[entry(0x40_0020, 0x40_0010)]);
    file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
    let recording = read(&file);
    assert_eq!(only(&recording).fragments.total(), 1);
    assert_eq!(recording.totals.into_unknown, 1);
}

#[test]
fn a_stack_that_crosses_binaries_is_a_fragment_in_each() {
    let mut file = PerfDataWriter::of_program();
    file.map(7, 0x7f00_0000_0000, 0x1000, 0, "/lib/libc.so");
    let to_library_and_back = [
        entry(0x40_0028, 0x40_0010),
        entry(0x7f00_0000_0130, 0x40_0024),
        entry(0x7f00_0000_0110, 0x7f00_0000_0120),
        entry(0x40_0020, 0x7f00_0000_0100),
        entry(0x40_0008, 0x40_0018),
    ];
    let program: &[(u64, u64)] = &[(8, 0x18), (0x20, ELSEWHERE), (ELSEWHERE, 0x24), (0x28, 0x10)];
    // Code made at run time is no binary, but comes back just so.
    let base = |address| if address < 0x7f00_0000_0000 { address } else { address + 0x2000 };
    let to_code_made = to_library_and_back.map(|(from, to, flags)| (base(from), base(to), flags));
    for stack in [to_library_and_back, to_code_made] {
        file.sample(7, &stack);
    }
    let recording = read(&file);
    assert_eq!(recording.binaries["/bin/program"].fragments, fragments([(program, 2)]));
    let libc = &recording.binaries["/lib/libc.so"];
    let inside: &[(u64, u64)] = &[(ELSEWHERE, 0x100), (0x110, 0x120), (0x130, ELSEWHERE)];
    assert_eq!(libc.fragments, fragments([(inside, 1)]));
    assert_eq!(recording.totals.into_unknown, 2);
    assert_eq!(recording.totals.dropped, [].into());
}

#[test]
fn what_the_processor_did_not_record_ends_a_fragment() {
    let mut file = PerfDataWriter::of_program();
    file.sample(7, &[entry(0, 0x40_0024), entry(0x40_0020, 0), entry(0x40_0008, 0x40_0018)]);
    // From elsewhere it came to nowhere, and yet it was here.
    file.sample(7, &[entry(0x40_0050, 0x40_0040), entry(0x40_0030, 0x7000_0000)]);
    let recording = read(&file);
    let expected: [(&[(u64, u64)], u64); 4] = [
        (&[(8, 0x18), (0x20, ELSEWHERE)], 1),
        (&[(ELSEWHERE, 0x24)], 1),
        (&[(0x30, ELSEWHERE)], 1),
        (&[(0x50, 0x40)], 1),
    ];
    assert_eq!(only(&recording).fragments, fragments(expected));
    assert_eq!(recording.totals.dropped, [(Dropped::ImplausibleRun, 1)].into());
}

#[test]
fn the_kernel_ends_a_fragment_whether_its_own_branches_are_recorded_or_not() {
    let with_kernel = [
        entry(0x40_0028, 0x40_0010),
        entry(KERNEL + 0x30, 0x40_0022),
        entry(KERNEL + 0x10, KERNEL + 0x20),
        entry(0x40_0020, KERNEL),
        entry(0x40_0008, 0x40_0018),
    ];
    // `-j any,u` leaves out what leads into the kernel.
    let without: Vec<_> = with_kernel.into_iter().filter(|(_, to, _)| *to < KERNEL).collect();
    let expect = |stack: &[_], expected: [(&[(u64, u64)], u64); 2], into_kernel| {
        let mut file = PerfDataWriter::of_program();
        file.sample(7, stack);
        let recording = read(&file);
        assert_eq!(only(&recording).fragments, fragments(expected));
        assert_eq!(recording.totals.into_kernel, into_kernel);
        assert_eq!(recording.totals.dropped, [].into());
    };
    let after: (&[(u64, u64)], u64) = (&[(ELSEWHERE, 0x22), (0x28, 0x10)], 1);
    expect(&with_kernel, [(&[(8, 0x18), (0x20, ELSEWHERE)], 1), after], 2);
    expect(&without, [(&[(8, 0x18)], 1), after], 0);
}

#[test]
fn a_newest_entry_that_repeats_a_long_loop_is_dropped() {
    let mut file = PerfDataWriter::of_program();
    let short = entry(0x40_0060, 0x40_0010);
    let long = entry(0x40_0061, 0x40_0010);
    file.sample(7, &[short, short, short]);
    file.sample(7, &[long, long, long]);
    let recording = read(&file);
    let expected: [(&[(u64, u64)], u64); 2] = [(&[(0x60, 0x10); 3], 1), (&[(0x61, 0x10); 2], 1)];
    assert_eq!(only(&recording).fragments, fragments(expected));
    assert_eq!(recording.totals.dropped, [(Dropped::RepeatedTop, 1)].into());
    assert_eq!(recording.totals.branches, 6);
}

#[test]
fn flags_tell_mispredicted_aborted_and_wrongly_speculated_branches() {
    let (mispredicted, in_transaction, aborted, wrong_path) = (1, 1 << 2, 1 << 3, 1 << 24);
    let mut file = PerfDataWriter::of_program();
    file.sample(
        7,
        &[
            (0x40_0018, 0x40_0010, mispredicted | 0xffff << 4),
            (0x40_0058, 0x40_0014, aborted),
            (0x40_0044, 0x40_0050, in_transaction),
            (0x40_0999, 0x40_0888, wrong_path),
            // Speculated rightly, a conditional branch.
            (0x40_0030, 0x40_0040, 3 << 24 | 1 << 20),
        ],
    );
    let recording = read(&file);
    let seen = only(&recording);
    let expected: [(&[(u64, u64)], u64); 2] =
        [(&[(0x30, 0x40), (0x44, 0x50)], 1), (&[(ELSEWHERE, 0x14), (0x18, 0x10)], 1)];
    assert_eq!(seen.fragments, fragments(expected));
    assert_eq!(seen.mispredicted, [(Branch { from: 0x18, to: 0x10 }, 1)].into());
    let dropped = [(Dropped::Aborted, 1), (Dropped::WrongPath, 1)].into();
    assert_eq!(recording.totals.dropped, dropped);
}

#[test]
fn code_does_not_run_backwards_nor_on_for_ever() {
    let mut file = PerfDataWriter::new();
    file.map(7, 0x40_0000, 0x20_0000, 0, "/bin/program");
    file.sample(7, &[entry(0x40_0008, 0x40_0030), entry(0x40_0020, 0x40_0010)]);
    file.sample(7, &[entry(0x50_0011, 0x40_0030), entry(0x40_0020, 0x40_0010)]);
    let recording = read(&file);
    let expected: [(&[(u64, u64)], u64); 3] =
        [(&[(0x20, 0x10)], 2), (&[(8, 0x30)], 1), (&[(0x10_0011, 0x30)], 1)];
    assert_eq!(only(&recording).fragments, fragments(expected));
    assert_eq!(recording.totals.dropped, [(Dropped::ImplausibleRun, 2)].into());
}

#[test]
fn whatever_else_a_sample_holds_is_skipped() {
    let everything = IDENTIFIER | IP | TID | TIME | ADDR | ID | STREAM_ID | CPU | PERIOD;
    for (parts, read_format, branch_kinds) in [
        (everything | READ | CALLCHAIN | RAW, 0b11, ANY_OF_USER),
        (everything | READ, 0b1_1100, ANY_OF_USER | HARDWARE_INDEX),
        // What `perf inject` states of stacks that it made.
        (IP | TID | TIME | CALLCHAIN, 0, HARDWARE_INDEX),
        // As of perf 3 with kernels that know no kinds of branches.
        (IP | TID, 0, 0),
    ] {
        let parts = parts | BRANCH_STACK;
        let mut file = PerfDataWriter::of([RecordedEvent {
            parts,
            read_format,
            branch_kinds,
            ids: vec![5],
            ..RecordedEvent::branches()
        }]);
        file.map_as_of_old(7, 0x40_0000, 0x1000, "/bin/program");
        file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
        let seen = read(&file);
        assert_eq!(only(&seen).fragments, fragments([(&[(0x20, 0x10)], 1)]), "{parts:x}");
    }
}

#[test]
fn attributes_of_all_versions_of_perf() {
    // PERF_ATTR_SIZE_VER0 to 8 of the kernel. Later ones have more.
    for size in [64, 72, 80, 96, 104, 112, 120, 128, 136, 200] {
        let mut file = PerfDataWriter { attribute_size: size, ..PerfDataWriter::of_program() };
        file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
        for input in [file.file(), file.pipe()] {
            let seen = read_perf_data(&*input).unwrap();
            assert_eq!(only(&seen).fragments, fragments([(&[(0x20, 0x10)], 1)]), "{size}");
        }
    }
    for size in [0, 40, 47] {
        let file = PerfDataWriter { attribute_size: size, ..PerfDataWriter::of_program() };
        assert!(matches!(read_perf_data(&*file.file()), Err(BranchInputError::Damaged { .. })));
    }
}

#[test]
fn call_stacks_and_chosen_kinds_of_branches_are_no_paths() {
    let any_call = 1 << 4;
    for kinds in [CALL_STACK | 1, any_call, ANY_BRANCH | BY_TRANSACTION] {
        let event = RecordedEvent { branch_kinds: kinds, ..RecordedEvent::branches() };
        let mut file = PerfDataWriter::of([event]);
        file.map(7, 0x40_0000, 0x1000, 0, "/bin/program");
        file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
        let error = read_perf_data(&*file.file()).unwrap_err();
        assert!(matches!(error, BranchInputError::NotConsecutive), "{kinds:x}: {error}");
    }
}

#[test]
fn branches_that_end_a_period_are_told_from_instructions() {
    use crate::SampledBy::{Instructions, TakenBranches};
    // Cycles, instructions, branches, and those of a hybrid core. Then br_inst_retired.near_taken
    // of Intel and the branches of AMD. Then an event of another unit with the same number, and a
    // raw event.
    for (counted, by) in [
        ((0, 0), Instructions),
        ((0, 1), Instructions),
        ((0, 4), TakenBranches),
        ((0, 4 << 32 | 4), TakenBranches),
        ((4, 0x20c4), TakenBranches),
        ((10, 0xc4), TakenBranches),
        ((1, 0xc4), Instructions),
        ((4, 0x1c0), Instructions),
    ] {
        let event = RecordedEvent { counted, ..RecordedEvent::branches() };
        let mut file = PerfDataWriter::of([event]);
        file.map(7, 0x40_0000, 0x1000, 0, "/bin/program");
        file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
        let totals = read_perf_data(&*file.file()).unwrap().totals;
        assert_eq!(totals.sampled_by(), by, "{counted:?}");
    }
}

/// A hybrid processor has an event for each kind of core.
#[test]
fn samples_of_several_events_are_told_apart_by_their_ids() {
    let parts = IDENTIFIER | IP | TID | TIME;
    let mut file = PerfDataWriter::of([
        RecordedEvent::with_id(parts | BRANCH_STACK, ANY_OF_USER, 11),
        RecordedEvent::with_id(parts | PERIOD | BRANCH_STACK, ANY_OF_USER | HARDWARE_INDEX, 12),
        RecordedEvent::with_id(parts | PERIOD, 0, 13),
        RecordedEvent::with_id(parts | BRANCH_STACK, CALL_STACK, 14),
    ]);
    file.map(7, 0x40_0000, 0x1000, 0, "/bin/program");
    for event in [0, 1, 1, 2, 3] {
        file.sample_of(event, 2, 7, &[entry(0x40_0020, 0x40_0010)]);
    }
    for input in [file.file(), file.pipe()] {
        let recording = read_perf_data(&*input).unwrap();
        assert_eq!(only(&recording).fragments, fragments([(&[(0x20, 0x10)], 3)]));
        assert_eq!(recording.totals.filtered_samples, 1);
    }
    // Without ids nobody can tell.
    for event in &mut file.events {
        event.parts &= !IDENTIFIER;
    }
    let error = read_perf_data(&*file.file()).unwrap_err();
    assert!(matches!(error, BranchInputError::MixedEvents), "{error}");
}

/// `perf inject --itrace` leaves the event of the trace, and adds one that it made.
#[test]
fn an_event_among_the_records_counts_from_then_on() {
    let parts = IDENTIFIER | IP | TID | TIME;
    let mut file = PerfDataWriter::of([
        RecordedEvent::with_id(parts, 0, 11),
        RecordedEvent::with_id(parts | PERIOD | BRANCH_STACK, HARDWARE_INDEX, 1_000_000_011),
    ]);
    file.map(7, 0x40_0000, 0x1000, 0, "/bin/program");
    let pipe = file.pipe();
    file.sample_of(1, 2, 7, &[entry(0x40_0020, 0x40_0010)]);
    // The second event's attributes, as a pipe has them, in front of the records of a file.
    let attributes = 8 + ATTRIBUTE_SIZE + 8;
    file.records.splice(0..0, pipe[16 + attributes..][..attributes].iter().copied());
    file.events.truncate(1);
    assert_eq!(only(&read(&file)).fragments, fragments([(&[(0x20, 0x10)], 1)]));
}

#[test]
fn a_guests_addresses_are_not_those_of_its_process() {
    let mut file = PerfDataWriter::of_program();
    for mode in [2, 4, 5] {
        file.sample_of(0, mode, 7, &[entry(0x40_0020, 0x40_0010)]);
    }
    let recording = read(&file);
    assert_eq!(only(&recording).fragments.total(), 1);
    assert_eq!(recording.totals.into_unknown, 2);
}

#[test]
fn a_pipe_tells_the_same_as_a_file() {
    let mut file = PerfDataWriter::of_program();
    file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
    // More bytes follow these records than their sizes say.
    file.record(TRACING_DATA, 0, &16_u32.to_le_bytes());
    file.records.extend([0xee; 16]);
    file.record(AUXTRACE, 0, &[[24, 0, 0, 0], [0; 4]].concat());
    file.records.extend([0xee; 24]);
    file.record(LOST, 0, &[[0; 8], [5, 0, 0, 0, 0, 0, 0, 0]].concat());
    file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
    file.round();
    let recording = read(&file);
    assert_eq!(read_perf_data(&*file.pipe()).unwrap(), recording);
    assert_eq!(only(&recording).fragments.total(), 2);
    assert_eq!(recording.totals.lost_samples, 5);
}

#[test]
fn a_recording_that_was_not_finished_is_read_to_its_end() {
    let mut file = PerfDataWriter::of_program();
    file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
    let mut unfinished = file.file();
    unfinished[48..56].fill(0);
    assert_eq!(read_perf_data(&*unfinished).unwrap(), read(&file));
}

#[test]
fn a_recording_cut_off_anywhere_is_an_error() {
    let mut file = PerfDataWriter::of_program();
    file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
    let whole = file.file();
    for length in 0..whole.len() {
        let error = read_perf_data(&whole[..length]).unwrap_err();
        match error {
            BranchInputError::NotBranches if length < 16 => {}
            BranchInputError::Damaged { at } if at == length as u64 => {}
            other => panic!("{length}: {other:?}"),
        }
    }
}

#[test]
fn lengths_that_a_file_states_are_not_believed() {
    let mut file = PerfDataWriter::of_program();
    // A stack of 2^61 entries: times 24 it overflows.
    let mut body = vec![0; 24];
    body.extend((1_u64 << 61).to_le_bytes());
    file.record(SAMPLE, 0, &body);
    file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
    assert_eq!(read(&file).totals.unreadable_samples, 1);
    // Attributes, records and their sizes beyond the end of the file.
    for at in (8..56).step_by(8) {
        for value in [1, u64::MAX - 7, 1 << 40] {
            let mut bytes = file.file();
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            let read = read_perf_data(&*bytes);
            assert!(read.is_err() || at == 8, "{at}: {value}");
        }
    }
}

#[test]
fn events_that_all_claim_the_same_ids_are_refused() {
    let event = || RecordedEvent { ids: vec![1; 40], ..RecordedEvent::branches() };
    let mut bytes = PerfDataWriter::of([event(), event(), event(), event()]).file();
    let entries = 104 + 4 * 40 * 8;
    for entry in 0..4 {
        let ids = entries + (entry + 1) * (ATTRIBUTE_SIZE + 16) - 16;
        bytes[ids..ids + 8].copy_from_slice(&104_u64.to_le_bytes());
        bytes[ids + 8..ids + 16].copy_from_slice(&(4 * 40 * 8_u64).to_le_bytes());
    }
    assert!(matches!(read_perf_data(&*bytes), Err(BranchInputError::Damaged { at: 16 })));
}

#[test]
fn each_kind_of_unusable_recording_has_its_own_advice() {
    let advice = |bytes: &[u8]| read_perf_data(bytes).unwrap_err().to_string();
    let mut file = PerfDataWriter::of_program();
    file.sample(7, &[]);
    assert!(advice(&file.file()).contains("all branch records are empty"));
    let without = RecordedEvent { parts: IP | TID | TIME, ..RecordedEvent::branches() };
    let mut file = PerfDataWriter::of([without]);
    file.sample(7, &[]);
    assert!(advice(&file.file()).contains("record with `perf record -b"));
    file.record(AUXTRACE, 0, &[0; 8]);
    assert!(advice(&file.file()).contains("perf inject --itrace"));
    assert!(advice(b"2ELIFREP12345678").contains("big-endian"));
    assert!(advice(b"\x7fELF 12345678 no recording").contains("give a perf.data"));
}

/// The records of a file in a stream of Zstandard that does not end, in pieces of a size.
fn compressed(file: &PerfDataWriter, kind: u32, piece: usize) -> PerfDataWriter {
    // The magic number, no flags, and a window of 512 KiB: as perf 6.1 begins.
    let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x48];
    // Blocks of bytes as they are.
    for block in file.records.chunks(100) {
        stream.extend(&((block.len() as u32) << 3).to_le_bytes()[..3]);
        stream.extend(block);
    }
    let mut small = PerfDataWriter::new();
    for (number, piece) in stream.chunks(piece).enumerate() {
        match kind {
            COMPRESSED2 => {
                let mut body = (piece.len() as u64).to_le_bytes().to_vec();
                body.extend(piece);
                body.resize(body.len().next_multiple_of(8), 0xee);
                small.record(kind, 0, &body);
            }
            _ => small.record(kind, 0, piece),
        }
        // perf does not compress its own records.
        if number % 2 == 0 {
            small.round();
        }
    }
    small
}

#[test]
fn a_compressed_recording_tells_the_same() {
    let mut file = PerfDataWriter::of_program();
    for number in 0..40 {
        file.sample(7, &[entry(0x40_0020 + number % 7, 0x40_0010)]);
    }
    let expected = read(&file);
    for kind in [COMPRESSED, COMPRESSED2] {
        for piece in [1, 7, 100, 5000] {
            let small = compressed(&file, kind, piece);
            for input in [small.file(), small.pipe()] {
                assert_eq!(read_perf_data(&*input).unwrap(), expected, "{kind} {piece}");
            }
        }
    }
}

#[test]
fn a_damaged_or_endless_compressed_stream_is_an_error() {
    let of = |stream: &[u8]| {
        let mut file = PerfDataWriter::of_program();
        stream.chunks(60_000).for_each(|piece| file.record(COMPRESSED, 0, piece));
        read_perf_data(&*file.file())
    };
    let header = [0x28, 0xb5, 0x2f, 0xfd, 0, 0x48];
    let raw = |body: &[u8]| [&((body.len() as u32) << 3).to_le_bytes()[..3], body].concat();
    // A comment on a process, whole and cut off.
    let record = [[3, 0, 0, 0, 0, 0, 24, 0], [7; 8], [7; 8]].concat();
    let whole = [&header[..], &raw(&record)].concat();
    assert!(matches!(of(&whole), Err(BranchInputError::NoBranchRecords)));
    let damaged: [&[u8]; 7] = [
        &[],
        &header,
        b"no stream of any kind, but long enough",
        &whole[..whole.len() - 1],
        &[&header[..], &raw(&record[..16])].concat(),
        // A record that is shorter than its header; one that only perf itself writes.
        &[&header[..], &raw(&[9, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0])].concat(),
        &[&header[..], &raw(&[68, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0])].concat(),
    ];
    for stream in damaged {
        let read = of(stream);
        let is_empty = stream.is_empty() && matches!(read, Err(BranchInputError::NoBranchRecords));
        assert!(is_empty || matches!(read, Err(BranchInputError::Damaged { .. })), "{stream:?}");
    }
}

#[test]
fn what_comes_of_a_stream_is_bounded_by_its_length() {
    // Each block of four bytes stands for 128 KiB, so all of them for 2 GiB of whole records.
    let header = [0x28, 0xb5, 0x2f, 0xfd, 0, 0x48];
    let stream = [&header[..], &[0x02, 0, 0x10, 1].repeat(1 << 14)].concat();
    let mut given = 0;
    let mut take = |_, _, body: &[u8]| {
        given += 8 + body.len();
        Ok(())
    };
    let read = CompressedStream::new().push(&stream, 9, &mut take);
    assert!(matches!(read, Err(BranchInputError::Damaged { at: 9 })));
    assert!(given > 1 << 20 && given <= 256 * stream.len(), "{given}");
}

#[test]
fn a_block_that_claims_too_much_is_refused_before_it_is_there() {
    let header = [0x28, 0xb5, 0x2f, 0xfd, 0, 0x48];
    let begins = |claimed: u32| {
        let stream = [&header[..], &(claimed << 3).to_le_bytes()[..3], &[7; 16]].concat();
        CompressedStream::new().push(&stream, 9, &mut |_, _, _| Ok(()))
    };
    assert!(begins(128 << 10).is_ok());
    assert!(matches!(begins((128 << 10) + 1), Err(BranchInputError::Damaged { at: 9 })));
}

/// What perf compresses here reads to its end. It has no branches, so it is refused for that.
#[test]
fn a_recording_that_perf_compressed_is_read_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    let mut perf = std::process::Command::new("perf");
    perf.args(["record", "-z", "-q", "-e", "cpu-clock", "-o"]).arg(&path);
    let recorded = perf.args(["--", "sh", "-c", "for i in 1 2 3 4 5 6; do ls /usr/bin; done"]);
    let is_there = recorded.output().is_ok_and(|output| output.status.success());
    let bytes = std::fs::read(&path).unwrap_or_default();
    if !is_there || bytes.is_empty() {
        return pinwise_synthetic::not_judged("perf records nothing here");
    }
    let read = read_perf_data(&*bytes);
    assert!(matches!(read, Err(BranchInputError::NoBranchRecords)), "{read:?}");
    // A piece was read: damage in it is seen.
    let mut header = bytes.chunks_exact(8).map(|it| u64::from_le_bytes(it.try_into().unwrap()));
    let (at, size) = (header.nth(5).unwrap() as usize, header.next().unwrap() as usize);
    let mut damaged = bytes.clone();
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let Some(begins) = damaged[at..at + size].windows(4).position(|it| it == magic) else {
        return pinwise_synthetic::not_judged("this perf does not compress");
    };
    damaged[at + begins] ^= 1;
    assert!(matches!(read_perf_data(&*damaged), Err(BranchInputError::Damaged { .. })));
}

#[test]
fn build_ids_are_kept_wherever_perf_wrote_them() {
    const STATES_LENGTH: u16 = 1 << 15;
    let id = [0xab; 20];
    let build_ids = |input: &[u8]| only(&read_perf_data(input).unwrap()).build_ids.clone();
    let mut file = PerfDataWriter::new();
    file.map_with_build_id(7, 0x40_0000, "/bin/program", &id);
    file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
    assert_eq!(build_ids(&file.file()), [id.into()].into());
    assert_eq!(build_ids(&file.pipe()), [id.into()].into());
    // Behind the records: of perf 6, and of older ones. Those of a guest are of other files.
    let mut file = PerfDataWriter::of_program();
    file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
    let of_others: [(u16, &str, &[u8]); 3] =
        [(1, "[kernel.kallsyms]", &[1; 20]), (5, "/bin/program", &[2; 20]), (2, "/x", &[3; 20])];
    let all = |own| [&of_others[..], &[own]].concat();
    let short = &id[..16];
    let new = file.file_with_build_ids(&all((2 | STATES_LENGTH, "/bin/program", short)), false);
    assert_eq!(build_ids(&new), [short.into()].into());
    let old = file.file_with_build_ids(&all((2, "/bin/program", &id)), true);
    assert_eq!(build_ids(&old), [id.into()].into());
    for length in file.file().len()..old.len() {
        let error = read_perf_data(&old[..length]).unwrap_err();
        assert!(matches!(error, BranchInputError::Damaged { .. }), "{length}: {error}");
    }
    // A pipe has them as records. The program was built again meanwhile.
    for other in 0..9 {
        file.record(HEADER_BUILD_ID, 2 | STATES_LENGTH, &build_id("/bin/program", &[other; 20]));
    }
    assert_eq!(build_ids(&file.pipe()), [[0; 20].into(), [1; 20].into()].into());
}

/// What `perf inject --itrace` leaves of a processor's trace is no sample.
#[test]
fn records_of_a_trace_are_passed_over() {
    const ITRACE_START: u32 = 12;
    const AUX: u32 = 11;
    const AUXTRACE_INFO: u32 = 70;
    const AUXTRACE_ERROR: u32 = 72;
    let made = IP | TID | TIME | PERIOD | IDENTIFIER | BRANCH_STACK;
    let mut file = PerfDataWriter::of([
        RecordedEvent::with_id(IDENTIFIER | IP | TID | TIME, 0, 11),
        RecordedEvent::with_id(made, HARDWARE_INDEX, 1_000_000_011),
    ]);
    file.record(AUXTRACE_INFO, 0, &[1; 64]);
    file.map(7, 0x40_0000, 0x1000, 0, "/bin/program");
    for kind in [ITRACE_START, AUX, AUXTRACE_ERROR] {
        file.record(kind, 0, &[1; 64]);
        file.sample_of(1, 2, 7, &[entry(0x40_0020, 0x40_0010)]);
    }
    let recording = read(&file);
    assert_eq!(only(&recording).fragments, fragments([(&[(0x20, 0x10)], 3)]));
    assert_eq!(recording.totals.unreadable_samples, 0);
}

/// One event has branch records and call stacks, as `-b -g`; another one call stacks alone.
#[test]
fn call_stacks_beside_branches_are_no_branches() {
    let parts = IDENTIFIER | IP | TID | TIME | PERIOD;
    let mut file = PerfDataWriter::of([
        RecordedEvent::with_id(parts | CALLCHAIN, 0, 11),
        RecordedEvent::with_id(parts | CALLCHAIN | BRANCH_STACK, ANY_OF_USER, 12),
    ]);
    file.map(7, 0x40_0000, 0x1000, 0, "/bin/program");
    for event in [0, 1, 0, 0, 1] {
        file.sample_of(event, 2, 7, &[entry(0x40_0020, 0x40_0010)]);
    }
    for input in [file.file(), file.pipe()] {
        let recording = read_perf_data(&*input).unwrap();
        assert_eq!(only(&recording).fragments, fragments([(&[(0x20, 0x10)], 2)]));
        assert_eq!((recording.totals.samples, recording.totals.unreadable_samples), (2, 0));
    }
}

/// Of three processes, two programs and a library.
fn several_programs() -> PerfDataWriter {
    let mut file = PerfDataWriter::new();
    let (program, library) = (0x5555_5555_4000, 0x7f00_0000_0000);
    file.map(7, program, 0x3000, 0x1000, "/bin/program");
    file.map(7, library, 0x1000, 0x2000, "/lib/hooks.so");
    let mispredicted_in_transaction = 1 | 1 << 2 | 77 << 4;
    let stack = [
        (program + 0x28, program + 0x10, mispredicted_in_transaction),
        entry(library + 0x30, program + 0x24),
        entry(program + 0x20, library + 0x10),
        (program + 0x40, program + 0x18, 1 << 3),
        entry(program + 0x8, program + 0x38),
    ];
    file.sample(7, &stack);
    file.fork(7, 9);
    file.sample(9, &stack[3..]);
    file.execute(9);
    file.map(9, program, 0x1000, 0, "/bin/other");
    file.sample(9, &stack[..2]);
    file.round();
    file
}

/// perf reads the files of the fixture, and what it prints reads the same.
#[test]
fn perf_agrees() {
    let file = several_programs();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    std::fs::write(&path, file.file()).unwrap();
    let mut perf = std::process::Command::new("perf");
    perf.args(["script", "-f", "-F", "pid,ip,brstack", "--show-mmap-events"]);
    let Ok(printed) = perf.args(["--show-task-events", "-i"]).arg(path).output() else {
        return pinwise_synthetic::not_judged("no perf");
    };
    let text = String::from_utf8_lossy(&printed.stdout);
    let read_back = crate::input::read_brstack_text(text.as_bytes());
    let error = String::from_utf8_lossy(&printed.stderr);
    assert_eq!(read_back.expect(&error), read(&file), "{text}");
    assert_eq!(read(&file).totals.samples, 3);
}

/// `perf inject` reads the fixture as a file and from a pipe. What it writes is the same.
#[test]
fn what_perf_injects_tells_the_same() {
    let file = several_programs();
    let directory = tempfile::tempdir().unwrap();
    let [from, to] = ["from", "to"].map(|name| directory.path().join(name));
    // A file made of a pipe is none: in perf 6.1 its header covers records.
    for (bytes, from_pipe, to_pipe) in
        [(file.file(), false, false), (file.file(), false, true), (file.pipe(), true, true)]
    {
        std::fs::write(&from, bytes).unwrap();
        let mut perf = std::process::Command::new("perf");
        perf.stdin(std::fs::File::open(&from).unwrap()).args(["inject", "-f", "-b", "-i"]);
        perf.arg(if from_pipe { "-".as_ref() } else { from.as_os_str() }).arg("-o");
        perf.arg(if to_pipe { "-".as_ref() } else { to.as_os_str() });
        let Ok(injected) = perf.output() else {
            return pinwise_synthetic::not_judged("no perf");
        };
        let bytes = if to_pipe { injected.stdout } else { std::fs::read(&to).unwrap() };
        let error = String::from_utf8_lossy(&injected.stderr);
        let mut injected = read_perf_data(&*bytes).expect(&error);
        // perf looks for build ids in the files that are here.
        injected.binaries.values_mut().for_each(|seen| seen.build_ids.clear());
        assert_eq!(injected, read(&file), "{from_pipe} {to_pipe}: {error}");
    }
}

/// A pipe of perf begins with more than the events. It has no branches, so it is refused for that.
#[test]
fn a_pipe_of_perf_is_read_to_its_end() {
    let mut perf = std::process::Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-o", "-", "--", "true"]);
    let Some(pipe) = perf.output().ok().filter(|recorded| recorded.status.success()) else {
        return pinwise_synthetic::not_judged("perf records nothing here");
    };
    let read = read_perf_data(&*pipe.stdout);
    assert!(matches!(read, Err(BranchInputError::NoBranchRecords)), "{read:?}");
    let cut = read_perf_data(&pipe.stdout[..pipe.stdout.len() - 1]);
    assert!(matches!(cut, Err(BranchInputError::Damaged { .. })), "{cut:?}");
}

/// perf finds the build ids of the fixture where this reader does.
#[test]
fn perf_agrees_on_build_ids() {
    let mut file = PerfDataWriter::of_program();
    file.sample(7, &[entry(0x40_0020, 0x40_0010)]);
    let id = [0xab; 20];
    let bytes = file.file_with_build_ids(&[(2 | 1 << 15, "/bin/program", &id)], false);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("perf.data");
    std::fs::write(&path, &bytes).unwrap();
    let mut perf = std::process::Command::new("perf");
    let Ok(printed) = perf.args(["buildid-list", "-f", "-i"]).arg(path).output() else {
        return pinwise_synthetic::not_judged("no perf");
    };
    let printed = String::from_utf8_lossy(&printed.stdout);
    assert_eq!(printed.trim(), format!("{} /bin/program", "ab".repeat(20)));
    let recording = read_perf_data(&*bytes).unwrap();
    assert_eq!(only(&recording).build_ids, [id.into()].into());
}
