//! Faults of the machine around pinwise, made for real. Their table is in
//! docs/reference/reliability.md.

mod support;

use pinwise_synthetic::{lacking, not_judged};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use support::source::compiled;
use support::{PATIENCE, PINWISE, Program, Target, affinities, json, pinwise, tool, wait_until};
use tempfile::TempDir;

/// Sizes of the disks that become full, in KiB.
const DISKS: std::ops::RangeInclusive<u32> = 1..=30;

/// Limits of open files. The loader of programs needs four.
const DESCRIPTORS: [u32; 10] = [4, 5, 6, 7, 8, 9, 10, 12, 16, 24];

/// How often `place` runs with a wall clock that jumps.
const CLOCKS: u32 = 5;

/// How often a process is stopped while threads are pinned.
const STOPS: u32 = 5;

/// Limits of the address space above the least with which pinwise starts, in steps of 1 MB.
const MEMORIES: u32 = 9;

/// An end with a result or a clear error.
fn check_end(output: &Output, what: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0..=2)), "{what}: {}: {said}", output.status);
    assert!(!said.contains("panicked"), "{what}: {said}");
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

#[test]
fn a_disk_that_is_full_at_any_moment_keeps_what_was_measured() {
    let Some(unshare) = tool("unshare") else { return };
    let folder = TempDir::new().unwrap();
    let disk = folder.path().to_str().unwrap();
    let mounts = Command::new(&unshare).args(["-m", "mount", "-t", "tmpfs", "none", disk]).output();
    if !mounts.unwrap().status.success() {
        not_judged("this user may not mount a disk");
        return;
    }
    let script = r#"mount -t tmpfs -o size="$2"k none "$1" || exit 9
        "$0" place --machine ultrasparc-t2 --workload intadd:1 --budget 200 --store "$1/p.db" \
            --json >/dev/null
        echo "ended $?" >&2
        exec "$0" campaign export 1 --format json --store "$1/p.db""#;
    let (mut full, mut kept) = (0, 0);
    for step in DISKS {
        let size = 20 * step;
        let output = Command::new(&unshare)
            .args(["-m", "sh", "-c", script, PINWISE, disk, &size.to_string()])
            .env("XDG_DATA_HOME", folder.path())
            .output()
            .unwrap();
        let what = format!("{size} KiB");
        check_end(&output, &what);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(["ended 0\n", "ended 1\n"].iter().any(|end| said.contains(end)), "{what}: {said}");
        if said.contains("ended 1\n") {
            assert!(said.contains("disk is full"), "{what}: {said}");
            full += 1;
        }
        if output.status.success() {
            let campaign: Value = serde_json::from_slice(&output.stdout).unwrap();
            let records = campaign["records"].as_array().unwrap();
            kept += records.len();
            let numbers = records.iter().map(|record| record["number"].as_u64().unwrap());
            assert!(numbers.eq(0..records.len() as u64), "{what}: {campaign}");
        }
    }
    println!("{full} disks were full; {kept} records were there afterwards");
    assert!(full > 10 && kept > 100, "{full} {kept}");
}

/// The notes of the guardian are on that disk, too.
#[test]
fn a_disk_that_becomes_full_while_threads_are_pinned_leaves_no_pin() {
    let Some(unshare) = tool("unshare") else { return };
    let folder = TempDir::new().unwrap();
    let disk = folder.path().to_str().unwrap();
    let script = r#"mount -t tmpfs -o size="$2"k none "$1" || exit 9
        XDG_DATA_HOME="$1" "$0" place --pid "$3" --pid "$4" --counter \
            --metric "file:/proc/$3/schedstat:$5" --window 20ms --budget 150 --store "$1/p.db" \
            --json >/dev/null"#;
    let busy = "ulimit -t 300; while :; do :; done";
    let programs = [(); 2].map(|()| Program::start(Command::new("sh").args(["-c", busy])));
    let masks = || programs.each_ref().map(|program| affinities(program.pid()));
    let (before, pids) = (masks(), programs.each_ref().map(|program| program.pid().to_string()));
    let (mut full, mut pinned, mut answered) = (0, 0, 0);
    for size in [40, 120, 200, 300, 4000] {
        let mut place = Command::new(&unshare);
        place.args(["-m", "sh", "-c", script, PINWISE, disk, &size.to_string()]).args(&pids);
        place.arg(r"^(\d+)").stdin(Stdio::null()).stderr(Stdio::piped());
        let mut place = Program::start(&mut place);
        let mut was_pinned = false;
        let mut status = None;
        wait_until(PATIENCE, "the end of the search", || {
            was_pinned |= masks() != before;
            status = place.0.try_wait().unwrap();
            status.is_some()
        });
        let said = std::io::read_to_string(place.0.stderr.take().unwrap()).unwrap();
        assert_eq!(masks(), before, "{size} KiB: {said}");
        match status.unwrap().code() {
            Some(9) => return not_judged("this user may not mount a disk"),
            Some(0) => answered += 1,
            Some(1) if said.contains("disk is full") => full += 1,
            code => panic!("{size} KiB: {code:?}: {said}"),
        }
        pinned += usize::from(was_pinned);
    }
    println!("{full} disks were full, {pinned} searches had pinned, {answered} answered");
    assert!(full > 0 && pinned > answered && answered > 0, "{full} {pinned} {answered}");
}

#[test]
fn a_search_says_if_it_can_keep_nothing_for_a_kill_of_itself_and_its_guardian() {
    let folder = TempDir::new().unwrap();
    let busy = "ulimit -t 60; while :; do :; done";
    let programs = [(); 2].map(|()| Program::start(Command::new("sh").args(["-c", busy])));
    let no_folder = folder.path().join("file");
    std::fs::write(&no_folder, "").unwrap();
    let told = "nothing is kept for a kill of pinwise and its helper (";
    let masks = || programs.each_ref().map(|program| affinities(program.pid()));
    let before = masks();
    for (data, told_so) in [(no_folder.as_path(), true), (folder.path(), false)] {
        let mut place = place_all(&programs.each_ref(), "8", folder.path());
        let output = place.env("XDG_DATA_HOME", data).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains(told), told_so, "{said}");
        assert_eq!(masks(), before);
    }
}

