//! Reading a machine of 256 contexts.
//!
//! `cargo bench -p pinwise-topology --bench machine`. The recorded machine is read from the folder
//! that `PINWISE_SHARED_DATA` names (default `../shared/data`); without it only the shape is
//! measured.

use divan::Bencher;
use pinwise_synthetic::shared_data;
use pinwise_topology::{Machine, Snapshot};

fn main() {
    divan::main();
}

fn archive() -> Option<Vec<u8>> {
    std::fs::read(shared_data("hwloc/256ppc-8n8s4t.tar.bz2")?).ok()
}

#[divan::bench]
fn unpack_256_contexts(bencher: Bencher) {
    let Some(archive) = archive() else { return };
    bencher.bench(|| Snapshot::from_tar(&archive));
}

#[divan::bench]
fn read_256_contexts(bencher: Bencher) {
    let Some(archive) = archive() else { return };
    let Ok(snapshot) = Snapshot::from_tar(&archive) else { return };
    bencher.bench(|| Machine::from_snapshot(&snapshot));
}

#[divan::bench]
fn shape_of_256_contexts() -> usize {
    Machine::from_shape("package:2 l3:16 core:4 pu:2").map_or(0, |machine| machine.contexts.len())
}
