//! Graphs of this test's own code, as its compiler wrote it.
#![cfg(target_arch = "x86_64")]

use std::hint::black_box;

use pinwise_paths::{Binary, BinaryError, BlockEnd, Branch, Numbering, ProgramGraph};

#[inline(never)]
fn steps_of_collatz(mut number: u64) -> u64 {
    let mut steps = 0;
    while number != 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { black_box(number) * 3 + 1 };
        steps += 1;
    }
    steps
}

#[test]
fn a_loop_with_a_choice_has_a_back_edge_and_a_return() {
    assert_eq!(black_box(steps_of_collatz)(27), 111);
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let binary = Binary::parse(&bytes).unwrap();
    let named = |&number: &usize| {
        binary.name(number).is_some_and(|name| name.contains("16steps_of_collatz"))
    };
    let function = (0..binary.functions().len()).find(named).unwrap();
    let start = binary.functions()[function].start;
    assert_eq!(binary.function_at(start), Some(function));
    // It is called from somewhere.
    let graph = ProgramGraph::new(&binary, [Branch { from: 0, to: start }].into_iter());
    assert_eq!((graph.len(), graph.function(0)), (1, function));
    let graph = graph.graph(0);
    let edges = || graph.blocks.iter().flat_map(|block| &block.edges);
    assert!(edges().any(|edge| edge.back));
    assert!(graph.blocks.iter().any(|block| block.kind == BlockEnd::Return));
    assert!(graph.blocks.iter().any(|block| block.kind == BlockEnd::Conditional));
    assert_eq!(graph.entries, [0]);
    // At least: in and round, in and out, two ways round, and out.
    assert!(Numbering::new(graph, 0).unwrap().total() >= 4);
    for pair in graph.blocks.windows(2) {
        assert!(pair[0].end <= pair[1].start, "{pair:?}");
    }
}

#[test]
fn a_file_that_is_no_program_says_so() {
    assert!(matches!(Binary::parse(b"#!/bin/sh\n"), Err(BinaryError::NotElf(_))));
}