#[test]
fn a_limit_of_the_size_of_files_is_an_error_that_says_so_and_programs_keep_the_signal() {
    let script = r#"ulimit -f "$2"
        "$0" place --machine ultrasparc-t2 --workload intadd:1 --budget 2000 --store "$1/p.db" \
            --json >/dev/null"#;
    for blocks in ["8", "64", "128", "256"] {
        let folder = TempDir::new().unwrap();
        let output = Command::new("bash")
            .args(["-c", script, PINWISE, folder.path().to_str().unwrap(), blocks])
            .env("XDG_DATA_HOME", folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{blocks}: {said}");
        assert!(said.contains("(ulimit -f)"), "{blocks}: {said}");
    }
    let folder = TempDir::new().unwrap();
    let script = r#"ulimit -f 1024
        exec "$0" place --store "$1/p.db" -- dd if=/dev/zero of="$1/large" bs=1M count=9"#;
    let output = Command::new("bash")
        .args(["-c", script, PINWISE, folder.path().to_str().unwrap()])
        .env("XDG_DATA_HOME", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("SIGXFSZ"), "{said}");
}

#[test]
fn few_descriptors_end_with_a_reason_and_every_affinity_as_it_was() {
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    for limit in DESCRIPTORS {
        let place = target.place("2s");
        let output = Command::new("sh")
            .args(["-c", "ulimit -n \"$0\" && exec \"$@\"", &limit.to_string()])
            .arg(place.get_program())
            .args(place.get_args())
            .env("XDG_DATA_HOME", folder.path())
            .output()
            .unwrap();
        check_end(&output, &format!("{limit} descriptors"));
        wait_until(PATIENCE, "the original affinities", || target.affinities() == before);
    }
}

#[test]
fn little_memory_ends_with_one_line_and_every_affinity_as_it_was() {
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    let limited = |kilobytes: u32, words: &[&std::ffi::OsStr]| {
        let limit = "ulimit -c 0; ulimit -v \"$0\" && exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", limit, &kilobytes.to_string(), PINWISE]).args(words);
        command.env("XDG_DATA_HOME", folder.path()).output().unwrap()
    };
    // The loader of programs knows no better than to crash.
    let starts = |kilobytes: &u32| {
        limited(*kilobytes, &["campaign".as_ref(), "--help".as_ref()]).status.success()
    };
    let least = (1..400).map(|megabytes| megabytes << 10).find(starts).expect("it starts");
    let place = target.place("1s");
    let words: Vec<&std::ffi::OsStr> = place.get_args().collect();
    let mut refused = 0;
    for step in 0..MEMORIES {
        let output = limited(least + (step << 10), &words);
        let what = format!("{step} MB more than {least} kB");
        check_end(&output, &what);
        let said = String::from_utf8_lossy(&output.stderr);
        let without = said.lines().filter(|line| line.starts_with("pinwise: out of memory: "));
        let without = without.count();
        assert!(without <= 1 && !said.contains("memory allocation of"), "{what}: {said}");
        let alone = output.status.code() == Some(1) && output.stdout.is_empty();
        assert!(without == 0 || alone, "{what}: {output:?}");
        refused += without;
        wait_until(PATIENCE, "the original affinities", || target.affinities() == before);
    }
    println!("{refused} of {MEMORIES} runs were refused memory");
    assert!(refused > 0);
}

#[test]
fn a_process_that_is_stopped_while_threads_are_pinned_changes_nothing_in_the_end() {
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    for round in 0..2 * STOPS {
        let mut place =
            Program::start(target.place("10m").stdout(Stdio::null()).stderr(Stdio::null()));
        wait_until(PATIENCE, "pins", || target.affinities() != before);
        let stopped = if round % 2 == 0 { place.pid() } else { target.pid() };
        signal(stopped, Signal::STOP);
        signal(place.pid(), Signal::INT);
        if stopped == place.pid() {
            signal(stopped, Signal::CONT);
        }
        // Also a program that is stopped gets its affinities back.
        assert_eq!(place.ended(PATIENCE).code(), Some(130), "round {round}");
        wait_until(PATIENCE, "the original affinities", || target.affinities() == before);
        signal(target.pid(), Signal::CONT);
    }
}

/// Each failed window waits for a number for 10 s, and a budget of 15 s has one such wait.
#[test]
fn a_program_that_is_stopped_for_good_is_waited_for_within_the_budget() {
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    let mut place = Program::start(target.place("15s").stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until(PATIENCE, "pins", || target.affinities() != before);
    signal(target.pid(), Signal::STOP);
    place.ended(PATIENCE);
    signal(target.pid(), Signal::CONT);
    let store = folder.path().join("pinwise.db");
    let words = ["campaign", "export", "1", "--format", "json", "--store", store.to_str().unwrap()];
    let campaign = json(&pinwise(words));
    let errors: Vec<&str> = campaign["records"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|r| r["error"].as_str())
        .collect();
    let silent = errors.iter().filter(|error| error.starts_with("no new number in ")).count();
    let whole = errors.iter().filter(|error| error.starts_with("no new number in 10 s")).count();
    assert!(silent >= 1 && whole <= 1, "{errors:#?}");
}

/// A wall clock that jumps by up to a day, forward and back, each time somebody looks.
const JUMPING_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static long jump(void) {
  static unsigned looks;
  return (long)(__sync_fetch_and_add(&looks, 1) * 2654435761u % 172800u) - 86400;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += jump();
  return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *now) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now) *now = exact.tv_sec;
  return exact.tv_sec;
}
"#;

