//! What other tools make of an exported plan. A tool that is not installed is named and left out; with CI=true that is a failure.
//! Debian packages: util-linux numactl hwloc gcc systemd dpdk.

use pinwise_placement::{Format, Plan, PlannedThread};
use pinwise_topology::{CpuSet, Fingerprint, Machine};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Two CPUs that this test may use, and a plan whose threads are on the second, the first, the second, …
fn plan(names: &[&str]) -> Option<(Vec<String>, Plan)> {
    let cpus: Vec<u32> =
        CpuSet::parse_list(&allowed(Path::new("/proc/self"))).unwrap().iter().map(|cpu| cpu.0).collect();
    if cpus.len() < 2 {
        return left_out("a second CPU");
    }
    let two: Vec<String> = [cpus[1], cpus[0]].map(|cpu| cpu.to_string()).to_vec();
    let thread = |(index, name): (usize, &&str)| PlannedThread {
        name: (*name).into(),
        role: "role".into(),
        instance: 0,
        cpus: CpuSet::parse_list(&two[index % 2]).unwrap(),
    };
    let threads = names.iter().enumerate().map(thread).collect();
    let machine = Fingerprint::of(&Machine::from_shape("2").unwrap());
    Some((two.clone(), Plan::new(names[0], machine, threads)))
}

/// Where the task with this directory in `/proc` may run.
fn allowed(task: &Path) -> String {
    let status = fs::read_to_string(task.join("status")).unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap_or_default().trim().to_owned()
}

fn left_out<T>(what: &str) -> Option<T> {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{what} is not there");
    println!("left out: {what} is not there");
    None
}

fn tool(name: &str) -> Option<()> {
    let found = Command::new("sh").args(["-c", "command -v \"$1\"", "sh", name]).stdout(Stdio::null()).status();
    if found.unwrap().success() { Some(()) } else { left_out(name) }
}

fn export(plan: &Plan, format: &str) -> String {
    Format::find(format).unwrap().export(plan).unwrap().text
}

/// Standard output of a shell command that must succeed.
fn shell(script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn taskset_and_numactl_confine_a_command_to_the_exported_cpus() {
    let Some((cpus, plan)) = plan(&["main"]) else { return };
    let where_it_runs = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status";
    for (name, prefix) in [
        ("taskset", export(&plan, "taskset")),
        ("numactl", export(&plan, "numactl")),
        ("taskset", format!("taskset {}", export(&plan, "mask"))),
    ] {
        if tool(name).is_some() {
            assert_eq!(shell(&format!("{} {where_it_runs}", prefix.trim())).trim(), cpus[0], "{prefix}");
        }
    }
}

#[test]
fn hwloc_calc_reads_the_exported_cpuset() {
    let cpus = CpuSet::parse_list("1,3,31,32-40,100").unwrap();
    let thread = PlannedThread { name: "x".into(), role: "x".into(), instance: 0, cpus: cpus.clone() };
    let plan = Plan::new("x", Fingerprint::of(&Machine::from_shape("2").unwrap()), vec![thread]);
    if tool("hwloc-calc").is_none() {
        return;
    }
    for form in ["", "--taskset"] {
        let set = export(&plan, "hwloc");
        let read = shell(&format!("hwloc-calc --input 'core:128 pu:1' --input-format synthetic {form} {}", set.trim()));
        assert_eq!(CpuSet::parse_mask(read.trim()).as_ref(), Ok(&cpus), "{form}");
    }
}

#[test]
fn libgomp_binds_the_team_as_exported() {
    let Some((cpus, plan)) = plan(&["a", "b", "c"]) else { return };
    if tool("gcc").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("team.c"), directory.path().join("team"));
    let code = r#"
        #define _GNU_SOURCE
        #include <sched.h>
        #include <stdio.h>
        int main(void) {
            #pragma omp parallel for ordered schedule(static, 1)
            for (int i = 0; i < 3; i++) {
                cpu_set_t set;
                sched_getaffinity(0, sizeof set, &set);
                #pragma omp ordered
                for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
                    if (CPU_ISSET(cpu, &set)) printf("%d ", cpu);
            }
        }"#;
    fs::write(&source, code).unwrap();
    shell(&format!("gcc -fopenmp {} -o {}", source.display(), program.display()));
    let expected = format!("{} {} {} ", cpus[0], cpus[1], cpus[0]);
    for format in ["openmp", "gomp"] {
        assert_eq!(shell(&format!("{}{}", export(&plan, format), program.display())), expected, "{format}");
    }
}

#[test]
fn systemd_accepts_the_drop_in() {
    let Some((_, plan)) = plan(&["main"]) else { return };
    if tool("systemd-analyze").is_none() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let verify = |name: &str, section: &str| {
        let unit = directory.path().join(name);
        fs::write(&unit, format!("{section}ExecStart=/bin/true\n")).unwrap();
        let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output().unwrap();
        String::from_utf8_lossy(&verified.stderr).into_owned()
    };
    let good = verify("pinwise-good.service", &export(&plan, "systemd"));
    assert!(!good.contains("CPU"), "{good}");
    // The tool does look: what is no CPU list is refused.
    let bad = verify("pinwise-bad.service", "[Service]\nCPUAffinity=one\n");
    assert!(bad.contains("CPU"), "{bad}");
}

#[test]
fn a_dpdk_program_starts_its_lcores_where_exported() {
    let names = ["dpdk-testpmd", "rte-worker-1", "rte-worker-2"];
    let Some((cpus, plan)) = plan(&names) else { return };
    if tool("dpdk-testpmd").is_none() {
        return;
    }
    let command = format!(
        "exec dpdk-testpmd {} --no-huge -m 64 --no-pci --no-telemetry --no-shconf --vdev net_null0 --vdev net_null1 -- \
         -i --nb-cores=2 --total-num-mbufs=2048 --no-mlockall",
        export(&plan, "dpdk").trim()
    );
    let mut child = Command::new("sh")
        .args(["-c", &command])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let tasks = format!("/proc/{}/task", child.id());
    let affinity = |comm: &str| {
        let named = |task: &Path| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == comm);
        let mut all = fs::read_dir(&tasks).ok()?.filter_map(Result::ok).map(|task| task.path());
        all.find(|task| named(task)).map(|task| allowed(&task))
    };
    let expected = [0, 1, 0].map(|index: usize| Some(cpus[index].clone()));
    let mut seen = names.map(affinity);
    // Until the threads are where they belong, or the program has failed, or 20 s.
    for _ in 0..200 {
        if seen == expected || child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        seen = names.map(affinity);
    }
    if let Some(mut prompt) = child.stdin.take() {
        let _ = prompt.write_all(b"quit\n");
    }
    let _ = child.kill();
    let output = child.wait_with_output().unwrap();
    assert_eq!(seen, expected, "{}", String::from_utf8_lossy(&output.stderr));
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
    shell(&format!("sh {} {}", script.display(), std::process::id()));
    for (index, (task, _)) in threads.iter().enumerate() {
        assert_eq!(allowed(task), cpus[index % 2], "thread {index}");
    }
    drop(end);
    threads.into_iter().for_each(|(_, handle)| handle.join().unwrap());
}
