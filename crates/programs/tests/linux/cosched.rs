//! Threads of several programs, moved quantum after quantum and put back.

use crate::live::whole;
use crate::programs::*;
use pinwise_linux::{Pid, Scope, affinity};
use pinwise_measure::{
    CoscheduledPeriod, Effort, Interrupt, MeasureError, Measurement, ProgramNote, Retry, Setting,
    Testbed, ThreadMoves, Unit,
};
use pinwise_metric::Meter;
use pinwise_programs::{
    CoscheduleError, CoscheduleOptions, CoscheduledTestbed, FoundPrograms, thread_time,
};
use pinwise_topology::{CpuSet, Machine};
use std::time::{Duration, Instant};

fn found(pids: &[Pid]) -> Result<FoundPrograms, CoscheduleError> {
    FoundPrograms::attach(Scope::Processes(pids.to_vec()), &Interrupt::default())
}

/// All contexts share a level. Nothing is counted.
fn options() -> CoscheduleOptions {
    let cores = vec![whole().iter().map(|cpu| cpu.0 as usize).collect()];
    CoscheduleOptions {
        quantum: Duration::from_millis(10),
        cores,
        meter: Some((reading(|| 100.0), Duration::ZERO)),
        counts: None,
        decision: Box::new(|_| Vec::new()),
        own_time: thread_time,
        notes: Vec::new(),
    }
}

fn testbed(pids: &[Pid], options: CoscheduleOptions) -> CoscheduledTestbed {
    let found = found(pids).unwrap();
    CoscheduledTestbed::new(found, machine(), options, Interrupt::default()).unwrap()
}

fn period(testbed: &mut CoscheduledTestbed, setting: Setting, windows: f64) -> CoscheduledPeriod {
    let measured = testbed.measure(&setting, Effort { windows }).unwrap();
    measured.detail.unwrap().read().unwrap()
}

#[test]
fn threads_are_dealt_within_their_masks_and_put_back() {
    if !enough_cpus() {
        return;
    }
    let programs = [Program::start("spin 2"), Program::start("spin 2")];
    let threads = programs.each_ref().map(|program| program.threads("spin-", 2)).concat();
    let confined: CpuSet = whole().iter().skip(1).take(1).collect();
    affinity::set(threads[3], &confined).unwrap();
    let before = masks(&threads);
    let pids = programs.each_ref().map(Program::pid);
    let mut testbed = testbed(&pids, options());

    let dealt = Setting::Coscheduled(ThreadMoves::Dealt(3));
    let mut showed = period(&mut testbed, dealt.clone(), 20.0);
    let all_pinned = || masks(&threads).iter().all(|mask| mask.len() == 1);
    for _ in 0..50 {
        // On a busy machine a thread may not run in a period, and looks idle.
        if all_pinned() {
            break;
        }
        showed = period(&mut testbed, dealt.clone(), 20.0);
    }
    let pinned = masks(&threads);
    assert!(pinned.iter().all(|mask| mask.len() == 1), "{pinned:?}");
    assert_eq!(pinned[3], confined);
    assert!(showed.quanta >= 2 && showed.cost > 0.0, "{showed:?}");
    // Both programs have the same name.
    let [program] = &showed.programs[..] else { panic!("{showed:?}") };
    assert!(program.processes == 2 && program.ran > 0.0, "{program:?}");

    let apart = Setting::Coscheduled(ThreadMoves::Apart);
    period(&mut testbed, apart, 10.0);
    let first: CpuSet = whole().iter().take(1).collect();
    let one_core = masks(&threads[..3]);
    assert!(one_core.iter().all(|mask| *mask == first), "{one_core:?}");

    period(&mut testbed, Setting::Unpinned, 10.0);
    assert_eq!(masks(&threads), before, "an unpinned period restores the masks");
    period(&mut testbed, dealt, 5.0);
    drop(testbed);
    assert_eq!(masks(&threads), before, "and so is the end");
}

/// Opens programs as if their CPUs were offline, and prints the notes.
pub(crate) fn forgetful(pids: [&str; 2]) {
    let machine = Machine { offline: machine().allowed, ..machine() };
    let found = found(&pids.map(|pid| Pid(pid.parse().unwrap()))).unwrap();
    let testbed = CoscheduledTestbed::new(found, machine, options(), Interrupt::default());
    println!("{:?}", testbed.unwrap().notes());
}

#[test]
fn cpus_that_an_old_kernel_does_not_put_back_are_noted_before_any_period() {
    if !enough_cpus() {
        return;
    }
    let programs = [Program::start("spin 1"), Program::start("spin 1")];
    let [one, other] = programs.each_ref().map(|program| {
        program.threads("spin-", 1);
        program.pid()
    });
    let Some(told) = on_old_kernel(&format!("forgetful {one} {other}")) else { return };
    let note = ProgramNote::OfflineForgotten { cpus: whole().to_string() };
    assert!(told.contains(&format!("{note:?}")), "{told}");
}

