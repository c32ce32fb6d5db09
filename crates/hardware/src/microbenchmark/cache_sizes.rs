//! Load latency by working-set size.
//!
//! *Problem.* The cache sizes that a virtual machine declares may be wrong. It may declare the
//! last-level cache of a whole package, which other virtual machines share. Or it may declare the
//! caches of another model.
//!
//! *Method.* A chain of loads runs over growing sizes. Each size is timed in several windows. The
//! fastest window counts, because other programs only make loads slower. Where the time stays the
//! same from size to size, one level serves them: a *plateau*. Its last size is the largest working
//! set that the level holds.
//!
//! A last-level cache that neighbours share has no plateau. A longer walk through the working set
//! lets more of the set be evicted. So the time climbs from that of the cache to that of memory.
//! Such a cache holds the largest working set with more than half of its loads served before memory
//! (`slope`).

use super::InstructionKind;
use super::cpu_time::timed;
use super::kernel;
use super::pages::BLOCK;
use super::pointer_chase::PointerChain;
use pinwise_measure::{EffectiveCache, Interrupt, WorkingSet, WorkingSets};
use pinwise_topology::{CpuId, Machine, Random};
use std::io;
use std::time::Duration;

/// The smallest size.
const SMALLEST: usize = 4096;
/// Windows for each size.
const WINDOWS: usize = 5;
/// CPU time of a window.
const WINDOW: Duration = Duration::from_millis(4);
/// A size is walked through once before it is timed, unless that takes longer than this.
const WARM_UP: Duration = Duration::from_millis(400);
/// From one size of a plateau to the next, at most twice as large, time grows by less than this.
const FLAT: f64 = 1.16;
/// Fewer points are the way from one level to the next.
const POINTS: usize = 3;
/// What belongs to different levels differs by more than this.
const STEP: f64 = 1.35;

