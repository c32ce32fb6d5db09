//! The load of other programs while one is measured. Such a load slows the program down, so its
//! speed means less.
//!
//! The kernel reports how long each CPU was busy, in ticks of 10 ms, with all programs. That
//! includes the other guests of a hypervisor (`/proc/stat`, proc_stat(5)). The others' share is the
//! rest after the program and pinwise. Of other guests the kernel reports only their time while a
//! thread here was ready (steal time). How long some thread waited for a context stands in
//! `/proc/pressure/cpu` (PSI), for the whole machine. Interrupts belong to nobody, because the
//! kernel does not report for whom they were. It may leave those of a program that sends packets
//! out of its time.

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
pub struct CpuTimeReading {
    at: Instant,
    /// CPU time that all programs took, stolen time included.
    busy: Duration,
    stolen: Duration,
    /// The time in which some thread waited.
    waiting: Option<Duration>,
    /// CPU time that pinwise took.
    own: Duration,
}

impl OtherLoadMeter {
    /// For the CPUs that the calling thread may use.
    pub fn here() -> io::Result<Self> {
        sys::affinity(0).map(Self)
    }

    /// The times now; `None` if the kernel does not report them.
    pub fn reading(&self) -> Option<CpuTimeReading> {
        let [busy, stolen] =
            busy_and_stolen(&std::fs::read_to_string("/proc/stat").ok()?, &self.0)?;
        let pressure = std::fs::read_to_string("/proc/pressure/cpu");
        let waiting = pressure.ok().and_then(|text| waiting(&text));
        let own = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
        let own = Duration::new(own.tv_sec.unsigned_abs(), own.tv_nsec.unsigned_abs() as u32);
        Some(CpuTimeReading { at: Instant::now(), busy, stolen, waiting, own })
    }

    /// CPU time that others took since `before`, in seconds, while the program took `program`.
    /// Right on average. A single value is off by some ticks and may be below 0.
    pub fn since(&self, before: Option<CpuTimeReading>, program: Duration) -> Option<OtherLoad> {
        self.between(before?, self.reading()?, program)
    }

    /// `None` if the kernel's times went back. A guest was moved to another host, or a CPU was
    /// removed and came back.
    fn between(
        &self,
        before: CpuTimeReading,
        after: CpuTimeReading,
        program: Duration,
    ) -> Option<OtherLoad> {
        let [busy, stolen, own] = [
            after.busy.checked_sub(before.busy)?,
            after.stolen.checked_sub(before.stolen)?,
            after.own.checked_sub(before.own)?,
        ];
        let elapsed = after.at.duration_since(before.at).as_secs_f64();
        let waiting = after.waiting.zip(before.waiting);
        let waiting = waiting.and_then(|(after, before)| after.checked_sub(before));
        let pressure = waiting.map(|waiting| (waiting.as_secs_f64() / elapsed).min(1.0));
        Some(OtherLoad {
            taken: busy.as_secs_f64() - own.as_secs_f64() - program.as_secs_f64(),
            of: elapsed * self.0.len() as f64,
            stolen: stolen.as_secs_f64(),
            pressure: pressure.filter(|share| share.is_finite()),
        })
    }
}

/// The load of others while long-running processes, or processes one after another, are measured.
#[derive(Clone, Debug)]
pub struct OtherLoadWatch {
    meter: OtherLoadMeter,
    before: CpuTimeReading,
    program: Duration,
}

