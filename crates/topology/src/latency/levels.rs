//! The levels that latencies imply.
//!
//! **Idea.** A level is a grouping that stays the same while the threshold rises. Two contexts are
//! *together* at a threshold if the latency between them is at most that. On a machine that is a
//! tree, at a threshold between two of its levels, being together is an equivalence. Within the
//! spread of a level it is not, or only for a moment. So the threshold rises from the lowest
//! latency to the highest in steps of 1 %. A grouping that is an equivalence and *persists* is a
//! level. Unlike a cluster of values, it survives values that stray into the gap between two
//! levels.
//!
//! *Tolerance.* Contexts that are together join if they share more than half of the neighbours that
//! either has. Each context is a neighbour of itself. So one spoilt value neither breaks a group of
//! three or more nor joins two. At most 1 in 20 of the pairs that a grouping joins may contradict
//! it; they are listed. A grouping in which half the contexts are alone is no level.
//!
//! *Persistence.* The factor is 1.05, or the ratio between two directions that nine in ten pairs
//! stay within. The larger one counts. The noise between directions is also between pairs. Few
//! contexts group by chance. One time in five, the two fastest pairs of 4 contexts make two groups
//! of two. So some groupings need four times that in the logarithm, at most a factor of 1.25. These
//! are groupings of unequal size, and those that chance gives more than once in a thousand. Chance
//! means random pairs of the groups inside. With one direction only, the noise is unknown: 1.10 and
//! 1.25. Where all directions are equal, somebody has removed the noise: 1.05 always.
//!
//! **Limits.** Levels whose latencies overlap are one. A ring or mesh of packages is no tree: its
//! distances are *classes* of one level ([`LatencyLevel::classes`]), not levels.

use super::{LatencyMatrix, Oddity, Pairs, summary};
use crate::{CpuId, CpuSet};

/// The levels of a machine, as its latencies imply them.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyLevels {
    /// They go from the nearest contexts to the whole machine, which is always the last. Each
    /// level's groups are unions of those before it.
    pub levels: Vec<LatencyLevel>,
    /// Values that were not used as they stand.
    pub oddities: Vec<Oddity>,
}

/// One level: groups of contexts that are nearer to each other than to others.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyLevel {
    /// The groups, in order of their first contexts; together they have every context.
    pub groups: Vec<CpuSet>,
    /// Median, lowest and highest latency of the pairs that this level is the first to group.
    /// `None`: none of them is known.
    pub latency: Option<LatencyClass>,
    /// The classes of these latencies, such as the hops of an interconnect. They group no contexts.
    /// Empty if there is only one class.
    pub classes: Vec<LatencyClass>,
    /// Pairs that contradict the grouping. Compared with the threshold to the next level, they are
    /// in one group and slower, or in two and faster. They do not count in `latency`.
    pub contradictions: Vec<(CpuId, CpuId, f64)>,
}

/// Latencies of one kind.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LatencyClass {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// How many pairs of contexts.
    pub pairs: usize,
}

impl LatencyLevel {
    /// The number of contexts in each group, if it is the same in all.
    pub fn size(&self) -> Option<usize> {
        let size = self.groups.first()?.len();
        self.groups.iter().all(|group| group.len() == size).then_some(size)
    }
}

/// The step by which the threshold rises.
const STEP: f64 = 1.01;
/// One in this many pairs of a grouping may contradict it.
const CONTRADICTED: usize = 20;
/// The least factor over which a level has to persist.
const PERSISTENT: f64 = 1.05;
/// The same, where the noise is unknown.
const PERSISTENT_UNKNOWN: f64 = 1.10;
/// The same, where chance could have made the level.
const PERSISTENT_CHANCE: f64 = 1.25;
/// Above this probability of its grouping a level may be chance.
const CHANCE: f64 = 1e-3;
/// Classes of one level are at least this factor apart, and have at least one in 20 of its pairs.
const CLASS_GAP: f64 = 1.15;

/// The group of each context, numbered in order of first contexts.
type Grouping = Vec<usize>;

/// A grouping and the thresholds over which it persisted.
struct Candidate {
    grouping: Grouping,
    from: f64,
    to: f64,
}

impl LatencyLevels {
    /// The levels that `matrix` implies. Costs n^2 steps for each percent between the lowest and
    /// the highest latency. It costs more only within the spread of a level.
    pub fn of(matrix: &LatencyMatrix) -> Self {
        let pairs = matrix.pairs();
        let mut accepted: Vec<Candidate> = Vec::new();
        for candidate in persistent(&pairs) {
            let inner = accepted.last().map(|level| level.grouping.as_slice());
            if candidate.to / candidate.from
                >= required(&candidate.grouping, inner, pairs.asymmetry)
                && inner.is_none_or(|inner| nests(inner, &candidate.grouping))
            {
                accepted.push(candidate);
            }
        }
        let whole = vec![0; pairs.contexts()];
        if accepted.last().is_none_or(|level| level.grouping != whole) {
            accepted.push(Candidate { grouping: whole, from: f64::INFINITY, to: f64::INFINITY });
        }
        let mut inner: Grouping = (0..pairs.contexts()).collect();
        let mut levels = Vec::new();
        for candidate in accepted {
            levels.push(describe(matrix.contexts(), &pairs, &inner, &candidate));
            inner = candidate.grouping;
        }
        Self { levels, oddities: pairs.oddities }
    }

