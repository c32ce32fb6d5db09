//! Programs whose parameter is what they may use: CPUs, and CPU time. Whatever ends the search,
//! they have what they had.

use crate::programs::{Program, enough_cpus, machine, masks, on_old_kernel, until};
use pinwise_linux::{Pid, affinity};
use pinwise_measure::{Interrupt, ProgramNote};
use pinwise_programs::{LinuxProber, NumberSetter, ProbeOptions, ProbedProgram};
use pinwise_topology::{CpuSet, Machine};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

const WINDOW: Duration = Duration::from_millis(60);

fn prober(pid: Pid, setter: NumberSetter) -> LinuxProber {
    prober_on(machine(), pid, setter)
}

fn prober_on(machine: Machine, pid: Pid, setter: NumberSetter) -> LinuxProber {
    let options =
        ProbeOptions { contexts: 2, limit: Duration::from_secs(20), ..ProbeOptions::default() };
    let running = ProbedProgram::Running(pid, setter);
    LinuxProber::new(machine, running, options, Interrupt::default()).unwrap()
}

/// A directory with the files of a control group of version 2 or 1. A program that writes them sees
/// only files.
fn group(folder: &Path, files: &[(&str, &str)]) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    folder.to_owned()
}

/// Confines `pid` and writes a quota, says so, and waits to be killed.
pub(crate) fn limit(pid: i32, directory: &str) {
    let mut cpus = prober(Pid(pid), NumberSetter::Affinity);
    let mut quota = prober(Pid(pid), NumberSetter::Quota(directory.into()));
    cpus.probe(1, WINDOW).unwrap();
    quota.probe(1, WINDOW).unwrap();
    println!("\npinned");
    thread::sleep(crate::programs::LIFE);
}

#[test]
fn the_cpus_of_a_process_are_fewer_and_then_what_they_were() {
    if !enough_cpus() {
        return;
    }
    let program = Program::start("spin 3");
    let threads = program.threads("spin-", 3);
    // One thread has a separate place.
    let own: CpuSet = masks(&threads)[0].iter().skip(1).take(1).collect();
    affinity::set(threads[2], &own).unwrap();
    let before = masks(&threads);
    let mut prober = prober(program.pid(), NumberSetter::Affinity);
    for (n, moves) in [(1, true), (2, false), (1, false)] {
        prober.probe(n, WINDOW).unwrap();
        let expected: CpuSet = before[0].iter().take(n as usize).collect();
        assert!(
            masks(&threads).iter().all(|mask| *mask == expected),
            "n = {n}: {:?}",
            masks(&threads)
        );
        // As if it chose a place meanwhile.
        if moves {
            affinity::set(threads[1], &own).unwrap();
        }
    }
    let refused = prober.probe(9000, WINDOW).unwrap_err().message;
    assert!(refused.contains("there are") && !refused.contains('\n'), "{refused}");
    prober.settle(1).unwrap();
    // One more chooses a place, and is not confined after that.
    affinity::set(threads[0], &own).unwrap();
    drop(prober);
    let own = [own.clone(), own.clone(), own];
    assert_eq!(masks(&threads), own, "the place that it had, or that it has chosen since");
}

/// Confines `pid` as if its CPUs were offline, and prints the notes.
pub(crate) fn forgetful(pid: i32) {
    let machine = Machine { offline: machine().allowed, ..machine() };
    let mut prober = prober_on(machine, Pid(pid), NumberSetter::Affinity);
    prober.probe(1, WINDOW).unwrap();
    println!("{:?}", prober.probes()[0].notes);
}

#[test]
fn cpus_that_an_old_kernel_does_not_put_back_are_noted() {
    let program = Program::start("spin 2");
    let threads = program.threads("spin-", 2);
    let Some(told) = on_old_kernel(&format!("forgetful {}", program.pid())) else { return };
    let note = ProgramNote::OfflineForgotten { cpus: masks(&threads)[0].to_string() };
    assert!(told.contains(&format!("{note:?}")), "{told}");
}