#[test]
fn a_wall_clock_that_jumps_changes_neither_budget_nor_answer() {
    let Some(compiler) = tool("gcc") else { return };
    let folder = TempDir::new().unwrap();
    let [source, clock] = ["clock.c", "clock.so"].map(|name| folder.path().join(name));
    std::fs::write(&source, JUMPING_CLOCK).unwrap();
    let built = Command::new(compiler)
        .args(["-shared", "-fPIC", "-o"])
        .args([&clock, &source])
        .status()
        .unwrap();
    assert!(built.success());
    let date = Command::new("date").args(["+%s", "-d", "now"]).env("LD_PRELOAD", &clock).output();
    let date: u64 = String::from_utf8(date.unwrap().stdout).unwrap().trim().parse().unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!(date.abs_diff(now) > 3600, "the clock does not jump: {date} {now}");

    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    for campaign in 1..=CLOCKS {
        let mut place = target.place("3s");
        place.arg("--json").env("XDG_DATA_HOME", folder.path()).env("LD_PRELOAD", &clock);
        let output = place.output().unwrap();
        check_end(&output, "place");
        let answer = json(&output);
        let (seconds, measurements) = (&answer["seconds"], &answer["measurements"]);
        // Each jump is a day or so: a budget by this clock would end at once, or never.
        assert!((0.1..600.0).contains(&seconds.as_f64().unwrap()), "{answer}");
        assert!(measurements.as_u64() > Some(3), "{answer}");
        assert_eq!(answer["campaign"], campaign, "{answer}");
        wait_until(PATIENCE, "the original affinities", || target.affinities() == before);
    }
}

/// Loads a filter that refuses `sched_setaffinity` with EPERM, and becomes the command.
const WITHOUT_SETAFFINITY: &str = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number = {"x86_64": 203, "aarch64": 122}[os.uname().machine]
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (6, 0, 0, 0x00050001), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
    sys.exit(99)
os.execvp(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn a_filter_that_forbids_setting_affinities_is_an_error_that_says_so() {
    let Some(python) = tool("python3") else { return };
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    let place = target.place("10s");
    let output = Command::new(python)
        .args(["-c", WITHOUT_SETAFFINITY, PINWISE])
        .args(place.get_args())
        .env("XDG_DATA_HOME", folder.path())
        .output()
        .unwrap();
    if output.status.code() == Some(99) {
        not_judged("this user may not load a seccomp filter");
        return;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let line = said.lines().last().unwrap();
    assert!(
        line.contains("a security module or a user namespace forbids to move thread"),
        "{said}"
    );
    assert_eq!(target.affinities(), before);
}

/// In a separate PID namespace, so that the option affects nobody else.
#[test]
fn a_process_that_proc_hides_is_refused_and_own_programs_are_placed() {
    let (Some(unshare), Some(setpriv)) = (tool("unshare"), tool("setpriv")) else { return };
    let folder = TempDir::new().unwrap();
    let nobody = 65534;
    let _ = std::os::unix::fs::chown(folder.path(), Some(nobody), Some(nobody));
    let script = r#"mount -t proc -o hidepid=2 proc /proc || exit 9
        sleep 300 & hidden=$!
        pinwise=$0 setpriv=$1 store=$2/pinwise.db
        as_nobody() { "$setpriv" --reuid 65534 --regid 65534 --clear-groups "$pinwise" "$@"; }
        as_nobody --version >/dev/null || exit 9
        as_nobody place --pid $hidden --metric io:wchar --budget 2s --store "$store"
        echo "hidden $?" >&2
        as_nobody place --workload intadd:1 --budget 50 --store "$store" >/dev/null
        echo "own $?" >&2"#;
    let output = Command::new(unshare)
        .args(["-mpf", "--kill-child", "sh", "-c", script, PINWISE])
        .args([setpriv.as_path(), folder.path()])
        .env("XDG_DATA_HOME", folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if !said.contains("hidden ") {
        not_judged("this user may not mount /proc, or nobody may not start pinwise");
        return;
    }
    assert!(said.contains("there is no process") && said.contains("hidden 2\n"), "{said}");
    assert!(said.contains("own 0\n"), "{said}");
}

/// Works until it is ended, or for a minute of CPU time.
const WORKS: &str = "ulimit -t 60; while :; do :; done";

/// `pinwise place` on processes, by the CPU time of the first.
fn place_all(programs: &[&Program], budget: &str, folder: &Path) -> Command {
    let metric = format!("file:/proc/{}/stat:^(?:\\S+ ){{13}}(\\d+)", programs[0].pid());
    let mut command = Command::new(PINWISE);
    command.args(["place", "--counter", "--metric", &metric, "--budget", budget, "--store"]);
    command.arg(folder.join("pinwise.db")).env("XDG_DATA_HOME", folder);
    for program in programs {
        command.args(["--pid", &program.pid().to_string()]);
    }
    command
}

/// Works until USR1, then becomes another program. That works too. The first thread becomes it, or
/// with a word one of two others.
const BECOMES_ANOTHER: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
static char *program;
static void become(int none) { char *words[] = {program, "again", 0}; execv(program, words); }
static void *work(void *none) { for (volatile long i = 0;; i++); }
int main(int count, char **words) {
  pthread_t thread;
  sigset_t one;
  program = words[0];
  alarm(60);
  if (count > 1 && !strcmp(words[1], "again")) work(0);
  signal(SIGUSR1, become);
  if (count == 1) work(0);
  for (int i = 0; i < 2; i++) pthread_create(&thread, 0, work, 0);
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &one, 0);
  pthread_join(thread, 0);
}
"#;

#[test]
fn a_program_that_becomes_another_while_it_is_pinned_gets_its_affinity_back() {
    let folder = TempDir::new().unwrap();
    let Some(built) = compiled(&folder, BECOMES_ANOTHER) else { return };
    let other = Program::start(Command::new("sh").args(["-c", WORKS]));
    for (threads, words) in [(1, &[][..]), (3, &["another"])] {
        let becoming = Program::start(Command::new(&built).args(words));
        let now = || affinities(becoming.pid());
        wait_until(PATIENCE, "its threads", || now().len() == threads);
        let before = now().into_values().next();
        let mut place = place_all(&[&other, &becoming], "10m", folder.path());
        let mut place = Program::start(place.stdout(Stdio::null()).stderr(Stdio::null()));
        // Stopped with pins on all that work, so that they are there when it becomes another.
        wait_until(PATIENCE, "pins", || {
            let pinned =
                || now().into_values().filter(|mask| Some(mask) != before.as_ref()).count();
            if pinned() < threads.div_ceil(2) {
                return false;
            }
            signal(place.pid(), Signal::STOP);
            let all = pinned() >= threads.div_ceil(2);
            if !all {
                signal(place.pid(), Signal::CONT);
            }
            all
        });
        signal(becoming.pid(), Signal::USR1);
        let command = format!("/proc/{}/cmdline", becoming.pid());
        let is_another = || std::fs::read_to_string(&command).unwrap().contains("again");
        wait_until(PATIENCE, "the other program", is_another);
        assert_ne!(now().into_values().next(), before, "it keeps the pin of its thread");
        signal(place.pid(), Signal::CONT);
        signal(place.pid(), Signal::INT);
        let code = place.ended(PATIENCE).code();
        assert!(matches!(code, Some(1 | 130)), "{code:?}");
        wait_until(PATIENCE, "the original affinity", || now().into_values().next() == before);
    }
}

/// Two threads work. The first one makes threads that live for 100 us, one after the other.
const BRIEF_THREADS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static void work(long microseconds) {
  struct timespec begin, now;
  long passed;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
    passed = (now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000;
  } while (passed < microseconds);
}
static void *brief(void *none) { work(100); return none; }
static void *worker(void *none) { for (;;) work(1000); return none; }
int main(void) {
  pthread_t thread;
  alarm(60);
  for (int i = 0; i < 2; i++) pthread_create(&thread, 0, worker, 0);
  for (;;) { pthread_create(&thread, 0, brief, 0); pthread_join(thread, 0); }
}
"#;

#[test]
fn threads_that_live_for_100_us_are_left_alone_and_the_others_put_back() {
    let folder = TempDir::new().unwrap();
    let Some(built) = compiled(&folder, BRIEF_THREADS) else { return };
    let program = Program::start(&mut Command::new(&built));
    // The first three live as long as the program.
    let lasting = || affinities(program.pid()).into_iter().take(3).collect::<Vec<_>>();
    wait_until(PATIENCE, "its threads", || lasting().len() == 3);
    let before = lasting();
    let output = place_all(&[&program], "4s", folder.path()).output().unwrap();
    check_end(&output, "place");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || said.lines().last().unwrap().starts_with("pinwise: "));
    wait_until(PATIENCE, "the original affinities", || lasting() == before);
    // Also what it made meanwhile has what its process has.
    let cpus = &before[0].1;
    let free = || affinities(program.pid()).values().all(|mask| mask == cpus);
    wait_until(PATIENCE, "free threads", free);
}

#[test]
fn a_file_system_that_becomes_read_only_keeps_what_was_measured() {
    let Some(unshare) = tool("unshare") else { return };
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mut place = target.place("10m");
    place.env_remove("XDG_DATA_HOME");
    // The last word is the store: another one comes after it.
    let words: Vec<_> = place.get_args().collect();
    let script = r#"disk=$1; pinwise=$2; shift 2
        mount -t tmpfs none "$disk" || exit 9
        export XDG_DATA_HOME="$disk"
        store=$disk/p.db
        "$pinwise" "$@" "$store" >/dev/null & place=$!
        made() { "$pinwise" campaign list --json --store "$store" 2>/dev/null; }
        until made | grep -q '"measurements": [1-9]'; do kill -0 $place || exit 8; done
        mount -o remount,ro "$disk" 2>/dev/null && echo "remounted too early" >&2
        kill -INT $place; wait $place; echo "ended $?" >&2
        mount -o remount,ro "$disk" || exit 7
        "$pinwise" campaign resume 1 --store "$store" >/dev/null; echo "resumed $?" >&2
        exec "$pinwise" campaign export 1 --format json --store "$store""#;
    let output = Command::new(unshare)
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(PINWISE)
        .args(&words[..words.len() - 1])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(9) {
        return not_judged("this user may not mount a disk");
    }
    assert!(output.status.success(), "{}: {said}", output.status);
    assert!(said.contains("ended 130\n") && !said.contains("too early"), "{said}");
    assert!(said.contains("Read-only") && said.contains("resumed 1\n"), "{said}");
    let campaign: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!campaign["records"].as_array().unwrap().is_empty(), "{campaign}");
    wait_until(PATIENCE, "the original affinities", || target.affinities() == before);
}

