//! Core-to-core latency, measured.
//!
//! Two threads, each confined to a context, pass one cache line back and forth with
//! compare-and-swap. Neither ever sleeps. The latency is half a round trip. Three things change the
//! answer, so all are varied:
//!
//! - *direction*: the *writer* touches the page first, which puts the page on its NUMA node, and
//!   takes the time. Then the roles change.
//! - *address*: for each direction [`PAGES`] fresh pages from the kernel, [`LINES`] lines of each.
//!   Physical addresses decide which slice of the last-level cache, or which home agent, a line
//!   belongs to.
//! - *time*: [`BATCHES`] batches of round trips for each line. A batch ([`BATCH`]) is so long that
//!   the cost of the clock is negligible. It is so short that most batches see no interrupt. The
//!   result holds their distribution, not one figure.
//!
//! Before each direction the pair plays for [`WARM_UP`], and on until four batches in a row agree.
//! By then both have left power saving states and reached their frequency. A direction ends after
//! [`LONGEST`], whatever is missing. The order of pairs is random, so that a change of frequency
//! over the run does not look like structure.
//!
//! On a busy machine threads wait for their CPU, and then measure the scheduler. The result
//! includes the kernel's account of that wait.

mod page;
mod ping_pong;
mod warning;

use page::Page;
use ping_pong::{Follower, Leader, Signals, lines};
use pinwise_linux::{
    affinity::{self, AffinityError},
    sys::time_stamp,
    thread::Tid,
};
use pinwise_measure::Interrupt;
use pinwise_topology::{CpuId, CpuSet, LatencyMatrix, LatencyUnit, Random};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};
pub use warning::LatencyWarning;

/// Fresh pages for each direction of a pair.
const PAGES: usize = 2;
/// Lines of each page that are tried.
const LINES: usize = 4;
/// Batches of round trips on each line, after one that is thrown away.
const BATCHES: usize = 8;
/// What a batch is to take.
const BATCH: Duration = Duration::from_micros(40);
/// How long a pair plays before it is measured.
const WARM_UP: Duration = Duration::from_millis(4);
/// The longest warm-up, if batches never agree.
const LONGEST_WARM_UP: Duration = Duration::from_millis(50);
/// The longest that one direction of a pair takes.
const LONGEST: Duration = Duration::from_secs(5);

/// Why latencies could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum LatencyRunError {
    /// Nothing to measure between.
    #[error(
        "latency needs two contexts, and only {0} may be used here: allow two or more (taskset, \
         cpuset, --cpus)"
    )]
    TooFew(usize),
    /// A measuring thread could not be put on its context.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// No thread or no memory.
    #[error("cannot measure latencies: {0}")]
    System(#[from] io::Error),
    /// Asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// A result that is no matrix.
    #[error(transparent)]
    Matrix(#[from] pinwise_topology::LatencyError),
}

/// The latencies between some contexts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// The contexts, ascending.
    pub contexts: Vec<CpuId>,
    /// Both directions of each pair.
    pub directions: Vec<DirectedLatency>,
    /// Ticks of the time stamp counter in a nanosecond, if there is one that does not stop or
    /// change (x86).
    pub tsc_ghz: Option<f64>,
    /// How long it took.
    pub elapsed: Duration,
}

/// The latency from one context to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectedLatency {
    /// The writer: the first to touch the pages.
    pub from: CpuId,
    /// The other.
    pub to: CpuId,
    /// For each line its batches, in nanoseconds one way. Fewer than planned if time ran out.
    pub lines: Vec<Vec<f64>>,
    /// The share of the time in which the thread which waited longer was ready to run and had no
    /// CPU.
    pub waited: f64,
}

/// Quantiles of a sample, nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// 5 %.
    pub q05: f64,
    /// 25 %.
    pub q25: f64,
    /// 50 %.
    pub median: f64,
    /// 75 %.
    pub q75: f64,
    /// 95 %.
    pub q95: f64,
}

impl Quantiles {
    /// Those of `values`; `None` of none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |q: f64| values[(q * last as f64).round() as usize];
        Some(Self { q05: at(0.05), q25: at(0.25), median: at(0.5), q75: at(0.75), q95: at(0.95) })
    }
}