#[test]
fn control_groups_of_both_versions_get_their_text_back() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start("spin 2");
    program.threads("spin-", 2);
    let (two, one) = (folder.path().join("two"), folder.path().join("parent/one"));
    let two = group(
        &two,
        &[("cpu.max", "max 50000\n"), ("cpuset.cpus", "\n"), ("cpuset.cpus.effective", "4-7\n")],
    );
    let one = group(
        &one,
        &[
            ("cpu.cfs_quota_us", "-1\n"),
            ("cpu.cfs_period_us", "100000\n"),
            ("cpuset.cpus", "0,2-3\n"),
        ],
    );
    // Whatever is online here.
    fs::write(one.join("../cpuset.effective_cpus"), "0-3\n").unwrap();
    for (setter, file, during, before) in [
        (NumberSetter::Quota(two.clone()), two.join("cpu.max"), "150000 50000", "max 50000\n"),
        (NumberSetter::Cpuset(two.clone()), two.join("cpuset.cpus"), "4-6", "\n"),
        (NumberSetter::Quota(one.clone()), one.join("cpu.cfs_quota_us"), "300000", "-1\n"),
        (NumberSetter::Cpuset(one.clone()), one.join("cpuset.cpus"), "0,2,3", "0,2-3\n"),
    ] {
        let mut prober = prober(program.pid(), setter);
        for n in [1, 3] {
            prober.probe(n, WINDOW).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), during);
        drop(prober);
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }
    let nowhere = NumberSetter::Quota(folder.path().join("none"));
    let refused = prober(program.pid(), nowhere).probe(1, WINDOW).unwrap_err().message;
    assert!(refused.contains("cpu.cfs_quota_us") && refused.contains("control group"), "{refused}");
}

#[test]
fn a_real_control_group_grants_what_is_set() {
    let folder =
        ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(Path::new).into_iter().find(|folder| {
            ["cpu.cfs_period_us", "cgroup.subtree_control"]
                .iter()
                .any(|file| folder.join(file).exists())
        });
    let group = folder.map(|folder| folder.join(format!("pinwise-test-{}", std::process::id())));
    let Some(group) = group.filter(|group| fs::create_dir(group).is_ok()) else {
        pinwise_synthetic::not_judged("no control group for CPU time can be made here");
        return;
    };
    let program = Program::start("spin 4");
    program.threads("spin-", 4);
    let files = ["cpu.max", "cpu.cfs_quota_us"];
    let file = files.iter().map(|name| group.join(name)).find(|file| file.exists());
    let entered = fs::write(group.join("cgroup.procs"), program.pid().to_string()).is_ok();
    if let Some(file) = file.filter(|_| entered) {
        let before = fs::read_to_string(&file).unwrap();
        let mut prober = prober(program.pid(), NumberSetter::Quota(group.clone()));
        let probe = prober.probe(1, Duration::from_millis(400)).unwrap().probe;
        // Four threads that never sleep get one context's time; a period or two of it may be at the
        // edges.
        let rate = probe.progress.rate;
        assert!(rate < 1.5, "{rate} s of CPU/s");
        assert_ne!(fs::read_to_string(&file).unwrap(), before);
        drop(prober);
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    } else {
        let group = group.display();
        pinwise_synthetic::not_judged(format_args!("{group} has no CPU controller"));
    }
    drop(program);
    until("the control group to be empty", || fs::remove_dir(&group).is_ok());
}

#[test]
fn a_killed_search_leaves_no_limit() {
    if !enough_cpus() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let group = group(folder.path(), &[("cpu.max", "max 100000\n")]);
    let program = Program::start("spin 3");
    let threads = program.threads("spin-", 3);
    let before = masks(&threads);
    let mut search =
        crate::guardian::tuner(&format!("limit {} {}", program.pid(), group.display()));
    let file = group.join("cpu.max");
    assert_eq!(fs::read_to_string(&file).unwrap(), "100000 100000");
    search.0.kill().unwrap();
    search.0.wait().unwrap();
    until("the CPUs to be what they were", || masks(&threads) == before);
    until("the quota to be what it was", || fs::read_to_string(&file).unwrap() == "max 100000\n");
}
