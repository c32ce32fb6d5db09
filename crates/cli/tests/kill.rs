//! `kill -9` of pinwise at random moments: no thread of the target stays pinned, no recorded measurement is lost.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use support::{PINWISE, Program, affinities, wait_until};
use tempfile::TempDir;

/// How often pinwise is killed.
const KILLS: u64 = 200;

/// Records in the store, as an independent reader sees them; 0 while there is no store yet.
fn recorded(store: &Path) -> u64 {
    if !store.exists() {
        return 0;
    }
    let reader = pinwise_campaign::Store::open(store).unwrap();
    reader.list().unwrap().iter().map(|campaign| campaign.records).sum()
}

#[test]
fn no_thread_stays_pinned_and_no_measurement_is_lost() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let counts = folder.path().join("counts");
    let target = Program::start(
        Command::new(PINWISE)
            .args(["workload", "hash1_L1", "--instances", "2", "--interval", "10ms", "--seconds", "900"])
            .stdout(std::fs::File::create(&counts).unwrap()),
    );
    wait_until(Duration::from_secs(10), "the workload's threads", || affinities(target.pid()).len() >= 7);
    let before = affinities(target.pid());
    let metric = format!(r"file:{}:packets=(?<value>\d+) seconds=(?<seconds>[\d.]+)", counts.display());
    let mut random = pinwise_topology::Random::new(20);
    let mut pinned = 0;
    for _ in 0..KILLS {
        let mut place = Program::start(
            Command::new(PINWISE)
                .args([
                    "place",
                    "--pid",
                    &target.pid().to_string(),
                    "--metric",
                    &metric,
                    "--counter",
                    "--budget",
                    "60s",
                ])
                .args(["--period", "20ms", "--store", store.to_str().unwrap()])
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        thread::sleep(Duration::from_micros(random.below(1_200_000)));
        let known = recorded(&store);
        pinned += u64::from(affinities(target.pid()) != before);
        place.0.kill().unwrap();
        place.0.wait().unwrap();
        wait_until(Duration::from_secs(1), "the original affinities", || affinities(target.pid()) == before);
        assert!(recorded(&store) >= known, "recorded measurements were lost");
    }
    assert!(
        recorded(&store) > 0 && pinned > KILLS / 10,
        "the kills met {pinned} pinned moments: too few to prove anything"
    );
    let campaigns = pinwise_campaign::Store::open(&store).unwrap();
    for campaign in campaigns.list().unwrap() {
        let records = campaigns.records(campaign.id).unwrap();
        assert!(records.iter().zip(0..).all(|(record, number)| record.number == number), "a gap in {:?}", campaign.id);
    }
}
