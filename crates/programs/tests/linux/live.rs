//! Live programs: pinned, measured and put back.

use crate::guardian::{is_held, tuner};
use crate::programs::*;
use pinwise_linux::sys::Scheduling;
use pinwise_linux::{
    Launch, Pid, RealtimeClass, Scope, Target, TargetError, ThreadFilter, Tid, affinity, memory,
    process,
};
use pinwise_measure::{
    Effort, Interrupt, LeftAlone, MemoryPolicy, ProgramNote, Retry, Setting, Testbed,
};
use pinwise_programs::{FloorDetail, LiveOptions, LiveTestbed};
use pinwise_topology::{Assignment, CpuId, CpuSet, Machine, NumaNode};
use rustix::process::{Pid as RawPid, setpriority_process};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Whether the notes say that threads of this name are left alone for this reason.
pub(crate) fn leaves_alone(notes: &[ProgramNote], why: LeftAlone, name: &str) -> bool {
    notes.iter().any(|note| {
        matches!(note, ProgramNote::LeftAlone { reason, names }
            if *reason == why && names.contains_key(name))
    })
}

pub(crate) fn launch(program: &str) -> Launch {
    Launch {
        program: std::env::current_exe().unwrap().into(),
        arguments: arguments().map(Into::into).into(),
        environment: vec![(PROGRAM.into(), program.into())],
        ..Launch::default()
    }
}

/// Attaches, pins once, and prints why not.
pub(crate) fn refused(pid: Pid) {
    let testbed = testbed(Target::attach(Scope::Processes(vec![pid])).unwrap(), quick());
    let done = testbed
        .and_then(|mut testbed| Ok(testbed.measure(&all_on(&testbed, 0), Effort::default())?));
    println!("\nrefused: {}", done.unwrap_err());
}

pub(crate) fn quick() -> LiveOptions {
    let window = Duration::from_millis(10);
    LiveOptions {
        window,
        scan: Duration::from_millis(150),
        patience: Duration::from_secs(60),
        ..LiveOptions::default()
    }
}

pub(crate) fn testbed(target: Target, options: LiveOptions) -> Result<LiveTestbed, TargetError> {
    LiveTestbed::new(target, &machine(), reading(|| 100.0), options, Interrupt::default())
}

fn attach(program: &Program) -> LiveTestbed {
    testbed(Target::attach(Scope::Processes(vec![program.pid()])).unwrap(), quick()).unwrap()
}

/// All threads on one leaf.
pub(crate) fn all_on(testbed: &LiveTestbed, leaf: u32) -> Setting {
    Setting::Pinned(Assignment::new(vec![leaf; testbed.workload().threads.len()]))
}

fn names(testbed: &LiveTestbed) -> Vec<&str> {
    testbed.workload().threads.iter().map(|thread| thread.name.as_str()).collect()
}

pub(crate) fn whole() -> CpuSet {
    affinity::get(Tid(0)).unwrap()
}

#[test]
fn threads_are_pinned_measured_and_put_back() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("spin 3");
    let threads = program.threads("spin-", 3);
    // The program confined one of them: it is never placed outside that.
    let cpus: Vec<_> = whole().iter().collect();
    let one = |index: usize| -> CpuSet { [cpus[index]].into_iter().collect() };
    let confined: CpuSet = whole().iter().skip(1).take(1).collect();
    affinity::set(threads[2], &confined).unwrap();
    let before = masks(&threads);

    let mut testbed = attach(&program);
    assert_eq!(names(&testbed), ["spin-0", "spin-1", "spin-2"]);
    assert_eq!(testbed.workload().threads[1].role, "spin");
    assert_eq!(testbed.workload().masks(), [None, None, Some(confined.clone())]);
    let names = [("spin-2".to_owned(), 1)].into();
    let kept = ProgramNote::KeepsTo { names, cpus: confined.to_string() };
    assert!(testbed.notes().contains(&kept), "{:?}", testbed.notes());
    assert!(leaves_alone(&testbed.notes(), LeftAlone::HardlyRuns, "__program"));

    let pinned = |leaves: [u32; 3]| Setting::Pinned(Assignment::new(leaves.to_vec()));
    let measured = testbed.measure(&pinned([0, 0, 1]), Effort { windows: 2.0 }).unwrap();
    assert_eq!((measured.performance, measured.duration), (100.0, Duration::from_millis(16)));
    assert_eq!(masks(&threads), [one(0), one(0), one(1)]);

    testbed.measure(&Setting::Unpinned, Effort::default()).unwrap();
    assert_eq!(masks(&threads), before, "unpinned is as it was");
    let error = testbed.measure(&pinned([1, 0, 0]), Effort::default()).unwrap_err();
    assert!(error.message.contains("spin-2 on CPU"), "{error}");
    testbed.measure(&pinned([1, 1, 1]), Effort::default()).unwrap();
    drop(testbed);
    assert_eq!(masks(&threads), before, "and so is the end");
}