impl DirectedLatency {
    /// Of all batches on all lines, in nanoseconds; `None` if time ran out before the first.
    pub fn quantiles(&self) -> Option<Quantiles> {
        Quantiles::of(self.lines.concat())
    }

    /// The medians of the lines, ascending: how much the address matters.
    pub fn line_medians(&self) -> Vec<f64> {
        let mut medians: Vec<f64> = self
            .lines
            .iter()
            .filter_map(|line| Quantiles::of(line.clone()))
            .map(|line| line.median)
            .collect();
        medians.sort_by(f64::total_cmp);
        medians
    }

    /// The spread that the address does not explain. It is the middle half of the batches, each
    /// relative to the median of its line. `None` if time ran out before the first.
    pub fn spread(&self) -> Option<f64> {
        let relative = self.lines.iter().flat_map(|line| {
            let median = Quantiles::of(line.clone()).map_or(f64::NAN, |quantiles| quantiles.median);
            line.iter().map(move |batch| batch / median)
        });
        Quantiles::of(relative.collect()).map(|quantiles| quantiles.q75 - quantiles.q25)
    }

    /// How many batches there are.
    pub fn batches(&self) -> usize {
        self.lines.iter().map(Vec::len).sum()
    }
}

impl Latencies {
    /// Pairs of `contexts`, and how long measuring them takes on a quiet machine.
    pub fn estimate(contexts: usize) -> (usize, Duration) {
        let pairs = contexts * contexts.saturating_sub(1) / 2;
        // Threads are made and ended in less than a millisecond.
        let direction =
            WARM_UP + BATCH * (PAGES * LINES * (BATCHES + 1)) as u32 + Duration::from_millis(1);
        (pairs, direction * 2 * pairs as u32)
    }

    /// Every pair of `contexts` in both directions, in the order in which they are measured. The
    /// order of pairs is random, by `seed`. So a change of frequency over the run does not look
    /// like structure. Error: fewer than two contexts.
    pub fn order(contexts: &CpuSet, seed: u64) -> Result<Vec<(CpuId, CpuId)>, LatencyRunError> {
        let contexts: Vec<CpuId> = contexts.iter().collect();
        if contexts.len() < 2 {
            return Err(LatencyRunError::TooFew(contexts.len()));
        }
        let mut pairs: Vec<(CpuId, CpuId)> = contexts
            .iter()
            .enumerate()
            .flat_map(|(index, &a)| contexts[index + 1..].iter().map(move |&b| (a, b)))
            .collect();
        Random::new(seed).shuffle(&mut pairs);
        Ok(pairs.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).collect())
    }

    /// The latencies of these directions, which took `elapsed` to measure.
    pub fn new(
        mut directions: Vec<DirectedLatency>,
        tsc_ghz: Option<f64>,
        elapsed: Duration,
    ) -> Self {
        directions.sort_by_key(|direction| (direction.from, direction.to));
        let contexts: BTreeSet<CpuId> =
            directions.iter().flat_map(|direction| [direction.from, direction.to]).collect();
        Self { contexts: contexts.into_iter().collect(), directions, tsc_ghz, elapsed }
    }

    /// The medians as a matrix, in nanoseconds. Error: more contexts than a matrix may have.
    pub fn matrix(&self) -> Result<LatencyMatrix, LatencyRunError> {
        let n = self.contexts.len();
        let mut cells = vec![None; n * n];
        for direction in &self.directions {
            let index = |cpu| self.contexts.binary_search(&cpu);
            if let (Ok(from), Ok(to)) = (index(direction.from), index(direction.to)) {
                cells[from * n + to] = direction.quantiles().map(|quantiles| quantiles.median);
            }
        }
        Ok(LatencyMatrix::new(self.contexts.clone(), LatencyUnit::Ns, cells)?)
    }
}

/// Whether the time stamp counter runs at one rate in all power states.
fn steady_counter() -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"]
        .iter()
        .all(|flag| flags.split_whitespace().any(|word| word == *flag))
}

