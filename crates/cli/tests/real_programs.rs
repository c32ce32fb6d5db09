//! `pinwise place` on real programs: a packet forwarder, two key-value stores, a compressor, and
//! the workloads that ship with pinwise. The tests check that it measures, concludes, and leaves
//! everything as it was. See docs/lab/benchmarks.md for how fast it is.

mod support;

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use support::source::{TEAM, compiled};
use support::{PATIENCE, Program, affinities, free_port, json, pinwise, tool, wait_until};
use tempfile::TempDir;

/// Of each program: how many fit a second is not decided here, where other tests and compilers may
/// run. One more thread seen at work makes the least budget of a verdict larger.
const MEASUREMENTS: &str = "20";

/// A server is under load once it has answered this number of requests.
const LOADED: u64 = 1000;

/// The number behind `label` in `text`; 0 if there is none.
fn number_after(text: &str, label: &str) -> u64 {
    let digits = text.split_once(label).map_or("", |(_, rest)| rest);
    digits.split(|sign: char| !sign.is_ascii_digit()).next().unwrap_or("").parse().unwrap_or(0)
}

/// Runs `place` with a store in `folder`, the words given, and gives its JSON.
fn place(folder: &TempDir, words: &[&str]) -> Value {
    let store = folder.path().join("pinwise.db");
    let options = ["place", "--json", "--store", store.to_str().unwrap()];
    json(&pinwise(options.iter().chain(words)))
}

/// Whether a performance is above 0. It may be 0 if the answer says that other programs left this
/// one no CPU time.
fn worked(result: &Value, of: &Value) -> bool {
    let busy = result["notes"].to_string().contains("The machine was busy: other programs took");
    of["performance"].as_f64().is_some_and(|value| value > 0.0 || (value == 0.0 && busy))
}

/// What every placement must have, whatever its source.
fn check(result: &Value) {
    let number =
        |field: &str| result[field].as_f64().unwrap_or_else(|| panic!("{field} in {result:#}"));
    assert!(number("measurements") >= 10.0, "{result:#}");
    assert!(worked(result, &result["best"]), "{result:#}");
    assert!(worked(result, &result["baseline"]), "{result:#}");
    assert!(!result["best"]["assignment"].as_array().unwrap().is_empty(), "{result:#}");
    assert!(
        result["stopped_because"][0]["text"].is_string() && result["unit"].is_string(),
        "{result:#}"
    );
    assert!(fs::exists(result["plan"].as_str().unwrap()).unwrap(), "{result:#}");
}

#[test]
fn a_built_in_workload_is_placed() {
    let folder = TempDir::new().unwrap();
    let result = place(&folder, &["--workload", "hash1_L1:2", "--budget", MEASUREMENTS]);
    check(&result);
    assert_eq!(result["threads"].as_array().unwrap().len(), 6);
    assert_eq!(result["unit"], "packets/s");
}

#[test]
fn instances_of_built_in_programs_are_profiled_apart() {
    let folder = TempDir::new().unwrap();
    // One thread of each instance. Each program has one experiment alone, and two more beside
    // nobody and beside the other.
    let words = "--workload hash1_L1:1+stateful:1 --include=-R$ --per-context 2 --strategy \
        blackbox --precision 30% --budget 10m";
    let result = place(&folder, &words.split(' ').collect::<Vec<_>>());
    check(&result);
    let forecast = &result["forecast"];
    assert_eq!(
        (&forecast["base"], &forecast["slowdown_measured"]),
        (&2.into(), &4.into()),
        "{result:#}"
    );
    let threads = result["threads"].as_array().unwrap();
    assert_eq!(
        threads.iter().map(|thread| thread["role"].as_str().unwrap()).collect::<Vec<_>>(),
        ["hash1_L1-R", "stateful-R"]
    );
    let finalists = forecast["finalists"].as_array().unwrap();
    assert!(finalists.iter().all(|finalist| finalist["measured"].as_f64().is_some()), "{result:#}");
    // Together and apart; one of them where measurements of a busy machine leave the other behind.
    assert!((1..=2).contains(&finalists.len()), "{result:#}");
}

#[test]
fn a_compressor_is_started_anew_for_each_measurement() {
    let Some(pigz) = tool("pigz") else { return };
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("data");
    let mut random = pinwise_topology::Random::new(1);
    let text: Vec<u8> =
        (0..8 << 20).map(|_| b"aabbccdd etaoin shrdlu"[random.below(22) as usize]).collect();
    fs::write(&file, text).unwrap();
    let result = place(
        &folder,
        &[
            "--budget",
            MEASUREMENTS,
            "--metric",
            "runtime",
            "--",
            pigz.to_str().unwrap(),
            "-p",
            "3",
            "-k",
            "-c",
            file.to_str().unwrap(),
        ],
    );
    check(&result);
    assert_eq!(result["unit"], "s");
}