#[test]
fn memory_follows_each_assignment_and_a_node_without_memory_ends_the_search() {
    if !enough_cpus() || memory::pages(Pid(std::process::id() as i32)).is_err() {
        return;
    }
    let program = Program::start("spin 2");
    let following = |machine: &Machine| {
        let target = Target::attach(Scope::Processes(vec![program.pid()])).unwrap();
        let options = LiveOptions { memory: MemoryPolicy::Follow, ..quick() };
        let (meter, interrupt) = (reading(|| 100.0), Interrupt::default());
        LiveTestbed::new(target, machine, meter, options, interrupt).unwrap()
    };
    let mut testbed = following(&machine());
    let [first, second] = [0, 1].map(|leaf| all_on(&testbed, leaf));
    testbed.measure(&first, Effort::default()).unwrap();
    let assignment = |setting: &Setting| match setting {
        Setting::Pinned(assignment) => assignment.clone(),
        _ => unreachable!(),
    };
    let held = testbed.memory(Some(&assignment(&first))).unwrap();
    assert_eq!(held.policy, MemoryPolicy::Follow);
    let process = memory::page_count(&[program.pid()]);
    assert!(held.nodes.total() < process * 3 / 2, "a process of two threads counts once");
    let nodes = |setting| testbed.memory(Some(&assignment(setting))).unwrap().nodes.total();
    assert!(held.nodes.total() > 0 && nodes(&second) == 0, "a resumed search");
    testbed.measure(&Setting::Unpinned, Effort::default()).unwrap();
    let threads = program.threads("spin-", 2);
    testbed.measure(&second, Effort::default()).unwrap();
    testbed.give_memory_back();
    assert_eq!(masks(&threads), [whole(), whole()], "affinities first");
    drop(testbed);

    let mut machine = machine();
    // A node that is not there has the first context.
    let mut node = NumaNode { os_index: 4000, ..machine.numa[0].clone() };
    node.cpus = whole().iter().take(1).collect();
    machine.numa[0].cpus = machine.numa[0].cpus.difference(&node.cpus);
    machine.numa.push(node);
    let mut testbed = following(&machine);
    let error = testbed.measure(&first, Effort::default()).unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    assert!(error.message.starts_with("no memory on node 4000: "), "{error}");
}

#[test]
fn only_the_threads_that_were_chosen_are_pinned() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("spin 3");
    let threads = program.threads("spin-", 3);
    let target = Target::attach(Scope::Processes(vec![program.pid()])).unwrap();
    let options =
        LiveOptions { filter: ThreadFilter::new(Some("spin"), Some("1")).unwrap(), ..quick() };
    let mut testbed = testbed(target, options).unwrap();
    assert_eq!(names(&testbed), ["spin-0", "spin-2"]);
    let notes = testbed.notes();
    assert!(leaves_alone(&notes, LeftAlone::NotIncluded, "__program"), "{notes:?}");
    assert!(leaves_alone(&notes, LeftAlone::Excluded, "spin-1"), "{notes:?}");
    assert_eq!(testbed.affinities().into_values().collect::<Vec<_>>(), [whole(), whole()]);
    testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    assert_eq!(masks(&threads).iter().map(CpuSet::len).collect::<Vec<_>>(), [1, whole().len(), 1]);
}

