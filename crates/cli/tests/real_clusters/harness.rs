//! The clusters do what real ones do, before anything is said about pinwise on them.

use crate::cluster::{Cluster, NODES};
use crate::daemons::send;
use crate::slurm::slurm;
use crate::ssh::hosts;
use crate::support::{PATIENCE, Program, wait_until};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

/// Writes to a program that returns what it reads, and reads that back while it still runs.
fn echo(mut command: Command) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut program = Program(command.spawn().unwrap());
    let (mut to, mut from) = (program.0.stdin.take().unwrap(), program.0.stdout.take().unwrap());
    // All bytes, zeros and ends of lines among them. Slurm keeps what does not end a line.
    let sent: Vec<u8> = (0..=255).cycle().take(10_000).chain(*b"\n").collect();
    for _ in 0..3 {
        to.write_all(&sent).unwrap();
        let mut received = vec![0; sent.len()];
        from.read_exact(&mut received).unwrap();
        assert!(received == sent, "{command:?}");
    }
    drop(to);
    assert!(program.ended(PATIENCE).success(), "{command:?}");
}

fn srun(cluster: &Cluster, words: &[&str]) -> Command {
    let mut command = cluster.command("srun");
    command.arg("--quiet").args(words);
    command
}

#[test]
fn a_program_on_each_slurm_node_is_a_connection() {
    let Some(cluster) = slurm() else { return };
    for node in 1..=NODES {
        echo(srun(&cluster, &["--exclusive", &format!("--nodelist=n{node}"), "cat"]));
    }
    cluster.is_left();
}

/// Also where Slurm confines a task to what it asks for: pinwise needs the whole node.
#[test]
fn an_exclusive_task_may_use_all_of_its_node() {
    let Some(cluster) = slurm() else { return };
    let words = ["--nodes=1", "--exclusive", "--mem=0", "--cpu-bind=none"];
    let show = "grep Cpus_allowed_list /proc/self/status; echo $SLURM_CPUS_ON_NODE; \
                scontrol show step $SLURM_JOB_ID";
    let output = srun(&cluster, &words).args(["sh", "-c", show]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("\t0-1\n2\n") && said.contains("CPUs=2 "), "{said}");
    cluster.is_left();
}

#[test]
fn slurm_refuses_and_ends_jobs_as_it_does_elsewhere() {
    let Some(cluster) = slurm() else { return };
    let refused = srun(&cluster, &["--partition=none", "true"]).output().unwrap();
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && error.contains("invalid partition"), "{error}");
    assert_eq!(cluster.jobs(), "");

    let mut sleeps = Program::start(&mut srun(&cluster, &["--nodelist=n2", "sleep", "600"]));
    wait_until(PATIENCE, "the job to run", || cluster.jobs().ends_with(" R [n2]"));
    assert!(!cluster.daemons.in_use().is_empty());
    let number = cluster.jobs().split(' ').next().unwrap().to_owned();
    cluster.says(&["scancel", &number]);
    assert!(!sleeps.ended(PATIENCE).success());
    cluster.is_left();

    let update = ["scontrol", "update", "NodeName=n4", "State=DRAIN", "Reason=test"];
    cluster.says(&update);
    let mut waits = Program::start(&mut srun(&cluster, &["--nodes=4", "true"]));
    wait_until(PATIENCE, "the job to wait", || cluster.jobs().contains(" PD "));
    cluster.says(&["scontrol", "update", "NodeName=n4", "State=RESUME"]);
    assert!(waits.ended(PATIENCE).success());
    cluster.is_left();
}

#[test]
fn a_program_on_each_host_is_a_connection() {
    let Some(cluster) = hosts() else { return };
    let ssh = |host: &str, command: &str| {
        let mut ssh = cluster.command("ssh");
        ssh.args(["-o", "BatchMode=yes", host, command]);
        ssh
    };
    for node in 1..=NODES {
        let host = format!("h{node}");
        echo(ssh(&host, "cat"));
        let home = ssh(&host, "echo $HOME").output().unwrap().stdout;
        assert!(home.trim_ascii_end().ends_with(host.as_bytes()), "{home:?}");
    }
    let unknown = ssh("h5", "true").output().unwrap();
    let error = String::from_utf8_lossy(&unknown.stderr);
    assert!(error.contains("Host key verification failed"), "{error}");

    // What runs on a host ends with its connection, because its stdin does.
    let mut command = ssh("h1", "cat");
    let cut = Program(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap());
    wait_until(PATIENCE, "a process on the host", || {
        cluster.daemons.in_use().iter().any(|pid| crate::daemons::command_of(*pid) == "cat")
    });
    send(Signal::KILL, cut.pid());
    cluster.is_left();
}
