//! `kill -9` of pinwise at 60 random moments: no thread of the target stays pinned, no recorded
//! measurement is lost.
//!
//! A third of the kills comes at any moment from the start on. That includes the time before the
//! guardian exists, and the scan of the threads. A third comes at any moment of measuring, and a
//! third when threads are seen pinned. Four targets at a time, because most of a kill's time is
//! waiting.
//!
//! Questions of every other kind are killed, too, and resumed until they end.

mod support;

use pinwise_campaign::{CampaignId, Record, Store};
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use support::{PATIENCE, PINWISE, Program, Target, json, number_of_kills, pinwise, wait_until};
use tempfile::TempDir;

/// Targets that pinwise is killed on, each with a separate store.
const TARGETS: u64 = 4;
/// Longer than starting and scanning take if nothing else runs.
const STARTING: Duration = Duration::from_millis(1200);
/// As long as ten measurements and more.
const MEASURING: Duration = Duration::from_millis(300);

/// Records in the store, as an independent reader sees them; 0 while there is no store yet. It
/// takes no lock of a campaign, which could make pinwise believe that somebody else runs it.
fn recorded(store: &Path) -> u64 {
    let Ok(reader) = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_WRITE) else {
        return 0;
    };
    reader.busy_timeout(PATIENCE).unwrap();
    let count = reader.query_row("SELECT count(*) FROM record", [], |row| row.get::<_, i64>(0));
    count.map_or(0, |count| count as u64)
}

/// Kills pinwise again and again on one target; gives how many kills came while threads were
/// pinned.
fn kill_again_and_again(seed: u64) -> u64 {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let complaints = folder.path().join("complaints");
    let target = Target::start("hash1_L1", folder.path());
    let before = target.affinities();
    let mut random = pinwise_topology::Random::new(seed);
    let mut within =
        |limit: Duration| Duration::from_micros(random.below(limit.as_micros() as u64));
    let mut pinned = 0;
    for kill in 0..number_of_kills(60) / TARGETS {
        let before_this = recorded(&store);
        let mut place = Program::start(
            target
                .place("10m")
                .args(["--window", "20ms"])
                .stdout(Stdio::null())
                .stderr(File::create(&complaints).unwrap()),
        );
        // A machine that gives the target no time may end the search before.
        let mut ended = || !matches!(place.0.try_wait(), Ok(None));
        match kill % 3 {
            0 => thread::sleep(within(STARTING)),
            1 => {
                wait_until(PATIENCE, "a measurement", || recorded(&store) > before_this || ended());
                thread::sleep(within(MEASURING));
            }
            _ => {
                wait_until(PATIENCE, "a pinned thread", || target.affinities() != before || ended())
            }
        }
        if ended() {
            println!("ended by itself: {}", std::fs::read_to_string(&complaints).unwrap());
        }
        let known = recorded(&store);
        pinned += u64::from(target.affinities() != before);
        let _ = place.0.kill();
        place.0.wait().unwrap();
        wait_until(PATIENCE, "the original affinities", || target.affinities() == before);
        assert!(recorded(&store) >= known, "recorded measurements were lost");
    }
    let campaigns = Store::open(&store).unwrap();
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
    println!("{pinned} of {} kills met pinned threads", number_of_kills(60));
    assert!(
        pinned >= number_of_kills(60) / 10,
        "{pinned} kills met pinned threads: too few to prove anything"
    );
}

/// The last answer to a question that is killed again and again.
struct Outlasted {
    answer: Value,
    /// Of every campaign.
    records: Vec<Vec<Record>>,
    /// Kills that came while pinwise ran and had a record.
    met: usize,
}

/// Removes a store and what belongs to it.
fn clear(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => std::fs::remove_dir_all(entry.path()).unwrap(),
            false => std::fs::remove_file(entry.path()).unwrap(),
        }
    }
}

/// Everything that comes out of a pipe until it is closed.
fn all_of(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    let mut pipe = pipe.unwrap();
    thread::spawn(move || std::io::read_to_string(&mut pipe).unwrap())
}