/// By somebody else, or by the program. The first time that may pass.
#[test]
fn a_thread_that_another_moves_is_named_not_fought_and_keeps_what_it_was_given() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("spin 2");
    let threads = program.threads("spin-", 2);
    let target = Target::attach(Scope::Processes(vec![program.pid()])).unwrap();
    let other: CpuSet = whole().iter().skip(1).take(1).collect();
    let (moved, given) = (threads[1], other.clone());
    let mut looked_at = 0;
    let meter = reading(move || {
        looked_at += 1;
        // The first answer comes before anything is pinned.
        if looked_at == 2 {
            affinity::set(moved, &given).unwrap();
        }
        100.0
    });
    let mut testbed =
        LiveTestbed::new(target, &machine(), meter, quick(), Interrupt::default()).unwrap();
    let setting = all_on(&testbed, 0);
    let error = testbed.measure(&setting, Effort::default()).unwrap_err();
    assert_eq!(error.retry, Retry::Same);
    let told = format!("moved thread spin-1 to CPU {other} while it was measured");
    assert!(error.message.ends_with(&told), "{error}");
    assert!(!testbed.is_gone());
    testbed.measure(&setting, Effort::default()).unwrap();
    let note = |note: &ProgramNote| {
        matches!(note, ProgramNote::ThreadsMoved { threads: 1, name, cpus, .. }
            if name == "spin-1" && *cpus == other.to_string())
    };
    assert!(testbed.disturbances().notes.iter().any(note));
    // Also between two measurements.
    affinity::set(threads[1], &other).unwrap();
    let error = testbed.measure(&setting, Effort::default()).unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    assert!(error.message.contains(&format!("{told}, for the second time")), "{error}");
    drop(testbed);
    assert_eq!(masks(&threads), [whole(), other], "what each was given by others");
}

/// Each worker has a CPU, as in DPDK, and so has the main thread. What a worker creates belongs on
/// the CPU of that worker, wherever that was pinned.
#[test]
fn threads_that_a_worker_with_one_cpu_creates_may_use_that_cpu_again() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("lcores");
    let [first, second] =
        [0, 1].map(|index| -> CpuSet { whole().iter().skip(index).take(1).collect() });
    let breeder = program.threads("breeder", 1)[0];
    program.threads("short", 40);
    for tid in process::threads(program.pid()).unwrap() {
        // It may have ended.
        let _ = affinity::set(tid, &first);
    }
    affinity::set(breeder, &second).unwrap();
    let heirs = || -> Vec<CpuSet> {
        let heirs = threads_of(program.pid(), "short", 1).into_iter();
        heirs.filter_map(|tid| affinity::get(tid).ok()).collect()
    };
    until("heirs of the breeder alone", || heirs().iter().all(|mask| *mask == second));
    for killed in [false, true] {
        if killed {
            let mut tuner = tuner(&format!("tune {}", program.pid()));
            let elsewhere = || affinity::get(breeder).unwrap() != second;
            until("the breeder to be pinned to the other CPU", elsewhere);
            tuner.0.kill().unwrap();
        } else {
            let mut testbed = attach(&program);
            assert_eq!(names(&testbed).len(), 2, "the workers");
            for round in 0..6 {
                let leaves = [vec![0, 1], vec![0, 0], vec![1, 0]][round % 3].clone();
                let setting = Setting::Pinned(Assignment::new(leaves));
                testbed.measure(&setting, Effort { windows: 5.0 }).unwrap();
            }
        }
        until("the guardian to end", || !is_held(program.pid()));
        let left = heirs();
        let lost = left.iter().filter(|mask| !second.is_subset(mask)).count();
        assert_eq!(lost, 0, "killed: {killed}: {left:?}");
        assert_eq!(affinity::get(breeder).unwrap(), second);
    }
}

/// Neither placed nor released: its one CPU is its own, not a pin that it inherited.
#[test]
fn a_thread_that_is_not_placed_keeps_the_cpu_its_program_gave_it() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("spin 3");
    let threads = program.threads("spin-", 3);
    affinity::set(threads[1], &whole().iter().take(1).collect()).unwrap();
    let before = masks(&threads);
    let target = Target::attach(Scope::Processes(vec![program.pid()])).unwrap();
    let options =
        LiveOptions { filter: ThreadFilter::new(Some("spin"), Some("1")).unwrap(), ..quick() };
    let mut testbed = testbed(target, options).unwrap();
    // Its own CPU is also a pin of the others, for a while.
    for leaf in [1, 0, 1] {
        testbed.measure(&all_on(&testbed, leaf), Effort::default()).unwrap();
        assert_eq!(masks(&threads)[1], before[1]);
    }
    drop(testbed);
    assert_eq!(masks(&threads), before);
}

