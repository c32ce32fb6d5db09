//! How fast assignments are counted, drawn and enumerated: `cargo bench -p pinwise-topology --bench
//! space`.

use divan::{Bencher, black_box};
use pinwise_topology::{Alike, Machine, PerContext, Random, SharingTree, Space};

fn main() {
    divan::main();
}

fn space(shape: &str, threads: usize, per_context: PerContext) -> Space {
    let machine = Machine::from_shape(shape).expect("the shapes of this file are valid");
    let tree = SharingTree::new(&machine, Alike::ByStructure);
    Space::new(tree, threads, per_context).expect("the threads of this file fit")
}

const CASES: [(&str, usize, PerContext); 6] = [
    ("8x2x4", 3, PerContext::AtMost(1)),
    ("8x2x4", 24, PerContext::AtMost(1)),
    ("8x2x4", 60, PerContext::AtMost(1)),
    ("8x2x4", 64, PerContext::AtMost(1)),
    ("8x2x4", 64, PerContext::Any),
    ("8x2x4", 64, PerContext::AtMost(2)),
];

/// Cloned again, because a space remembers the series it has computed.
#[divan::bench(args = [
    ("8x2x4", 60, PerContext::AtMost(1)),
    ("8x2x4", 60, PerContext::Any),
    ("2x64x2", 256, PerContext::AtMost(1)),
    ("2x64x2", 256, PerContext::Any),
])]
fn count(bencher: Bencher, (shape, threads, per_context): (&str, usize, PerContext)) {
    let space = space(shape, threads, per_context);
    bencher.with_inputs(|| space.clone()).bench_values(|space| space.count());
}

#[divan::bench(args = CASES)]
fn canonical(bencher: Bencher, (shape, threads, per_context): (&str, usize, PerContext)) {
    let space = space(shape, threads, per_context);
    let mut random = Random::new(1);
    bencher
        .with_inputs(|| space.sample(&mut random))
        .bench_local_refs(|assignment| space.canonical(assignment));
}

#[divan::bench(args = CASES)]
fn sample(bencher: Bencher, (shape, threads, per_context): (&str, usize, PerContext)) {
    let space = space(shape, threads, per_context);
    let mut random = Random::new(1);
    bencher.bench_local(|| space.sample(&mut random));
}

#[divan::bench]
fn enumerate_the_592573_classes_of_9_threads() -> usize {
    space("8x2x4", 9, PerContext::AtMost(1)).classes().map(black_box).count()
}

#[divan::bench(args = ["8x2x4", "2x64x2", "1024x4"])]
fn build_the_tree(bencher: Bencher, shape: &str) {
    let machine = Machine::from_shape(shape).expect("the shapes of this file are valid");
    bencher.bench(|| SharingTree::new(black_box(&machine), Alike::ByStructure));
}