/// Asks `question`, kills it again and again, and goes on with it until it ends. Asks it again as
/// long as kills are left.
fn answer_in_spite_of_kills(question: &[&str], program: &[&str], longest: Duration) -> Outlasted {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("pinwise.db");
    let at = ["--store", path.to_str().unwrap(), "--json"];
    let begin: Vec<String> =
        [question, &at, program].concat().into_iter().map(String::from).collect();
    let mut random = pinwise_topology::Random::new(7);
    let mut known: BTreeMap<CampaignId, Vec<Record>> = BTreeMap::new();
    let (mut kills, mut met, mut answers, mut kept) = (0, 0, 0, 0);
    let answer = loop {
        // One that was killed before its first measurement begins again.
        let words = if recorded(&path) == 0 {
            clear(folder.path());
            begin.clone()
        } else {
            let store = Store::open(&path).unwrap();
            let campaigns = store.list().unwrap().campaigns;
            let whole = campaigns.iter().find(|info| info.new.parent.is_none()).unwrap();
            let resume = ["campaign", "resume", &whole.id.0.to_string()].map(String::from);
            resume.into_iter().chain(at.map(String::from)).collect()
        };
        let mut run = Program::start(
            Command::new(PINWISE).args(&words).stdout(Stdio::piped()).stderr(Stdio::piped()),
        );
        let (said, complained) = (all_of(run.0.stdout.take()), all_of(run.0.stderr.take()));
        let mut durable = 0;
        if kills < number_of_kills(4) {
            kills += 1;
            let before = recorded(&path);
            let mut within =
                |limit: Duration| Duration::from_micros(random.below(limit.as_micros() as u64));
            // Some are killed while they start, some after a measurement.
            if kills % 2 == 0 {
                thread::sleep(within(longest));
            } else {
                wait_until(Duration::from_secs(60), "a measurement or the end", || {
                    recorded(&path) > before || !matches!(run.0.try_wait(), Ok(None))
                });
                thread::sleep(within(longest / 6));
            }
            let runs = matches!(run.0.try_wait(), Ok(None));
            durable = recorded(&path);
            met += usize::from(runs && durable > 0);
            let _ = run.0.kill();
        }
        let ended = run.0.wait().unwrap();
        assert!(recorded(&path) >= durable, "records were lost with the kill");
        let [said, complained] = [said, complained].map(|pipe| pipe.join().unwrap());
        if path.exists() {
            let store = Store::open(&path).unwrap();
            for (id, before) in &mut known {
                let now = store.records(*id).unwrap();
                assert_eq!(now[..before.len()], *before, "records were lost or changed");
            }
            for campaign in store.list().unwrap().campaigns {
                let now = store.records(campaign.id).unwrap();
                assert!(now.iter().zip(0..).all(|(record, number)| record.number == number));
                known.insert(campaign.id, now);
            }
            known.retain(|_, records| !records.is_empty());
        }
        if ended.success() {
            let answer = serde_json::from_str(&said).unwrap();
            answers += 1;
            kept += known.values().map(Vec::len).sum::<usize>();
            if kills == number_of_kills(4) {
                break answer;
            }
            clear(folder.path());
            known.clear();
            continue;
        }
        assert!(ended.code().is_none(), "{ended}: {words:?} was not killed: {complained}");
    };
    println!(
        "{}: {met} of {kills} kills met a record; {answers} answers with {kept} records, none lost",
        question[0]
    );
    Outlasted { answer, records: known.into_values().collect(), met }
}

/// Busy threads, as many as the number.
const SPIN: [&str; 5] =
    ["--", "sh", "-c", "for i in $(seq $0); do while :; do :; done & done; wait", "{n}"];

#[test]
fn a_sweep_of_numbers_that_is_killed_and_resumed_ends_with_an_answer() {
    let sweep = ["threads", "--method", "sweep", "--rounds", "3", "--max", "4", "--window", "20ms"];
    let search = [&sweep[..], &["--budget", "2s"]].concat();
    let Outlasted { answer, records, met } = answer_in_spite_of_kills(&search, &SPIN, STARTING);
    assert!(met > 0, "no kill met a record: this proves nothing");
    let stopped = &answer["stopped_because"][0]["kind"];
    // Others may have starved some, which were made again.
    let made = 12 + answer["set_aside"].as_u64().unwrap() as usize;
    assert_eq!((records[0].len(), stopped), (made, &"all_tried".into()), "{answer:#}");
    // The fresh windows of the number and of the default, in rounds.
    assert!(records[1].len() >= 2 && records[1].len().is_multiple_of(2), "{answer:#}");
    assert!(answer["verdict"]["kind"].is_string(), "{answer:#}");
    assert!((1..=4).contains(&answer["parameter"].as_u64().unwrap()), "{answer:#}");
    assert_eq!(answer["probes"].as_array().unwrap().len(), 12);
}