/// The effective capabilities that a file like `/proc/PID/status` shows.
fn capabilities(status: &Path) -> u64 {
    let text = std::fs::read_to_string(status).unwrap();
    let set = text.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    u64::from_str_radix(set, 16).unwrap()
}

#[test]
fn root_gives_up_what_pinwise_does_not_need_and_its_programs_keep_it() {
    let proc = |pid: &str| PathBuf::from(format!("/proc/{pid}/status"));
    let own = capabilities(&proc("self"));
    let (sys_module, sys_ptrace, sys_nice) = (1 << 16, 1 << 19, 1 << 23);
    if own & sys_module == 0 || own & sys_ptrace == 0 {
        not_judged("this user may load no kernel modules anyway");
        return;
    }
    let folder = TempDir::new().unwrap();
    let target = Target::start("intadd", folder.path());
    let before = target.affinities();
    let mut place = Program::start(target.place("10m").stdout(Stdio::null()).stderr(Stdio::null()));
    wait_until(PATIENCE, "pins", || target.affinities() != before);
    let children = format!("/proc/{0}/task/{0}/children", place.pid());
    let children = std::fs::read_to_string(children).unwrap();
    let guardian = children.split_whitespace().next().expect("a guardian");
    for pid in [place.pid().to_string().as_str(), guardian] {
        let kept = capabilities(&proc(pid));
        assert_eq!(kept & (sys_module | sys_nice), sys_nice, "{kept:x}");
    }
    signal(place.pid(), Signal::INT);
    assert_eq!(place.ended(PATIENCE).code(), Some(130));

    let status = folder.path().join("status");
    let script = format!("cat /proc/self/status >{}; : {{n}}", status.display());
    let words = ["threads", "--max", "2", "--budget", "1s", "--", "sh", "-c", &script];
    check_end(&pinwise(words), "threads");
    assert_eq!(capabilities(&status), own, "a program runs as without pinwise");
}

