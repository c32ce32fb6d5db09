//! Simulated thread-cycles per second: `items/s` of divan's counter.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use pinwise_measure::{Effort, Setting, Testbed};
use pinwise_processor::program::{PacketProgram, PublishedBenchmark};
use pinwise_processor::{
    ClockMode, PlacedThread, Processor, ProgramSet, SimulatedTestbed, SimulatedWindow, UnplacedJob,
};
use pinwise_topology::{Assignment, Random};

fn main() {
    divan::main();
}

/// Cycles of a run.
const CYCLES: u64 = 300_000;

/// Arithmetic alone, a table in the second-level cache, a table in memory, and each shared unit of
/// a core.
const PROGRAMS: [&str; 6] = ["hashN_L1", "hashN_L2", "hashN_Mem", "hash1_Mem", "intmul", "intdiv"];

/// Thread *i* at the *i*-th of these contexts.
fn measure(
    bencher: Bencher,
    job: &ProgramSet,
    contexts: impl Iterator<Item = usize>,
    pace: ClockMode,
) {
    let processor = Processor::model("ultrasparc-t2").expect("built in");
    let places = (0..).zip(contexts).take(job.threads.len());
    let placed: Vec<_> =
        places.map(|(seed, context)| PlacedThread { context, start: seed * 37, seed }).collect();
    let unplaced = UnplacedJob::new(&processor, job).expect("a valid job");
    bencher
        .counter(ItemsCount::new(CYCLES * job.threads.len() as u64))
        .with_inputs(|| unplaced.place(&placed, pace).expect("enough contexts"))
        .bench_local_refs(|chip| {
            chip.run(CYCLES);
            black_box(chip.counters())
        });
}

fn pipelines(name: &str, instances: usize) -> ProgramSet {
    let pipeline = PacketProgram::named(name).expect("a program of this name");
    PacketProgram::job(&vec![pipeline; instances])
}

/// Two instances, each thread alone in a pipe, every cycle looked at.
#[divan::bench(args = ["hashN_L1"])]
fn packets_6_threads_spread_every_cycle(bencher: Bencher, program: &str) {
    measure(bencher, &pipelines(program, 2), (0..64).step_by(4), ClockMode::EveryCycle);
}

/// The same, cycles in which nothing can happen skipped.
#[divan::bench(args = PROGRAMS)]
fn packets_6_threads_spread(bencher: Bencher, program: &str) {
    measure(bencher, &pipelines(program, 2), (0..64).step_by(4), ClockMode::Events);
}

/// Two instances, three threads to a pipe, one core.
#[divan::bench(args = PROGRAMS)]
fn packets_6_threads_on_one_core(bencher: Bencher, program: &str) {
    measure(bencher, &pipelines(program, 2), [0, 1, 2, 4, 5, 6].into_iter(), ClockMode::Events);
}

/// Eight instances, three threads to a core.
#[divan::bench(args = PROGRAMS)]
fn packets_24_threads_on_8_cores(bencher: Bencher, program: &str) {
    let contexts = (0..64).filter(|context| [0, 1, 4].contains(&(context % 8)));
    measure(bencher, &pipelines(program, 8), contexts, ClockMode::Events);
}

/// Eight instances on three full cores.
#[divan::bench(args = PROGRAMS)]
fn packets_24_threads_on_3_cores(bencher: Bencher, program: &str) {
    measure(bencher, &pipelines(program, 8), 0..24, ClockMode::Events);
}

/// Every strand of a core wants the port of the cache in every cycle: nothing to skip.
#[divan::bench]
fn dcache_8_threads(bencher: Bencher) {
    let job = ProgramSet::independent(
        (0..8).map(|instance| PublishedBenchmark::Dcache.program(instance)).collect(),
    );
    measure(bencher, &job, 0..8, ClockMode::Events);
}

/// Always waiting for memory: almost everything is skipped.
#[divan::bench]
fn mem_8_threads(bencher: Bencher) {
    let job = ProgramSet::independent(
        (0..8).map(|instance| PublishedBenchmark::Mem.program(instance)).collect(),
    );
    measure(bencher, &job, 0..8, ClockMode::Events);
}

/// What the first chip with a job costs: filling the second-level cache.
#[divan::bench(args = PROGRAMS)]
fn a_job_of_24_threads(bencher: Bencher, program: &str) {
    let processor = Processor::model("ultrasparc-t2").expect("built in");
    let job = pipelines(program, 8);
    bencher.bench_local(|| UnplacedJob::new(&processor, black_box(&job)).expect("a valid job"));
}

/// What every further one costs.
#[divan::bench]
fn a_placement_of_24_threads(bencher: Bencher) {
    let processor = Processor::model("ultrasparc-t2").expect("built in");
    let unplaced = UnplacedJob::new(&processor, &pipelines("hash1_Mem", 8)).expect("a valid job");
    let placed: Vec<_> =
        (0..24).map(|context| PlacedThread { context, start: 0, seed: 1 }).collect();
    bencher.bench_local(|| unplaced.place(black_box(&placed), ClockMode::Events));
}

/// The time that a user waits: a measurement of default length of eight instances, each in another
/// random assignment.
#[divan::bench(
    args = PacketProgram::ALL.map(PacketProgram::name),
    sample_count = 40,
    sample_size = 1
)]
fn a_measurement_of_24_threads(bencher: Bencher, program: &str) {
    let processor = Processor::model("ultrasparc-t2").expect("built in");
    let programs = vec![PacketProgram::named(program).expect("a program of this name"); 8];
    let (machine, window) = (processor.machine(), SimulatedWindow::of(&programs));
    let mut testbed =
        SimulatedTestbed::new(processor, machine, programs, window, 1).expect("enough contexts");
    let mut random = Random::new(1);
    bencher
        .with_inputs(|| {
            let mut contexts: Vec<u32> = (0..64).collect();
            random.shuffle(&mut contexts);
            Setting::Pinned(Assignment::new(contexts[..24].to_vec()))
        })
        .bench_local_refs(|setting| testbed.measure(setting, Effort::default()).expect("it runs"));
}
