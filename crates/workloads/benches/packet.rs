//! What a packet costs on one CPU: P's work for each program, and passing an index through a ring.
//!
//! `cargo bench -p pinwise-workloads`

use divan::Bencher;
use divan::counter::ItemsCount;
use pinwise_workloads::{BuiltInProgram, Layout, ring};

fn main() {
    divan::main();
}

/// Frames that a sample goes through.
const PACKETS: u64 = 4096;

/// P's work, on packets that R has just received: ever new destinations where the program routes by
/// them.
#[divan::bench(args = BuiltInProgram::ALL)]
fn process(bencher: Bencher, program: BuiltInProgram) {
    let traffic = program.traffic(1);
    let packets: Vec<(Vec<u8>, Layout)> = (0..PACKETS)
        .filter_map(|n| {
            let mut frame = traffic.frame(n).to_vec();
            let layout = Layout::of(&frame)?;
            if traffic.spreads_destinations() {
                layout.redirect(&mut frame, n as u32);
            }
            Some((frame, layout))
        })
        .collect();
    let mut processor = program.processor(1);
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for (frame, layout) in &packets {
            divan::black_box(processor.process(frame, layout));
        }
    });
}

/// R's check of the headers.
#[divan::bench]
fn check(bencher: Bencher) {
    let traffic = BuiltInProgram::Hash1L1.traffic(1);
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for n in 0..PACKETS {
            divan::black_box(Layout::of(traffic.frame(n)));
        }
    });
}

/// Pushing and popping in bursts, both ends on one CPU.
#[divan::bench(args = [1, 8, 32])]
fn pass_through_ring(bencher: Bencher, burst: usize) {
    let (mut producer, mut consumer) = ring(256);
    let values: Vec<u64> = (0..burst as u64).collect();
    let mut taken = vec![0; burst];
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        for _ in 0..PACKETS as usize / burst {
            producer.push(divan::black_box(&values));
            consumer.pop(divan::black_box(&mut taken));
        }
    });
}
