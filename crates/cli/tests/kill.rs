//! `kill -9` of pinwise at 200 random moments: no thread of the target stays pinned, no recorded
//! measurement is lost.
//!
//! Every other kill comes at any moment from the start on (also before the guardian exists, and
//! while the threads are surveyed), the rest while assignments are measured. Two targets at a time,
//! because most of a kill's time is waiting.

mod support;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use support::{PINWISE, Program, affinities, wait_until};
use tempfile::TempDir;

/// Targets that pinwise is killed on, each with a store of its own.
const TARGETS: u64 = 2;
/// How often pinwise is killed on each.
const KILLS: u64 = 100;
/// Longer than starting and surveying take where nothing else runs.
const STARTING: Duration = Duration::from_millis(1200);
/// As long as ten measurements and more.
const MEASURING: Duration = Duration::from_millis(300);

/// Records in the store, as an independent reader sees them; 0 while there is no store yet.
fn recorded(store: &Path) -> u64 {
    if !store.exists() {
        return 0;
    }
    let reader = pinwise_campaign::Store::open(store).unwrap();
    reader.list().unwrap().campaigns.iter().map(|campaign| campaign.records).sum()
}

/// Kills pinwise again and again on one target; gives how many kills met pinned threads.
fn kill_again_and_again(seed: u64) -> u64 {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let counts = folder.path().join("counts");
    let target = Program::start(
        Command::new(PINWISE)
            .args([
                "workload",
                "hash1_L1",
                "--instances",
                "1",
                "--interval",
                "10ms",
                "--seconds",
                "900",
            ])
            .stdout(File::create(&counts).unwrap()),
    );
    wait_until(Duration::from_secs(10), "the workload's threads", || {
        affinities(target.pid()).len() >= 4
    });
    let before = affinities(target.pid());
    let metric =
        format!(r"file:{}:packets=(?<value>\d+) seconds=(?<seconds>[\d.]+)", counts.display());
    let mut random = pinwise_topology::Random::new(seed);
    let mut within =
        |limit: Duration| Duration::from_micros(random.below(limit.as_micros() as u64));
    let mut pinned = 0;
    for kill in 0..KILLS {
        let before_this = recorded(&store);
        let mut place = Program::start(
            Command::new(PINWISE)
                .args([
                    "place",
                    "--pid",
                    &target.pid().to_string(),
                    "--metric",
                    &metric,
                    "--counter",
                ])
                .args(["--budget", "60s", "--period", "20ms", "--store", store.to_str().unwrap()])
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        if kill % 2 == 0 {
            thread::sleep(within(STARTING));
        } else {
            wait_until(Duration::from_secs(30), "a measurement", || recorded(&store) > before_this);
            thread::sleep(within(MEASURING));
        }
        let known = recorded(&store);
        pinned += u64::from(affinities(target.pid()) != before);
        place.0.kill().unwrap();
        place.0.wait().unwrap();
        wait_until(Duration::from_secs(1), "the original affinities", || {
            affinities(target.pid()) == before
        });
        assert!(recorded(&store) >= known, "recorded measurements were lost");
    }
    let campaigns = pinwise_campaign::Store::open(&store).unwrap();
    for campaign in campaigns.list().unwrap().campaigns {
        let records = campaigns.records(campaign.id).unwrap();
        assert!(
            records.iter().zip(0..).all(|(record, number)| record.number == number),
            "a gap in {:?}",
            campaign.id
        );
    }
    pinned
}

#[test]
fn no_thread_stays_pinned_and_no_measurement_is_lost() {
    let targets: Vec<_> =
        (0..TARGETS).map(|seed| thread::spawn(move || kill_again_and_again(seed))).collect();
    let pinned: u64 = targets.into_iter().map(|target| target.join().unwrap()).sum();
    println!("{pinned} of {} kills met pinned threads", TARGETS * KILLS);
    assert!(
        pinned >= TARGETS * KILLS / 10,
        "{pinned} kills met pinned threads: too few to prove anything"
    );
}