/// The time stamp counter, read against the clock. If it does not stop or change (x86), it gives
/// how many ticks a nanosecond has.
#[derive(Debug)]
pub struct TickRate {
    begin: Instant,
    ticks: Option<u64>,
}

impl TickRate {
    /// From now on.
    pub fn begin() -> Self {
        Self { begin: Instant::now(), ticks: time_stamp().filter(|_| steady_counter()) }
    }

    /// Ticks in a nanosecond until now.
    pub fn ghz(&self) -> Option<f64> {
        let (first, last) = self.ticks.zip(time_stamp())?;
        Some(last.wrapping_sub(first) as f64 / self.begin.elapsed().as_nanos() as f64)
    }
}

/// Measures one direction of one pair. A set `cancelled` ends it within milliseconds. Threads are
/// this function's own: no other affinity changes.
///
/// # Errors
/// A thread cannot run on its context; no thread or memory; cancelled.
pub fn directed_latency(
    from: CpuId,
    to: CpuId,
    cancelled: &Interrupt,
) -> Result<DirectedLatency, LatencyRunError> {
    // The first page is for warming up.
    let pages = (0..=PAGES).map(|_| Page::map()).collect::<io::Result<Vec<Page>>>()?;
    let signals = Signals::new(cancelled, Instant::now() + LONGEST);
    let (led, followed) = std::thread::scope(|scope| {
        let follower =
            spawn(scope, to, &signals, || Follower::new(&signals).follow(&lines(&pages)))?;
        let leader = spawn(scope, from, &signals, || Leader::new(&signals).lead(&lines(&pages)))
            .inspect_err(|_| signals.stop());
        let followed = follower
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a measuring thread died").into()));
        let led = leader?
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("a measuring thread died").into()));
        Ok::<_, LatencyRunError>((led, followed))
    })?;
    let ((lines, waited), (_, follower_waited)) = (led?, followed?);
    if signals.cancelled() {
        return Err(LatencyRunError::Interrupted);
    }
    Ok(DirectedLatency { from, to, lines, waited: waited.max(follower_waited) })
}

type LatencyWorker<'scope, T> =
    std::thread::ScopedJoinHandle<'scope, Result<(T, f64), LatencyRunError>>;

/// Runs `work` on a context. Returns its result, and the share of the time that it waited for its
/// CPU.
fn spawn<'scope, 'env, T: Send + 'scope>(
    scope: &'scope std::thread::Scope<'scope, 'env>,
    cpu: CpuId,
    signals: &'scope Signals<'_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<LatencyWorker<'scope, T>> {
    std::thread::Builder::new().name("latency".into()).spawn_scoped(scope, move || {
        let this = Tid(rustix::thread::gettid().as_raw_nonzero().get());
        affinity::set(this, &CpuSet::from_iter([cpu])).inspect_err(|_| signals.stop())?;
        let (begin, before) = (Instant::now(), run_delay());
        let result = work();
        let waited =
            run_delay().saturating_sub(before).as_secs_f64() / begin.elapsed().as_secs_f64();
        Ok((result, waited.min(1.0)))
    })
}

