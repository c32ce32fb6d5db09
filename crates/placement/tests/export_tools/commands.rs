//! Commands that pin another command, or threads that run already.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};

#[test]
fn a_command_is_confined_to_the_exported_cpus() {
    let Some((cpus, plan)) = plan(&["main"]) else { return };
    for (name, prefix) in [
        ("taskset", export(&plan, "taskset")),
        ("numactl", export(&plan, "numactl")),
        ("taskset", format!("taskset {}", export(&plan, "mask"))),
        ("taskset", format!("taskset -c {}", export(&plan, "cpulist"))),
        ("hwloc-bind", format!("hwloc-bind {} --", export(&plan, "hwloc").trim())),
    ] {
        if tool(name).is_some() {
            assert_eq!(shell(&format!("{} {WHERE}", prefix.trim())).trim(), cpus[0], "{prefix}");
        }
    }
}

#[test]
fn hwloc_calc_reads_the_exported_cpuset() {
    let cpus = CpuSet::parse_list("1,3,31,32-40,100").unwrap();
    let thread =
        PlannedThread { name: "x".into(), role: "x".into(), instance: 0, cpus: cpus.clone() };
    let plan = Plan::new("x", Fingerprint::of(&Machine::from_shape("2").unwrap()), vec![thread]);
    if tool("hwloc-calc").is_none() {
        return;
    }
    for form in ["", "--taskset"] {
        let set = export(&plan, "hwloc");
        let read = shell(&format!(
            "hwloc-calc --input 'core:128 pu:1' --input-format synthetic {form} {}",
            set.trim()
        ));
        assert_eq!(CpuSet::parse_mask(read.trim()).as_ref(), Ok(&cpus), "{form}");
    }
}

#[test]
fn the_script_pins_threads_by_name_and_order() {
    let Some((cpus, plan)) = plan(&["alpha", "beta#0", "beta#1"]) else { return };
    if tool("taskset").is_none() {
        return;
    }
    let (end, ended) = mpsc::channel::<()>();
    let ended = Arc::new(Mutex::new(ended));
    // Each is created when the one before runs, so that the order is known.
    let start = |name: &str| {
        let (tell, told) = mpsc::channel();
        let ended = ended.clone();
        let body = move || {
            tell.send(fs::read_link("/proc/thread-self").unwrap()).unwrap();
            let _ = ended.lock().map(|ended| ended.recv());
        };
        let handle = std::thread::Builder::new().name(name.into()).spawn(body).unwrap();
        (Path::new("/proc").join(told.recv().unwrap()), handle)
    };
    let threads = ["alpha", "beta", "beta"].map(start);
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("pin.sh");
    fs::write(&script, export(&plan, "script")).unwrap();
    // find lists the threads and fails, as it does where a thread ends while it looks.
    let find = directory.path().join("find");
    fs::write(&find, "#!/bin/sh\nPATH=/usr/bin:/bin\nfind \"$@\"\nexit 1\n").unwrap();
    fs::set_permissions(&find, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("PATH={}:$PATH", directory.path().display());
    shell(&format!("{path} sh {} {}", script.display(), std::process::id()));
    for (index, (task, _)) in threads.iter().enumerate() {
        assert_eq!(allowed(task), cpus[index % 2], "thread {index}");
    }
    // A name that only looks like a place in the order names no thread.
    let Some((_, odd)) = super::plan(&["beta#0", "alpha#x"]) else { return };
    fs::write(&script, export(&odd, "script")).unwrap();
    let pid = std::process::id().to_string();
    let refused = Command::new("sh").arg(&script).arg(pid).output().unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert_eq!(allowed(&threads[0].0), cpus[0], "alpha has its CPU of before");
    drop(end);
    threads.into_iter().for_each(|(_, handle)| handle.join().unwrap());
}