#[test]
fn what_a_running_program_reads_itself_is_its_performance() {
    let folder = TempDir::new().unwrap();
    // A terabyte: each ends without help, after minutes. The processes themselves read, they have
    // no children. One thread alone would have nothing to choose.
    let words = ["if=/dev/zero", "of=/dev/null", "bs=64k", "count=20000000"];
    let dd = [(); 2].map(|()| Program::start(Command::new("dd").args(words).stderr(Stdio::null())));
    let [first, second] = dd.each_ref().map(|dd| dd.pid().to_string());
    let result = place(
        &folder,
        &["--pid", &first, "--pid", &second, "--metric", "io:rchar", "--budget", MEASUREMENTS],
    );
    check(&result);
}

#[test]
fn a_running_redis_is_placed_and_left_as_it_was() {
    let (Some(server), Some(load), Some(client)) =
        (tool("redis-server"), tool("redis-benchmark"), tool("redis-cli"))
    else {
        return;
    };
    let folder = TempDir::new().unwrap();
    let port = free_port().to_string();
    let redis = Program::start(
        Command::new(server)
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .args(["--io-threads", "2", "--io-threads-do-reads", "yes"])
            .current_dir(folder.path())
            .stdout(Stdio::null()),
    );
    wait_until(PATIENCE, "redis to listen", || {
        TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
    });
    let _load = Program::start(
        Command::new(load)
            .args(["-p", &port, "-n", "200000000", "-c", "40", "-P", "8", "-t", "get", "-q"])
            .stdout(Stdio::null()),
    );
    let served = || {
        let stats = Command::new(&client).args(["-p", &port, "info", "stats"]).output().unwrap();
        number_after(&String::from_utf8_lossy(&stats.stdout), "total_commands_processed:")
    };
    wait_until(PATIENCE, "redis to serve its load", || served() > LOADED);
    let before = affinities(redis.pid());
    let metric = format!("cmd:{} -p {port} info stats", client.display());
    let result = place(
        &folder,
        &[
            "--pid",
            &redis.pid().to_string(),
            "--metric",
            &metric,
            "--pick",
            r"total_commands_processed:(\d+)",
            "--budget",
            MEASUREMENTS,
        ],
    );
    check(&result);
    assert_eq!(affinities(redis.pid()), before);
}

#[test]
fn a_running_memcached_is_placed_and_left_as_it_was() {
    let Some(server) = tool("memcached") else { return };
    let folder = TempDir::new().unwrap();
    let port = free_port();
    let memcached = Program::start(Command::new(server).args([
        "-u",
        "nobody",
        "-l",
        "127.0.0.1",
        "-t",
        "4",
        "-U",
        "0",
        "-p",
        &port.to_string(),
    ]));
    wait_until(PATIENCE, "memcached to listen", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let load = thread::spawn(move || {
        pinwise_synthetic::load::memcached(port, 8, Duration::from_secs(900), &stopped)
    });
    let served = || {
        let mut server = TcpStream::connect(("127.0.0.1", port)).unwrap();
        server.write_all(b"stats\r\nquit\r\n").unwrap();
        number_after(&std::io::read_to_string(server).unwrap(), "STAT cmd_get ")
    };
    wait_until(PATIENCE, "memcached to serve its load", || served() > LOADED);
    let before = affinities(memcached.pid());
    let metric = format!(
        r#"cmd:bash -c 'exec 3<>/dev/tcp/127.1/{port}; printf "stats\r\nquit\r\n" >&3; cat <&3'"#
    );
    let result = place(
        &folder,
        &[
            "--pid",
            &memcached.pid().to_string(),
            "--metric",
            &metric,
            "--pick",
            r"STAT cmd_get (\d+)",
            "--budget",
            MEASUREMENTS,
        ],
    );
    check(&result);
    assert_eq!(affinities(memcached.pid()), before);
    stop.store(true, Ordering::Relaxed);
    assert!(load.join().unwrap().unwrap() > 0);
}

/// The command line of a packet forwarder with two workers, which needs neither hardware nor huge
/// pages.
fn forwarder<'a>(testpmd: &'a str, prefix: &'a str) -> [&'a str; 21] {
    [
        testpmd,
        "--lcores",
        "0@0,1@0,2@1",
        "--no-huge",
        "-m",
        "256",
        "--no-pci",
        "--vdev",
        "net_null0",
        "--vdev",
        "net_null1",
        "--file-prefix",
        prefix,
        "--",
        "--auto-start",
        "--stats-period",
        "1",
        "--forward-mode=macswap",
        "--nb-cores=2",
        "--total-num-mbufs=8192",
        "--no-mlockall",
    ]
}

