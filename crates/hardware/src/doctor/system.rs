//! How the system is configured, as far as it makes measurements differ that should be equal.

use super::{Finding, read};
use pinwise_linux::Quota;
use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

const CPUS: &str = "/sys/devices/system/cpu";

/// Which frequency governors are in force.
pub(super) fn governor() -> Finding {
    let mut governors: BTreeMap<String, usize> = BTreeMap::new();
    for entry in fs::read_dir(CPUS).into_iter().flatten().flatten() {
        if let Some(governor) = read(entry.path().join("cpufreq/scaling_governor")) {
            *governors.entry(governor).or_default() += 1;
        }
    }
    if governors.is_empty() {
        return Finding::NoGovernor { virtual_machine: hypervisor() };
    }
    Finding::Governors { contexts: governors }
}

/// Whether the processor says that it is a virtual one (x86 shows it among its flags).
fn hypervisor() -> bool {
    let Ok(info) = fs::read_to_string("/proc/cpuinfo") else { return false };
    virtual_processor(&info)
}

fn virtual_processor(cpuinfo: &str) -> bool {
    cpuinfo.lines().any(|line| {
        line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor")
    })
}

/// Whether the frequency may rise while few cores are busy.
pub(super) fn turbo() -> Finding {
    let no_turbo = read(format!("{CPUS}/intel_pstate/no_turbo"));
    let boost = read(format!("{CPUS}/cpufreq/boost"));
    judge_turbo(no_turbo.as_deref(), boost.as_deref())
}

fn judge_turbo(no_turbo: Option<&str>, boost: Option<&str>) -> Finding {
    let on = match (no_turbo, boost) {
        (Some(no_turbo), _) => Some(no_turbo == "0"),
        (None, boost) => boost.map(|boost| boost == "1"),
    };
    Finding::Turbo { on }
}

/// Whether the kernel moves memory and threads between NUMA nodes automatically.
pub(super) fn numa_balancing(nodes: usize) -> Finding {
    judge_numa_balancing(nodes, read("/proc/sys/kernel/numa_balancing").as_deref())
}

fn judge_numa_balancing(nodes: usize, setting: Option<&str>) -> Finding {
    match (nodes, setting) {
        (0 | 1, _) => Finding::OneNode,
        (_, None | Some("0")) => Finding::NumaBalancingOff,
        _ => Finding::NumaBalancing { nodes },
    }
}

/// Whether a cgroup limits how much CPU time this process gets.
pub(super) fn quota() -> Finding {
    Quota::own().map_or(Finding::NoQuota, |Quota { contexts, group }| Finding::Quota {
        cpus: contexts,
        directory: group.to_string_lossy().into_owned(),
    })
}

/// How memory is backed by large pages.
pub(super) fn huge_pages() -> Finding {
    let transparent = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let memory = read("/proc/meminfo").unwrap_or_default();
    Finding::HugePages {
        transparent: transparent.as_deref().and_then(chosen).map(str::to_owned),
        reserved: reserved(&memory),
    }
}

/// The word in brackets of `always [madvise] never`.
fn chosen(options: &str) -> Option<&str> {
    Some(options.split_once('[')?.1.split_once(']')?.0)
}

fn reserved(meminfo: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| line.strip_prefix("HugePages_Total:")?.trim().parse().ok())
}

/// Which clock windows are timed with, and what reading it costs.
pub(super) fn clock() -> Finding {
    const READINGS: u32 = 10_000;
    let begin = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(Instant::now());
    }
    let cost = begin.elapsed() / READINGS;
    let directory = format!("{CPUS}/../clocksource/clocksource0");
    let available = read(format!("{directory}/available_clocksource")).unwrap_or_default();
    Finding::Clock {
        source: read(format!("{directory}/current_clocksource")),
        tsc: available.split_whitespace().any(|name| name == "tsc"),
        nanoseconds: u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX),
    }
}

/// Whether other programs are running.
pub(super) fn load(contexts: usize) -> Finding {
    match read("/proc/loadavg").as_deref().and_then(parse_load) {
        // One of the runnable ones is this.
        Some((minute, runnable)) => {
            Finding::Load { minute, others: runnable.saturating_sub(1), contexts }
        }
        None => Finding::LoadUnknown,
    }
}

/// The average number of runnable threads over the last minute, and how many are runnable now.
fn parse_load(loadavg: &str) -> Option<(f64, usize)> {
    let mut fields = loadavg.split_whitespace();
    let minute = fields.next()?.parse().ok()?;
    let runnable = fields.nth(2)?.split_once('/')?.0.parse().ok()?;
    Some((minute, runnable))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::FindingState;

    #[test]
    fn a_governor_other_than_performance_is_to_be_changed() {
        let governors = |list: &[(&str, usize)]| Finding::Governors {
            contexts: list.iter().map(|&(name, count)| (name.to_owned(), count)).collect(),
        };
        assert!(governors(&[("performance", 8)]).is_ok());
        assert!(!governors(&[("performance", 4), ("powersave", 4)]).is_ok());
        assert!(virtual_processor("processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n"));
        assert!(!virtual_processor("flags\t\t: fpu vme\n"));
    }

    #[test]
    fn turbo_is_read_in_both_drivers() {
        let on = |no_turbo, boost| {
            let Finding::Turbo { on } = judge_turbo(no_turbo, boost) else { panic!() };
            on
        };
        assert_eq!(on(Some("0"), None), Some(true));
        assert_eq!(on(Some("1"), Some("1")), Some(false));
        assert_eq!(on(None, Some("1")), Some(true));
        assert_eq!(on(None, None), None);
    }

    #[test]
    fn numa_balancing_matters_with_two_nodes() {
        assert!(judge_numa_balancing(1, Some("1")).is_ok());
        assert!(judge_numa_balancing(2, Some("0")).is_ok());
        assert!(!judge_numa_balancing(2, Some("1")).is_ok());
        assert!(!judge_numa_balancing(2, Some("2")).is_ok());
    }

    #[test]
    fn slow_clocks_are_to_be_changed() {
        let clock = |source: Option<&str>| Finding::Clock {
            source: source.map(str::to_owned),
            tsc: true,
            nanoseconds: 25,
        };
        assert!(clock(Some("tsc")).is_ok() && clock(Some("kvm-clock")).is_ok());
        assert!(clock(None).is_ok());
        assert_eq!(clock(Some("hpet")).state(), FindingState::Warning);
    }

    #[test]
    fn load_counts_against_the_contexts() {
        assert_eq!(parse_load("0.20 0.18 0.12 1/80 11206"), Some((0.2, 1)));
        assert_eq!(parse_load("x"), None);
        let state = |minute, contexts| Finding::Load { minute, others: 0, contexts }.state();
        assert_eq!(state(0.2, 2), FindingState::Ok);
        assert_eq!(state(3.5, 8), FindingState::Warning);
    }

    #[test]
    fn the_chosen_kind_of_huge_pages_stands_in_brackets() {
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
        assert_eq!(chosen("never"), None);
        assert_eq!(reserved("MemTotal: 5 kB\nHugePages_Total:      12\n"), Some(12));
    }
}
