//! Other tools follow an exported plan. The threads or processes run on the planned CPUs, or the
//! tool's own reading of the text is the plan. A tool that is not installed is named and left out;
//! with CI=true that is a failure. The table of tools and versions is in docs/reference/exports.md.
//! Debian packages: util-linux numactl hwloc gcc systemd dpdk libomp5 likwid openmpi-bin slurmctld
//! slurmd slurm-client munge.

mod commands;
mod launchers;
mod runtimes;
mod services;

use pinwise_placement::{Format, Plan, PlannedThread};
use pinwise_topology::{CpuSet, Fingerprint, Machine};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Prints where the process runs.
const WHERE: &str = "sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status";

/// Two CPUs that this test may use. The threads of the plan are on the second, the first, the
/// second, …
fn plan(names: &[&str]) -> Option<(Vec<String>, Plan)> {
    let cpus: Vec<u32> = CpuSet::parse_list(&allowed(Path::new("/proc/self")))
        .unwrap()
        .iter()
        .map(|cpu| cpu.0)
        .collect();
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

/// The same, with every thread as a separate instance.
fn plan_of_instances(names: &[&str]) -> Option<(Vec<String>, Plan)> {
    let (cpus, mut plan) = plan(names)?;
    plan.threads.iter_mut().enumerate().for_each(|(index, thread)| thread.instance = index);
    Some((cpus, plan))
}

/// What `./test` installs.
fn left_out<T>(what: &str) -> Option<T> {
    pinwise_synthetic::lacking(what);
    None
}

/// What Debian 12 has no package of, or this kernel not.
fn not_here<T>(what: &str) -> Option<T> {
    pinwise_synthetic::not_judged(format_args!("{what} is not there"));
    None
}

fn tool(name: &str) -> Option<()> {
    if is_there(name) { Some(()) } else { left_out(name) }
}

fn is_there(name: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$1\"", "sh", name])
        .stdout(Stdio::null())
        .status();
    found.unwrap().success()
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

/// A child that ends with the test.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where the threads of `process` called `names` may run. It is read once that is `expected`, or
/// the process has ended, or 20 s are over.
fn settled(process: &mut Child, names: &[&str], expected: &[String]) -> Vec<String> {
    let tasks = format!("/proc/{}/task", process.id());
    let affinity = |comm: &&str| -> String {
        let named = |task: &Path| {
            fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == *comm)
        };
        let mut all = fs::read_dir(&tasks)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .map(|task| task.path());
        all.find(|task| named(task)).map(|task| allowed(&task)).unwrap_or_default()
    };
    let mut seen: Vec<String> = names.iter().map(affinity).collect();
    for _ in 0..200 {
        if seen == expected || process.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
        seen = names.iter().map(affinity).collect();
    }
    seen
}
