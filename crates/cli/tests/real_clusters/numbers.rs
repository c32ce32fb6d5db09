//! A search for a number of threads, and `tune`, on real daemons.

use crate::cluster::Cluster;
use crate::slurm::slurm;
use crate::ssh::hosts;
use crate::support::PINWISE;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const SWEEP: [&str; 16] = [
    "threads",
    "--machine",
    "opteron-24",
    "--workload",
    "ferret",
    "--method",
    "sweep",
    "--min",
    "8",
    "--max",
    "24",
    "--step",
    "8",
    "--budget",
    "20s",
    "--json",
];

/// The settings and results of a campaign and its part, as the store has them.
fn rows(store: &Path) -> Vec<(i64, String)> {
    let reader = rusqlite::Connection::open(store).unwrap();
    let of = "SELECT campaign, json_array(assignment, windows, performance, spread, detail)
              FROM record ORDER BY campaign, number";
    let mut statement = reader.prepare(of).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Runs pinwise to its end. Returns its document.
fn run(mut command: Command, words: &[&str], store: &Path) -> serde_json::Value {
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    command.args(&words[..end]).arg("--store").arg(store).args(&words[end..]);
    command.env("XDG_DATA_HOME", store.parent().unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn on<'a>(cluster_words: &'a [String], words: &[&'a str]) -> Vec<&'a str> {
    let all = words[..1].iter().copied().chain(cluster_words.iter().map(String::as_str));
    all.chain(words[1..].iter().copied()).collect()
}

fn sweeps_as_alone(cluster: &Cluster) {
    let folder = TempDir::new().unwrap();
    let [one, both] = ["one.db", "both.db"].map(|name| folder.path().join(name));
    let alone = run(Command::new(PINWISE), &SWEEP, &one);
    let nodes = (cluster.on)(2);
    let found = run(cluster.command(PINWISE), &on(&nodes, &SWEEP), &both);
    cluster.is_left();
    assert_eq!(rows(&both), rows(&one));
    assert_eq!((&found["parameter"], &found["verdict"]), (&alone["parameter"], &alone["verdict"]));
}

#[test]
fn slurm_nodes_find_the_number_that_one_machine_finds() {
    let Some(cluster) = slurm() else { return };
    sweeps_as_alone(&cluster);
}

#[test]
fn hosts_find_the_number_that_one_machine_finds() {
    let Some(cluster) = hosts() else { return };
    sweeps_as_alone(&cluster);
}

fn tunes(cluster: &Cluster) {
    let folder = TempDir::new().unwrap();
    let job = "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done; : {n}";
    let tune = ["tune", "--method", "sweep", "--rounds", "1", "--max", "2", "--budget", "4s"];
    let tune = [&tune[..], &["--json", "--", "sh", "-c", job]].concat();
    let nodes = (cluster.on)(2);
    let store = folder.path().join("tuned.db");
    let found = run(cluster.command(PINWISE), &on(&nodes, &tune), &store);
    cluster.is_left();
    assert!(found["choice"].is_string(), "{found:#}");
    // Two numbers, and the first round of the last comparison.
    assert!(rows(&store).len() >= 4);
}

#[test]
fn a_number_and_its_placement_are_found_on_hosts() {
    if let Some(cluster) = hosts() {
        tunes(&cluster);
    }
}

#[test]
fn a_number_and_its_placement_are_found_on_slurm_nodes() {
    if let Some(cluster) = slurm() {
        tunes(&cluster);
    }
}