/// Runs `compare` with a small budget; the ways that must be in it are.
fn compare(words: &[&str]) -> Value {
    let folder = TempDir::new().unwrap();
    let store = folder.path().join("pinwise.db");
    let options =
        ["compare", "--json", "--store", store.to_str().unwrap(), "--budget", MEASUREMENTS];
    let small = ["--draws", "3", "--rounds", "5"];
    let result = json(&pinwise(options.iter().chain(&small).chain(words)));
    let ways = result["ways"].as_array().unwrap();
    let way = |name: &str| {
        ways.iter().find(|way| way["name"] == name).unwrap_or_else(|| panic!("{name}: {result:#}"))
    };
    for name in [
        "OS default",
        "naive, mean of 3",
        "naive, worst of 3",
        "balanced, mean of 3",
        "balanced, worst of 3",
    ] {
        assert!(worked(&result, way(name)), "{result:#}");
        assert_eq!(way(name)["measurements"], 0);
    }
    for name in ["random, iterative", "hill climbing", "default strategy"] {
        assert!(
            way(name)["assignment"].is_array() && way(name)["measurements"].as_u64() >= Some(10),
            "{result:#}"
        );
    }
    assert_eq!(way("OS default")["n"], 10);
    let best: Vec<&Value> = ways.iter().filter(|way| way["standing"] == "best").collect();
    assert!(!best.is_empty() && best[0]["name"] == result["best"], "{result:#}");
    assert!(
        best.iter().all(|way| way["loss"] == 0.0 && way["assignment"] == best[0]["assignment"]),
        "{result:#}"
    );
    result
}

#[test]
fn ways_of_placing_a_built_in_workload_are_compared() {
    let result = compare(&["--workload", "hash1_L1:2"]);
    assert_eq!((&result["unit"], &result["rounds"]), (&Value::from("packets/s"), &Value::from(5)));
}

#[test]
fn ways_of_placing_a_packet_forwarder_are_compared() {
    let Some(testpmd) = tool("dpdk-testpmd") else { return };
    let prefix = format!("pwc{}", std::process::id());
    let metric = format!("dpdk:{prefix}");
    let command = forwarder(testpmd.to_str().unwrap(), &prefix);
    compare(&[&["--metric", &metric, "--"], &command[..]].concat());
}

#[test]
fn a_packet_forwarder_is_placed_by_its_telemetry() {
    let Some(testpmd) = tool("dpdk-testpmd") else { return };
    let folder = TempDir::new().unwrap();
    let prefix = format!("pw{}", std::process::id());
    let metric = format!("dpdk:{prefix}");
    let command = forwarder(testpmd.to_str().unwrap(), &prefix);
    let words = [&["--budget", MEASUREMENTS, "--metric", &metric, "--"], &command[..]].concat();
    let result = place(&folder, &words);
    check(&result);
    let names: Vec<&str> = result["threads"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|thread| thread["name"].as_str())
        .collect();
    // The first thread prints. Where other programs leave the workers little, that counts as much.
    let workers = names.iter().filter(|name| name.contains("worker")).count();
    let known = |name: &&str| name.contains("worker") || *name == "dpdk-testpmd";
    assert!(workers == 2 && names.iter().all(known), "{names:?}");
}

#[test]
fn a_running_program_stays_pinned_where_pinning_wins_and_that_was_asked() {
    if thread::available_parallelism().is_ok_and(|contexts| contexts.get() < 2) {
        return pinwise_synthetic::lacking("a second CPU");
    }
    let folder = TempDir::new().unwrap();
    let Some(program) = compiled(&folder, TEAM) else { return };
    let speeds = folder.path().join("speeds");
    let team = Program::start(Command::new(program).arg("3").arg(&speeds));
    wait_until(PATIENCE, "the team", || affinities(team.pid()).len() == 3 && speeds.exists());
    let metric = format!(r"file:{}:speed (\d+)", speeds.display());
    let (pid, metric) = (team.pid().to_string(), metric.as_str());
    let words = ["--metric", metric, "--gauge", "--budget", "150", "--apply", "--pid", &pid];
    let result = place(&folder, &words);
    assert_eq!(result["verdict"]["kind"], "pin", "pinned it is eight times as fast: {result:#}");
    let best = result["best"]["assignment"].as_array().unwrap();
    let mut expected: Vec<String> = best.iter().map(|place| place["cpu"].to_string()).collect();
    let mut found: Vec<String> = affinities(team.pid()).into_values().collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected, "{result:#}");
}
