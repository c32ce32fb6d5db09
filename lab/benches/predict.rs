//! How fast predictions are: `cargo bench -p pinwise-lab`.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use pinwise_lab::compiled::Compiled;
use pinwise_measure::{Thread, Workload};
use pinwise_prediction::{
    BaseSpace, BaseTable, BlackBox, CoreLocal, Predictor, SlowdownTable, ThreadKinds,
};
use pinwise_topology::{Alike, DomainKind, Machine, PerContext, Random, SharingTree, Space};

fn main() {
    divan::main();
}

/// Assignments predicted in one go: more than the caches of a core hold predictions of by heart.
const ASSIGNMENTS: usize = 10_000;

/// 24 threads in 8 instances on an UltraSPARC T2, with tables of made-up numbers.
fn blackbox() -> (BlackBox, SharingTree, Vec<Vec<u32>>) {
    let tree = SharingTree::new(
        &Machine::model("ultrasparc-t2").expect("it is built in"),
        Alike::ByStructure,
    );
    let threads =
        (0..24).map(|index| Thread::new(format!("{index}"), ["R", "P", "T"][index % 3], index / 3));
    let thread_kinds =
        ThreadKinds::new(&Workload { name: "IPFwd".into(), threads: threads.collect() });
    let local = CoreLocal::new(&tree, DomainKind::Core, 1).expect("the T2 has cores");
    let mut random = Random::new(1);
    let space = BaseSpace::new(&tree, &thread_kinds, 0, 1).expect("3 threads fit");
    let base =
        BaseTable::fill(space, |_| Ok::<f64, ()>(1.0 + random.unit())).expect("it does not fail");
    let mut slowdown = SlowdownTable::new(&thread_kinds, &local).expect("it is small");
    slowdown
        .fill(&thread_kinds, &local, |_| Ok::<f64, ()>(0.5 + random.unit()))
        .expect("it does not fail");
    let space = Space::new(tree.clone(), 24, PerContext::AtMost(1)).expect("24 threads fit");
    let drawn = (0..ASSIGNMENTS).map(|_| space.sample(&mut random).leaves().to_vec()).collect();
    (BlackBox::new(thread_kinds, local, vec![base], slowdown), tree, drawn)
}

#[divan::bench]
fn compiled_24_threads(bencher: Bencher) {
    let (blackbox, tree, drawn) = blackbox();
    let compiled = Compiled::new(&blackbox, &tree).expect("the T2 has a compiled form");
    let packed: Vec<u8> = drawn.iter().flat_map(|leaves| compiled.pack(leaves)).collect();
    let mut predicted = Vec::with_capacity(ASSIGNMENTS);
    bencher.counter(ItemsCount::new(ASSIGNMENTS)).bench_local(|| {
        predicted.clear();
        compiled.predict_all(black_box(&packed), &mut predicted);
        black_box(predicted.last().copied())
    });
}

#[divan::bench]
fn tables_24_threads(bencher: Bencher) {
    let (blackbox, _, drawn) = blackbox();
    bencher.counter(ItemsCount::new(ASSIGNMENTS)).bench_local(|| {
        black_box(&drawn).iter().map(|leaves| blackbox.predict(leaves)).sum::<f64>()
    });
}