/// It is older than all pins, so its one CPU is its own.
#[test]
fn a_process_that_a_cgroup_gets_later_keeps_the_cpu_it_had() {
    let folder = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(Path::new);
    let folder = folder.into_iter().find(|folder| folder.join("cgroup.procs").exists());
    let group = folder.map(|folder| folder.join(format!("pinwise-later-{}", std::process::id())));
    let Some(group) = group.filter(|group| enough_cpus() && std::fs::create_dir(group).is_ok())
    else {
        pinwise_synthetic::not_judged("no control group can be made here");
        return;
    };
    let programs = [Program::start("spin 1"), Program::start("spin 1")];
    let threads: Vec<Tid> = programs.iter().map(|one| one.threads("spin-", 1)[0]).collect();
    let enter = |program: &Program| {
        std::fs::write(group.join("cgroup.procs"), program.pid().to_string()).unwrap();
    };
    affinity::set(threads[1], &whole().iter().take(1).collect()).unwrap();
    let before = masks(&threads);
    enter(&programs[0]);
    let mut testbed =
        testbed(Target::attach(Scope::Cgroup(group.clone())).unwrap(), quick()).unwrap();
    testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    enter(&programs[1]);
    testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    let late = |note: &ProgramNote| matches!(note, ProgramNote::ThreadsAppeared { .. });
    assert!(testbed.disturbances().notes.iter().any(late), "it was seen");
    assert_eq!(masks(&threads)[1], before[1]);
    drop(testbed);
    assert_eq!(masks(&threads), before);
    drop(programs);
    until("the empty cgroup can be removed", || std::fs::remove_dir(&group).is_ok());
}

/// Prints the notes of a search on a machine whose CPUs are all offline.
pub(crate) fn forgetful(pid: i32) {
    let machine = Machine { offline: machine().allowed, ..machine() };
    let target = Target::attach(Scope::Processes(vec![Pid(pid)])).unwrap();
    let opened =
        LiveTestbed::new(target, &machine, reading(|| 100.0), quick(), Interrupt::default());
    println!("{:?}", opened.unwrap().notes());
}

#[test]
fn a_search_notes_the_cpus_that_an_old_kernel_does_not_put_back() {
    let program = Program::start("spin 2");
    let threads = program.threads("spin-", 2);
    let Some(told) = on_old_kernel(&format!("forgetful place {}", program.pid())) else { return };
    let note = ProgramNote::OfflineForgotten { cpus: masks(&threads)[0].to_string() };
    assert!(told.contains(&format!("{note:?}")), "{told}");
}

/// `spin-0` shares its CPU with 32 threads of more weight, also if all this runs at nice 10. It
/// gets hardly any of the CPU. `spin-1` has a CPU alone. In a window, `spin-0` may get nothing, and
/// `spin-1` all it wants. Both have to be found, but not the main thread, which sleeps. Recorded
/// threads that got nothing are judged beside the rule, in the crate `linux`.
#[test]
fn a_busy_thread_that_gets_no_cpu_is_found_beside_one_that_does() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("spin 2");
    let threads = program.threads("spin-", 2);
    let mut cpus = whole()
        .iter()
        .map(|cpu| -> CpuSet { [cpu].into_iter().collect() })
        .collect::<Vec<_>>()
        .into_iter();
    let (crowded, free) = (cpus.next().unwrap(), cpus.next().unwrap());
    affinity::set(threads[0], &crowded).unwrap();
    affinity::set(threads[1], &free).unwrap();
    for &tid in &threads {
        setpriority_process(RawPid::from_raw(tid.0), 19).unwrap();
    }
    let crowd = Program::start("spin 32");
    crowd.threads("spin-", 32).iter().for_each(|&tid| affinity::set(tid, &crowded).unwrap());

    let found = testbed(Target::attach(Scope::Processes(vec![program.pid()])).unwrap(), quick());
    let found = found.unwrap();
    assert_eq!(names(&found), ["spin-0", "spin-1"]);
    let notes = found.notes();
    assert!(leaves_alone(&notes, LeftAlone::HardlyRuns, "__program"));
    // Laid out by their program, to be laid out again.
    assert!(notes.contains(&ProgramNote::PinnedBefore { threads: 2, of: 2 }), "{notes:?}");
}

