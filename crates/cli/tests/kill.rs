//! `kill -9` of pinwise at 200 random moments: no thread of the target stays pinned, no recorded
//! measurement is lost.
//!
//! A third of the kills comes at any moment from the start on (also before the guardian exists, and
//! while the threads are surveyed), a third at any moment of measuring, and a third when threads
//! are seen pinned. Four targets at a time, because most of a kill's time is waiting.
//!
//! And of a search for a number of threads, killed and resumed until it ends.

mod support;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use support::{PATIENCE, PINWISE, Program, affinities, wait_until};
use tempfile::TempDir;

/// Targets that pinwise is killed on, each with a store of its own.
const TARGETS: u64 = 4;
/// How often pinwise is killed on each.
const KILLS: u64 = 50;
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
                "3600",
            ])
            .stdout(File::create(&counts).unwrap()),
    );
    wait_until(PATIENCE, "the workload's threads", || affinities(target.pid()).len() >= 4);
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
                .args(["--budget", "10m", "--period", "20ms", "--store", store.to_str().unwrap()])
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        match kill % 3 {
            0 => thread::sleep(within(STARTING)),
            1 => {
                wait_until(PATIENCE, "a measurement", || recorded(&store) > before_this);
                thread::sleep(within(MEASURING));
            }
            _ => wait_until(PATIENCE, "a pinned thread", || affinities(target.pid()) != before),
        }
        let known = recorded(&store);
        pinned += u64::from(affinities(target.pid()) != before);
        place.0.kill().unwrap();
        place.0.wait().unwrap();
        wait_until(PATIENCE, "the original affinities", || affinities(target.pid()) == before);
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

/// Kills of a search at most; it ends the sooner the slower the machine kills.
const SEARCH_KILLS: usize = 60;

#[test]
fn a_search_for_a_number_that_is_killed_and_resumed_ends_with_an_answer() {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let at = ["--store", store.to_str().unwrap(), "--json"];
    let spin = "for i in $(seq $0); do while :; do :; done & done; wait";
    let search = ["threads", "--method", "sweep", "--rounds", "3", "--max", "4", "--probe", "20ms"];
    let begin: Vec<&str> =
        search.into_iter().chain(at).chain(["--", "sh", "-c", spin, "{n}"]).collect();
    let resume: Vec<&str> = ["campaign", "resume", "1"].into_iter().chain(at).collect();
    let mut random = pinwise_topology::Random::new(7);
    let records =
        || pinwise_campaign::Store::open(&store).unwrap().records(pinwise_campaign::CampaignId(1));
    let (mut known, mut kills) = (Vec::new(), 0);
    let answer = loop {
        let words = if recorded(&store) == 0 { &begin } else { &resume };
        // One that was killed before its first probe begins anew.
        if words == &begin && store.exists() {
            for file in std::fs::read_dir(folder.path()).unwrap() {
                std::fs::remove_file(file.unwrap().path()).unwrap();
            }
        }
        let mut run = Program::start(
            Command::new(PINWISE).args(words).stdout(Stdio::piped()).stderr(Stdio::null()),
        );
        if kills < SEARCH_KILLS {
            kills += 1;
            let before = recorded(&store);
            // Some are killed while they start, some after a probe.
            if kills % 2 == 0 {
                thread::sleep(Duration::from_micros(random.below(1_200_000)));
            } else {
                wait_until(Duration::from_secs(60), "a probe or the end", || {
                    recorded(&store) > before || !matches!(run.0.try_wait(), Ok(None))
                });
                thread::sleep(Duration::from_micros(random.below(200_000)));
            }
            let _ = run.0.kill();
        }
        let mut said = String::new();
        std::io::Read::read_to_string(run.0.stdout.as_mut().unwrap(), &mut said).unwrap();
        let ended = run.0.wait().unwrap();
        if recorded(&store) > 0 {
            let now = records().unwrap();
            assert_eq!(now[..known.len()], known, "recorded probes were lost or changed");
            assert!(now.iter().zip(0..).all(|(record, number)| record.number == number));
            known = now;
        }
        if ended.success() {
            break serde_json::from_str::<serde_json::Value>(&said).unwrap();
        }
        assert!(ended.code().is_none(), "{ended}: it was not killed, and failed");
    };
    println!("it took {kills} kills");
    let stopped = &answer["stopped_because"][0]["kind"];
    assert_eq!((known.len(), stopped), (12, &"all_tried".into()), "{answer:#}");
    assert!((1..=4).contains(&answer["parameter"].as_u64().unwrap()), "{answer:#}");
    assert_eq!(answer["probes"].as_array().unwrap().len(), 12);
}
