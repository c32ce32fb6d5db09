//! The load of other programs while one is measured. Such a load slows the program down, so its
//! speed means less.
//!
//! The kernel reports how long each CPU was busy, in ticks of 10 ms, with all programs. That
//! includes the other guests of a hypervisor (`/proc/stat`, proc_stat(5)). The others' share is the
//! rest after the program and pinwise. Interrupts belong to nobody, because the kernel does not
//! report for whom they were. It may leave those of a program that sends packets out of its time.

use pinwise_linux::{process, sys, thread::Pid};
pub use pinwise_measure::OtherLoad;
use pinwise_topology::{CpuId, CpuSet};
use rustix::thread::ClockId;
use std::io;
use std::time::{Duration, Instant};

/// Measures the load on the CPUs that a program may use.
#[derive(Clone, Debug)]
pub struct OtherLoadMeter(CpuSet);

/// The times at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    at: Instant,
    busy: Duration,
    own: Duration,
}

impl OtherLoadMeter {
    /// For the CPUs that the calling thread may use.
    pub fn here() -> io::Result<Self> {
        sys::affinity(0).map(Self)
    }

    /// The times now; `None` if the kernel does not report them.
    pub fn moment(&self) -> Option<Moment> {
        let busy = busy(&std::fs::read_to_string("/proc/stat").ok()?, &self.0)?;
        let own = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
        let own = Duration::new(own.tv_sec.unsigned_abs(), own.tv_nsec.unsigned_abs() as u32);
        Some(Moment { at: Instant::now(), busy, own })
    }

    /// CPU time that others took since `before`, in seconds, while the program took `program`.
    /// Right on average. A single value is off by some ticks and may be below 0.
    pub fn since(&self, before: Option<Moment>, program: Duration) -> Option<OtherLoad> {
        self.between(before?, self.moment()?, program)
    }

    /// `None` if the kernel's times went back. A guest was moved to another host, or a CPU was
    /// removed and came back.
    fn between(&self, before: Moment, after: Moment, program: Duration) -> Option<OtherLoad> {
        let [busy, own] =
            [after.busy.checked_sub(before.busy)?, after.own.checked_sub(before.own)?];
        let seconds = after.at.duration_since(before.at).as_secs_f64() * self.0.len() as f64;
        Some(OtherLoad {
            taken: busy.as_secs_f64() - own.as_secs_f64() - program.as_secs_f64(),
            of: seconds,
        })
    }
}

/// The load of others while long-running processes, or processes one after another, are measured.
#[derive(Clone, Debug)]
pub struct OtherLoadWatch {
    meter: OtherLoadMeter,
    before: Moment,
    program: Duration,
}

impl OtherLoadWatch {
    /// Begins now, on the CPUs that the program may use. `pids` are its processes without their
    /// children. `None` if the kernel does not report the times.
    pub fn begin(cpus: &CpuSet, pids: &[Pid]) -> Option<Self> {
        let meter = OtherLoadMeter(cpus.clone());
        Some(Self { before: meter.moment()?, meter, program: taken(pids) })
    }

    /// The load until now. `pids` are the program's processes now. `None` if the kernel does not
    /// report the times, such as those of CPUs that were removed meanwhile. Also `None` if one of
    /// the processes has gone, and its times with it.
    pub fn so_far(&self, pids: &[Pid]) -> Option<OtherLoad> {
        let there = |pid: &Pid| std::path::Path::new(&format!("/proc/{pid}/stat")).exists();
        if !pids.iter().all(there) {
            return None;
        }
        self.meter.since(Some(self.before), taken(pids).checked_sub(self.program)?)
    }
}

/// CPU time that these processes took, their descendants, and every child of ours that has ended.
fn taken(pids: &[Pid]) -> Duration {
    let children = process::descendants(pids, &process::all().unwrap_or_default());
    let of = |pid: &Pid| ticks(&std::fs::read(format!("/proc/{pid}/stat")).ok()?);
    let ticks: u64 = pids.iter().chain(&children).filter_map(of).sum();
    let second = rustix::param::clock_ticks_per_second().max(1);
    sys::usage_of_children().cpu + Duration::from_secs_f64(ticks as f64 / second as f64)
}

/// Ticks that a process and the children it waited for took: fields 14 to 17 of proc_pid_stat(5).
/// The name before them may hold anything.
fn ticks(stat: &[u8]) -> Option<u64> {
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let times: Vec<u64> = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|time| time.parse().ok())
        .collect();
    (times.len() == 4).then(|| times.iter().sum())
}

