//! What other programs take of the contexts while one is measured: what is left to it is less, and so is what its speed tells.
//!
//! The kernel tells for how long each CPU was busy, in ticks of 10 ms and whoever kept it so, the hypervisor's other guests included
//! (`/proc/stat`, proc_stat(5)). Others are who is left when the program and pinwise itself are taken away.

use crate::process;
use crate::sys;
use crate::thread::Pid;
use pinwise_topology::{CpuId, CpuSet};
use rustix::thread::ClockId;
use std::io;
use std::time::{Duration, Instant};

/// The CPUs that a program may use, and whoever else does.
#[derive(Clone, Debug)]
pub(crate) struct Crowd(CpuSet);

/// The times at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    at: Instant,
    busy: Duration,
    own: Duration,
}

impl Crowd {
    /// On the CPUs that the calling thread may use.
    pub(crate) fn here() -> io::Result<Self> {
        sys::affinity(0).map(Self)
    }

    /// The times now; `None` where the kernel does not tell them.
    pub(crate) fn moment(&self) -> Option<Moment> {
        let busy = busy(&std::fs::read_to_string("/proc/stat").ok()?, &self.0)?;
        let own = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
        let own = Duration::new(own.tv_sec.unsigned_abs(), own.tv_nsec.unsigned_abs() as u32);
        Some(Moment { at: Instant::now(), busy, own })
    }

    /// CPU time that others took since `before`, in seconds, while the program took `program`. Right on average: of a moment alone it is
    /// off by some ticks, and may be below 0.
    pub(crate) fn since(&self, before: Option<Moment>, program: Duration) -> Option<CrowdShare> {
        let (before, after) = (before?, self.moment()?);
        let [busy, own] = [after.busy - before.busy, after.own - before.own].map(|time| time.as_secs_f64());
        let seconds = (after.at - before.at).as_secs_f64() * self.0.len() as f64;
        Some(CrowdShare { taken: busy - own - program.as_secs_f64(), of: seconds })
    }
}

/// CPU time that others took of all there was, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrowdShare {
    /// What they took; right on average only, and below 0 at times.
    pub taken: f64,
    /// What there was.
    pub of: f64,
}

/// What others take while processes are measured that run for long, or are started one after another.
#[derive(Clone, Copy, Debug)]
pub struct CrowdWatch {
    before: Moment,
    program: Duration,
}

impl CrowdWatch {
    /// From now on; `pids` are the program's processes, without their children. `None` where the kernel does not tell.
    pub fn begin(pids: &[Pid]) -> Option<Self> {
        Some(Self { before: Crowd::here().ok()?.moment()?, program: taken(pids) })
    }

    /// Until now; `pids` are the program's processes now.
    pub fn end(self, pids: &[Pid]) -> Option<CrowdShare> {
        Crowd::here().ok()?.since(Some(self.before), taken(pids).saturating_sub(self.program))
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

/// Ticks that a process and the children it waited for took: fields 14 to 17 of proc_pid_stat(5). The name before them may hold anything.
fn ticks(stat: &[u8]) -> Option<u64> {
    let close = stat.iter().rposition(|&byte| byte == b')')?;
    let fields = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let times: Vec<u64> =
        fields.split_ascii_whitespace().skip(11).take(4).filter_map(|time| time.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum())
}

/// For how long these CPUs were busy since boot.
fn busy(stat: &str, cpus: &CpuSet) -> Option<Duration> {
    let ticks = |line: &str| -> Option<(CpuId, u64)> {
        let (number, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let times: Vec<u64> = times.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        // user nice system (idle iowait) irq softirq steal; what guests take is contained in the first two.
        let busy = [0, 1, 2, 5, 6, 7].into_iter().filter_map(|index| times.get(index)).sum();
        Some((CpuId(number.parse().ok()?), busy))
    };
    let own: Vec<u64> =
        stat.lines().filter_map(ticks).filter(|(cpu, _)| cpus.contains(*cpu)).map(|(_, busy)| busy).collect();
    let second = rustix::param::clock_ticks_per_second().max(1);
    (!own.is_empty()).then(|| Duration::from_secs_f64(own.iter().sum::<u64>() as f64 / second as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_cpus_that_count_and_only_what_is_not_idle() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 20 30 400 500 6 7 8 9 9\ncpu1 100 0 0 0 0 0 0 0 0 0\ncpu2 1 1 1\nintr 5\n";
        let of = |list: &str| busy(stat, &CpuSet::parse_list(list).unwrap()).map(|time| time.as_secs_f64() * 100.0);
        let ticks = rustix::param::clock_ticks_per_second() as f64 / 100.0;
        assert!((of("0").unwrap() * ticks - 81.0).abs() < 1e-6);
        assert!((of("0-1").unwrap() * ticks - 181.0).abs() < 1e-6);
        assert_eq!(of("7"), None);
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
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = Pid(child.id() as i32);
        let long = Duration::from_millis(50);
        while taken(&[pid]) < before + long {}
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(taken(&[]) >= before + long);
    }

    #[test]
    fn what_the_program_and_we_take_is_not_the_others() {
        let crowd = Crowd::here().unwrap();
        let Some(before) = crowd.moment() else { return };
        let program = Duration::from_secs(1000);
        let share = crowd.since(Some(before), program).unwrap();
        assert!(share.taken < 0.0 && share.of >= 0.0, "{share:?}");
        assert_eq!(crowd.since(None, program), None);
    }
}
