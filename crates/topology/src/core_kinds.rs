//! The kinds of cores of a hybrid machine.
//!
//! Contexts are of one kind if they agree in everything the kernel reports about them. That is the
//! PMU that counts their events (`cpu_core`, `cpu_atom`), `cpu_capacity`, base and maximum
//! frequency. A property counts only if it is known of every context. Without capacities and
//! maximum frequencies, ACPI's nominal performance (`acpi_cppc/nominal_perf`) is the base
//! frequency. ACPI's highest performance does not count: AMD ranks cores of one kind by it, from
//! 236 down to 166.
//!
//! Maximum frequencies alone mislead. Turbo Boost Max 3.0 and AMD's preferred cores lift a few
//! cores of one kind by some percent. Contexts of equal base frequency whose maxima differ by less
//! than 10 % count as equal, as in hwloc.

use crate::snapshot::CPU;
use crate::{CoreKind, CpuId, CpuSet, Snapshot};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Spread of maximum frequencies within one kind: largest / smallest below this.
const ALIKE: f64 = 1.1;

/// What is known about a kind of core.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Traits {
    /// The kernel's or hwloc's name of it.
    pub(crate) name: Option<String>,
    /// `cpu_capacity`, 1024 for the fastest kind.
    pub(crate) capacity: Option<u64>,
    /// Base frequency in kHz, or nominal performance on ACPI's own scale.
    pub(crate) base: Option<u64>,
    /// Maximum frequency in kHz.
    pub(crate) max: Option<u64>,
}

/// The kinds of a recorded machine.
pub(crate) fn read(snapshot: &Snapshot, online: &CpuSet) -> Vec<CoreKind> {
    let pmus = pmus(snapshot);
    let capacities =
        of_all(online, |cpu| snapshot.number(&format!("{CPU}/cpu{}/cpu_capacity", cpu.0)));
    let frequency = |name: &str| {
        let policies = policies(snapshot, name);
        of_all(online, |cpu| {
            snapshot
                .number(&format!("{CPU}/cpu{}/cpufreq/{name}", cpu.0))
                .or_else(|| policies.get(&cpu).copied())
        })
    };
    let mut bases = frequency("base_frequency");
    let maxima = without_boost(frequency("cpuinfo_max_freq"), &bases);
    if capacities.is_empty() && maxima.is_empty() {
        let nominal = |cpu: CpuId| format!("{CPU}/cpu{}/acpi_cppc/nominal_perf", cpu.0);
        bases = of_all(online, |cpu| snapshot.number(&nominal(cpu)));
    }

    let mut groups: BTreeMap<Traits, CpuSet> = BTreeMap::new();
    for cpu in online.iter() {
        let traits = Traits {
            name: pmus.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|(name, _)| name.clone()),
            capacity: capacities.get(&cpu).copied(),
            base: bases.get(&cpu).copied(),
            max: maxima.get(&cpu).copied(),
        };
        groups.entry(traits).or_default().insert(cpu);
    }
    rank(groups.into_iter().collect())
}

/// The kinds, most capable first: by `cpu_capacity`, then maximum, then base frequency, then lowest
/// context.
pub(crate) fn rank(mut groups: Vec<(Traits, CpuSet)>) -> Vec<CoreKind> {
    groups.sort_by_key(|(traits, cpus)| {
        (Reverse((traits.capacity, traits.max, traits.base)), cpus.first())
    });
    let kinds = groups.len();
    let name = |index: usize, told: Option<String>| match told {
        Some(told) => told,
        None if kinds == 1 => "core".into(),
        None if index == 0 => "performance".into(),
        None if index + 1 == kinds => "efficiency".into(),
        None => format!("middle{index}"),
    };
    let kind = |(index, (traits, cpus)): (usize, (Traits, CpuSet))| CoreKind {
        name: name(index, traits.name),
        cpus,
        capacity: traits.capacity.or(traits.max),
    };
    groups.into_iter().enumerate().map(kind).collect()
}

/// The core PMUs of a hybrid machine: `sys/devices/NAME/cpus`. Uncore PMUs have `cpumask` instead.
fn pmus(snapshot: &Snapshot) -> Vec<(String, CpuSet)> {
    let pmu = |(path, _): (&str, &[u8])| {
        let name = path.strip_prefix("sys/devices/")?.strip_suffix("/cpus")?;
        let cpus = CpuSet::parse_list(snapshot.text(path)?).ok()?;
        (!name.contains('/')).then(|| (name.to_owned(), cpus))
    };
    snapshot.files().filter_map(pmu).collect()
}

/// A frequency (kHz) of each context by its cpufreq policy.
fn policies(snapshot: &Snapshot, name: &str) -> BTreeMap<CpuId, u64> {
    let mut frequencies = BTreeMap::new();
    for policy in snapshot.numbered(&format!("{CPU}/cpufreq"), "policy") {
        let directory = format!("{CPU}/cpufreq/policy{policy}");
        let Some(frequency) = snapshot.number(&format!("{directory}/{name}")) else { continue };
        let related = snapshot.text(&format!("{directory}/related_cpus")).unwrap_or_default();
        frequencies.extend(
            related
                .split_whitespace()
                .filter_map(|cpu| Some((CpuId(cpu.parse().ok()?), frequency))),
        );
    }
    frequencies
}