/// How long these CPUs were busy since boot, without interrupts. `None` if one is missing, such as
/// while it is offline.
fn busy(stat: &str, cpus: &CpuSet) -> Option<Duration> {
    let ticks = |line: &str| -> Option<(CpuId, u64)> {
        let (number, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let times: Vec<u64> =
            times.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // user nice system (idle iowait irq softirq) steal; what guests take is contained in the
        // first two.
        let busy = [0, 1, 2, 7].into_iter().filter_map(|index| times.get(index)).sum();
        Some((CpuId(number.parse().ok()?), busy))
    };
    let own: Vec<u64> = stat
        .lines()
        .filter_map(ticks)
        .filter(|(cpu, _)| cpus.contains(*cpu))
        .map(|(_, busy)| busy)
        .collect();
    let second = rustix::param::clock_ticks_per_second().max(1);
    (!own.is_empty() && own.len() == cpus.len())
        .then(|| Duration::from_secs_f64(own.iter().sum::<u64>() as f64 / second as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program that is killed when the test ends, however that is.
    struct Killed(std::process::Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn only_the_cpus_that_count_and_only_what_is_not_idle() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 20 30 400 500 6 7 8 9 9\ncpu1 100 0 0 0 0 0 \
            0 0 0 0\ncpu2 1 1 1\nintr 5\n";
        let of = |list: &str| {
            busy(stat, &CpuSet::parse_list(list).unwrap()).map(|time| time.as_secs_f64() * 100.0)
        };
        let ticks = rustix::param::clock_ticks_per_second() as f64 / 100.0;
        assert!((of("0").unwrap() * ticks - 68.0).abs() < 1e-6);
        assert!((of("0-1").unwrap() * ticks - 168.0).abs() < 1e-6);
        assert_eq!((of("7"), of("0,7"), of("")), (None, None, None));
        assert_eq!(busy("", &CpuSet::parse_list("0").unwrap()), None);
    }

    #[test]
    fn a_process_has_its_own_ticks_and_those_of_children_it_waited_for() {
        let stat = b"7 (a ) b) S 1 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 99 0 0";
        assert_eq!((ticks(stat), ticks(b"7 (a) S 1"), ticks(b"")), (Some(100), None, None));
    }

    #[test]
    fn a_child_counts_while_it_runs_and_when_it_has_ended() {
        let before = taken(&[]);
        let script = "ulimit -t 10; while :; do :; done";
        let child = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        let mut child = Killed(child);
        let pid = Pid(child.0.id() as i32);
        let (long, deadline) =
            (Duration::from_millis(50), Instant::now() + Duration::from_secs(120));
        while taken(&[pid]) < before + long {
            assert!(Instant::now() < deadline, "it took too little");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        assert!(taken(&[]) >= before + long);
    }

    #[test]
    fn a_program_that_has_gone_tells_nothing_of_others() {
        let child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let mut child = Killed(child);
        let pids = [Pid(child.0.id() as i32)];
        let Some(watch) = OtherLoadWatch::begin(&sys::affinity(0).unwrap(), &pids) else {
            return pinwise_synthetic::not_judged("this machine does not count what CPUs do");
        };
        assert!(watch.so_far(&pids).is_some());
        child.0.kill().unwrap();
        child.0.wait().unwrap();
        assert_eq!(watch.so_far(&pids), None);
    }

    #[test]
    fn times_that_went_back_tell_nothing_of_others() {
        let meter = OtherLoadMeter(CpuSet::parse_list("0-1").unwrap());
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let moment = |at: u32, busy: u32, own: u32| Moment {
            at: start + second * at,
            busy: second * busy,
            own: second * own,
        };
        let share = |after: Moment| meter.between(moment(1, 100, 10), after, second);
        assert_eq!(share(moment(4, 106, 11)), Some(OtherLoad { taken: 4.0, of: 6.0 }));
        // The sums since boot fell, since the figures of a CPU are gone. They say nothing of the
        // others.
        assert_eq!((share(moment(4, 99, 11)), share(moment(4, 106, 9))), (None, None));
    }

    #[test]
    fn what_the_program_and_we_take_is_not_the_others() {
        let meter = OtherLoadMeter::here().unwrap();
        let Some(before) = meter.moment() else {
            return pinwise_synthetic::not_judged("this machine does not count what CPUs do");
        };
        let program = Duration::from_secs(1000);
        let share = meter.since(Some(before), program).unwrap();
        assert!(share.taken < 0.0 && share.of >= 0.0, "{share:?}");
        assert_eq!(meter.since(None, program), None);
    }
}