impl OtherLoadWatch {
    /// Begins now, on the CPUs that the program may use. `pids` are its processes without their
    /// children. `None` if the kernel does not report the times.
    pub fn begin(cpus: &CpuSet, pids: &[Pid]) -> Option<Self> {
        let meter = OtherLoadMeter(cpus.clone());
        Some(Self { before: meter.reading()?, meter, program: taken(pids) })
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

/// How long these CPUs were busy since boot, without interrupts, and how much of it was stolen.
/// `None` if one is missing, such as an offline CPU.
fn busy_and_stolen(stat: &str, cpus: &CpuSet) -> Option<[Duration; 2]> {
    let ticks = |line: &str| -> Option<(CpuId, [u64; 2])> {
        let (number, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let times: Vec<u64> =
            times.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // user nice system (idle iowait irq softirq) steal; what guests take is contained in the
        // first two.
        let stolen = times.get(7).copied().unwrap_or(0);
        let busy = times.iter().take(3).sum::<u64>() + stolen;
        Some((CpuId(number.parse().ok()?), [busy, stolen]))
    };
    let counted: Vec<[u64; 2]> = stat
        .lines()
        .filter_map(ticks)
        .filter(|(cpu, _)| cpus.contains(*cpu))
        .map(|(_, ticks)| ticks)
        .collect();
    let second = rustix::param::clock_ticks_per_second().max(1) as f64;
    let time = |which: usize| {
        let ticks: u64 = counted.iter().map(|ticks| ticks[which]).sum();
        Duration::from_secs_f64(ticks as f64 / second)
    };
    (!counted.is_empty() && counted.len() == cpus.len()).then(|| [time(0), time(1)])
}

/// The time in which some thread waited for a context, of `/proc/pressure/cpu`.
fn waiting(pressure: &str) -> Option<Duration> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split_whitespace().find_map(|field| field.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
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
        let second = rustix::param::clock_ticks_per_second() as f64;
        let of = |list: &str| {
            let times = busy_and_stolen(stat, &CpuSet::parse_list(list).unwrap());
            times.map(|times| times.map(|time| (time.as_secs_f64() * second).round() as u64))
        };
        assert_eq!((of("0"), of("0-1")), (Some([68, 8]), Some([168, 8])));
        assert_eq!((of("7"), of("0,7"), of("")), (None, None, None));
        assert_eq!(busy_and_stolen("", &CpuSet::parse_list("0").unwrap()), None);
    }

    #[test]
    fn pressure_is_the_total_of_those_that_wait() {
        let text =
            "some avg10=93.63 avg60=94.52 avg300=81.44 total=751637\nfull avg10=0.00 total=9\n";
        assert_eq!(waiting(text), Some(Duration::from_micros(751_637)));
        assert_eq!(
            (waiting(""), waiting("some avg10=1.0"), waiting("some total=x")),
            (None, None, None)
        );
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
    fn an_ended_program_shows_no_load_of_others() {
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
    fn times_that_went_back_show_no_load_of_others() {
        let meter = OtherLoadMeter(CpuSet::parse_list("0-1").unwrap());
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let reading = |at: u32, busy: u32, own: u32| CpuTimeReading {
            at: start + second * at,
            busy: second * busy,
            stolen: second * at / 2,
            waiting: Some(second * at / 3),
            own: second * own,
        };
        let share = |after: CpuTimeReading| meter.between(reading(1, 100, 10), after, second);
        let found = share(reading(4, 106, 11)).unwrap();
        assert_eq!((found.taken, found.of, found.stolen), (4.0, 6.0, 1.5));
        assert!((found.pressure.unwrap() - 1.0 / 3.0).abs() < 1e-6, "{found:?}");
        let unknown = CpuTimeReading { waiting: None, ..reading(4, 106, 11) };
        assert_eq!(share(unknown).unwrap().pressure, None);
        // The sums since boot fell, since the figures of a CPU are gone. They say nothing of the
        // others.
        assert_eq!((share(reading(4, 99, 11)), share(reading(4, 106, 9))), (None, None));
    }

    #[test]
    fn what_the_program_and_we_take_is_not_the_others() {
        let meter = OtherLoadMeter::here().unwrap();
        let Some(before) = meter.reading() else {
            return pinwise_synthetic::not_judged("this machine does not count what CPUs do");
        };
        let program = Duration::from_secs(1000);
        let share = meter.since(Some(before), program).unwrap();
        assert!(share.taken < 0.0 && share.of >= 0.0, "{share:?}");
        assert_eq!(meter.since(None, program), None);
    }
}