#[test]
fn questions_about_this_machine_that_are_killed_and_resumed_end_with_an_answer() {
    // There is nothing to choose.
    if thread::available_parallelism().is_ok_and(|contexts| contexts.get() < 2) {
        return pinwise_synthetic::lacking("two CPUs");
    }
    // Each kill costs up to a second of the budget.
    let budget = format!("{}s", 6 + number_of_kills(4));
    let survey = ["threads", "--max", "4", "--window", "20ms", "--budget", &budget];
    let spins = ["compare", "--workload", "intadd:2", "--window", "10ms", "--budget", "20"];
    let compare = [&spins[..], &["--draws", "4", "--rounds", "10"]].concat();
    let benchmarks = ["characterize", "--benchmarks", "intadd", "--stressors", "1"];
    let characterize = [&benchmarks[..], &["--rounds", "2"]].concat();
    let counts = r#"for i in $(seq $0); do
        sh -c "i=0; while [ \$i -lt 40000 ]; do i=\$((i+1)); done" & done; wait"#;
    let tune = ["tune", "--max", "2", "--budget", &budget];
    let program = ["--", "sh", "-c", counts, "{n}"];
    let questions: [(&[&str], &[&str], &str); 5] = [
        (&survey, &SPIN, "probes"),
        (&compare, &[], "ways"),
        (&characterize, &[], "slowdowns"),
        (&["latency"], &[], "matrix"),
        (&tune, &program, "ways"),
    ];
    for (question, program, key) in questions {
        let Outlasted { answer, met, .. } =
            answer_in_spite_of_kills(question, program, MEASURING * 2);
        assert!(met > 0, "no kill met a record of {}", question[0]);
        assert!(answer[key].as_array().is_some_and(|all| !all.is_empty()), "{answer:#}");
    }
}

#[test]
fn questions_about_a_model_that_are_killed_and_resumed_end_with_their_answer() {
    let model = ["--machine", "ultrasparc-t2"];
    let compare = ["--cycles", "20000", "--starts", "1", "--budget", "60", "--cpus", "0-15"];
    let workload = ["compare", "--workload", "intadd:1", "--draws", "3", "--rounds", "5"];
    let choose = ["select", "--workload", "intadd:2+intmul:2", "--choose", "2"];
    let benchmarks = ["characterize", "--benchmarks", "intadd,FPdiv", "--stressors", "4"];
    let examples = ["threads", "calibrate", "--machine", "2x4", "--max", "16", "--rounds", "1"];
    // On a model nothing of the answer depends on the time that it took.
    let beside = ["pairs", "--workload", "intadd", "--workload", "intmul", "--workload", "intdiv"];
    let modelled: [(&[&str], &[&str]); 5] = [
        (&[&beside[..], &model, &compare].concat(), &["pairing", "gain", "matrix"]),
        (&[&workload[..], &model, &compare].concat(), &["best", "ways", "rounds"]),
        (&[&choose[..], &model, &compare].concat(), &["best", "alone", "upb", "selections"]),
        (&[&benchmarks[..], &model].concat(), &["isolation", "slowdowns", "findings"]),
        (&examples, &["thresholds", "examples"]),
    ];
    let mut met = 0;
    for (question, keys) in modelled {
        let killed = answer_in_spite_of_kills(question, &[], MEASURING * 2);
        let folder = TempDir::new().unwrap();
        let store = folder.path().join("pinwise.db");
        let at = ["--store", store.to_str().unwrap(), "--json"];
        let at_once = json(&pinwise(question.iter().chain(&at)));
        for key in keys {
            assert_eq!(killed.answer[key], at_once[key], "{}: {key}", question[0]);
        }
        met += killed.met;
    }
    assert!(met > 0, "no kill met a record: this proves nothing");
}

#[test]
fn a_guardian_leaves_no_ledger_that_it_cannot_open() {
    let folder = TempDir::new().unwrap();
    let ledger = folder.path().join("ledger");
    // A guardian follows no link.
    std::os::unix::fs::symlink("/dev/null", &ledger).unwrap();
    let mut guardian = Command::new(PINWISE);
    guardian.arg(pinwise_linux::GUARDIAN_ARGUMENT).arg(&ledger);
    let ended = guardian.stdin(Stdio::null()).output().unwrap();
    assert!(ended.status.success() && ledger.symlink_metadata().is_err(), "{ended:?}");
}
