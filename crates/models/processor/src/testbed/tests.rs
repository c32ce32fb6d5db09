//! Measurements on a simulated processor.

use super::*;
use crate::program::ProgramStep;
use crate::{Chip, ProgramSet, SimulatedProgram};
use pinwise_topology::{Assignment, CpuSet};

fn testbed(instances: usize, window: SimulatedWindow) -> SimulatedTestbed {
    let processor = Processor::model("ultrasparc-t2").unwrap();
    let machine = processor.machine();
    SimulatedTestbed::new(processor, machine, vec![PacketProgram::Hash1L2; instances], window, 7)
        .unwrap()
}

fn apart() -> Setting {
    Setting::Pinned(Assignment::new(vec![0, 4, 8]))
}

const SHORT: SimulatedWindow = SimulatedWindow { cycles: 40_000, starts: 2 };

#[test]
fn ready_instances_count_by_what_they_do_alone() {
    let processor = Processor::model("ultrasparc-t2").unwrap();
    let programs = vec![PacketProgram::Hash1L2, PacketProgram::IntDiv, PacketProgram::IntDiv];
    // One core has room for two instances of the three.
    let allowed = CpuSet::parse_list("0-7").unwrap();
    let machine = Machine { allowed, ..processor.machine() };
    let alone = [2e6, 5e5, 5e5];
    assert!(
        SimulatedTestbed::new(processor.clone(), machine.clone(), programs.clone(), SHORT, 7)
            .is_err()
    );
    let ready = |alone: &[f64]| {
        let (processor, machine) = (processor.clone(), machine.clone());
        // No more starts than asked for, whatever the rates.
        let window = SimulatedWindow { starts: MOST_STARTS, ..SHORT };
        SimulatedTestbed::of_ready(processor, machine, programs.clone(), alone.to_vec(), window, 7)
            .unwrap()
    };
    let pinned =
        |instance, first: u32| PinnedInstance { instance, leaves: (first..first + 3).collect() };
    let both = Setting::Profile(vec![pinned(0, 0), pinned(2, 4)]);
    let rate = |testbed: &mut SimulatedTestbed| {
        testbed.measure(&both, Effort::default()).unwrap().performance
    };
    // The same packets, each counted by its own program's rate.
    let [first, second, sum] = [[1.0, f64::INFINITY], [f64::INFINITY, 1.0], [2e6, 5e5]]
        .map(|[one, other]| rate(&mut ready(&[one, other, other])));
    assert!(
        (sum - (first / alone[0] + second / alone[2])).abs() < 1e-9 * sum,
        "{sum} {first} {second}"
    );
    assert!(first > 0.0 && second > 0.0);
    // Beside each other, each has its own times: one from each start, of the same packets.
    let window = SimulatedWindow { starts: MOST_STARTS, ..SHORT };
    let mut pairs =
        SimulatedTestbed::of_pairs(processor.clone(), machine.clone(), programs.clone(), window, 7)
            .unwrap();
    let measured = pairs.measure(&both, Effort::default()).unwrap();
    assert!((measured.performance - (first + second)).abs() < 1e-9 * measured.performance);
    let runs: AccompaniedRuns = measured.detail.unwrap().read().unwrap();
    let starts = MOST_STARTS as usize;
    assert_eq!(runs.seconds.iter().map(Vec::len).collect::<Vec<_>>(), [starts, starts]);
    for (seconds, rate) in runs.seconds.iter().zip([first, second]) {
        let mean = seconds.iter().map(|seconds| 1.0 / seconds).sum::<f64>() / seconds.len() as f64;
        assert!((mean - rate).abs() < 1e-9 * rate, "{mean} {rate}");
    }
}

#[test]
fn a_measurement_depends_on_its_number_and_on_nothing_else() {
    let trials: Vec<_> = (0..6)
        .map(|n| {
            (
                if n % 2 == 0 { apart() } else { Setting::Unpinned },
                Effort { windows: 1.0 + f64::from(n) / 4.0 },
            )
        })
        .collect();
    let one_by_one: Vec<_> = {
        let mut testbed = testbed(1, SHORT);
        trials.iter().map(|(setting, effort)| testbed.measure(setting, *effort)).collect()
    };
    for threads in [1, 2, 5] {
        let mut testbed = SimulatedTestbed { at_once: threads, ..testbed(1, SHORT) };
        testbed.seek(2);
        let later = testbed.measure_all(&trials[2..]);
        testbed.seek(0);
        let sooner = testbed.measure_all(&trials[..2]);
        assert_eq!([sooner, later].concat(), one_by_one, "{threads} at a time");
    }
    let again = testbed(1, SHORT)
        .measure_all(&[(apart(), Effort::default()), (apart(), Effort::default())]);
    assert_ne!(again[0], again[1], "the second time starts differently");
    let measured = again[0].as_ref().unwrap();
    // This many starts of 40,000 cycles at 1.2 GHz.
    let starts = measured.duration.as_secs_f64() / (40e3 / 1.2e9);
    assert!((starts - starts.round()).abs() < 1e-3 && (2.0..16.5).contains(&starts), "{starts}");
    assert!(measured.spread.is_some_and(|spread| spread < 0.2 * measured.performance));
    let one = testbed(1, SimulatedWindow { starts: 1, ..SHORT })
        .measure(&apart(), Effort::default())
        .unwrap();
    assert_eq!((one.duration, one.spread), (Duration::from_nanos(33_333), None));
}

