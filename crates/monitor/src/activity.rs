//! How the threads of a program spent a window.

use crate::layer::Layer;
use crate::overhead::Overhead;
use pinwise_linux::thread::ThreadId;
use pinwise_topology::CpuId;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What one thread did while it was observed. `ran + waited + slept = elapsed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThreadActivity {
    /// Which thread.
    pub id: ThreadId,
    /// Its name as the kernel has it.
    pub comm: String,
    /// For how long its counters were watched.
    pub elapsed: Duration,
    /// Time on a CPU.
    pub ran: Duration,
    /// Time it waited for a CPU.
    pub waited: Duration,
    /// Time it had nothing to do, or waited for something else.
    pub slept: Duration,
    /// The part of `slept` in which it waited for another thread; `None` if that is not visible.
    pub locked: Option<Duration>,
    /// The number of looks that `locked` was estimated from; 0 if it is exact ([`Layer::Ebpf`]) or
    /// unknown.
    pub looks: u32,
    /// Times it gave up its CPU to wait for something.
    pub voluntary: u64,
    /// Times its CPU was taken from it.
    pub involuntary: u64,
    /// Migrations to another CPU; `None` if the kernel does not report them.
    pub migrations: Option<u64>,
    /// The CPU it ran on last; `None` if unknown.
    pub cpu: Option<CpuId>,
}

/// What all threads of a program did in a window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// The layer it comes from, which decides whether time at locks is sampled or exact.
    pub layer: Layer,
    /// The length of the window.
    pub elapsed: Duration,
    /// Every thread; those that ended are last.
    pub threads: Vec<ThreadActivity>,
    /// The average time between two looks. It is given if looks cost too much to make them as often
    /// as the layer would (every 10 ms). Otherwise `None`, and also if the figures are exact
    /// without looks ([`Layer::Ebpf`]).
    pub stretched: Option<Duration>,
    /// The number of records of context switches, or threads, that the kernel dropped because
    /// nobody read them in time. If it is not 0, the figures are too low.
    pub lost: u64,
    /// What watching cost.
    pub overhead: Overhead,
}

impl Activity {
    /// The activity of a program whose threads all went unnoticed.
    pub fn none(elapsed: Duration) -> Self {
        Self {
            layer: Layer::Proc,
            elapsed,
            threads: Vec::new(),
            stretched: None,
            lost: 0,
            overhead: Overhead::default(),
        }
    }

    /// LOCK: the share of all threads' time in which they waited for each other, 0 to 1. `None` if
    /// no thread shows it. A thread that never ran is idle: it has no work, and waits at no lock.
    pub fn lock(&self) -> Option<f64> {
        let waits = |thread: &ThreadActivity| {
            let locked = thread.locked?;
            Some(if thread.ran.is_zero() { Duration::ZERO } else { locked })
        };
        let seen: Vec<(f64, f64)> = self
            .threads
            .iter()
            .filter_map(|thread| Some((waits(thread)?.as_secs_f64(), thread.elapsed.as_secs_f64())))
            .collect();
        let (locked, elapsed) =
            seen.iter().fold((0.0, 0.0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
        (!seen.is_empty()).then(|| if elapsed > 0.0 { locked / elapsed } else { 0.0 })
    }

    /// VCX_RATE: voluntary context switches per second.
    pub fn voluntary_rate(&self) -> f64 {
        self.rate(self.threads.iter().map(|thread| thread.voluntary).sum())
    }

    /// Involuntary context switches per second.
    pub fn involuntary_rate(&self) -> f64 {
        self.rate(self.threads.iter().map(|thread| thread.involuntary).sum())
    }

    /// MIGR_RATE: migrations per second; `None` if the kernel does not report them.
    pub fn migration_rate(&self) -> Option<f64> {
        let migrations: Option<u64> = self.threads.iter().map(|thread| thread.migrations).sum();
        migrations.map(|migrations| self.rate(migrations))
    }

    /// Time of all threads on a CPU.
    pub fn ran(&self) -> Duration {
        self.threads.iter().map(|thread| thread.ran).sum()
    }

    /// The cost of watching, as a share of the program's own CPU time; `None` if it used none.
    pub fn overhead_share(&self) -> Option<f64> {
        let ran = self.ran().as_secs_f64();
        (ran > 0.0).then(|| self.overhead.total().as_secs_f64() / ran)
    }

    /// CPU_UTIL: the share of `contexts` that the program kept busy, 0 to 1.
    pub fn utilization(&self, contexts: usize) -> f64 {
        let ran = self.ran().as_secs_f64();
        let capacity = self.elapsed.as_secs_f64() * contexts as f64;
        if capacity > 0.0 { (ran / capacity).min(1.0) } else { 0.0 }
    }

    fn rate(&self, count: u64) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }
}
