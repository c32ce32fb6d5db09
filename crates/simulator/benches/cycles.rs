//! Simulated thread-cycles per second: `items/s` of divan's counter.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use pinwise_simulator::program::{Address, Microbenchmark, Ring, Side, Step};
use pinwise_simulator::{Chip, Job, Pace, Placed, Processor, Program};

fn main() {
    divan::main();
}

/// Cycles of a run.
const CYCLES: u64 = 500_000;

/// `instances` pipelines of a receiver, a worker and a transmitter, shaped like packet forwarding: blocks of 18 instructions,
/// two loads per packet from a table of 512 KiB, rings of 16 slots.
fn pipelines(instances: u64) -> Job {
    let block = |address| vec![Step::Alu(10), Step::Load(address), Step::Alu(6), Step::Branch];
    let blocks =
        |times, spread, address| [vec![Step::Loop { times, spread }], block(address), vec![Step::End]].concat();
    let poll = |ring, side| vec![Step::Poll { ring, side }, Step::Alu(28), Step::Branch, Step::End];
    let mut job = Job::default();
    for instance in 0..instances {
        let base = instance * ((8 << 20) + 320);
        let (first, second) = (2 * instance as usize, 2 * instance as usize + 1);
        let local = |thread: u64| Address::Fixed(base + thread * 272);
        let table = Step::Load(Address::Random { base: base + (1 << 20), length: 512 << 10, grain: 64 });
        let slot = |ring, side| Address::Slot { ring, side, offset: 0 };
        let wait = Step::Wait { mean: 120, spread: 32 };
        let receive = [
            vec![wait; 5],
            blocks(31, 0, local(0)),
            poll(first, Side::Producer),
            vec![Step::Store(slot(first, Side::Producer)), Step::Publish { ring: first, side: Side::Producer }],
        ];
        let process = [
            poll(first, Side::Consumer),
            vec![Step::Load(slot(first, Side::Consumer)), Step::Publish { ring: first, side: Side::Consumer }],
            blocks(25, 6, local(1)),
            blocks(17, 0, local(1)),
            vec![table, table],
            poll(second, Side::Producer),
            vec![Step::Store(slot(second, Side::Producer)), Step::Publish { ring: second, side: Side::Producer }],
        ];
        let transmit = [
            poll(second, Side::Consumer),
            vec![Step::Load(slot(second, Side::Consumer)), Step::Publish { ring: second, side: Side::Consumer }],
            blocks(31, 0, local(2)),
            vec![Step::Wait { mean: 110, spread: 32 }; 5],
            vec![Step::Done],
        ];
        for steps in [receive.concat(), process.concat(), transmit.concat()] {
            job.threads.push(Program::new(steps).expect("a valid program"));
        }
        for ring in 0..2 {
            job.rings.push(Ring { base: base + (4 << 20) + ring * 4096 + ring * 64, slots: 16, slot_bytes: 32 });
        }
    }
    job
}

/// Thread *i* at the *i*-th of these contexts.
fn chip(job: &Job, contexts: impl Iterator<Item = usize>, pace: Pace) -> Chip {
    let processor = Processor::model("ultrasparc-t2").expect("built in");
    let places = (0..).zip(contexts).take(job.threads.len());
    let placed: Vec<_> = places.map(|(seed, context)| Placed { context, start: seed * 37, seed }).collect();
    Chip::new(&processor, job, &placed, pace).expect("enough contexts")
}

fn measure(bencher: Bencher, job: &Job, contexts: impl Iterator<Item = usize> + Clone + Sync, pace: Pace) {
    bencher.counter(ItemsCount::new(CYCLES * job.threads.len() as u64)).bench_local(|| {
        let mut chip = chip(black_box(job), contexts.clone(), pace);
        chip.run(CYCLES);
        black_box(chip.counters())
    });
}

/// Two instances, every thread in a pipe of its own.
#[divan::bench(args = [Pace::Events, Pace::EveryCycle])]
fn pipelines_6_threads_spread(bencher: Bencher, pace: Pace) {
    measure(bencher, &pipelines(2), (0..64).step_by(4), pace);
}

/// Two instances, three threads to a pipe, one core.
#[divan::bench]
fn pipelines_6_threads_crowded(bencher: Bencher) {
    measure(bencher, &pipelines(2), [0, 1, 2, 4, 5, 6].into_iter(), Pace::Events);
}

/// Eight instances, three threads to a core.
#[divan::bench]
fn pipelines_24_threads_spread(bencher: Bencher) {
    measure(bencher, &pipelines(8), (0..64).filter(|context| [0, 1, 4].contains(&(context % 8))), Pace::Events);
}

/// Eight instances on three full cores.
#[divan::bench]
fn pipelines_24_threads_crowded(bencher: Bencher) {
    measure(bencher, &pipelines(8), 0..24, Pace::Events);
}

/// Every strand of a core wants the port of the cache in every cycle: nothing to skip.
#[divan::bench]
fn dcache_8_threads(bencher: Bencher) {
    let job = Job::independent((0..8).map(|instance| Microbenchmark::Dcache.program(instance)).collect());
    measure(bencher, &job, 0..8, Pace::Events);
}

/// Always waiting for memory: almost everything is skipped.
#[divan::bench]
fn mem_8_threads(bencher: Bencher) {
    let job = Job::independent((0..8).map(|instance| Microbenchmark::Mem.program(instance)).collect());
    measure(bencher, &job, 0..8, Pace::Events);
}

#[divan::bench]
fn an_empty_chip(bencher: Bencher) {
    let job = pipelines(8);
    bencher.bench_local(|| chip(black_box(&job), 0..24, Pace::Events));
}