#[test]
fn a_rule_moves_threads_and_programs_that_end_are_the_end() {
    if !enough_cpus() {
        return;
    }
    let (one, other) = (Program::start("spin 1"), Program::start("spin 1"));
    let threads = [one.threads("spin-", 1), other.threads("spin-", 1)].concat();
    let before = masks(&threads);
    let last = whole().iter().last().unwrap();
    // All on the last context. One that happens to run there has to be pinned, too.
    let decision = move |threads: &[pinwise_measure::ObservedThread]| {
        threads.iter().map(|one| (one.id, last.0 as usize)).collect()
    };
    let options = CoscheduleOptions { decision: Box::new(decision), ..options() };
    let mut testbed = testbed(&[one.pid(), other.pid()], options);
    period(&mut testbed, Setting::Coscheduled(ThreadMoves::Counted), 30.0);
    assert!(masks(&threads).iter().all(|mask| *mask == [last].into_iter().collect()));
    drop(other);
    let error = testbed.measure(&Setting::Unpinned, Effort { windows: 5.0 }).unwrap_err();
    assert!(error.expired && error.retry == Retry::Never, "{error}");
    drop(testbed);
    assert_eq!(masks(&threads[..1]), before[..1]);
}

#[test]
fn threads_that_come_and_go_do_no_harm() {
    if !enough_cpus() {
        return;
    }
    // A hundred threads a second begin and end.
    let programs = [Program::start("breed"), Program::start("spin 1")];
    // A new thread has the name of its creator until it has its own.
    let breeder = programs[0].threads("breeder", 1)[0];
    let threads = [breeder, programs[1].threads("spin-", 1)[0]];
    let before = masks(&threads);
    let mut testbed = testbed(&programs.each_ref().map(Program::pid), options());
    let begin = Instant::now();
    let mut begun = 0;
    // A period becomes long where looks cost much, and the programs live for a minute.
    for seed in 0..2 {
        begun += period(&mut testbed, Setting::Coscheduled(ThreadMoves::Dealt(seed)), 20.0).begun;
    }
    assert!(begun >= 20, "{begun} threads in {:?}", begin.elapsed());
    drop(testbed);
    assert_eq!(masks(&threads), before);
    let all: Vec<_> = pinwise_linux::process::threads(programs[0].pid()).unwrap();
    let narrow: Vec<_> = all
        .into_iter()
        .filter(|&tid| affinity::own(tid).is_ok_and(|mask| mask != before[0]))
        .collect();
    assert!(narrow.is_empty(), "{narrow:?} kept a pin");
}

#[test]
fn one_program_or_no_choice_is_refused_with_a_remedy() {
    if !enough_cpus() {
        return;
    }
    let one = Program::start("spin 1");
    let error = found(&[one.pid()]).err().unwrap().to_string();
    assert!(error.contains("takes two running programs") && error.contains("--pid"), "{error}");
    let other = Program::start("spin 1");
    let threads = [one.threads("spin-", 1), other.threads("spin-", 1)].concat();
    for (thread, cpu) in threads.iter().zip(whole().iter()) {
        affinity::set(*thread, &[cpu].into_iter().collect()).unwrap();
    }
    let found = found(&[one.pid(), other.pid()]).unwrap();
    let refused = CoscheduledTestbed::new(found, machine(), options(), Interrupt::default());
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("none of them on two of") && error.contains("taskset"), "{error}");
}

/// Gives no number.
struct Silent(Unit);

impl Meter for Silent {
    fn unit(&self) -> &Unit {
        &self.0
    }

    fn measure(
        &mut self,
        _: Duration,
        window: Duration,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Measurement, MeasureError> {
        if window > Duration::from_millis(500) {
            return Err(MeasureError::new(Retry::Same, "no new number"));
        }
        while !cancelled() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(MeasureError::interrupted())
    }
}

#[test]
fn a_metric_that_falls_silent_is_waited_for_until_the_budget_ends_and_tried_once() {
    if !enough_cpus() {
        return;
    }
    let programs = [Program::start("spin 1"), Program::start("spin 1")];
    let pids = programs.each_ref().map(Program::pid);
    let meter: Box<dyn Meter> = Box::new(Silent(Unit::rate("x/s")));
    let options = CoscheduleOptions { meter: Some((meter, Duration::ZERO)), ..options() };
    let mut testbed = testbed(&pids, options);
    testbed.wait_until(Instant::now());
    for (windows, said) in [(20.0, "too few numbers in"), (100.0, "no new number")] {
        let error = testbed.measure(&Setting::Unpinned, Effort { windows }).unwrap_err();
        assert!(error.message.contains(said) && !error.interrupted, "{error}");
        assert_eq!(error.retry, Retry::Other, "the search decides");
    }
}
