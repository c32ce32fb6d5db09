//! Faults of the machine around pinwise, made for real. Their table is in
//! docs/reference/reliability.md.

mod support;

use pinwise_synthetic::not_judged;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
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