#[test]
fn threads_created_while_their_creator_is_pinned_are_released() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("breed");
    program.threads("short", 20);
    let mut testbed = attach(&program);
    assert_eq!(names(&testbed), ["breeder"]);
    let mut measured = 0;
    until("new threads, pinned on each CPU twice", || {
        let setting = all_on(&testbed, measured % 2);
        testbed.measure(&setting, Effort { windows: 5.0 }).unwrap();
        measured += 1;
        let met = testbed.disturbances().notes;
        let appeared = |note: &ProgramNote| matches!(note, ProgramNote::ThreadsAppeared { .. });
        measured >= 4 && met.iter().any(appeared)
    });
    drop(testbed);
    let listed = process::threads(program.pid()).unwrap();
    let left: Vec<_> = listed
        .into_iter()
        .filter(|&tid| affinity::get(tid).is_ok_and(|mask| mask != whole()))
        .collect();
    assert_eq!(left, [], "no thread is left with the pin it inherited");
}

#[test]
fn a_worker_that_is_created_again_takes_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(&format!("respawn {}", folder.path().display()));
    program.threads("worker", 1);
    let mut testbed = attach(&program);
    assert_eq!(names(&testbed), ["steady", "worker"]);
    let mut interrupted_windows = 0;
    for (life, least) in [1, 2].into_iter().enumerate() {
        std::fs::write(folder.path().join(life.to_string()), "").unwrap();
        until("a new worker", || {
            if let Err(error) = testbed.measure(&all_on(&testbed, 0), Effort::default()) {
                assert_eq!(error.retry, Retry::Same, "{error}");
                interrupted_windows += 1;
            }
            testbed.disturbances().notes.iter().any(|note| match note {
                ProgramNote::ThreadsReplaced { times } => *times >= least,
                _ => false,
            })
        });
    }
    assert!(interrupted_windows <= 2, "only the window in which it ended is lost");
}

#[test]
fn the_end_of_the_target_is_named() {
    let mut program = Program::start("spin 1");
    program.threads("spin-", 1);
    let mut testbed = attach(&program);
    testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    assert!(!testbed.is_gone());
    program.0.kill().unwrap();
    program.0.wait().unwrap();
    let error = testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    assert!(error.message.contains("ended or was restarted while it was measured"), "{error}");
    assert!(testbed.is_gone(), "a search of it cannot be resumed");
}

#[test]
fn a_program_that_exits_at_once_is_reported_with_its_status_and_last_line() {
    let (target, streams) = Target::launch(&launch("fail")).unwrap();
    assert!(streams.stdout.is_some() && streams.stderr.is_some());
    let error = testbed(target, quick()).err().unwrap().to_string();
    assert!(error.contains("ended (exit status: 3)"), "{error}");
    assert!(error.contains("its last line was: cannot open the thing"), "{error}");
}

#[test]
fn what_cannot_be_started_or_attached_to_is_named() {
    let launch = Launch { program: "/no/such/program".into(), ..Launch::default() };
    let error = Target::launch(&launch).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot start /no/such/program: there is no such program"),
        "{error}"
    );
    let error = Target::attach(Scope::Processes(vec![Pid(i32::MAX)])).unwrap_err().to_string();
    assert!(error.starts_with("there is no process 2147483647"), "{error}");
    let error = Target::attach(Scope::Cgroup("/no/such".into())).unwrap_err().to_string();
    assert!(error.starts_with("cannot read cgroup /no/such"), "{error}");
    let mut sleeper = Program(Command::new("sleep").arg("30").spawn().unwrap());
    // Its start is work.
    sleeper.sleeps();
    let options = LiveOptions { patience: Duration::from_millis(300), ..quick() };
    let error = testbed(Target::attach(Scope::Processes(vec![sleeper.pid()])).unwrap(), options)
        .err()
        .unwrap();
    assert!(matches!(error, TargetError::Idle { .. }), "{error}");
    // Without patience it is watched twice, and the error says so.
    let options = LiveOptions { patience: Duration::ZERO, ..quick() };
    let twice = options.scan * 2;
    let target = Target::attach(Scope::Processes(vec![sleeper.pid()])).unwrap();
    let error = testbed(target, options).err().unwrap();
    assert!(matches!(error, TargetError::Idle { waited, .. } if waited == twice), "{error}");
    sleeper.0.kill().unwrap();
}

