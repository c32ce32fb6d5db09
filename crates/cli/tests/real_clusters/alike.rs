//! Nodes that are unlike the others measure nothing. Real programs on the "nodes" of this host.

use crate::cluster::Cluster;
use crate::slurm::slurm;
use crate::ssh::hosts;
use crate::support::{PINWISE, json, tool};
use std::fs;
use std::process::Output;
use tempfile::TempDir;

/// A login sees CPUs 0 and 1 as one core of two threads.
const ANOTHER_TOPOLOGY: &str = r#"exec unshare --mount sh -c '
    cd "$HOME" && echo 0-1 >list && echo 3 >mask && echo 0 >id || exit
    for cpu in 0 1; do
        topology=/sys/devices/system/cpu/cpu$cpu/topology
        mount --bind id $topology/core_id || exit
        for shared in core_cpus thread_siblings; do
            mount --bind list $topology/${shared}_list || exit
            mount --bind mask $topology/$shared || exit
        done
    done
    eval "$SSH_ORIGINAL_COMMAND"'
"#;

const FEWER_CPUS: &str = "exec taskset -c 0 sh -c \"$SSH_ORIGINAL_COMMAND\"\n";

/// Two threads of work for some hundredths of a second: shorter ones may go unseen on a busy host.
const LOOPS: &str = "w() { i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done; }; w & w & wait";

/// `pinwise place` on a program that really runs, anew for each measurement.
fn place(cluster: &Cluster, on: &[&str]) -> (Output, TempDir) {
    measure(cluster, &[&["place", "--budget", "40"], on].concat(), &["--", "sh", "-c", LOOPS])
}

/// A command that measures for real.
fn measure(cluster: &Cluster, words: &[&str], program: &[&str]) -> (Output, TempDir) {
    let folder = TempDir::new().unwrap();
    let mut command = cluster.command(PINWISE);
    command.args(words).args(["--json", "--store"]).arg(folder.path().join("pinwise.db"));
    command.args(program).env("XDG_DATA_HOME", folder.path());
    (command.output().unwrap(), folder)
}

/// No record is missing or there twice. Returns their count.
fn numbers_without_gap(folder: &TempDir) -> i64 {
    let store = rusqlite::Connection::open(folder.path().join("pinwise.db")).unwrap();
    let question = "SELECT count(*), min(number), max(number) FROM record WHERE campaign = 1";
    let row = |row: &rusqlite::Row| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (count, first, last): (i64, i64, i64) = store.query_row(question, [], row).unwrap();
    assert!(first == 0 && last == count - 1, "{count} {first} {last}");
    count
}

#[test]
fn nodes_of_slurm_measure_a_real_program() {
    let Some(cluster) = slurm() else { return };
    let (output, folder) = place(&cluster, &["--on", "slurm", "--nodes", "2"]);
    let document = json(&output);
    assert!(document["best"]["performance"].as_f64().is_some_and(|rate| rate > 0.0));
    assert!(numbers_without_gap(&folder) >= 40);
    cluster.is_left();
}

#[test]
fn nodes_of_slurm_measure_microbenchmarks() {
    let Some(cluster) = slurm() else { return };
    let words = ["characterize", "--benchmarks", "intadd,intmul", "--stressors", "1"];
    let on = ["--rounds", "2", "--on", "slurm", "--nodes", "4"];
    let (output, folder) = measure(&cluster, &[&words[..], &on].concat(), &[]);
    json(&output);
    cluster.is_left();
    // Each alone and beside each one, twice.
    assert!(numbers_without_gap(&folder) >= 2 * (2 + 4));
    let store = rusqlite::Connection::open(folder.path().join("pinwise.db")).unwrap();
    let question = "SELECT count(DISTINCT node) FROM result";
    let nodes: i64 = store.query_row(question, [], |row| row.get(0)).unwrap();
    assert!(nodes > 1, "one node measured all");
}

#[test]
fn a_host_of_another_topology_is_set_aside_and_named() {
    let (Some(cluster), Some(_)) = (hosts(), tool("unshare")) else { return };
    if std::thread::available_parallelism().unwrap().get() != 2 {
        pinwise_synthetic::not_judged("CPUs 0 and 1 are not all");
        return;
    }
    fs::write(cluster.daemons.path("h2/login"), ANOTHER_TOPOLOGY).unwrap();
    fs::write(cluster.daemons.path("h3/login"), FEWER_CPUS).unwrap();
    let mut mounts = cluster.command("ssh");
    if !mounts.args(["h2", "true"]).status().unwrap().success() {
        pinwise_synthetic::not_judged("this user may not mount over /sys");
        return;
    }
    let (output, folder) = place(&cluster, &["--on", "ssh:h1,h2,h3"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    json(&output);
    let named =
        |node: &str, why: &str| said.lines().any(|line| line.contains(node) && line.contains(why));
    assert!(named("node h2", "1 core") && named("node h3", "CPU 0"), "{said}");
    assert!(numbers_without_gap(&folder) >= 40);
    cluster.is_left();
}