/// Sizes from 4 KiB up to `largest`: powers of two, and the middle between them.
fn sizes(largest: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = Vec::new();
    let powers = std::iter::successors(Some(SMALLEST), |size| size.checked_mul(2))
        .take_while(|&size| size <= largest);
    for size in powers.flat_map(|power| [power, power / 2 * 3]) {
        // A chain beyond a block has whole blocks.
        let size = if size > BLOCK { size.next_multiple_of(BLOCK) } else { size };
        if size <= largest && !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    sizes
}

/// The curve on the calling thread's context, up to `largest` bytes.
///
/// # Errors
/// No memory; cancelled.
pub(super) fn measure(
    largest: usize,
    line: usize,
    cancelled: &Interrupt,
) -> Result<Vec<WorkingSet>, io::Error> {
    let mut random = Random::new(1);
    let mut curve = Vec::new();
    for bytes in sizes(largest) {
        let mut chain = PointerChain::new(bytes, line, &mut random)?;
        let (mut warm, mut walked) = (Duration::ZERO, 0);
        while walked < chain.length && warm < WARM_UP {
            if cancelled.came() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            warm += timed(|| chain.follow(256));
            walked += 256 * kernel::operations(InstructionKind::Chase) as usize;
        }
        let window = |chain: &mut PointerChain| {
            let (mut time, mut loads) = (Duration::ZERO, 0);
            while time < WINDOW {
                time += timed(|| chain.follow(64));
                loads += 64 * kernel::operations(InstructionKind::Chase);
            }
            time.as_nanos() as f64 / loads as f64
        };
        let ns = (0..WINDOWS).map(|_| window(&mut chain)).fold(f64::INFINITY, f64::min);
        curve.push(WorkingSet { bytes: bytes as u64, ns });
    }
    Ok(curve)
}

/// The last point of each plateau of at least [`POINTS`] points, with its time. The last one is
/// memory, if the curve gets that far.
fn plateaus(curve: &[WorkingSet]) -> Vec<WorkingSet> {
    // A larger working set is never served faster: what says so was disturbed.
    let mut best = f64::INFINITY;
    let mut smooth: Vec<WorkingSet> = curve
        .iter()
        .rev()
        .map(|point| {
            best = best.min(point.ns);
            WorkingSet { ns: best, ..*point }
        })
        .collect();
    smooth.reverse();
    // With the number of its points.
    let mut plateaus: Vec<(WorkingSet, usize)> = Vec::new();
    for pair in smooth.windows(2) {
        let (before, point) = (pair[0], pair[1]);
        if point.ns >= before.ns * FLAT {
            continue;
        }
        match plateaus.last_mut() {
            // The same level again, after a bump: one that grows slowly stays one level.
            Some((last, points)) if last.bytes == before.bytes || point.ns < last.ns * STEP => {
                (*last, *points) = (point, *points + 1);
            }
            _ => plateaus.push((point, 2)),
        }
    }
    plateaus.into_iter().filter(|(_, points)| *points >= POINTS).map(|(last, _)| last).collect()
}

/// The size of a cache without a plateau. It is the largest working set of at least twice `before`
/// whose time is low. Low is below the middle between the first such set and `memory`. More than
/// half of its loads are served before memory. `None` if the first already takes as long as memory.
fn slope(curve: &[WorkingSet], before: u64, memory: WorkingSet) -> Option<WorkingSet> {
    let beyond = || curve.iter().filter(|point| (2 * before..memory.bytes).contains(&point.bytes));
    let near = beyond().next().filter(|near| near.ns * STEP < memory.ns)?;
    beyond().take_while(|point| point.ns < (near.ns + memory.ns) / 2.0).last().copied()
}

/// What the caches around `cpu` are as declared, and as `curve` has them.
pub(super) fn working_sets(machine: &Machine, cpu: CpuId, curve: Vec<WorkingSet>) -> WorkingSets {
    let mut plateaus = plateaus(&curve);
    // The last plateau is memory. A curve that does not reach it says nothing about its last level.
    let memory = plateaus.pop();
    let mut caches: Vec<EffectiveCache> = Vec::new();
    for level in 1..=4 {
        if let Some(cache) = machine.data_caches(level).find(|cache| cache.cpus.contains(cpu)) {
            let effective = plateaus.get(caches.len()).copied();
            caches.push(EffectiveCache { level, declared: cache.size, effective });
        }
    }
    // Beyond the core's own caches: those keep what they hold.
    if let [.., before, last] = &mut caches[..]
        && last.level > 2
        && last.effective.is_none()
    {
        let held = before.declared.max(before.effective.map(|seen| seen.bytes));
        last.effective = held.zip(memory).and_then(|(held, memory)| slope(&curve, held, memory));
    }
    WorkingSets { curve, caches }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn curve(points: &[(f64, f64)]) -> Vec<WorkingSet> {
        points
            .iter()
            .map(|&(mib, ns)| WorkingSet { bytes: (mib * MIB as f64) as u64, ns })
            .collect()
    }

    /// As measured on a virtual machine with 2 cores of a server. It declares 48 KiB, 2 MiB and 260
    /// MiB.
    fn server() -> Vec<WorkingSet> {
        curve(&[
            (0.016, 1.67),
            (0.023, 1.67),
            (0.032, 1.67),
            (0.045, 1.67),
            (0.064, 5.33),
            (0.091, 5.33),
            (0.128, 5.34),
            (0.181, 5.35),
            (0.256, 5.35),
            (0.362, 5.34),
            (0.512, 5.98),
            (0.724, 6.54),
            (1.024, 6.84),
            (1.448, 7.32),
            (2.048, 17.59),
            (2.896, 29.96),
            (4.096, 34.12),
            (5.793, 34.34),
            (8.192, 35.66),
            (11.585, 38.06),
            (16.384, 40.12),
            (23.170, 64.27),
            (32.768, 128.08),
            (46.341, 128.06),
            (65.536, 128.11),
            (92.682, 128.75),
            (131.072, 131.01),
            (185.364, 130.81),
            (262.144, 133.03),
            (370.728, 138.21),
        ])
    }

    fn ends(curve: &[WorkingSet]) -> Vec<u64> {
        plateaus(curve).iter().map(|end| end.bytes / KIB).collect()
    }

    #[test]
    fn each_level_ends_where_loads_begin_to_take_longer() {
        assert_eq!(ends(&server()), [46, 1482, 16777, 379_625]);
        let mut machine = Machine::model("ultrasparc-t2").unwrap();
        let all = machine.allowed.clone();
        let cache = |level: u8, size: u64| {
            let mut cache = machine.caches.last().unwrap().clone();
            (cache.level, cache.size, cache.cpus) = (level, Some(size), all.clone());
            cache
        };
        machine.caches = vec![cache(1, 48 * KIB), cache(2, 2 * MIB), cache(3, 260 * MIB)];
        let sets = working_sets(&machine, CpuId(0), server());
        let disagree: Vec<bool> = sets.caches.iter().map(EffectiveCache::disagrees).collect();
        assert_eq!(disagree, [false, false, true]);
        assert_eq!(sets.caches[2].effective.unwrap().bytes, (16.384 * MIB as f64) as u64);
    }

    #[test]
    fn a_bump_is_no_level_and_a_level_that_is_not_there_is_not_made_up() {
        let mut bumpy = server();
        bumpy[9].ns = 19.0;
        bumpy[24].ns = 300.0;
        assert_eq!(ends(&bumpy), ends(&server()));
        // On the way from one level to the next two points may look alike on a busy machine.
        let mut between = server();
        (between[14].ns, between[15].ns) = (21.0, 22.0);
        assert_eq!(ends(&between), ends(&server()));
        let machine = Machine::model("ultrasparc-t2").unwrap();
        let flat =
            working_sets(&machine, CpuId(0), curve(&[(0.016, 1.0), (0.024, 1.0), (0.032, 1.0)]));
        assert!(flat.caches.iter().all(|cache| cache.effective.is_none() && cache.disagrees()));
        assert!(working_sets(&machine, CpuId(0), Vec::new()).curve.is_empty());
    }

    #[test]
    fn a_last_level_without_a_plateau_is_seen_by_its_slope() {
        // The same machine while its neighbours were busier. It has 2 MiB of L2, then every size
        // takes longer than the one before.
        let upper = |points: &[(f64, f64)]| {
            let mut all = server();
            all.retain(|point| point.bytes < 2 * MIB);
            all.extend(curve(points));
            all
        };
        let memory = [
            (12.0, 142.7),
            (16.0, 135.5),
            (24.0, 132.4),
            (32.0, 152.6),
            (64.0, 140.1),
            (128.0, 138.6),
            (384.0, 140.3),
        ];
        let climbing =
            [&[(2.0, 36.0), (4.0, 38.0), (6.0, 54.6), (8.0, 84.2)][..], &memory].concat();
        let mut machine = Machine::model("ultrasparc-t2").unwrap();
        let all = machine.allowed.clone();
        let cache = |level: u8, size: u64| {
            let mut cache = machine.caches.last().unwrap().clone();
            (cache.level, cache.size, cache.cpus) = (level, Some(size), all.clone());
            cache
        };
        machine.caches = vec![cache(1, 48 * KIB), cache(2, 2 * MIB), cache(3, 260 * MIB)];
        let third =
            |curve: Vec<WorkingSet>| working_sets(&machine, CpuId(0), curve).caches[2].effective;
        assert_eq!(third(upper(&climbing)), Some(WorkingSet { bytes: 8 * MIB, ns: 84.2 }));
        // Where all that leaves the second level takes as long as memory, there is no third.
        let gone = [&[(2.0, 90.0), (4.0, 128.0), (6.0, 131.0), (8.0, 135.0)][..], &memory].concat();
        assert_eq!(third(upper(&gone)), None);
    }

    #[test]
    fn sizes_at_most_double_and_are_whole_blocks_beyond_one() {
        let sizes = sizes(48 << 20);
        assert_eq!(sizes[..4], [4096, 6144, 8192, 12288]);
        assert_eq!(*sizes.last().unwrap(), 48 << 20);
        assert!(sizes.windows(2).all(|pair| pair[0] < pair[1] && pair[1] <= 2 * pair[0]));
        assert!(sizes.iter().all(|size| *size <= BLOCK || size.is_multiple_of(BLOCK)));
    }

    #[test]
    fn a_curve_is_measured_up_to_its_largest_size() {
        if !kernel::PRESENT {
            return pinwise_synthetic::not_judged("this architecture has no machine code here");
        }
        let curve = measure(64 * 1024, 64, &Interrupt::default()).unwrap();
        assert_eq!(curve.last().unwrap().bytes, 64 * 1024);
        assert!(curve.iter().all(|point| point.ns > 0.02 && point.ns < 10_000.0), "{curve:?}");
        let interrupt = Interrupt::default();
        interrupt.give_up();
        let cancelled = measure(64 * 1024, 64, &interrupt).unwrap_err();
        assert_eq!(cancelled.kind(), io::ErrorKind::Interrupted);
    }
}