/// How long the calling thread has been ready to run without running; 0 if the kernel does not say.
fn run_delay() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_ascii_whitespace()
        .nth(1)
        .and_then(|field| field.parse().ok())
        .map(Duration::from_nanos)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_linux::sys;

    /// Every direction, one after the other.
    fn measure(contexts: &CpuSet, cancelled: bool) -> Result<Latencies, LatencyRunError> {
        let (ticks, interrupt) = (TickRate::begin(), Interrupt::default());
        if cancelled {
            interrupt.give_up();
        }
        let order = Latencies::order(contexts, 1)?;
        let measure = |(from, to)| directed_latency(from, to, &interrupt);
        let directions = order.into_iter().map(measure).collect::<Result<Vec<_>, _>>()?;
        Ok(Latencies::new(directions, ticks.ghz(), ticks.begin.elapsed()))
    }

    fn two() -> Option<CpuSet> {
        let allowed = sys::affinity(0).unwrap();
        let two: CpuSet = allowed.iter().take(2).collect();
        if two.len() < 2 {
            pinwise_synthetic::lacking("a second CPU");
            return None;
        }
        Some(two)
    }

    #[test]
    fn both_directions_of_a_pair_are_measured_and_nothing_else_is_moved() {
        let Some(two) = two() else { return };
        let before = sys::affinity(0).unwrap();
        let latencies = measure(&two, false).unwrap();
        assert_eq!(sys::affinity(0).unwrap(), before);
        let cpus: Vec<CpuId> = two.iter().collect();
        let ends: Vec<(CpuId, CpuId)> =
            latencies.directions.iter().map(|d| (d.from, d.to)).collect();
        assert_eq!(ends, [(cpus[0], cpus[1]), (cpus[1], cpus[0])]);
        for direction in &latencies.directions {
            // On a busy machine time may run out before all lines are through.
            assert!(
                direction.lines.len() <= PAGES * LINES
                    && direction.batches() <= PAGES * LINES * BATCHES
            );
            assert!((0.0..=1.0).contains(&direction.waited));
            let Some(quantiles) = direction.quantiles() else { continue };
            assert!(
                quantiles.q05 > 0.0
                    && quantiles.q05 <= quantiles.median
                    && quantiles.median <= quantiles.q95
            );
            assert!(direction.line_medians().is_sorted());
        }
        let matrix = latencies.matrix().unwrap();
        assert_eq!(matrix.contexts(), cpus);
        assert_eq!(
            matrix.get(0, 1),
            latencies.directions[0].quantiles().map(|quantiles| quantiles.median)
        );
        assert!(
            latencies.tsc_ghz.is_none_or(|ghz| (0.1..10.0).contains(&ghz)),
            "{:?}",
            latencies.tsc_ghz
        );
    }

    #[test]
    fn one_context_is_too_few_and_one_that_is_not_there_is_named() {
        let measure =
            |cpus: &str| self::measure(&CpuSet::parse_list(cpus).unwrap(), false).unwrap_err();
        assert!(matches!(measure("0"), LatencyRunError::TooFew(1)));
        let first = sys::affinity(0).unwrap().first().unwrap().0;
        // Whichever of the two threads it is, the other does not wait for it.
        let error = measure(&format!("{first},8191"));
        assert!(
            matches!(error, LatencyRunError::Affinity(_)) && error.to_string().contains("CPU 8191"),
            "{error}"
        );
    }

    #[test]
    fn a_cancelled_measurement_ends_at_once() {
        let Some(two) = two() else { return };
        let done = measure(&two, true);
        assert!(matches!(done, Err(LatencyRunError::Interrupted)));
    }

    #[test]
    fn the_cost_is_known_before() {
        assert_eq!(Latencies::estimate(2), (1, Duration::from_micros(15_760)));
        assert_eq!(Latencies::estimate(64).0, 2016);
        assert!(Latencies::estimate(256).1 < Duration::from_secs(600));
        assert_eq!(Latencies::estimate(0), (0, Duration::ZERO));
    }

    #[test]
    fn lines_that_differ_are_no_unsteadiness() {
        let lines = vec![vec![50.0, 50.0, 50.5], vec![70.0, 70.0, 70.7]];
        let direction = DirectedLatency { from: CpuId(0), to: CpuId(1), lines, waited: 0.0 };
        assert_eq!(direction.line_medians(), [50.0, 70.0]);
        assert!(direction.spread().unwrap() < 0.011 && direction.batches() == 6);
        assert_eq!(direction.quantiles().unwrap().q75, 70.0);
        assert_eq!(DirectedLatency { lines: vec![], ..direction }.spread(), None);
    }

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let quantiles = Quantiles::of((0..=100).rev().map(f64::from).collect()).unwrap();
        assert_eq!(
            quantiles,
            Quantiles { q05: 5.0, q25: 25.0, median: 50.0, q75: 75.0, q95: 95.0 }
        );
        assert_eq!(Quantiles::of(vec![]), None);
    }
}