/// A property of every context, or of none.
fn of_all(online: &CpuSet, property: impl Fn(CpuId) -> Option<u64>) -> BTreeMap<CpuId, u64> {
    online.iter().map(|cpu| Some((cpu, property(cpu)?))).collect::<Option<_>>().unwrap_or_default()
}

/// Sets the maxima of contexts of equal base frequency to the smallest of them. They must differ by
/// less than [`ALIKE`].
fn without_boost(
    mut maxima: BTreeMap<CpuId, u64>,
    bases: &BTreeMap<CpuId, u64>,
) -> BTreeMap<CpuId, u64> {
    let mut ranges: BTreeMap<Option<u64>, (u64, u64)> = BTreeMap::new();
    for (cpu, &max) in &maxima {
        let (low, high) = ranges.entry(bases.get(cpu).copied()).or_insert((max, max));
        (*low, *high) = ((*low).min(max), (*high).max(max));
    }
    for (cpu, max) in &mut maxima {
        let (low, high) = ranges[&bases.get(cpu).copied()];
        if (high as f64) < low as f64 * ALIKE {
            *max = low;
        }
    }
    maxima
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(files: &[(&str, &str)]) -> Vec<(String, String, Option<u64>)> {
        let mut snapshot = Snapshot::default();
        for (path, text) in files {
            snapshot.insert(&format!("sys/devices/{path}"), text.as_bytes().to_vec()).unwrap();
        }
        let kinds = read(&snapshot, &"0-3".parse().unwrap());
        kinds.into_iter().map(|kind| (kind.name, kind.cpus.to_string(), kind.capacity)).collect()
    }

    #[test]
    fn the_pmus_of_a_hybrid_machine_name_its_kinds() {
        let files =
            [("cpu_core/cpus", "0-1\n"), ("cpu_atom/cpus", "2-3\n"), ("uncore_imc/cpumask", "0")];
        let unranked = kinds(&files);
        assert_eq!(unranked.len(), 2);
        let frequency = |cpu, khz| (format!("system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq"), khz);
        let frequencies = [
            frequency(0, "5000000"),
            frequency(1, "5200000"),
            frequency(2, "3900000"),
            frequency(3, "3900000"),
        ];
        let files: Vec<(&str, &str)> = files
            .into_iter()
            .chain(frequencies.iter().map(|(path, khz)| (path.as_str(), *khz)))
            .collect();
        let expected = [
            ("cpu_core".into(), "0,1".into(), Some(5_000_000)),
            ("cpu_atom".into(), "2,3".into(), Some(3_900_000)),
        ];
        // Without base frequencies all maxima are one range, 33 % wide. So nothing is evened out,
        // and cores 0 and 1 differ.
        assert_eq!(kinds(&files).len(), 3);
        let bases: Vec<(String, &str)> = (0..4)
            .map(|cpu| {
                (
                    format!("system/cpu/cpu{cpu}/cpufreq/base_frequency"),
                    if cpu < 2 { "1900000" } else { "1400000" },
                )
            })
            .collect();
        let files: Vec<(&str, &str)> = files
            .into_iter()
            .chain(bases.iter().map(|(path, khz)| (path.as_str(), *khz)))
            .collect();
        assert_eq!(kinds(&files), expected);
    }

    #[test]
    fn capacities_rank_kinds_and_partial_knowledge_counts_for_nothing() {
        let capacity = |cpu, value| (format!("system/cpu/cpu{cpu}/cpu_capacity"), value);
        let files =
            [capacity(0, "446"), capacity(1, "446"), capacity(2, "1024"), capacity(3, "1024")];
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, value)| (path.as_str(), *value)).collect();
        let expected = [
            ("performance".to_owned(), "2,3".to_owned(), Some(1024)),
            ("efficiency".into(), "0,1".into(), Some(446)),
        ];
        assert_eq!(kinds(&files), expected);
        assert_eq!(kinds(&files[..3]), [("core".to_owned(), "0-3".to_owned(), None)]);
    }

    #[test]
    fn nominal_performance_separates_kinds_if_nothing_else_does() {
        let cppc = |cpu, name, value| (format!("system/cpu/cpu{cpu}/acpi_cppc/{name}"), value);
        let read = |nominal: [&'static str; 4], others: &[(&str, &str)]| {
            let files: Vec<(String, &str)> = (0..4)
                .flat_map(|cpu| {
                    let highest = ["236", "231", "171", "166"][cpu];
                    [cppc(cpu, "nominal_perf", nominal[cpu]), cppc(cpu, "highest_perf", highest)]
                })
                .collect();
            let files = files.iter().map(|(path, value)| (path.as_str(), *value));
            kinds(&files.chain(others.iter().copied()).collect::<Vec<_>>())
        };
        let one = [("core".to_owned(), "0-3".to_owned(), None)];
        assert_eq!(read(["124"; 4], &[]), one, "preferred cores are of one kind");
        let two = [
            ("performance".to_owned(), "2,3".to_owned(), None),
            ("efficiency".into(), "0,1".into(), None),
        ];
        let nominal = ["80", "80", "124", "124"];
        assert_eq!(read(nominal, &[]), two);
        let capacities: Vec<(String, &str)> =
            (0..4).map(|cpu| (format!("system/cpu/cpu{cpu}/cpu_capacity"), "1024")).collect();
        let capacities: Vec<(&str, &str)> =
            capacities.iter().map(|(path, value)| (path.as_str(), *value)).collect();
        assert_eq!(read(nominal, &capacities).len(), 1, "the kernel knows better");
    }
}