#[test]
fn a_store_that_is_removed_meanwhile_is_rescued_and_named() {
    for replaced in [false, true] {
        let folder = TempDir::new().unwrap();
        let target = Target::start("intadd", folder.path());
        let store = folder.path().join("pinwise.db");
        let mut place =
            Program::start(target.place("10m").stdout(Stdio::null()).stderr(Stdio::piped()));
        let measured = || {
            let store =
                store.exists().then(|| pinwise_campaign::Store::open(&store).ok()).flatten();
            let listed = store.and_then(|store| store.list().ok()).unwrap_or_default();
            listed.campaigns.first().is_some_and(|campaign| campaign.records > 3)
        };
        wait_until(PATIENCE, "measurements", measured);
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.path().join(format!("pinwise.db{suffix}")));
        }
        if replaced {
            pinwise_campaign::Store::open(&store).unwrap();
        }
        assert_eq!(place.ended(PATIENCE).code(), Some(1));
        let said = std::io::read_to_string(place.0.stderr.take().unwrap()).unwrap();
        let rescued = said.split([' ', ':']).find(|word| word.contains(".rescued-")).unwrap();
        let words = ["campaign", "export", "1", "--format", "json", "--store", rescued];
        let campaign = json(&pinwise(words.map(Path::new)));
        assert!(campaign["records"].as_array().unwrap().len() > 3, "{said}");
        drop(target);
        let resumed = pinwise(["campaign", "resume", "1", "--store", rescued].map(Path::new));
        let said = String::from_utf8(resumed.stderr).unwrap();
        assert!(said.contains("has ended") && !said.contains("did not make"), "{said}");
    }
}

/// Two threads work. From USR1 on, each asks to be on CPU N, again and again, and the first thread
/// prints how often they had other CPUs. With -1, they ask for the CPUs that they began with.
const ASKS_AGAIN: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static volatile sig_atomic_t asks;
static long found;
static cpu_set_t wanted;
static void begin(int none) { asks = 1; }
static void *work(void *none) {
  for (;;) {
    for (volatile long i = 0; i < 300000; i++);
    if (!asks) continue;
    cpu_set_t now;
    sched_getaffinity(0, sizeof now, &now);
    if (!CPU_EQUAL(&now, &wanted)) __sync_fetch_and_add(&found, 1);
    sched_setaffinity(0, sizeof wanted, &wanted);
  }
}
int main(int count, char **words) {
  int cpu = atoi(words[1]);
  pthread_t thread;
  alarm(60);
  signal(SIGUSR1, begin);
  sched_getaffinity(0, sizeof wanted, &wanted);
  if (cpu >= 0) { CPU_ZERO(&wanted); CPU_SET(cpu, &wanted); }
  for (int i = 0; i < 2; i++) pthread_create(&thread, 0, work, 0);
  for (;; usleep(10000)) if (asks) printf("%ld\n", __sync_fetch_and_add(&found, 0)), fflush(stdout);
}
"#;

#[test]
fn a_program_that_sets_its_own_affinities_is_named_and_not_fought() {
    let folder = TempDir::new().unwrap();
    let Some(built) = compiled(&folder, ASKS_AGAIN) else { return };
    let all = affinities(std::process::id()).into_values().next().unwrap();
    let first = all.split([',', '-']).next().unwrap();
    if first == all {
        return lacking("a second CPU");
    }
    let counts = folder.path().join("counts");
    for (cpu, wanted) in [(first, first), ("-1", all.as_str())] {
        let output = std::fs::File::create(&counts).unwrap();
        let program = Program::start(Command::new(&built).arg(cpu).stdout(output));
        let now = || affinities(program.pid());
        wait_until(PATIENCE, "its threads", || now().len() == 3);
        let mut place = place_all(&[&program], "10m", folder.path());
        let mut place = Program::start(place.stdout(Stdio::null()).stderr(Stdio::piped()));
        wait_until(PATIENCE, "pins", || now().into_values().any(|mask| mask != all));
        signal(program.pid(), Signal::USR1);
        let (code, said, errors) = end_of(&mut place);
        assert_eq!(code, Some(1), "{cpu}");
        let named = "moved thread ";
        assert!(errors.len() == 1 && errors[0].contains(named), "{said}");
        assert!(errors[0].contains("for the second time: stop that"), "{said}");
        // What they ask for is what they keep: nobody sets anything else any more.
        let counted = || std::fs::read_to_string(&counts).unwrap();
        let before = counted().lines().count();
        wait_until(PATIENCE, "what they found", || counted().lines().count() > before + 20);
        let counted = counted();
        let found: Vec<u64> = counted.lines().map(|line| line.parse().unwrap()).collect();
        assert!(found[before + 1] == found[before + 20] && found[before] < 40, "{found:?}");
        let workers: Vec<String> = now().into_values().skip(1).collect();
        assert_eq!(workers, [wanted, wanted], "{said}");
    }
}

/// Two threads work, and 1,997 sleep for good. The first one sleeps, too.
const MANY_THREADS: &str = r#"
#include <pthread.h>
#include <unistd.h>
static void *sleeper(void *none) { for (;;) pause(); }
static void *worker(void *none) { for (volatile long i = 0;; i++); }
int main(void) {
  pthread_t thread;
  pthread_attr_t small;
  alarm(60);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 65536);
  for (int i = 0; i < 2; i++) pthread_create(&thread, 0, worker, 0);
  for (int i = 0; i < 1997; i++) if (pthread_create(&thread, &small, sleeper, 0)) return 9;
  sleeper(0);
}
"#;