#[test]
fn another_users_process_is_refused_with_the_remedy() {
    if !rustix::process::geteuid().is_root() {
        pinwise_synthetic::not_judged("only root can become another user");
        return;
    }
    let program = Program::start("spin 1");
    program.threads("spin-", 1);
    // The test binary may be in a directory that the other user cannot reach.
    let copy = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir()
        .unwrap();
    let binary = copy.path().join("tests");
    std::fs::copy("/proc/self/exe", &binary).unwrap();
    std::fs::set_permissions(&binary, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = Command::new(&binary)
        .args(arguments())
        .env(PROGRAM, format!("attach {}", program.pid()))
        .current_dir("/")
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("refused: not permitted to move thread"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        text.contains(
            "of user 0: run pinwise as that user, as root, or after sudo setcap cap_sys_nice"
        ),
        "{text}"
    );
}

#[test]
fn a_setting_below_the_floor_is_abandoned_and_the_target_released() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("spin 1");
    let threads = program.threads("spin-", 1);
    let watched = threads[0];
    let first = whole().first().unwrap();
    // Slow on the first CPU.
    let read = move || match affinity::get(watched) {
        Ok(mask) if mask.len() == 1 && mask.contains(first) => 30.0,
        _ => 100.0,
    };
    let target = Target::attach(Scope::Processes(vec![program.pid()])).unwrap();
    let options = LiveOptions { floor: Some(0.5), ..quick() };
    let mut testbed =
        LiveTestbed::new(target, &machine(), reading(read), options, Interrupt::default()).unwrap();
    let error = testbed.measure(&all_on(&testbed, 0), Effort { windows: 50.0 }).unwrap_err();
    assert_eq!(error.retry, Retry::Other);
    assert!(error.below_floor, "{error}");
    let told = "the program fell to 30.0 things/s, below the floor of 50 % of its speed unpinned: \
        100 things/s right after";
    assert!(error.message.starts_with(told), "{error}");
    // Its record has the first baseline, and the window after each try.
    let FloorDetail { unpinned } = error.detail.unwrap().read().unwrap();
    let windows: Vec<_> = unpinned.iter().map(|one| (one.performance, one.windows)).collect();
    assert_eq!(windows, [(100.0, 4.0), (100.0, 50.0), (100.0, 50.0)]);
    assert!(unpinned.is_sorted_by(|one, next| one.after_s < next.after_s), "{unpinned:?}");
    assert_eq!(affinity::get(watched).unwrap(), whole(), "it recovers unpinned");
    let fast = testbed.measure(&all_on(&testbed, 1), Effort::default()).unwrap();
    assert_eq!((fast.performance, fast.detail), (100.0, None));
    // It was faster in an earlier run of the campaign. Now it is slower with every assignment.
    testbed.know_baseline(1e6, 1000.0);
    let slow_anyway = testbed.measure(&all_on(&testbed, 1), Effort::default()).unwrap();
    assert_eq!(slow_anyway.performance, 100.0);
    assert_eq!(masks(&threads)[0].len(), 1, "it is measured where it was to be");
}

#[test]
fn a_single_slow_reading_is_not_below_the_floor() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("spin 1");
    let watched = program.threads("spin-", 1)[0];
    let mut slow = 1;
    let read = move || match affinity::get(watched) {
        Ok(mask) if mask.len() == 1 && slow > 0 => {
            slow -= 1;
            30.0
        }
        _ => 100.0,
    };
    let target = Target::attach(Scope::Processes(vec![program.pid()])).unwrap();
    let options = LiveOptions { floor: Some(0.5), ..quick() };
    let mut testbed =
        LiveTestbed::new(target, &machine(), reading(read), options, Interrupt::default()).unwrap();
    let measured = testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    assert_eq!(measured.performance, 100.0);
}

#[test]
fn a_tree_is_attached_to_with_its_children() {
    let program = Program::start("family");
    program.threads("spin-", 1);
    let mut children = Vec::new();
    until("a child that spins", || {
        children = process::descendants(&[program.pid()], &process::all().unwrap());
        children.len() == 1 && !threads_of(children[0], "spin-", 1).is_empty()
    });
    let mut testbed =
        testbed(Target::attach(Scope::Trees(vec![program.pid()])).unwrap(), quick()).unwrap();
    assert_eq!(names(&testbed), ["spin-0#0", "spin-0#1"]);
    testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    drop(program);
    until("no child is left", || process::ended(children[0]));
}