    /// The positions of `contexts` group by group. A matrix in this order has its groups as blocks
    /// along the diagonal.
    pub fn order(&self, contexts: &[CpuId]) -> Vec<usize> {
        let path = |cpu: CpuId| -> Vec<Option<usize>> {
            let outermost_first = self.levels.iter().rev();
            outermost_first
                .map(|level| level.groups.iter().position(|group| group.contains(cpu)))
                .collect()
        };
        let mut order: Vec<usize> = (0..contexts.len()).collect();
        order.sort_by_cached_key(|&index| (path(contexts[index]), contexts[index]));
        order
    }

    /// The first level at which two contexts share a group, as an index into [`Self::levels`]. It
    /// is the last level for contexts that are in no group.
    pub fn together(&self, a: CpuId, b: CpuId) -> usize {
        let has_both = |level: &LatencyLevel| {
            level.groups.iter().any(|group| group.contains(a) && group.contains(b))
        };
        self.levels.iter().position(has_both).unwrap_or(self.levels.len().saturating_sub(1))
    }

    /// Where a latency lies between the lowest (0) and the highest (1) that levels have, on a
    /// logarithmic scale. Spoilt values may lie outside. If all levels are within 5 %, all results
    /// are near 0, since they show nothing.
    pub fn place(&self, latency: f64) -> f64 {
        let latencies = || self.levels.iter().filter_map(|level| level.latency);
        let low = latencies().map(|class| class.low).fold(f64::INFINITY, f64::min);
        let high = latencies().map(|class| class.high).fold(0.0, f64::max);
        (latency / low).ln() / (high / low).max(PERSISTENT).ln()
    }
}

/// Every grouping that is near enough to an equivalence, with the range of thresholds over which it
/// lasts.
fn persistent(pairs: &Pairs) -> Vec<Candidate> {
    let n = pairs.contexts();
    let mut values: Vec<f64> =
        (0..n).flat_map(|a| (0..a).filter_map(move |b| pairs.get(a, b))).collect();
    values.sort_by(f64::total_cmp);
    let (Some(&low), Some(&high)) = (values.first(), values.last()) else { return Vec::new() };
    let mut candidates: Vec<Candidate> = Vec::new();
    let (mut reached, mut lasts) = (0, false);
    // All values are within a factor of 10,000 of each other (see `IMPOSSIBLE`): 926 steps.
    for threshold in
        (0..1000).map(|step| low * STEP.powi(step)).take_while(|&threshold| threshold < high)
    {
        let below = values.partition_point(|&value| value <= threshold);
        if below > reached {
            reached = below;
            let grouping = group(pairs, threshold);
            lasts = is_level(pairs, &grouping, threshold);
            if lasts && candidates.last().is_none_or(|last| last.grouping != grouping) {
                candidates.push(Candidate { grouping, from: threshold, to: threshold });
            }
        }
        if let Some(last) = candidates.last_mut().filter(|_| lasts) {
            last.to = threshold * STEP;
        }
    }
    candidates
}

/// Contexts that are together and have most of their neighbours in common.
fn group(pairs: &Pairs, threshold: f64) -> Grouping {
    let n = pairs.contexts();
    let together =
        |a: usize, b: usize| a == b || pairs.get(a, b).is_some_and(|value| value <= threshold);
    let neighbours: Vec<Vec<u64>> = (0..n)
        .map(|a| {
            let mut words = vec![0u64; n.div_ceil(64)];
            (0..n).filter(|&b| together(a, b)).for_each(|b| words[b / 64] |= 1 << (b % 64));
            words
        })
        .collect();
    let count = |a: usize, b: usize, of: fn(u64, u64) -> u64| -> u32 {
        neighbours[a].iter().zip(&neighbours[b]).map(|(&x, &y)| of(x, y).count_ones()).sum()
    };
    let mut group: Grouping = (0..n).collect();
    for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
        // Two of a group whose own value is spoilt come together through a third.
        if group[a] != group[b]
            && together(a, b)
            && 2 * count(a, b, |x, y| x & y) > count(a, b, |x, y| x | y)
        {
            let (from, to) = (group[a].max(group[b]), group[a].min(group[b]));
            group.iter_mut().filter(|number| **number == from).for_each(|number| *number = to);
        }
    }
    group
}

/// Pairs together in one group, and pairs that contradict the grouping.
fn count(pairs: &Pairs, grouping: &[usize], threshold: f64) -> (usize, Vec<(usize, usize, f64)>) {
    let n = pairs.contexts();
    let mut grouped = 0;
    let mut contradictions = Vec::new();
    for (a, b) in (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))) {
        let same = grouping[a] == grouping[b];
        grouped += usize::from(same);
        if let Some(value) = pairs.get(a, b)
            && same != (value <= threshold)
        {
            contradictions.push((a, b, value));
        }
    }
    (grouped, contradictions)
}

