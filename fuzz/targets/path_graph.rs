//! Binaries, and branches that may lie anywhere in them: graphs, numbers, paths and instructions,
//! or a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_paths::{
    Binary, BinaryBranches, BinaryFiles, Branch, Fragments, Numbering, PathMethod, PathProfile,
    ProfiledBinary, ProgramGraph, RecordedProfile, RecordingTotals, SampledBy,
};
use pinwise_topology::Random;

fuzz_target!(|bytes: &[u8]| {
    let Ok(binary) = Binary::parse(bytes) else { return };
    // Every few bytes of the file choose a branch from a function to a function.
    let place = |low: u8, high: u8| {
        let function = binary.functions()[usize::from(low) % binary.functions().len()];
        function.start + u64::from(high) % (function.end - function.start)
    };
    let branches: Vec<Branch> = bytes
        .rchunks_exact(4)
        .take(64)
        .map(|it| Branch { from: place(it[0], it[1]), to: place(it[2], it[3]) })
        .collect();
    let program = ProgramGraph::new(&binary, branches.iter().copied());
    for number in 0..program.len() as u32 {
        if let Ok(numbering) = Numbering::new(program.graph(number), number)
            && let Some(last) = numbering.total().checked_sub(1)
        {
            let path = numbering.path(last).expect("it is numbered");
            assert_eq!(numbering.number(&path), Some(last));
        }
    }
    let mut fragments = Fragments::default();
    branches.chunks(8).for_each(|branches| fragments.add(branches, 1));
    for method in [PathMethod::Expand, PathMethod::Likelihood] {
        PathProfile::new(&program, &fragments, SampledBy::Instructions, method);
    }
    let seen = BinaryBranches { fragments, ..BinaryBranches::default() };
    let totals = RecordingTotals::default();
    let files = BinaryFiles { binary: bytes.to_vec(), debug: None };
    let (file, method) = (String::new(), PathMethod::Expand);
    let mut random = Random::new(1);
    if let Ok(binary) = ProfiledBinary::new("", file, files, &seen, &totals, method, &mut random) {
        let functions = binary.functions as u32;
        let profile = RecordedProfile::new(totals, vec![binary], Vec::new());
        for function in 0..functions {
            profile.annotated(0, function);
        }
    }
});