#[test]
fn a_cgroup_is_attached_to_and_its_cpuset_respected() {
    // cgroup v1 only; version 2 needs the cpuset controller delegated to a fresh subtree.
    let root = Path::new("/sys/fs/cgroup/cpuset");
    let group = root.join(format!("pinwise-test-{}", std::process::id()));
    if !enough_cpus() || std::fs::create_dir(&group).is_err() {
        pinwise_synthetic::not_judged(format_args!("cannot make a cgroup in {}", root.display()));
        return;
    }
    let first = whole().first().unwrap();
    let second = whole().iter().nth(1).unwrap();
    std::fs::write(group.join("cpuset.mems"), "0").unwrap();
    std::fs::write(group.join("cpuset.cpus"), first.0.to_string()).unwrap();
    let program = Program::start("spin 2");
    let threads = program.threads("spin-", 2);
    std::fs::write(group.join("cgroup.procs"), program.pid().to_string()).unwrap();

    let mut first_search = tuner(&format!("pin {}", program.pid()));
    let refused = Target::attach(Scope::Cgroup(group.clone())).unwrap_err();
    assert!(matches!(refused, TargetError::Held(_)), "{refused}");
    first_search.0.kill().unwrap();
    let mut testbed =
        testbed(Target::attach(Scope::Cgroup(group.clone())).unwrap(), quick()).unwrap();
    assert_eq!(
        testbed.machine().allowed,
        [first].into_iter().collect(),
        "only what its cpuset allows"
    );
    testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    let error = affinity::set(threads[0], &[second].into_iter().collect()).unwrap_err();
    assert!(error.to_string().contains("its cgroup's cpuset excludes it"), "{error}");
    let cpus = |cpu: CpuId| std::fs::write(group.join("cpuset.cpus"), cpu.0.to_string()).unwrap();
    cpus(second);
    let gone = format!("CPU {} went away while ", first.0);
    let error = testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap_err();
    assert_eq!(error.retry, Retry::Later);
    assert!(error.message.starts_with(&gone), "{error}");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            cpus(first);
        });
        testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap();
    });
    let away = |note: &ProgramNote| matches!(note, ProgramNote::CpusAway { .. });
    assert!(testbed.disturbances().notes.iter().any(away));
    // The budget is over.
    drop(testbed);
    let target = Target::attach(Scope::Cgroup(group.clone())).unwrap();
    let options = LiveOptions { until: Some(Instant::now()), ..quick() };
    let mut testbed = self::testbed(target, options).unwrap();
    cpus(second);
    let error = testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap_err();
    assert_eq!(error.retry, Retry::Later);
    let error = testbed.measure(&all_on(&testbed, 0), Effort::default()).unwrap_err();
    assert_eq!(error.retry, Retry::Never);
    assert!(error.message.starts_with(&gone), "{error}");
    assert!(!testbed.disturbances().notes.iter().any(away), "it is not back");
    drop(testbed);
    drop(program);
    until("the empty cgroup can be removed", || std::fs::remove_dir(&group).is_ok());
}

/// Its threads may keep an ordinary thread waiting, and then a budget does not hold.
#[test]
fn pinwise_is_punctual_while_it_finds_the_threads_and_ordinary_afterwards() {
    let before = Scheduling::current().unwrap();
    if RealtimeClass::raise().is_err() {
        return pinwise_synthetic::not_judged("this user may not raise the class");
    }
    let program = Program::start("spin 2");
    program.threads("spin-", 2);
    drop(attach(&program));
    assert_eq!(Scheduling::current().unwrap(), before, "as a testbed");
    // To attach raises the class, too. Nobody watches it here.
    let target = Target::attach(Scope::Processes(vec![program.pid()])).unwrap();
    // A scan of 20 s ends as soon as the class is seen.
    let (interrupt, done) = (Interrupt::default(), AtomicBool::new(false));
    let scanner = fs::read_link("/proc/thread-self").unwrap();
    let stat = Path::new("/proc").join(scanner).join("stat");
    // The field `policy`, the 39th after the name.
    let is_raised = || {
        let text = fs::read_to_string(&stat).unwrap();
        let (_, fields) = text.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38) == Some("1")
    };
    let refused = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_raised() && !done.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
            interrupt.flag().store(true, Ordering::Relaxed);
        });
        let options = LiveOptions { scan: Duration::from_secs(20), ..quick() };
        let meter = reading(|| 100.0);
        let opened = LiveTestbed::new(target, &machine(), meter, options, interrupt.clone());
        done.store(true, Ordering::Relaxed);
        opened.err().expect("it was not interrupted, so the class was not raised")
    });
    assert!(matches!(refused, TargetError::Measure(error) if error.interrupted));
    assert_eq!(Scheduling::current().unwrap(), before, "after an interruption");
}