#[test]
fn two_thousand_threads_keep_their_affinities_within_the_budget_and_after_signals() {
    let folder = TempDir::new().unwrap();
    let Some(built) = compiled(&folder, MANY_THREADS) else { return };
    let mut program = Program::start(&mut Command::new(&built));
    let mut ended = None;
    let task = format!("/proc/{}/task", program.pid());
    let threads = || std::fs::read_dir(&task).unwrap().count();
    wait_until(PATIENCE, "2,000 threads", || {
        threads() == 2000 || {
            ended = program.0.try_wait().unwrap();
            ended.is_some()
        }
    });
    if ended.is_some_and(|status| status.code() == Some(9)) {
        return not_judged("this user may not have 2,000 threads");
    }
    let before = affinities(program.pid());
    let mut place = place_all(&[&program], "3s", folder.path());
    let mut place = Program::start(place.stdout(Stdio::null()).stderr(Stdio::null()));
    assert!(matches!(place.ended(PATIENCE).code(), Some(0 | 1)));
    assert_eq!(affinities(program.pid()), before);
    for (number, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        let mut place = place_all(&[&program], "10m", folder.path());
        let mut place = Program::start(place.stdout(Stdio::null()).stderr(Stdio::null()));
        wait_until(PATIENCE, "pins", || affinities(program.pid()) != before);
        signal(place.pid(), number);
        assert_eq!(place.ended(PATIENCE).code(), code);
        wait_until(PATIENCE, "the original affinities", || affinities(program.pid()) == before);
    }
}

/// Two threads work. The first one makes child processes that live for a moment, at most three at
/// a time.
const FORKS: &str = r#"
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *none) { for (volatile long i = 0;; i++); }
int main(void) {
  pthread_t thread;
  alarm(60);
  for (int i = 0; i < 2; i++) pthread_create(&thread, 0, work, 0);
  for (int alive = 0;; alive++) {
    if (alive == 3) wait(0), alive--;
    if (fork()) continue;
    for (volatile long i = 0; i < 200000; i++);
    _exit(0);
  }
}
"#;

#[test]
fn a_program_that_forks_without_pause_gets_its_affinities_back_with_its_children() {
    let folder = TempDir::new().unwrap();
    let Some(built) = compiled(&folder, FORKS) else { return };
    let program = Program::start(&mut Command::new(&built));
    let now = || affinities(program.pid());
    wait_until(PATIENCE, "its threads", || now().len() == 3);
    let before = now();
    // Every child that lives now, and was made after all pins were gone.
    let children = || {
        let list = format!("/proc/{0}/task/{0}/children", program.pid());
        let list = std::fs::read_to_string(list).unwrap();
        list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()
    };
    let free = || {
        let masks = children().into_iter().flat_map(|pid| affinities(pid).into_values());
        masks.into_iter().all(|mask| Some(&mask) == before.values().next())
    };
    for number in [None, Some(Signal::INT), Some(Signal::KILL)] {
        let mut place =
            place_all(&[&program], if number.is_none() { "3s" } else { "10m" }, folder.path());
        let mut place = Program::start(place.stdout(Stdio::null()).stderr(Stdio::piped()));
        if let Some(number) = number {
            wait_until(PATIENCE, "pins", || now() != before);
            signal(place.pid(), number);
        }
        let (code, said, _) = end_of(&mut place);
        let expected: &[Option<i32>] = match number {
            None => &[Some(0), Some(1)],
            Some(Signal::INT) => &[Some(130)],
            _ => &[None],
        };
        assert!(expected.contains(&code) && !said.contains("panicked"), "{code:?}: {said}");
        wait_until(PATIENCE, "the original affinities", || now() == before);
        wait_until(PATIENCE, "free children", free);
    }
}

/// The most memory that `place` may have when a metric is garbage, in KiB. It has a third of it
/// with any metric.
const MEMORY: u64 = 128 << 10;

