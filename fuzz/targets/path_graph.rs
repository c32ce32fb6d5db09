//! Binaries, and branches that may lie anywhere in them: graphs, numbers and paths, or a reason.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pinwise_paths::{
    Binary, Branch, Fragments, Numbering, PathMethod, PathProfile, ProgramGraph, SampledBy,
};

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
});