#[test]
fn the_time_of_the_last_pair_is_known() {
    let processor = Processor::model("ultrasparc-t2").unwrap();
    let job = ProgramSet::independent(vec![
        SimulatedProgram::new(vec![ProgramStep::Alu(10), ProgramStep::Done]).unwrap(),
    ]);
    let mut chip = Chip::new(
        &processor,
        &job,
        &[PlacedThread { context: 0, start: 0, seed: 0 }],
        ClockMode::Events,
    )
    .unwrap();
    let after = |chip: &mut Chip, cycles| {
        chip.run(cycles);
        let StrandCounters { work, worked_at, paired_at, .. } = chip.counters()[0];
        (work, worked_at, paired_at)
    };
    assert_eq!(
        [15, 15, 10].map(|cycles| after(&mut chip, cycles)),
        [(1, 9, 0), (3, 29, 19), (4, 39, 39)]
    );
}

#[test]
fn starts_are_added_until_their_mean_is_certain() {
    assert!(certain(&[5.0]), "nothing to differ from");
    assert!(certain(&[1.0, 1.0, 1.008]) && !certain(&[1.0, 1.0, 1.01]));
    assert!(!certain(&[0.0, 0.0, 1.0]) && certain(&[0.0, 0.0]));
    let count = |starts| {
        // Windows of a few packets differ by percents. More starts never make them certain, unless
        // the first agree by chance.
        let mut testbed = testbed(1, SimulatedWindow { cycles: 5_000, starts });
        let mut once =
            || testbed.measure(&apart(), Effort::default()).unwrap().duration.as_secs_f64();
        (0..6).map(|_| (once() / (5e3 / 1.2e9)).round() as u32).max().unwrap()
    };
    assert_eq!([1, 2, MOST_STARTS, 18].map(count), [1, MOST_STARTS, MOST_STARTS, 18]);
}

#[test]
fn a_profile_is_of_its_first_part_and_what_is_beside_it() {
    let mut testbed = testbed(2, SHORT);
    let part = |leaves: [u32; 3]| PinnedInstance { instance: 0, leaves: leaves.to_vec() };
    let mut profile = |parts: Vec<PinnedInstance>| {
        testbed.seek(0);
        testbed
            .measure(&Setting::Profile(parts), Effort::default())
            .map(|measured| measured.performance)
    };
    let target = [0, 8, 16];
    let alone = profile(vec![part(target)]).unwrap();
    let far = profile(vec![part(target), part([24, 32, 40]), part([48, 52, 56])]).unwrap();
    let beside =
        profile(vec![part(target), part([24, 9, 40]), part([48, 10, 56]), part([49, 11, 57])])
            .unwrap();
    assert!((far / alone - 1.0).abs() < 0.05, "{far} {alone}");
    assert!(beside < 0.9 * alone, "three P in the pipe of P: {beside} {alone}");
    assert_eq!(
        profile(vec![part([0, 0, 8])]).unwrap_err().retry,
        Retry::Other,
        "two threads on one context"
    );
    assert_eq!(profile(vec![part([0, 1, 64])]).unwrap_err().retry, Retry::Other, "no such context");
    let unknown = PinnedInstance { instance: 2, leaves: vec![0, 1, 2] };
    assert_eq!(profile(vec![unknown]).unwrap_err().retry, Retry::Other);
}

#[test]
fn an_assignment_is_made_of_the_contexts_that_are_allowed() {
    let processor = Processor::model("ultrasparc-t2").unwrap();
    let mut machine = processor.machine();
    machine.allowed = [3, 12, 20, 21].into_iter().map(CpuId).collect();
    let small =
        SimulatedTestbed::new(processor.clone(), machine, vec![PacketProgram::IntMul], SHORT, 1)
            .unwrap();
    assert_eq!(
        (0..5).map(|leaf| small.context(leaf)).collect::<Vec<_>>(),
        [Some(3), Some(12), Some(20), Some(21), None]
    );
    let mut crowded = testbed(1, SHORT);
    let together = Setting::Pinned(Assignment::new(vec![5, 5, 9]));
    assert_eq!(crowded.measure(&together, Effort::default()).unwrap_err().retry, Retry::Other);
    let error = SimulatedTestbed::new(
        processor.clone(),
        processor.machine(),
        vec![PacketProgram::IntMul; 22],
        SHORT,
        1,
    );
    assert!(error.unwrap_err().to_string().contains("at most 21 instances"));
    let wide = PacketPipeline { program: PacketProgram::IntMul, processors: 63 };
    let error = SimulatedTestbed::new(processor.clone(), processor.machine(), vec![wide], SHORT, 1);
    assert!(error.unwrap_err().to_string().contains("ask for fewer processing threads"));
}