fn sizes(grouping: &[usize]) -> Vec<usize> {
    let mut sizes = vec![0; grouping.len()];
    grouping.iter().for_each(|&number| sizes[number] += 1);
    sizes.retain(|&size| size > 0);
    sizes
}

fn is_level(pairs: &Pairs, grouping: &[usize], threshold: f64) -> bool {
    let alone = sizes(grouping).into_iter().filter(|&size| size == 1).count();
    let (grouped, contradictions) = count(pairs, grouping, threshold);
    2 * alone < grouping.len() && contradictions.len() * CONTRADICTED <= grouped
}

fn nests(inner: &[usize], outer: &[usize]) -> bool {
    inner != outer && (0..inner.len()).all(|context| outer[context] == outer[inner[context]])
}

/// The factor by which the threshold has to rise without changing this grouping.
fn required(grouping: &[usize], inner: Option<&[usize]>, asymmetry: Option<f64>) -> f64 {
    let (sure, doubtful) = match asymmetry {
        Some(noise) => {
            let noise = noise.max(PERSISTENT.ln());
            (noise.exp(), if asymmetry == Some(0.0) { PERSISTENT } else { (4.0 * noise).exp() })
        }
        None => (PERSISTENT_UNKNOWN, PERSISTENT_CHANCE),
    };
    let sizes = sizes(grouping);
    let even = sizes.iter().all(|&size| size == sizes[0]);
    let limit = if even && chance(grouping, inner) <= CHANCE { sure } else { doubtful };
    limit.min(PERSISTENT_CHANCE)
}

/// The probability that random pairs, as many as the grouping has, make such a grouping. It is a
/// ratio of two numbers. The first is the ways to divide the groups inside it (or single contexts)
/// into sets of these sizes. The second is the ways to choose the pairs.
fn chance(grouping: &[usize], inner: Option<&[usize]>) -> f64 {
    let units: Vec<usize> = match inner {
        Some(inner) => (0..inner.len()).filter(|&context| inner[context] == context).collect(),
        None => (0..grouping.len()).collect(),
    };
    let mut members = vec![0usize; grouping.len()];
    units.iter().for_each(|&unit| members[grouping[unit]] += 1);
    members.retain(|&size| size > 0);
    let factorial = |n: usize| (2..=n).map(|i| (i as f64).ln()).sum::<f64>();
    let choose = |n: usize, k: usize| factorial(n) - factorial(k) - factorial(n - k);
    let mut ways = factorial(units.len());
    for (index, &size) in members.iter().enumerate() {
        // Sets of one size may change places.
        let alike = members[..=index].iter().filter(|&&other| other == size).count();
        ways -= factorial(size) + (alike as f64).ln();
    }
    let chosen: usize = members.iter().map(|size| size * (size - 1) / 2).sum();
    (ways - choose(units.len() * (units.len() - 1) / 2, chosen)).exp()
}

fn describe(contexts: &[CpuId], pairs: &Pairs, inner: &[usize], level: &Candidate) -> LatencyLevel {
    let n = contexts.len();
    let grouping = &level.grouping;
    let groups = (0..n)
        .filter(|&number| grouping[number] == number)
        .map(|number| {
            (0..n)
                .filter(|&context| grouping[context] == number)
                .map(|context| contexts[context])
                .collect()
        })
        .collect();
    let threshold = (level.from * level.to).sqrt();
    let (_, contradictions) = count(pairs, grouping, threshold);
    let mut values: Vec<f64> = (0..n)
        .flat_map(|a| (a + 1..n).map(move |b| (a, b)))
        .filter(|&(a, b)| grouping[a] == grouping[b] && inner[a] != inner[b])
        .filter_map(|(a, b)| pairs.get(a, b).filter(|&value| value <= threshold))
        .collect();
    values.sort_by(f64::total_cmp);
    let mut groups: Vec<CpuSet> = groups;
    groups.sort_by_key(CpuSet::first);
    LatencyLevel {
        groups,
        latency: class(&values),
        classes: classes(&values),
        contradictions: contradictions
            .into_iter()
            .map(|(a, b, value)| (contexts[a], contexts[b], value))
            .collect(),
    }
}

fn class(values: &[f64]) -> Option<LatencyClass> {
    summary(values.to_vec()).map(|(median, low, high)| LatencyClass {
        median,
        low,
        high,
        pairs: values.len(),
    })
}

/// Splits sorted values where they leave a gap; small parts stay with the one below.
fn classes(values: &[f64]) -> Vec<LatencyClass> {
    let least = values.len().div_ceil(CONTRADICTED);
    let mut classes = Vec::new();
    let mut start = 0;
    for index in 1..values.len() {
        let gap = values[index] >= values[index - 1] * CLASS_GAP;
        if gap && index - start >= least && values.len() - index >= least {
            classes.extend(class(&values[start..index]));
            start = index;
        }
    }
    if start == 0 {
        return Vec::new();
    }
    classes.extend(class(&values[start..]));
    classes
}