/// What a line of a file in `/proc/PID` says; `None` if the process has ended.
fn figure(pid: u32, file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[test]
fn a_metric_that_prints_garbage_takes_neither_memory_nor_more_than_the_budget() {
    let working = format!("head -c 100000000 /dev/zero; {WORKS}");
    let stdout = r"stdout:packets=(\d+)";
    let garbage = [
        (stdout, "exec cat /dev/urandom", false),
        (stdout, "exec cat /dev/zero", true),
        (stdout, "exec yes packets=17", false),
        (stdout, working.as_str(), false),
        ("cmd:cat /dev/urandom", WORKS, true),
        ("cmd:head -c 100000000 /dev/zero", WORKS, false),
    ];
    for (metric, program, endless) in garbage {
        for stopped in [false, true].into_iter().filter(|stopped| endless || !stopped) {
            let folder = TempDir::new().unwrap();
            let mut place = Command::new(PINWISE);
            place.args(["place", "--budget", if stopped { "10m" } else { "1s" }]);
            place.args(["--metric", metric, "--store"]).arg(folder.path().join("pinwise.db"));
            if metric.starts_with("cmd:") {
                place.args(["--pick", r"packets=(\d+)"]);
            }
            place.args(["--", "sh", "-c", program]).env("XDG_DATA_HOME", folder.path());
            let mut place = Program::start(place.stdout(Stdio::null()).stderr(Stdio::piped()));
            let (mut most, mut told) = (0, false);
            wait_until(PATIENCE, "its end", || {
                most = figure(place.pid(), "status", "VmHWM:").unwrap_or(most);
                let read = figure(place.pid(), "io", "rchar:").unwrap_or(0);
                if stopped && !told && read > 20_000_000 {
                    signal(place.pid(), Signal::TERM);
                    told = true;
                }
                place.0.try_wait().unwrap().is_some()
            });
            let (code, said, errors) = end_of(&mut place);
            let what = format!("{metric} of {program}: {most} KiB, {code:?}: {said}");
            assert_eq!(code, Some(if told { 130 } else { 1 }), "{what}");
            assert!(errors.len() == 1 && !said.contains("panicked") && told == stopped, "{what}");
            println!("{metric} of {program}: {most} KiB");
            assert!((1..MEMORY).contains(&most), "{what}");
        }
    }
}

/// A user that is neither root nor the owner of anything.
const NOBODY: u32 = 65_534;

/// Works until USR1, then becomes FILE. If that is a program of root with the set-user-ID bit, it
/// goes on as another user.
const BECOMES_ANOTHER_USER: &str = r#"
#define _GNU_SOURCE
#include <signal.h>
#include <unistd.h>
static char **file;
static void become(int none) { char *words[] = {file[1], 0}; execv(file[1], words); }
int main(int count, char **words) {
  alarm(60);
  file = words;
  if (count == 1 && setresuid(65533, 65533, 65533)) return 9;
  if (count > 1) signal(SIGUSR1, become);
  for (volatile long i = 0;; i++);
}
"#;

#[test]
fn a_program_that_becomes_another_user_s_is_named_and_the_others_get_their_affinities_back() {
    if !rustix::process::geteuid().is_root() {
        return not_judged("only root can make programs that change the user");
    }
    let folder = TempDir::new().unwrap();
    let Some(built) = compiled(&folder, BECOMES_ANOTHER_USER) else { return };
    // Copies: the folder that tests are built in may be closed to others.
    let [pinwise, other] = ["pinwise", "other"].map(|name| folder.path().join(name));
    std::fs::copy(PINWISE, &pinwise).unwrap();
    std::fs::copy(&built, &other).unwrap();
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o4755)).unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for owned in [folder.path(), &data] {
        std::os::unix::fs::chown(owned, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    for interrupted in [false, true] {
        let mut becoming = Program::start(Command::new(&built).arg(&other).uid(NOBODY).gid(NOBODY));
        let mut working = Command::new("sh");
        working.args(["-c", WORKS]).uid(NOBODY).gid(NOBODY);
        let working = Program::start(&mut working);
        let before = affinities(working.pid());
        let placed = place_all(&[&working, &becoming], "10m", folder.path());
        let mut place = Command::new(&pinwise);
        place.args(placed.get_args()).env("XDG_DATA_HOME", &data);
        place.current_dir(folder.path()).uid(NOBODY).gid(NOBODY);
        let mut place = Program::start(place.stdout(Stdio::null()).stderr(Stdio::piped()));
        let pid = becoming.pid();
        let now = || affinities(pid).into_values().next();
        wait_until(PATIENCE, "pins", || now() != before.values().next().cloned());
        signal(place.pid(), Signal::STOP);
        signal(pid, Signal::USR1);
        let status = format!("/proc/{pid}/status");
        let mut refused = false;
        wait_until(PATIENCE, "the other user", || {
            refused = becoming.0.try_wait().unwrap().is_some();
            let status = std::fs::read_to_string(&status).unwrap_or_default();
            refused || status.contains("Uid:\t65533\t65533\t65533")
        });
        if interrupted {
            signal(place.pid(), Signal::INT);
        }
        signal(place.pid(), Signal::CONT);
        let (code, said, errors) = end_of(&mut place);
        if refused {
            return not_judged("programs cannot change the user here");
        }
        // Not 130: not everything was put back.
        assert_eq!(code, Some(1), "{said}");
        let line = if interrupted { "interrupted" } else { "not permitted to move thread " };
        assert!(errors.len() == 1 && errors[0]["pinwise: ".len()..].starts_with(line), "{said}");
        let keeps = format!(
            "note: process {pid} did not get its affinities back; the next start tries again"
        );
        assert!(said.lines().any(|said| said == keeps), "{said}");
        assert!(interrupted || errors[0].contains(" of user 65533: "), "{said}");
        // It tries again, and says so, until the program has ended.
        let lists = || {
            let mut list = Command::new(&pinwise);
            list.args(["campaign", "list"]).arg("--store").arg(folder.path().join("pinwise.db"));
            list.env("XDG_DATA_HOME", &data).uid(NOBODY).gid(NOBODY);
            let said = list.current_dir(folder.path()).output().unwrap().stderr;
            String::from_utf8(said).unwrap().lines().any(|said| said == keeps)
        };
        assert!(lists());
        drop(becoming);
        assert!(!lists());
        wait_until(PATIENCE, "the original affinity", || affinities(working.pid()) == before);
    }
}

/// A shell starts pinwise without what a program usually finds.
#[test]
fn without_environment_streams_or_folder_a_program_is_placed_as_ever() {
    let folder = TempDir::new().unwrap();
    let target = Target::start("hash1_L1", folder.path());
    let before = target.affinities();
    for without in [
        "exec env -i HOME=\"$HOME\" \"$@\"",
        "exec \"$@\" <&- >&- 2>&-",
        "mkdir gone && cd gone && rmdir ../gone && exec \"$@\"",
    ] {
        let place = target.place("5s");
        let mut shell = Command::new("sh");
        shell.args(["-c", without, "sh"]).arg(place.get_program()).args(place.get_args());
        shell.envs(place.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.env("HOME", folder.path()).current_dir(folder.path());
        let output = shell.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{without}: {output:?}");
        assert_eq!(target.affinities(), before, "{without}");
    }
    let store = folder.path().join("pinwise.db");
    let listed = pinwise(["campaign", "list", "--json", "--store", store.to_str().unwrap()]);
    assert_eq!(json(&listed)["campaigns"].as_array().unwrap().len(), 3);
}

#[test]
fn without_the_capability_foreign_and_stronger_processes_are_refused_with_its_name() {
    let Some(setpriv) = tool("setpriv") else { return };
    let as_container = |program: &std::ffi::OsStr| {
        let mut command = Command::new(&setpriv);
        command.args(["--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"]).arg(program);
        command
    };
    let begins = as_container("true".as_ref()).output().unwrap().status.success();
    if !begins || capabilities(Path::new("/proc/self/status")) & 1 << 23 == 0 {
        return not_judged("this user has no such capability to give up");
    }
    let folder = TempDir::new().unwrap();
    let shell = || Command::new("sh");
    let foreign = || {
        let mut shell = shell();
        shell.uid(NOBODY).gid(NOBODY);
        shell
    };
    let as_strong = || as_container("sh".as_ref());
    let cases: [(&dyn Fn() -> Command, Option<&str>); 3] = [
        (&foreign, Some(" of user 65534: run pinwise as that user, or with CAP_SYS_NICE")),
        (&shell, Some(", which has capabilities that pinwise lacks: run pinwise with them, or")),
        (&as_strong, None),
    ];
    for (start, refusal) in cases {
        let programs = [(); 2].map(|()| Program::start(start().args(["-c", WORKS])));
        let works = |program: &Program| {
            let command = std::fs::read(format!("/proc/{}/cmdline", program.pid())).unwrap();
            command.starts_with(b"sh\0")
        };
        wait_until(PATIENCE, "the shells", || programs.iter().all(works));
        let now = || [0, 1].map(|which: usize| affinities(programs[which].pid()));
        let before = now();
        let placed = place_all(&[&programs[0], &programs[1]], "10m", folder.path());
        let mut place = as_container(PINWISE.as_ref());
        place.args(placed.get_args()).env("XDG_DATA_HOME", folder.path());
        let mut place = Program::start(place.stdout(Stdio::null()).stderr(Stdio::piped()));
        let mut ended = || place.0.try_wait().unwrap().is_some();
        if refusal.is_none() {
            wait_until(PATIENCE, "pins", || now() != before || ended());
        }
        if refusal.is_none() && !ended() {
            signal(place.pid(), Signal::INT);
        }
        let (code, said, errors) = end_of(&mut place);
        assert_eq!(code, Some(if refusal.is_some() { 1 } else { 130 }), "{said}");
        let words = refusal.unwrap_or("interrupted");
        assert!(errors.len() == 1 && errors[0].contains(words), "{said}");
        assert_eq!(now(), before);
    }
}

/// How often bytes of a store are damaged while `place` writes it.
const DAMAGED: u64 = 6;

#[test]
fn a_store_that_is_damaged_while_it_is_written_gives_an_error_or_what_is_right() {
    let place = |folder: &Path| {
        let mut command = Command::new(PINWISE);
        command.args(["place", "--machine", "ultrasparc-t2", "--workload", "intadd:1"]);
        command.args(["--budget", "200", "--seed", "1", "--json", "--store"]);
        command.arg(folder.join("p.db")).env("XDG_DATA_HOME", folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let answer = |output: &Output| {
        let mut answer = json(output);
        answer.as_object_mut().unwrap().remove("plan");
        answer
    };
    let export = |folder: &Path| {
        let store = folder.join("p.db");
        let words = ["campaign", "export", "1", "--format", "json", "--store"];
        pinwise(words.map(Path::new).into_iter().chain([store.as_path()]))
    };
    let records = |output: &Output| json(output)["records"].as_array().unwrap().clone();
    let whole = TempDir::new().unwrap();
    let right = answer(&place(whole.path()).output().unwrap());
    let all = records(&export(whole.path()));
    let (mut writes, mut answered, mut refused) = (0, 0, 0);
    for seed in 0..DAMAGED {
        let folder = TempDir::new().unwrap();
        let mut random = pinwise_topology::Random::new(seed);
        let mut place = Program::start(&mut place(folder.path()));
        while place.0.try_wait().unwrap().is_none() {
            for name in ["p.db", "p.db-wal"] {
                let file = folder.path().join(name);
                let Ok(file) = std::fs::OpenOptions::new().write(true).open(file) else { continue };
                // The tables are there from the third page on.
                let length = file.metadata().unwrap().len();
                if length > 8192 {
                    file.write_all_at(&[random.below(256) as u8], random.below(length)).unwrap();
                    writes += 1;
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(random.below(40)));
        }
        let status = place.0.wait().unwrap();
        let [stdout, stderr] = outputs(&mut place);
        let output = Output { status, stdout, stderr };
        check_end(&output, &format!("{seed}: place"));
        let exported = export(folder.path());
        check_end(&exported, &format!("{seed}: export"));
        if output.status.success() {
            assert_eq!(answer(&output), right, "{seed}");
            answered += 1;
        }
        if exported.status.success() {
            let records = records(&exported);
            assert_eq!(records, all[..records.len()], "{seed}");
        }
        refused += u32::from(!(output.status.success() && exported.status.success()));
    }
    println!("{writes} bytes damaged; {answered} answers; {refused} of {DAMAGED} stores refused");
    assert!(writes > DAMAGED && refused > 0);
}

/// How many searches begin at once on a store that is not there yet.
const AT_ONCE: usize = 8;

#[test]
fn searches_that_begin_at_once_on_a_new_store_have_all_their_records_there() {
    let folder = TempDir::new().unwrap();
    let begin = |which: usize| {
        let mut command = Command::new(PINWISE);
        command.args(["place", "--workload", "intadd:1", "--json"]);
        // Two measure real programs.
        command.args(match which % 4 {
            0 => &["--budget", "50"][..],
            _ => &["--budget", "100", "--machine", "ultrasparc-t2"],
        });
        command.env("XDG_DATA_HOME", folder.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program::start(&mut command)
    };
    let programs: Vec<Program> = (0..AT_ONCE).map(begin).collect();
    let mut numbers = Vec::new();
    for mut program in programs {
        let status = program.ended(PATIENCE);
        let [stdout, stderr] = outputs(&mut program);
        let answer = json(&Output { status, stdout, stderr });
        let number = answer["campaign"].as_u64().unwrap();
        let mut export = Command::new(PINWISE);
        export.args(["campaign", "export", &number.to_string(), "--format", "json"]);
        let campaign = json(&export.env("XDG_DATA_HOME", folder.path()).output().unwrap());
        let records = campaign["records"].as_array().unwrap();
        assert_eq!(Some(records.len() as u64), answer["measurements"].as_u64(), "{answer}");
        let recorded = records.iter().map(|record| record["number"].as_u64().unwrap());
        assert!(recorded.eq(0..records.len() as u64), "{campaign}");
        numbers.push(number as usize);
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(1..=AT_ONCE));
}

/// Waits for the end of `place`: its exit code, what it said, and the errors in this.
fn end_of(place: &mut Program) -> (Option<i32>, String, Vec<String>) {
    let code = place.ended(PATIENCE).code();
    let said = std::io::read_to_string(place.0.stderr.take().unwrap()).unwrap();
    let errors = said.lines().filter(|line| line.starts_with("pinwise: "));
    let errors = errors.map(str::to_owned).collect();
    (code, said, errors)
}

/// What a program that has ended left in its pipes.
fn outputs(program: &mut Program) -> [Vec<u8>; 2] {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    program.0.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
    program.0.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
    [stdout, stderr]
}
